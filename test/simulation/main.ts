/**
 * `npm run simulate -- --seeds 100000 [--from N]` runs many worlds on all cores; `--seed N` runs one and prints its
 * trace; `--part kill-points | edits | schedules` what is looked at without chance. `--json FILE` keeps the figures.
 * Exits 1 when a promise was broken, a kind of fault was rare, or nothing was run.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { type Campaign, digestOf, emptyCampaign, merged, runSeed, runSeeds } from "./campaign.ts";
import { FAULTS } from "./faults.ts";
import { PARTS, type Part, type Share } from "./parts.ts";

/** Of each kind of fault, in a run of this many seeds or more. */
const LEAST_OF_EACH = 100;
const ENOUGH_SEEDS = 10_000;
const SHOWN = 20;

const { values } = parseArgs({
  options: {
    first: { type: "boolean" },
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    part: { type: "string" },
    json: { type: "string" },
  },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

async function one(seed: number): Promise<boolean> {
  const result = await runSeed(seed);
  for (const line of result.trace) print(line);
  print(`seed ${seed}: ${result.violations.length} violations, digest ${digestOf(result)}`);
  return result.violations.length === 0;
}

/** Up to the first seed that breaks a promise. */
async function first(from: number, seeds: number): Promise<boolean> {
  const { findings, runs } = await runSeeds(from, from + seeds, true);
  report("seeds", findings);
  print(`${runs} seeds, ${findings.length} violated`);
  return findings.length === 0;
}

function report(part: Part, findings: Campaign["findings"]): void {
  for (const { seed, violations } of findings.slice(0, SHOWN)) {
    const again = part === "seeds" ? `--seed ${seed}` : `--part ${part} --from ${seed} --seeds 1`;
    print(`FAIL npm run simulate -- ${again}   # ${violations[0]}`);
  }
}

/** Hands out share after share, so that no worker waits for another. */
function work(shares: Share[], onPart: (part: Campaign) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    const next = () => {
      const share = shares.shift();
      if (share) worker.postMessage(share);
      else worker.terminate().then(() => resolve(), reject);
    };
    worker.on("message", (part: Campaign) => {
      onPart(part);
      next();
    });
    worker.on("error", reject);
    next();
  });
}

async function runAll(part: Part, from: number, count: number): Promise<Campaign> {
  let campaign = emptyCampaign();
  const { step } = PARTS[part];
  const shares: Share[] = [];
  for (let begin = from; begin < from + count; begin += step)
    shares.push({ part, from: begin, to: Math.min(from + count, begin + step) });
  const workers = Array.from({ length: availableParallelism() }, () =>
    work(shares, (result) => {
      campaign = merged(campaign, result);
    }),
  );
  await Promise.all(workers);
  return campaign;
}

async function many(part: Part, from: number, count: number): Promise<boolean> {
  const beganMs = performance.now();
  const campaign = await runAll(part, from, count);
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const { runs, findings, faults, calls, writes, upgrades, fences, flips } = campaign;
  report(part, findings);
  const rare = part === "seeds" && count >= ENOUGH_SEEDS ? FAULTS.filter((one) => faults[one] < LEAST_OF_EACH) : [];
  for (const fault of rare) print(`FAIL the fault "${fault}" happened ${faults[fault]} times`);
  if (part === "seeds") print(JSON.stringify(faults, undefined, 1));
  const looked =
    part === "protocol"
      ? `${runs} states, ${calls} transitions, ${upgrades} updates`
      : `${runs} worlds; ${FAULTS.length} kinds of fault; ${calls} API calls, ${writes} writes looked at, ` +
        `${upgrades} upgrades, ${fences} fences, ${flips} flips`;
  const speed = `${seconds} s, ${Math.round(runs / Math.max(1, seconds))} a second`;
  print(`${count} ${PARTS[part].unit}: ${findings.length} violated; ${looked}; ${speed}`);
  if (values.json) keep(values.json, part, { count, seconds, ...campaign, findings: findings.length });
  return runs > 0 && upgrades > 0 && findings.length === 0 && rare.length === 0;
}

/** Beside what the file has of other parts. */
function keep(file: string, part: Part, figures: object): void {
  let known = {};
  try {
    known = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // The first part of a run.
  }
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(
    file,
    `${JSON.stringify({ ...known, [part]: { date, kinds: FAULTS.length, ...figures } }, undefined, 1)}\n`,
  );
}

function number(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no number of seeds`);
  return value;
}

async function main(): Promise<boolean> {
  if (values.seed !== undefined) return one(number(values.seed, 0));
  const part = (values.part ?? "seeds") as Part;
  if (!Object.hasOwn(PARTS, part)) throw new Error(`${part} is no part: ${Object.keys(PARTS).join(", ")}`);
  const from = number(values.from, 0);
  const count = number(values.seeds, PARTS[part].default);
  return values.first ? first(from, count) : many(part, from, count);
}

process.exitCode = (await main()) ? 0 : 1;
