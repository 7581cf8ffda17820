/**
 * Many seeds in a row: what was found, and how much was looked at. With `--json` each part leaves its figures in
 * reports/simulation.json, a key for each: `seeds`, `kill-points`, `schedules`, `edits`, `protocol` hold
 *   {date, count, kinds, seconds, runs, findings, faults: {kind: times}, calls, writes, upgrades, fences, flips}
 * where `count` is what was asked for (seeds, scenarios, shares, sequences, small worlds), `runs` the worlds that came
 * of it (states of the protocol), `kinds` how many kinds of fault there are, and `findings` the worlds in which a promise
 * was broken; `bugs` holds {date, planted, found, mostSeeds}, `fuzz` {date, bodies, problems, reviews, slowestMs}.
 * docs/soak.json has the same under `simulation` and `fuzz`, the former with the last commit and with `chunks`:
 *   {date, commit, from, to, findings: [seed], seconds}
 */
import { createHash } from "node:crypto";
import { FAULTS, type Fault } from "./faults.ts";
import { scenarioOf } from "./scenario.ts";
import { World, type WorldResult } from "./world.ts";

interface Finding {
  readonly seed: number;
  readonly violations: readonly string[];
}

export interface Campaign {
  readonly runs: number;
  readonly findings: readonly Finding[];
  readonly faults: Readonly<Record<Fault, number>>;
  readonly calls: number;
  readonly writes: number;
  readonly upgrades: number;
  readonly fences: number;
  readonly flips: number;
}

const NUMBERS = ["calls", "writes", "upgrades", "fences", "flips"] as const;

export function runSeed(seed: number): Promise<WorldResult> {
  return new World(scenarioOf(seed)).run();
}

/** `from` … `to` - 1. Ends early after the first finding when `isFirstEnough`. */
export async function runSeeds(from: number, to: number, isFirstEnough = false): Promise<Campaign> {
  let campaign = emptyCampaign();
  for (let seed = from; seed < to; seed++) {
    const result = await runSeed(seed);
    campaign = merged(campaign, campaignOf(result));
    if (isFirstEnough && campaign.findings.length > 0) break;
  }
  return campaign;
}

/** Of each kind of fault, in a run of this many seeds or more. */
const LEAST_OF_EACH = 100;
const ENOUGH_SEEDS = 10_000;

/** Kinds of fault that a run of many seeds has seen too seldom. */
export function rareFaults({ runs, faults }: Campaign): readonly Fault[] {
  return runs < ENOUGH_SEEDS ? [] : FAULTS.filter((fault) => faults[fault] < LEAST_OF_EACH);
}

export function emptyCampaign(): Campaign {
  const faults = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Record<Fault, number>;
  return { runs: 0, findings: [], faults, calls: 0, writes: 0, upgrades: 0, fences: 0, flips: 0 };
}

export function campaignOf({ seed, violations, counts, ...result }: WorldResult): Campaign {
  const faults = Object.fromEntries(FAULTS.map((fault) => [fault, counts.get(fault) ?? 0])) as Record<Fault, number>;
  const findings = violations.length > 0 ? [{ seed, violations }] : [];
  return { ...emptyCampaign(), ...pickNumbers(result), runs: 1, findings, faults };
}

export function merged(a: Campaign, b: Campaign): Campaign {
  const faults = Object.fromEntries(FAULTS.map((fault) => [fault, a.faults[fault] + b.faults[fault]]));
  const sums = Object.fromEntries(NUMBERS.map((key) => [key, a[key] + b[key]])) as Record<
    (typeof NUMBERS)[number],
    number
  >;
  const findings = [...a.findings, ...b.findings];
  return { ...sums, runs: a.runs + b.runs, findings, faults: faults as Record<Fault, number> };
}

function pickNumbers(from: Pick<Campaign, (typeof NUMBERS)[number]>) {
  return Object.fromEntries(NUMBERS.map((key) => [key, from[key]])) as Pick<Campaign, (typeof NUMBERS)[number]>;
}

/** Of everything that happened, in order. */
export function digestOf({ trace }: WorldResult): string {
  return createHash("sha256").update(trace.join("\n")).digest("hex");
}
