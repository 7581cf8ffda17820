/**
 * `npm run simulate -- --seeds 100000 [--from 0] [--json FILE]` runs many seeds on all cores; `--seed N` runs one and
 * prints its trace. Exits 1 when a promise was broken, a kind of fault was rare, or nothing was run.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { type Campaign, emptyCampaign, merged, runSeed } from "./campaign.ts";
import { FAULTS } from "./faults.ts";

/** Of each kind of fault, in a run of this many seeds or more. */
const LEAST_OF_EACH = 100;
const ENOUGH_SEEDS = 10_000;
const SHOWN = 20;

const { values } = parseArgs({
  options: { seed: { type: "string" }, seeds: { type: "string" }, from: { type: "string" }, json: { type: "string" } },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

async function one(seed: number): Promise<boolean> {
  const { trace, violations, digest } = await runSeed(seed);
  for (const line of trace) print(line);
  print(`seed ${seed}: ${violations.length} violations, digest ${digest}`);
  return violations.length === 0;
}

function runShare(from: number, to: number, onPart: (part: Campaign) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: { from, to } });
    worker.on("message", onPart);
    worker.on("error", reject);
    worker.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
  });
}

async function many(from: number, seeds: number): Promise<boolean> {
  const beganMs = performance.now();
  let campaign = emptyCampaign();
  const workers = Math.min(seeds, availableParallelism());
  const share = Math.ceil(seeds / workers);
  const shares = Array.from({ length: workers }, (_, index) => from + index * share);
  await Promise.all(
    shares.map((begin) =>
      runShare(begin, Math.min(from + seeds, begin + share), (part) => {
        campaign = merged(campaign, part);
      }),
    ),
  );
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  for (const { seed, violations } of campaign.findings.slice(0, SHOWN))
    print(`FAIL npm run simulate -- --seed ${seed}   # ${violations[0]}`);
  const rare = FAULTS.filter((fault) => seeds >= ENOUGH_SEEDS && campaign.faults[fault] < LEAST_OF_EACH);
  for (const fault of rare) print(`FAIL the fault "${fault}" happened ${campaign.faults[fault]} times`);
  const { calls, writes, upgrades, fences, flips, findings } = campaign;
  print(JSON.stringify(campaign.faults, undefined, 1));
  print(
    `${campaign.seeds} seeds, ${findings.length} violated; ${FAULTS.length} kinds of fault; ${calls} API calls, ${writes} writes looked at, ` +
      `${upgrades} upgrades, ${fences} fences, ${flips} flips; ${seconds} s`,
  );
  const date = new Date().toISOString().slice(0, 10);
  if (values.json)
    writeFileSync(values.json, `${JSON.stringify({ date, seconds, kinds: FAULTS.length, ...campaign })}\n`);
  return campaign.seeds === seeds && seeds > 0 && findings.length === 0 && rare.length === 0;
}

const number = (text: string | undefined, otherwise: number) => {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no number of seeds`);
  return value;
};
const isWhole =
  values.seed === undefined
    ? await many(number(values.from, 0), number(values.seeds, 1_000))
    : await one(number(values.seed, 0));
process.exitCode = isWhole ? 0 : 1;
