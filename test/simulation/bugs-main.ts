/**
 * `npm run simulate:bugs` checks that each planted bug is found. The seed in found.json must find it; after a change of
 * the product or of a world, one of the first 200 seeds. At least 95 % of the bugs must be found. `--search` tries more
 * seeds and writes the list. `--of views` takes only the bugs of one simulation, `--only NAME` only one bug. `--json
 * FILE` stores the numbers of planted and found bugs.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import { readOptions } from "../support/read-options.ts";
import { findBug, plantBug } from "./planted-bug.ts";
import { keepReport } from "./report-file.ts";
import { SIMULATIONS, type Simulation } from "./simulations.ts";

type Found = Record<string, number>;

const { values } = readOptions({
  options: {
    search: { type: "boolean" },
    of: { type: "string" },
    only: { type: "string" },
    json: { type: "string" },
  },
});
const SPARE_SEEDS = 200;
/**
 * A change of the product changes the worlds of the seeds. A rare bug may then stay unfound until somebody runs
 * `--search`.
 */
const LEAST_SHARE = 0.95;
const print = (line: string) => void process.stdout.write(`${line}\n`);

let checked = 0;
let isAllFound = true;
for (const [name, simulation] of Object.entries(SIMULATIONS))
  if (values.of === undefined || values.of === name) isAllFound = (await checkAll(name, simulation)) && isAllFound;
if (checked === 0) print("FAIL no planted bug has that name");
process.exitCode = isAllFound && checked > 0 ? 0 : 1;

async function checkAll(simulationName: string, simulation: Simulation): Promise<boolean> {
  const folder = join(import.meta.dirname, simulation.bugs);
  const list = join(folder, "found.json");
  const listed = JSON.parse(await readFile(list, "utf8").catch(() => "{}")) as Found;
  const planted = (await readdir(folder)).filter((file) => file.endsWith(".patch")).map((file) => file.slice(0, -6));
  const names = planted.filter((name) => values.only === undefined || name === values.only);
  const gone = Object.keys(listed).filter((name) => !planted.includes(name));
  const found: Found = {};
  await mapLimited(names, availableParallelism(), async (name) => {
    const patch = join(folder, `${name}.patch`);
    const seed = await check(simulation, patch, listed[name]).catch((error: unknown) => `cannot be tried: ${error}`);
    if (typeof seed === "number") found[name] = seed;
    const moved = typeof seed === "number" && seed !== listed[name] ? `, no longer by ${listed[name]}` : "";
    print(`${typeof seed === "number" ? "ok  " : "FAIL"} planted bug ${name}: ${seed}${moved}`);
  });
  if (values.search) await writeFile(list, listOf(planted, { ...listed, ...found }));
  else for (const name of gone) print(`FAIL ${name} is in ${simulation.bugs}/found.json, but not planted`);
  checked += names.length;
  const count = Object.keys(found).length;
  if (names.length > 0) print(`${simulationName}: ${count} of ${names.length} planted bugs found`);
  if (values.only !== undefined) return count === names.length;
  if (values.json) keepReport(values.json, simulation.report, { planted: names.length, found: count });
  const isEnough = count >= Math.floor(names.length * LEAST_SHARE) && names.length >= simulation.leastBugs;
  return isEnough && (gone.length === 0 || values.search === true);
}

/** Returns the seed that found the bug, or a sentence that says what went wrong. */
async function check({ script, mostSeeds }: Simulation, patch: string, listed?: number): Promise<number | string> {
  const bug = await plantBug(patch);
  try {
    if (bug.problems.length > 0) return `does not compile: ${bug.problems[0]}`;
    const again = listed === undefined ? undefined : await findBug(bug, script, listed, 1);
    if (again !== undefined) return again;
    if (listed === undefined && !values.search) return "is in no list: npm run simulate:bugs -- --search";
    const seeds = values.search ? mostSeeds : Math.min(SPARE_SEEDS, mostSeeds);
    return (await findBug(bug, script, 0, seeds)) ?? `is not found by ${seeds} seeds, or by fewer in ten minutes`;
  } finally {
    await bug.remove();
  }
}

function listOf(planted: readonly string[], found: Found): string {
  const rows = Object.entries(found).filter(([name]) => planted.includes(name));
  return `${JSON.stringify(Object.fromEntries(rows.sort(([a], [b]) => (a < b ? -1 : 1))), undefined, 2)}\n`;
}
