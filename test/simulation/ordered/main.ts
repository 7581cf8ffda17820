/**
 * `npm run simulate:ordered -- --seeds 20000 [--from N]` runs many worlds with an ordered set on all cores; `--seed N`
 * runs one and prints its trace; `--first` stops at the first finding. `--json FILE` keeps the figures beside what the
 * file has. Exits 1 when a promise was broken, a kind of trouble never came, or nothing was run.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { readOptions } from "../../support/read-options.ts";
import { keepReport } from "../report-file.ts";
import { EMPTY, mergedSets, runSetSeed, runSetSeeds, type SetCampaign } from "./campaign.ts";
import { STRIKES } from "./scenario.ts";

const STEP = 100;
const SHOWN = 20;
/** In a run of this many seeds every kind of trouble comes. */
const ENOUGH_SEEDS = 1_000;
const TROUBLE = [
  ...STRIKES,
  "pass killed",
  "pass frozen for 15 minutes",
  "overlapping passes",
  "409 conflict",
  "refused by a policy",
  "429 for many seconds",
  "page of a proxy",
] as const;

const { values } = readOptions({
  options: {
    first: { type: "boolean" },
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    json: { type: "string" },
  },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

async function one(seed: number): Promise<boolean> {
  const result = await runSetSeed(seed);
  for (const line of result.trace) print(line);
  print(`seed ${seed}: ${result.violations.length} violations`);
  return result.violations.length === 0;
}

function report({ findings }: SetCampaign): void {
  for (const { seed, violations } of findings.slice(0, SHOWN))
    print(`FAIL npm run simulate:ordered -- --seed ${seed}   # ${violations[0]}`);
}

/** Hands out share after share, so that no worker waits for another. */
function work(shares: { from: number; to: number }[], onPart: (part: SetCampaign) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    const next = () => {
      const share = shares.shift();
      if (share) worker.postMessage(share);
      else worker.terminate().then(() => resolve(), reject);
    };
    worker.on("message", (part: SetCampaign) => {
      onPart(part);
      next();
    });
    worker.on("error", reject);
    next();
  });
}

async function many(from: number, count: number): Promise<boolean> {
  const beganMs = performance.now();
  let campaign = EMPTY;
  const shares = Array.from({ length: Math.ceil(count / STEP) }, (_, index) => ({
    from: from + index * STEP,
    to: Math.min(from + count, from + (index + 1) * STEP),
  }));
  const add = (part: SetCampaign) => {
    campaign = mergedSets(campaign, part);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, () => work(shares, add)));
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const { runs, findings, happened, calls, writes, created, taken, fences } = campaign;
  report(campaign);
  const missing = count >= ENOUGH_SEEDS ? TROUBLE.filter((kind) => !happened[kind]) : [];
  for (const kind of missing) print(`FAIL "${kind}" never happened`);
  print(
    `${runs} worlds with an ordered set, ${findings.length} violated; ${Object.keys(happened).length} kinds of trouble; ` +
      `${calls} API calls, ${writes} writes looked at, ${created} pods created, ${taken} taken away, ${fences} fences; ${seconds} s`,
  );
  if (values.json) keepReport(values.json, "ordered", { count, seconds, ...campaign, findings: findings.length });
  return runs > 0 && created > 0 && taken > 0 && findings.length === 0 && missing.length === 0;
}

function number(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no number of seeds`);
  return value;
}

async function main(): Promise<boolean> {
  if (values.seed !== undefined) return one(number(values.seed, 0));
  const from = number(values.from, 0);
  const count = number(values.seeds, 1_000);
  if (!values.first) return many(from, count);
  const campaign = await runSetSeeds(from, from + count, true);
  report(campaign);
  return campaign.findings.length === 0;
}

process.exitCode = (await main()) ? 0 : 1;
