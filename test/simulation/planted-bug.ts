/** A bug planted on purpose: a patch on a copy of the simulated code. A simulation must find it. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
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
  "test/support/hold-places.ts",
  "test/support/objects.ts",
  "test/support/read-options.ts",
  "functions/check-node.mjs",
  "functions",
];
/** The time limit of a run in milliseconds: a bug may cause an endless loop. */
const TIMEOUT_MS = 600_000;

export interface PlantedBug {
  readonly folder: string;
  /** faults of the patch itself, such as errors of the compiler */
  readonly problems: readonly string[];
  readonly remove: () => Promise<void>;
}

/** Copies of the files that hold no planted bug now, by the list of their files. */
const idle = new Map<readonly string[], string[]>();
const scratch = mkdtempSync(join(tmpdir(), "planted-bugs-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

/** Applies the patch to a copy of `copied`, which are paths in the repository. Throws if the patch does not apply. */
export async function plantBug(patch: string, copied: readonly string[] = COPIED): Promise<PlantedBug> {
  const copies = idle.get(copied) ?? [];
  idle.set(copied, copies);
  const folder = copies.pop() ?? (await copy(copied));
  const env = { ...process.env, GIT_DIR: "none" };
  await run("git", ["apply", "--unidiff-zero", "--whitespace=nowarn", patch], { cwd: folder, env });
  const text = await readFile(patch, "utf8");
  const changed = [...text.matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, file = ""]) => file);
  const touched = [...text.matchAll(/^(?:--- a|\+\+\+ b)\/(.*)$/gm)].map(([, file = ""]) => file);
  const remove = async () => {
    // The files are copied again: a reversed patch without context may match another place.
    for (const file of touched) await restore(folder, file);
    copies.push(folder);
  };
  return { folder, problems: compile(folder, changed), remove };
}

async function restore(folder: string, file: string): Promise<void> {
  await rm(join(folder, file), { force: true });
  if (existsSync(join(ROOT, file))) await cp(join(ROOT, file), join(folder, file));
}

async function copy(paths: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(scratch, "copy-"));
  for (const path of paths) await cp(join(ROOT, path), join(folder, path), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** Parsed sources by path; they are the same with every bug. Parsing them for each bug would take most of the time. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** Returns the compiler's errors in these files of the folder, together with the repository's other files. */
function compile(folder: string, files: readonly string[]): readonly string[] {
  const planted = new Map(files.map((file) => [join(ROOT, file), join(folder, file)]));
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files }, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (name) => fileExists(planted.get(name) ?? name);
  host.getSourceFile = (name, how) => {
    const file = planted.get(name);
    if (file) return ts.createSourceFile(name, ts.sys.readFile(file) ?? "", how);
    if (!parsed.has(name)) parsed.set(name, getSourceFile(name, how));
    return parsed.get(name);
  };
  const program = ts.createProgram([...planted.keys()], options, host);
  const sources = [...planted.keys()].flatMap((name) => program.getSourceFile(name) ?? []);
  if (sources.length !== files.length || files.length === 0) return ["the patch changes no file that is compiled"];
  const found = sources.flatMap((source) => [
    ...program.getSyntacticDiagnostics(source),
    ...program.getSemanticDiagnostics(source),
  ]);
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

/**
 * Returns the first seed from `from` on with which this script of test/simulation finds the bug. Without the bug the
 * seed must find nothing. undefined: there is none.
 */
export async function findBug(bug: PlantedBug, script: string, from: number, seeds: number) {
  for (let next = from; next < from + seeds; ) {
    const seed = await firstFinding(bug.folder, script, next, from + seeds - next);
    if (seed === undefined || (await isClean(script, seed))) return seed;
    next = seed + 1;
  }
  return undefined;
}

/** Results without a bug, by script and seed, because the same seed finds many bugs. */
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
  // The cache spares each process from compiling unchanged files again.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(scratch, "compiled") };
  const { stdout, failure } = await run(process.execPath, argv, { env, timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 }).then(
    ({ stdout }) => ({ stdout, failure: undefined }),
    (failure: Failure) => ({ stdout: failure.stdout, failure }),
  );
  const seed = /^FAIL .* --seed (\d+)/m.exec(stdout)?.[1];
  if (seed !== undefined) return Number(seed);
  // Without a summary line the run failed, for example because the code could not be loaded. A failure with a summary
  // line means that too little happened in one world.
  if (!/^\d+ .*\b0 violated/m.test(stdout) && failure?.killed !== true)
    throw new Error(`${script} --from ${from} ends early: ${failure?.stderr.slice(0, 500)}`);
  return undefined;
}

interface Failure {
  readonly stdout: string;
  readonly stderr: string;
  readonly killed?: boolean;
}
