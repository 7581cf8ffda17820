/** A bug planted on purpose: a patch, applied to a copy of what is simulated, which a simulation then has to find. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const COPIED = [
  "package.json",
  "tsconfig.json",
  "shared",
  "infra/local",
  "infra/webhooks",
  "test/simulation",
  "test/support/objects.ts",
  "test/support/read-options.ts",
  "functions/check-node.mjs",
];
/** A bug may make a pass run in circles. */
const TIMEOUT_MS = 600_000;

export interface PlantedBug {
  readonly folder: string;
  /** what is wrong with the patch itself: it must compile */
  readonly problems: readonly string[];
  readonly remove: () => Promise<void>;
}

/** Into a copy of `copied`, paths in the repository. Throws when the patch does not apply. */
export async function plantBug(patch: string, copied: readonly string[] = COPIED): Promise<PlantedBug> {
  const folder = await mkdtemp(join(tmpdir(), "planted-bug-"));
  for (const path of copied) await cp(join(ROOT, path), join(folder, path), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await run("git", ["apply", "--unidiff-zero", "--whitespace=nowarn", patch], {
    cwd: folder,
    env: { ...process.env, GIT_DIR: "none" },
  });
  const changed = [...(await readFile(patch, "utf8")).matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, file = ""]) => file);
  return { folder, problems: compile(folder, changed), remove: () => rm(folder, { recursive: true }) };
}

/** What the compiler says about these files. */
function compile(folder: string, files: readonly string[]): readonly string[] {
  const { config } = ts.readConfigFile(join(folder, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files }, ts.sys, folder);
  const program = ts.createProgram(
    files.map((file) => join(folder, file)),
    options,
  );
  const sources = files.flatMap((file) => program.getSourceFile(join(folder, file)) ?? []);
  if (sources.length !== files.length || files.length === 0) return ["the patch changes no file that is compiled"];
  const found = sources.flatMap((source) => [
    ...program.getSyntacticDiagnostics(source),
    ...program.getSemanticDiagnostics(source),
  ]);
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

/**
 * The first seed out of `from` … with which this script of test/simulation finds the bug, and nothing without it;
 * undefined: there is none.
 */
export async function findBug(bug: PlantedBug, script: string, from: number, seeds: number) {
  for (let next = from; next < from + seeds; ) {
    const seed = await firstFinding(bug.folder, script, next, from + seeds - next);
    if (seed === undefined || (await isClean(script, seed))) return seed;
    next = seed + 1;
  }
  return undefined;
}

/** By script and seed: many bugs are found by the same. */
const clean = new Map<string, Promise<boolean>>();

function isClean(script: string, seed: number): Promise<boolean> {
  const key = `${script} ${seed}`;
  const known = clean.get(key) ?? firstFinding(ROOT, script, seed, 1).then((found) => found === undefined);
  clean.set(key, known);
  return known;
}

async function firstFinding(folder: string, script: string, from: number, seeds: number): Promise<number | undefined> {
  const file = join(folder, "test/simulation", script);
  const argv = [file, "--first", "--from", String(from), "--seeds", String(seeds)];
  const { stdout, failure } = await run(process.execPath, argv, { timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 }).then(
    ({ stdout }) => ({ stdout, failure: undefined }),
    (failure: Failure) => ({ stdout: failure.stdout, failure }),
  );
  const seed = /^FAIL .* --seed (\d+)/m.exec(stdout)?.[1];
  if (seed !== undefined) return Number(seed);
  // Without its sum it was not through: it could not be loaded, say. A failure with one is that too little happened in one world.
  if (!/^\d+ .*\b0 violated/m.test(stdout) && failure?.killed !== true)
    throw new Error(`${script} --from ${from} ends early: ${failure?.stderr.slice(0, 500)}`);
  return undefined;
}

interface Failure {
  readonly stdout: string;
  readonly stderr: string;
  readonly killed?: boolean;
}
