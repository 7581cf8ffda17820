/**
 * `npm run simulate -- --seeds 100000 [--from N]` runs many worlds on all cores. `--seed N` runs one world and prints
 * its trace. `--pairs` prints the pairs of features in the worlds of the seeds, and runs no world. `--within S
 * [--at-least N]` starts no more worlds after S seconds, but runs at least N. `--part kill-points | edits | schedules |
 * protocol` runs a part that tries every case. `--json FILE` stores the figures. Exits 1 if a promise was broken, a
 * kind of fault was rare, or nothing was run.
 */

import { availableParallelism } from "node:os";
import { readOptions } from "../support/read-options.ts";
import { type Campaign, countLooks, digestOf, rarities, runSeed, runSeeds, unseen } from "./campaign.ts";
import { FAULTS } from "./faults.ts";
import { countPairs, PAIR_NAMES, pairTable } from "./pairs.ts";
import { PARTS, type Part } from "./parts.ts";
import { keepReport } from "./report-file.ts";
import { type Extent, runAll } from "./run-all.ts";
import { scenarioOf } from "./scenario.ts";
import { seedNumber } from "./seed-number.ts";

const SHOWN = 20;

const { values } = readOptions({
  options: {
    first: { type: "boolean" },
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    within: { type: "string" },
    "at-least": { type: "string" },
    pairs: { type: "boolean" },
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

/** Runs seeds until one breaks a promise. */
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

async function many(part: Part, extent: Extent): Promise<boolean> {
  if (extent.withinMs !== undefined && part !== "seeds") throw new Error("--within is of seeds only");
  const beganMs = performance.now();
  const campaign = await runAll(part, extent, availableParallelism());
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  const { runs, findings, faults, worlds, looks, calls, writes, upgrades, fences, flips } = campaign;
  const count = extent.withinMs === undefined ? extent.count : runs;
  report(part, findings);
  const rare = part === "seeds" ? [...rarities(campaign), ...unseen(campaign)] : [];
  for (const what of rare) print(`FAIL ${what}`);
  if (part === "seeds") print(JSON.stringify({ ...faults, worlds, looks }, undefined, 1));
  const looked =
    part === "protocol"
      ? `${runs} states, ${calls} transitions, ${upgrades} updates`
      : `${runs} worlds; ${FAULTS.length} kinds of fault; ${calls} API calls, ${writes} writes looked at, ` +
        `${upgrades} upgrades, ${fences} fences, ${flips} flips`;
  const held = countLooks(looks, "holds: ");
  const places =
    part === "seeds"
      ? `; ${held.kinds} combinations of holds compared, ${held.times} times; ${countLooks(looks, "features: ").kinds} of ${PAIR_NAMES.length} pairs of features met`
      : "";
  const speed = `${seconds} s, ${Math.round(runs / Math.max(1, seconds))} a second`;
  print(`${count} ${PARTS[part].unit}: ${findings.length} violated; ${looked}${places}; ${speed}`);
  const figures = { count, kinds: FAULTS.length, seconds, ...campaign, findings: findings.length };
  if (values.json) keepReport(values.json, part, figures);
  return runs > 0 && upgrades > 0 && findings.length === 0 && rare.length === 0;
}

/** Counts the pairs of features in the worlds of these seeds, without running the worlds. */
function pairs(from: number, seeds: number): boolean {
  const met = countPairs(Array.from({ length: seeds }, (_, index) => scenarioOf(from + index)));
  for (const line of pairTable(met)) print(line);
  const missing = PAIR_NAMES.filter((pair) => !met[pair]);
  for (const pair of missing) print(`FAIL no world has ${pair}`);
  print(`${PAIR_NAMES.length - missing.length} of ${PAIR_NAMES.length} pairs of features meet in ${seeds} worlds`);
  return missing.length === 0;
}

async function main(): Promise<boolean> {
  if (values.seed !== undefined) return one(seedNumber(values.seed, 0));
  const part = (values.part ?? "seeds") as Part;
  if (!Object.hasOwn(PARTS, part)) throw new Error(`${part} is no part: ${Object.keys(PARTS).join(", ")}`);
  const from = seedNumber(values.from, 0);
  const count = seedNumber(values.seeds, PARTS[part].default);
  if (values.pairs) return pairs(from, values.seeds === undefined ? 1_000 : count);
  if (values.first) return first(from, count);
  const withinMs = values.within === undefined ? undefined : seedNumber(values.within, 0) * 1_000;
  return many(part, { from, count, withinMs, atLeast: seedNumber(values["at-least"], 0) });
}

process.exitCode = (await main()) ? 0 : 1;
