/**
 * The command line of a simulation of its own: `-- --seeds 2000 [--from N]` runs so many worlds, `--seed N` runs one and
 * prints its trace, `--first` stops at the first finding. `--json FILE` keeps the figures. Exits 1 when a promise was
 * broken, a kind of trouble never came, or nothing was run.
 */
import { readOptions } from "../support/read-options.ts";
import { keepReport } from "./report-file.ts";

export interface SeedResult<Count extends string> {
  readonly seed: number;
  /** a sentence for each broken promise */
  readonly violations: readonly string[];
  readonly happened: Readonly<Partial<Record<string, number>>>;
  readonly trace: readonly string[];
  readonly counts: Readonly<Record<Count, number>>;
}

export interface SeedsMain<Count extends string> {
  /** of the npm script and of the figures */
  readonly name: string;
  readonly runSeed: (seed: number) => Promise<SeedResult<Count>>;
  /** what has to have happened in a run of many seeds */
  readonly trouble: readonly string[];
  readonly counts: readonly Count[];
  /** those that may not be 0 */
  readonly needed: readonly Count[];
  /** so many worlds at once, where they wait for real time; absent: one by one */
  readonly atOnce?: number;
}

const SHOWN = 20;
/** In a run of this many seeds every kind of trouble comes. */
const ENOUGH_SEEDS = 200;
const print = (line: string) => void process.stdout.write(`${line}\n`);

const { values } = readOptions({
  options: {
    first: { type: "boolean" },
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    json: { type: "string" },
  },
});

export async function seedsMain<Count extends string>(options: SeedsMain<Count>): Promise<void> {
  process.exitCode = (await chosen(options)) ? 0 : 1;
}

function chosen<Count extends string>(options: SeedsMain<Count>): Promise<boolean> {
  if (values.seed !== undefined) return one(options, number(values.seed, 0));
  return many(options, number(values.from, 0), number(values.seeds, 500));
}

async function one<Count extends string>({ runSeed }: SeedsMain<Count>, seed: number): Promise<boolean> {
  const { trace, violations } = await runSeed(seed);
  for (const line of [...trace, ...violations]) print(line);
  return violations.length === 0;
}

interface Sums<Count extends string> {
  worlds: number;
  violated: number;
  readonly counts: Record<Count, number>;
  readonly happened: Map<string, number>;
}

async function runAll<Count extends string>(options: SeedsMain<Count>, from: number, count: number) {
  const { name, counts, runSeed, atOnce = 1 } = options;
  const none = Object.fromEntries(counts.map((key) => [key, 0])) as Record<Count, number>;
  const sums: Sums<Count> = { worlds: 0, violated: 0, counts: none, happened: new Map() };
  for (let first = from; first < from + count && !(values.first && sums.violated > 0); first += atOnce) {
    const seeds = Array.from({ length: Math.min(atOnce, from + count - first) }, (_, index) => first + index);
    for (const result of await Promise.all(seeds.map(runSeed))) {
      add(sums, counts, result);
      const [violation] = result.violations;
      if (violation !== undefined && sums.violated++ < SHOWN)
        print(`FAIL npm run simulate:${name} -- --seed ${result.seed}   # ${violation}`);
    }
  }
  return sums;
}

function add<Count extends string>(sums: Sums<Count>, counts: readonly Count[], result: SeedResult<Count>): void {
  sums.worlds++;
  for (const key of counts) sums.counts[key] += result.counts[key];
  for (const [kind, times = 0] of Object.entries(result.happened))
    sums.happened.set(kind, (sums.happened.get(kind) ?? 0) + times);
}

async function many<Count extends string>(options: SeedsMain<Count>, from: number, count: number): Promise<boolean> {
  const { name, counts, needed, trouble } = options;
  const beganMs = performance.now();
  const { happened, counts: sums, ...seen } = await runAll(options, from, count);
  const isWhole = count >= ENOUGH_SEEDS && !values.first;
  const missing = isWhole ? trouble.filter((kind) => !happened.get(kind)) : [];
  for (const kind of missing) print(`FAIL "${kind}" never happened`);
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const told = counts.map((key) => `${sums[key]} ${key}`).join(", ");
  const { worlds, violated } = seen;
  print(`${worlds} worlds of ${name}, ${violated} violated; ${happened.size} kinds of trouble; ${told}; ${seconds} s`);
  if (values.json) keepReport(values.json, name, { ...seen, ...sums, seconds, happened: Object.fromEntries(happened) });
  return worlds > 0 && needed.every((key) => sums[key] > 0) && violated === 0 && missing.length === 0;
}

function number(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no number of seeds`);
  return value;
}
