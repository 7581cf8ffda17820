/**
 * `npm run simulate:bugs` checks that each planted bug is found by the seed that the list names; with `--search` those
 * that are not are looked for anew, from seed 0 on, and the list is written. `--only NAME` is about one of them.
 */
import { readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { mapLimited } from "../../shared/controller/concurrency.ts";
import { readOptions } from "../support/read-options.ts";
import { findBug, plantBug, plantedBugs } from "./planted-bug.ts";
import { keepReport } from "./report-file.ts";

const LEAST_BUGS = 30;
const MOST_SEEDS = 5_000;
const LIST = join(import.meta.dirname, "bugs/found.json");

type Found = Record<string, number>;

const { values } = readOptions({
  options: { search: { type: "boolean" }, only: { type: "string" }, json: { type: "string" } },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** The seed that found it, or a sentence. */
async function check(name: string, listed: number | undefined): Promise<number | string> {
  const bug = await plantBug(name);
  try {
    if (bug.problems.length > 0) return `does not compile: ${bug.problems[0]}`;
    const again = listed === undefined ? undefined : await findBug(bug, listed, 1);
    if (again !== undefined) return again;
    if (values.search) return (await findBug(bug, 0, MOST_SEEDS)) ?? `is not found by ${MOST_SEEDS} seeds`;
    if (listed === undefined) return "stands in no list: npm run simulate:bugs -- --search";
    return `is not found by seed ${listed}, which found it once`;
  } finally {
    await bug.remove();
  }
}

async function checkAll(): Promise<boolean> {
  const listed = JSON.parse(await readFile(LIST, "utf8").catch(() => "{}")) as Found;
  const names = (await plantedBugs()).filter((name) => values.only === undefined || name === values.only);
  const found: Found = {};
  const problems: string[] = [];
  await mapLimited(names, availableParallelism(), async (name) => {
    const seed = await check(name, listed[name]).catch((error: unknown) => `does not apply: ${error}`);
    if (typeof seed === "number") found[name] = seed;
    else problems.push(`${name} ${seed}`);
    print(`${typeof seed === "number" ? "ok  " : "FAIL"} planted bug ${name}: ${seed}`);
  });
  const gone = Object.keys(listed).filter((name) => values.only === undefined && !names.includes(name));
  if (values.search)
    await writeFile(LIST, `${JSON.stringify(inOrder({ ...kept(listed, gone), ...found }), undefined, 2)}\n`);
  print(`${Object.keys(found).length} of ${names.length} planted bugs found; ${gone.length} in the list are gone`);
  const figures = { planted: names.length, found: Object.keys(found).length, mostSeeds: MOST_SEEDS };
  if (values.json) keepReport(values.json, "bugs", figures);
  const isEnough = names.length >= LEAST_BUGS || values.only !== undefined;
  return problems.length === 0 && isEnough && (gone.length === 0 || values.search === true);
}

function kept(listed: Found, gone: readonly string[]): Found {
  return Object.fromEntries(Object.entries(listed).filter(([name]) => !gone.includes(name)));
}

function inOrder(found: Found): Found {
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
}

process.exitCode = (await checkAll()) ? 0 : 1;
