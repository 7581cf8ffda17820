/**
 * The command line of every simulation except the one of rollouts. `-- --seeds 2000 [--from N]` runs that many worlds.
 * `--seed N` runs one world and prints its trace. `--first` stops at the first finding. `--json FILE` stores the
 * figures. Exits 1 if a promise was broken, a kind of fault never occurred, or nothing was run.
 */
import { availableParallelism } from "node:os";
import { readOptions } from "../support/read-options.ts";
import { answerShares, inProcesses } from "./processes.ts";
import { keepReport } from "./report-file.ts";
import { seedNumber } from "./seed-number.ts";

export interface SeedResult<Count extends string> {
  readonly seed: number;
  /** a sentence for each broken promise */
  readonly violations: readonly string[];
  readonly happened: Readonly<Partial<Record<string, number>>>;
  readonly trace: readonly string[];
  readonly counts: Readonly<Record<Count, number>>;
}

export interface SeedsMain<Count extends string> {
  /** name of the npm script and of the figures */
  readonly name: string;
  readonly runSeed: (seed: number) => Promise<SeedResult<Count>>;
  /** events that must occur in a run of many seeds */
  readonly trouble: readonly string[];
  readonly counts: readonly Count[];
  /** counts that may not be 0 */
  readonly needed: readonly Count[];
  /** number of worlds at once, for worlds that wait in real time; absent: one */
  readonly atOnce?: number;
  /** worlds run in processes on all cores, because they compute; absent: in this process */
  readonly isParallel?: true;
  /** number of seeds after which every kind of fault must have occurred; absent: 200 */
  readonly enoughSeeds?: number;
}

const SHOWN = 20;
/** Number of seeds in a process's share. */
const SHARE = 100;
const print = (line: string) => void process.stdout.write(`${line}\n`);

const { values } = readOptions({
  options: {
    first: { type: "boolean" },
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    json: { type: "string" },
    /** The option for child processes. */
    shares: { type: "boolean" },
  },
});

export async function seedsMain<Count extends string>(options: SeedsMain<Count>): Promise<void> {
  if (values.shares) answerShares((share: Share) => runShare(options, share));
  else process.exitCode = (await chosen(options)) ? 0 : 1;
}

function chosen<Count extends string>(options: SeedsMain<Count>): Promise<boolean> {
  if (values.seed !== undefined) return one(options, seedNumber(values.seed, 0));
  return many(options, seedNumber(values.from, 0), seedNumber(values.seeds, 500));
}

async function one<Count extends string>({ runSeed }: SeedsMain<Count>, seed: number): Promise<boolean> {
  const { trace, violations } = await runSeed(seed);
  for (const line of [...trace, ...violations]) print(line);
  return violations.length === 0;
}

interface Share {
  readonly from: number;
  readonly to: number;
}

interface Sums<Count extends string> {
  worlds: number;
  violated: number;
  /** the command that repeats a broken promise, and the promise */
  readonly shown: string[];
  readonly counts: Record<Count, number>;
  readonly happened: Partial<Record<string, number>>;
}

function noSums<Count extends string>(counts: readonly Count[]): Sums<Count> {
  const none = Object.fromEntries(counts.map((key) => [key, 0])) as Record<Count, number>;
  return { worlds: 0, violated: 0, shown: [], counts: none, happened: {} };
}

function add<Count extends string>(sums: Sums<Count>, part: Readonly<Sums<Count>>): void {
  sums.worlds += part.worlds;
  sums.violated += part.violated;
  sums.shown.push(...part.shown);
  for (const key of Object.keys(sums.counts) as Count[]) sums.counts[key] += part.counts[key];
  for (const [kind, times = 0] of Object.entries(part.happened))
    sums.happened[kind] = (sums.happened[kind] ?? 0) + times;
}

async function runShare<Count extends string>(options: SeedsMain<Count>, { from, to }: Share): Promise<Sums<Count>> {
  const { name, counts, runSeed, atOnce = 1 } = options;
  const sums = noSums(counts);
  for (let first = from; first < to; first += atOnce) {
    const seeds = Array.from({ length: Math.min(atOnce, to - first) }, (_, index) => first + index);
    for (const { seed, violations, happened, counts: some } of await Promise.all(seeds.map(runSeed))) {
      const shown = violations.slice(0, 1).map((what) => `FAIL npm run simulate:${name} -- --seed ${seed}   # ${what}`);
      add(sums, { worlds: 1, violated: shown.length, shown, counts: some, happened });
    }
  }
  return sums;
}

async function runAll<Count extends string>(options: SeedsMain<Count>, from: number, count: number) {
  const sums = noSums(options.counts);
  const take = (part: Sums<Count>) => {
    for (const line of part.shown.slice(0, Math.max(0, SHOWN - sums.violated))) print(line);
    add(sums, part);
  };
  const isParallel = options.isParallel === true && !values.first;
  const step = isParallel ? SHARE : (options.atOnce ?? 1);
  let begin = from;
  const next = (): Share | undefined => {
    if (begin >= from + count || (values.first && sums.violated > 0)) return undefined;
    const share = { from: begin, to: Math.min(from + count, begin + step) };
    begin = share.to;
    return share;
  };
  const script = { file: process.argv[1] ?? "", args: ["--shares"] };
  if (isParallel) await inProcesses(script, availableParallelism(), next, take);
  else for (let share = next(); share; share = next()) take(await runShare(options, share));
  return sums;
}

async function many<Count extends string>(options: SeedsMain<Count>, from: number, count: number): Promise<boolean> {
  const { name, counts, needed, trouble, enoughSeeds = 200 } = options;
  const beganMs = performance.now();
  const { happened, counts: sums, shown: _, ...seen } = await runAll(options, from, count);
  const isWhole = count >= enoughSeeds && !values.first;
  const missing = isWhole ? trouble.filter((kind) => !happened[kind]) : [];
  for (const kind of missing) print(`FAIL "${kind}" never happened`);
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const told = counts.map((key) => `${sums[key]} ${key}`).join(", ");
  const { worlds, violated } = seen;
  const kinds = Object.keys(happened).length;
  print(`${worlds} worlds of ${name}, ${violated} violated; ${kinds} kinds of trouble; ${told}; ${seconds} s`);
  if (values.json) keepReport(values.json, name, { ...seen, ...sums, seconds, happened });
  return worlds > 0 && needed.every((key) => sums[key] > 0) && violated === 0 && missing.length === 0;
}
