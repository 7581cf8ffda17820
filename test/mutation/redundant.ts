/**
 * `npm run mutation -- --redundant core shared/core/injection test/core/inject` finds redundant tests below the last
 * folder. A test is redundant if other tests kill the same mutants of the first folder; vectors count if they are
 * named. `--survivors core …` lists the mutants that none of these tests kills.
 */
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { type Outcome, PATHS, readLines, readMutants, readOutcomes, SOURCES, SURVIVORS, VECTORS } from "./killers.ts";
import { VARIABLE } from "./parts.ts";

/** Milliseconds after which a process is killed, because a mutant made a loop endless. */
const ENDLESS_MS = 30_000;
const LOOK_MS = 1_000;
/**
 * The most runs. A process that runs out of memory starts again, without its present mutant. Usually no mutant is the
 * cause.
 */
const MOST_RUNS = 60;
/** The most printed characters of a replacement. */
const SHOWN = 100;

const mutantNow = () => (existsSync(PATHS.now) ? readLines(PATHS.now)[0]?.split(" ")[0] : undefined);

/** Returns true if all tests have run. */
function runOnce(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  writeFileSync(PATHS.now, "");
  const child = spawn(process.execPath, [...argv], { stdio: "inherit", env });
  const watch = setInterval(() => {
    if (mutantNow() && Date.now() - statSync(PATHS.now).mtimeMs > ENDLESS_MS) child.kill("SIGKILL");
  }, LOOK_MS);
  return new Promise((resolve) => {
    child.once("exit", () => {
      clearInterval(watch);
      const id = mutantNow();
      if (id) appendFileSync(PATHS.endless, `${id}\n`);
      resolve(!id);
    });
  });
}

/** A test, or a row of a table, that may be redundant. */
export interface Candidate extends Outcome {
  readonly lines: number;
  readonly stays: boolean;
}

/** Removes one test after the other, the longest first, if other tests kill each of its mutants. */
export function findRedundant(candidates: readonly Candidate[]): readonly Candidate[] {
  const killers = new Map<string, number>();
  const count = ({ killed }: Candidate, by: number) => {
    for (const id of killed) killers.set(id, (killers.get(id) ?? 0) + by);
  };
  const isAlone = (id: string) => (killers.get(id) ?? 0) < 2;
  for (const candidate of candidates) count(candidate, 1);
  const longestFirst = candidates.toSorted((a, b) => b.lines - a.lines || a.killed.length - b.killed.length);
  return longestFirst.filter((candidate) => {
    const isRedundant = !(candidate.stays || candidate.killed.some(isAlone));
    if (isRedundant) count(candidate, -1);
    return isRedundant;
  });
}

/** True if a test file imports code without mutants, which may be the real subject of the test. */
function importsOthers(file: string, text: string, sources: readonly string[]): boolean {
  const imported = [...text.matchAll(/^(?:import (?!type)|\} )[^;]*from "(\.[^"]+)";/gm)];
  const paths = imported.map(([, path = ""]) => join(dirname(file), path));
  const ours = paths.filter((path) => /^shared\/(?!api\/|go\/)|^functions\/|^infra\//.test(path));
  return ours.some((path) => !sources.some((source) => path.startsWith(source)));
}

function readCandidates(sources: readonly string[]): readonly Candidate[] {
  const files = Map.groupBy(readOutcomes(), ({ file }) => file);
  return [...files].flatMap(([file, outcomes]) => {
    const text = readFileSync(file, "utf8");
    const starts = [...new Set(outcomes.map(({ line }) => line))];
    const stays = file === VECTORS || importsOthers(file, text, sources);
    return outcomes.map((outcome) => {
      const rows = outcomes.filter(({ line }) => line === outcome.line).length;
      const end = Math.min(...starts.filter((start) => start > outcome.line), text.split("\n").length);
      return { ...outcome, lines: rows > 1 ? 1 : end - outcome.line, stays: stays || !outcome.isMeasured };
    });
  });
}

function sayRedundant(candidates: readonly Candidate[]): void {
  const redundant = new Set(findRedundant(candidates));
  for (const [file, those] of Map.groupBy(redundant, (candidate) => candidate.file)) {
    const all = candidates.filter((candidate) => candidate.file === file).length;
    process.stdout.write(`\n${file}: ${those.length} of ${all} find nothing alone\n`);
    for (const { line, title } of those.toSorted((a, b) => a.line - b.line))
      process.stdout.write(`${line}: ${title}\n`);
  }
  const killed = new Set(candidates.flatMap((candidate) => candidate.killed)).size;
  process.stdout.write(`\n${redundant.size} of ${candidates.length} tests find nothing alone of ${killed} mutants\n`);
}

/**
 * Prints the survivors. A module computes some values while it loads; no test reaches mutants there, so these count as
 * survivors.
 */
function saySurvivors(): void {
  const killed = new Set([...readLines(PATHS.endless), ...readOutcomes().flatMap((outcome) => outcome.killed)]);
  const mutants = readMutants();
  const survivors = mutants.filter(({ id }) => !killed.has(id));
  for (const { file, line, column, replacement } of survivors)
    process.stdout.write(`${file}:${line}:${column}: ${replacement.replaceAll(/\s+/g, " ").slice(0, SHOWN)}\n`);
  const unmeasured = readOutcomes().filter(({ isMeasured }) => !isMeasured).length;
  process.stdout.write(
    `\n${mutants.length - survivors.length} of ${mutants.length} mutants are found; ${unmeasured} tests could not be repeated\n`,
  );
}

async function searchKillers(
  [part = "core", ...paths]: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<readonly string[]> {
  const tests = paths.filter((path) => path.startsWith("test/"));
  const sources = paths.filter((path) => !tests.includes(path));
  mkdirSync(dirname(PATHS.now), { recursive: true });
  for (const path of Object.values(PATHS)) rmSync(path, { force: true });
  const vitest = fileURLToPath(import.meta.resolve("vitest/package.json")).replace("package.json", "vitest.mjs");
  const argv = [vitest, "run", "--config", "test/mutation/redundant.config.ts", ...tests];
  const env = { ...process.env, [VARIABLE]: part, [SOURCES]: sources.join(" "), ...more };
  for (let runs = 0; runs < MOST_RUNS; runs++) if (await runOnce(argv, env)) break;
  return sources;
}

export async function searchRedundant(words: readonly string[]): Promise<void> {
  sayRedundant(readCandidates(await searchKillers(words)));
}

export async function searchSurvivors(words: readonly string[]): Promise<void> {
  await searchKillers(words, { [SURVIVORS]: "1" });
  saySurvivors();
}
