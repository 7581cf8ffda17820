/**
 * `npm run simulate:views -- --seeds 2000 [--from N]` runs worlds of pod webhooks that go by announcements; `--seed N` runs
 * one and prints its trace; `--first` stops at the first finding; `--bugs` checks that each planted bug is found, in as
 * many seeds. `--json FILE` keeps the figures. Exits 1 when a promise was broken, a kind of trouble never came, a bug was
 * not found, or nothing was run.
 */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { readOptions } from "../../support/read-options.ts";
import { plantBug } from "../planted-bug.ts";
import { keepReport } from "../report-file.ts";
import { TROUBLE, type ViewResult, ViewWorld } from "./world.ts";

const run = promisify(execFile);
const BUGS = join(import.meta.dirname, "bugs");
const SHOWN = 20;
/** In a run of this many seeds every kind of trouble comes. */
const ENOUGH_SEEDS = 200;
const LEAST_BUGS = 12;
const BUG_SEEDS = 1_500;

const { values } = readOptions({
  options: {
    first: { type: "boolean" },
    bugs: { type: "boolean" },
    only: { type: "string" },
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    json: { type: "string" },
  },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

function fail(result: ViewResult): boolean {
  if (result.violations.length > 0)
    print(`FAIL npm run simulate:views -- --seed ${result.seed}   # ${result.violations[0]}`);
  return result.violations.length > 0;
}

async function one(seed: number): Promise<boolean> {
  const result = await new ViewWorld(seed).run();
  for (const line of [...result.trace, ...result.violations]) print(line);
  return result.violations.length === 0;
}

interface Sums {
  worlds: number;
  violated: number;
  pods: number;
  warned: number;
  unasked: number;
  writes: number;
  readonly happened: Map<string, number>;
}

async function runAll(from: number, count: number): Promise<Sums> {
  const sums: Sums = { worlds: 0, violated: 0, pods: 0, warned: 0, unasked: 0, writes: 0, happened: new Map() };
  for (let seed = from; seed < from + count; seed++) {
    const result = await new ViewWorld(seed).run();
    add(sums, result);
    if (result.violations.length === 0) continue;
    if (sums.violated++ < SHOWN) fail(result);
    if (values.first) break;
  }
  return sums;
}

function add(sums: Sums, result: ViewResult): void {
  sums.worlds++;
  for (const key of ["pods", "warned", "unasked", "writes"] as const) sums[key] += result[key];
  for (const [kind, times] of Object.entries(result.happened))
    sums.happened.set(kind, (sums.happened.get(kind) ?? 0) + times);
}

async function many(from: number, count: number): Promise<boolean> {
  const beganMs = performance.now();
  const { happened, ...sums } = await runAll(from, count);
  const missing = count >= ENOUGH_SEEDS && !values.first ? TROUBLE.filter((kind) => !happened.get(kind)) : [];
  for (const kind of missing) print(`FAIL "${kind}" never happened`);
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const { worlds, violated, pods, warned, unasked, writes } = sums;
  print(
    `${worlds} worlds of views, ${violated} violated; ${happened.size} kinds of trouble; ${writes} writes, ${pods} pods, ` +
      `of which ${unasked} without a call, ${warned} refused or with a warning; ${seconds} s`,
  );
  if (values.json) keepReport(values.json, "views", { ...sums, seconds, happened: Object.fromEntries(happened) });
  return Math.min(worlds, pods, unasked, writes) > 0 && violated === 0 && missing.length === 0;
}

/** The seed that finds it, or a sentence. */
async function find(name: string): Promise<number | string> {
  const bug = await plantBug(`../views/bugs/${name}`);
  try {
    if (bug.problems.length > 0) return `does not compile: ${bug.problems[0]}`;
    const script = join(bug.folder, "test/simulation/views/main.ts");
    const argv = [script, "--first", "--seeds", String(BUG_SEEDS)];
    const output = await run(process.execPath, argv, { maxBuffer: 2 ** 26 }).then(
      ({ stdout }) => stdout,
      (error: { readonly stdout?: string }) => error.stdout ?? "",
    );
    const seed = /^FAIL .* --seed (\d+)/m.exec(output)?.[1];
    return seed === undefined ? `is not found by ${BUG_SEEDS} seeds` : Number(seed);
  } finally {
    await bug.remove();
  }
}

async function bugs(): Promise<boolean> {
  const files = (await readdir(BUGS)).filter((file) => file.endsWith(".patch"));
  const names = files
    .map((file) => file.slice(0, -".patch".length))
    .filter((name) => !values.only || name === values.only);
  let found = 0;
  for (const name of names) {
    const seed = await find(name).catch((error: unknown) => `does not apply: ${error}`);
    print(`${typeof seed === "number" ? "ok  " : "FAIL"} planted bug ${name}: ${seed}`);
    if (typeof seed === "number") found++;
  }
  print(`${found} of ${names.length} planted bugs found`);
  if (values.json) keepReport(values.json, "viewBugs", { planted: names.length, found });
  return found === names.length && (values.only !== undefined || found >= LEAST_BUGS);
}

function number(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no number of seeds`);
  return value;
}

async function main(): Promise<boolean> {
  if (values.bugs) return bugs();
  if (values.seed !== undefined) return one(number(values.seed, 0));
  return many(number(values.from, 0), number(values.seeds, 500));
}

process.exitCode = (await main()) ? 0 : 1;
