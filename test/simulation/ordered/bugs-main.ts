/**
 * `npm run simulate:ordered-bugs` checks that each bug planted into the passes over ordered sets is found by the seed
 * that the list names; with `--search` every bug is looked for anew, from seed 0 on, and the list is written. `--json FILE`
 * keeps {date, planted, found} under `orderedBugs`.
 */
import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { readOptions } from "../../support/read-options.ts";
import { plantBug } from "../planted-bug.ts";
import { keepReport } from "../report-file.ts";

const run = promisify(execFile);
const BUGS = join(import.meta.dirname, "bugs");
const LIST = join(BUGS, "found.json");
/** While one is compiled the other is run. */
const AT_ONCE = 2;
const LEAST_BUGS = 15;
const MOST_SEEDS = 4_000;
/** A bug may make a pass run in circles. */
const TIMEOUT_MS = 600_000;

const { values } = readOptions({
  options: { search: { type: "boolean" }, only: { type: "string" }, json: { type: "string" } },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** The first seed that finds the bug; undefined: none of `seeds` does. */
async function find(folder: string, from: number, seeds: number): Promise<number | undefined> {
  const script = join(folder, "test/simulation/ordered/main.ts");
  const argv = [script, "--first", "--from", String(from), "--seeds", String(seeds)];
  const output = await run(process.execPath, argv, { timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 }).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout?: string }) => error.stdout ?? "",
  );
  const seed = /^FAIL .* --seed (\d+)/m.exec(output)?.[1];
  return seed === undefined ? undefined : Number(seed);
}

/** The seed that found it, or a sentence. */
async function check(name: string, listed: number | undefined): Promise<number | string> {
  const bug = await plantBug(`../ordered/bugs/${name}`);
  try {
    if (bug.problems.length > 0) return `does not compile: ${bug.problems[0]}`;
    if (values.search) return (await find(bug.folder, 0, MOST_SEEDS)) ?? `is not found by ${MOST_SEEDS} seeds`;
    if (listed === undefined) return "stands in no list: npm run simulate:ordered-bugs -- --search";
    return (await find(bug.folder, listed, 1)) ?? `is not found by seed ${listed}, which found it once`;
  } finally {
    await bug.remove();
  }
}

async function checkAll(): Promise<boolean> {
  const listed = JSON.parse(await readFile(LIST, "utf8").catch(() => "{}")) as Record<string, number>;
  const files = (await readdir(BUGS)).filter((file) => file.endsWith(".patch"));
  const names = files.map((file) => file.slice(0, -".patch".length));
  const found: Record<string, number> = {};
  const left = names.filter((one) => values.only === undefined || one === values.only);
  const work = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const seed = await check(name, listed[name]).catch((error: unknown) => `does not apply: ${error}`);
      if (typeof seed === "number") found[name] = seed;
      print(`${typeof seed === "number" ? "ok  " : "FAIL"} planted bug ${name}: ${seed}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const count = Object.keys(found).length;
  if (values.search) await writeFile(LIST, `${JSON.stringify({ ...listed, ...found }, undefined, 2)}\n`);
  print(`${count} of ${names.length} planted bugs found`);
  if (values.json) keepReport(values.json, "orderedBugs", { planted: names.length, found: count });
  return values.only !== undefined ? count === 1 : count === names.length && count >= LEAST_BUGS;
}

process.exitCode = (await checkAll()) ? 0 : 1;
