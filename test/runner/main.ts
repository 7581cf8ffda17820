/** `npm run vectors -- DIR…` runs every vector file below each folder. Exits 1 unless all vectors pass. */
import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { formatDifference } from "./compare.ts";
import { type CaseFailure, type FileResult, runFile } from "./run.ts";

const SHOWN_FAILURES = 5;
const SHOWN_DIFFERENCES = 5;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function filesBelow(folder: string): readonly string[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  return globSync("**/*.json", { cwd: folder })
    .sort()
    .map((file) => join(folder, file));
}

function sayFailure({ name, differences, error }: CaseFailure): void {
  say(`    ${name}`);
  if (error !== undefined) say(`      threw ${error.split("\n").slice(0, 6).join("\n      ")}`);
  for (const difference of differences.slice(0, SHOWN_DIFFERENCES)) say(`      ${formatDifference(difference)}`);
  if (differences.length > SHOWN_DIFFERENCES) say(`      … ${differences.length} differences in all`);
}

function sayResult(result: FileResult): void {
  if (result.kind === "refused") {
    say(`${result.title}: ${result.sentence}`);
    return;
  }
  if (result.kind === "pending") return;
  const failed = result.failures.length;
  say(`${result.title} ${result.total - failed}/${result.total}`);
  for (const failure of result.failures.slice(0, SHOWN_FAILURES)) sayFailure(failure);
  if (failed > SHOWN_FAILURES) say(`    … ${failed} failed cases in all`);
}

async function runFolder(folder: string): Promise<readonly FileResult[]> {
  const files = filesBelow(folder);
  if (files.length === 0)
    return [{ kind: "refused", title: folder, sentence: "there is no vector file in this folder" }];
  const results: FileResult[] = [];
  for (const file of files) {
    results.push(await runFile(file));
  }
  return results;
}

/** Counts a refused file as failed, because the run did not look at its content. */
function summarize(results: readonly FileResult[]): boolean {
  const waiting = results.filter((result) => result.kind === "pending");
  if (waiting.length > 0) say(`pending: ${waiting.map(({ title, total }) => `${title} (${total})`).join(", ")}`);
  const ran = results.filter((result) => result.kind === "ran");
  const failures = ran.reduce((sum, { failures }) => sum + failures.length, 0);
  const passed = ran.reduce((sum, { total }) => sum + total, 0) - failures;
  const failed = failures + results.filter((result) => result.kind === "refused").length;
  say(`${passed} passed, ${failed} failed`);
  return failed === 0;
}

async function main(folders: readonly string[]): Promise<boolean> {
  if (folders.length === 0) {
    say("name at least one folder of vectors: npm run vectors -- DIR…");
    return false;
  }
  const results: FileResult[] = [];
  for (const folder of folders) {
    for (const result of await runFolder(folder)) {
      sayResult(result);
      results.push(result);
    }
  }
  return summarize(results);
}

process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
