/**
 * Many seeds in a row, with their findings and their figures. With `--json` each part writes its figures to
 * reports/simulation.json under its own key. The keys `seeds`, `kill-points`, `schedules`, `edits` and `protocol` hold
 * {date, count, kinds, seconds, runs, findings, faults: {kind: times}, worlds: {kind: times}, calls, writes, upgrades,
 * fences, flips}. `count` is the requested number of seeds, scenarios, shares, sequences or small worlds. `runs` is the
 * number of worlds, or of states of the protocol. `kinds` is the number of kinds of faults. `findings` lists the worlds
 * that broke a promise. `bugs` holds {date, planted, found, mostSeeds}; `fuzz` holds {date, bodies, problems, reviews,
 * slowestMs}. test/soak/soak.json has the same figures under `simulation` and `fuzz`. Its `simulation` also has the
 * last commit and `chunks`: {date, commit, from, to, findings: [seed], seconds}.
 */
import { createHash } from "node:crypto";
import { FAULTS, type Fault } from "./faults.ts";
import { WORLD_KINDS, type WorldKind } from "./kinds.ts";
import { PAIR_NAMES } from "./pairs.ts";
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
  /** number of worlds of each kind */
  readonly worlds: Readonly<Record<WorldKind, number>>;
  /** the number of judgements of each kind */
  readonly looks: Readonly<Record<string, number>>;
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

/** Runs the seeds `from` … `to` - 1. With `isFirstEnough` it ends after the first finding. */
export async function runSeeds(from: number, to: number, isFirstEnough = false): Promise<Campaign> {
  let campaign = emptyCampaign();
  for (let seed = from; seed < to; seed++) {
    const result = await runSeed(seed);
    campaign = merged(campaign, campaignOf(result));
    if (isFirstEnough && campaign.findings.length > 0) break;
  }
  return campaign;
}

/** The least number of occurrences of each kind of fault, and of each kind of world, in a long run. */
const LEAST_OF_EACH = 100;
/** A kind of fault that only a fiftieth of the worlds has happened 72 times in 12,000. */
const ENOUGH_SEEDS = 20_000;

/** The kind of judgement, by its first words → the number of seeds after which it must have occurred. */
const LOOKS: Readonly<Record<string, number>> = {
  "holds: ": 400,
  "advice: resume": 400,
  "advice: promote": 400,
  "advice: undo": 1_200,
  "advice: abort": 1_200,
  "advice: recreate": 1_200,
  "advice: restart": 1_200,
};

/** In this many worlds every pair of features occurs. */
const ENOUGH_FOR_PAIRS = 5_000;

/** Returns a sentence for each kind of judgement that a long run lacks. */
export function unseen({ runs, looks }: Campaign): readonly string[] {
  const kinds = Object.keys(LOOKS).filter((kind) => runs >= (LOOKS[kind] ?? 0));
  const pairs = runs >= ENOUGH_FOR_PAIRS ? PAIR_NAMES.filter((pair) => !looks[pair]) : [];
  return [...kinds.filter((kind) => countLooks(looks, kind).kinds === 0), ...pairs].map(
    (kind) => `nothing was looked at: ${kind}`,
  );
}

/** Returns the number of different kinds of judgement, and the number of judgements. */
export function countLooks(looks: Campaign["looks"], kind: string): { readonly kinds: number; readonly times: number } {
  const counts = Object.entries(looks).flatMap(([what, count]) => (what.startsWith(kind) ? [count] : []));
  return { kinds: counts.length, times: counts.reduce((sum, count) => sum + count, 0) };
}

/** Returns a sentence for each kind of fault or world that occurs too rarely in a run of many seeds. */
export function rarities({ runs, faults, worlds }: Campaign): readonly string[] {
  if (runs < ENOUGH_SEEDS) return [];
  const rare = FAULTS.filter((fault) => faults[fault] < LEAST_OF_EACH);
  const few = WORLD_KINDS.filter((kind) => worlds[kind] < LEAST_OF_EACH);
  return [
    ...rare.map((fault) => `the fault "${fault}" happened ${faults[fault]} times`),
    ...few.map((kind) => `of the kind "${kind}" there were ${worlds[kind]} worlds`),
  ];
}

function countsOf<T extends string>(keys: readonly T[], countOf: (key: T) => number): Readonly<Record<T, number>> {
  return Object.fromEntries(keys.map((key) => [key, countOf(key)])) as Record<T, number>;
}

export function emptyCampaign(): Campaign {
  const none = { faults: countsOf(FAULTS, () => 0), worlds: countsOf(WORLD_KINDS, () => 0) };
  return { runs: 0, findings: [], looks: {}, ...none, calls: 0, writes: 0, upgrades: 0, fences: 0, flips: 0 };
}

export function campaignOf({ seed, kind, violations, counts, looks, ...result }: WorldResult): Campaign {
  const faults = countsOf(FAULTS, (fault) => counts.get(fault) ?? 0);
  const worlds = countsOf(WORLD_KINDS, (one) => (one === kind ? 1 : 0));
  const findings = violations.length > 0 ? [{ seed, violations }] : [];
  return { ...pickNumbers(result), runs: 1, findings, faults, worlds, looks: Object.fromEntries(looks) };
}

export function merged(a: Campaign, b: Campaign): Campaign {
  const faults = countsOf(FAULTS, (fault) => a.faults[fault] + b.faults[fault]);
  const worlds = countsOf(WORLD_KINDS, (kind) => a.worlds[kind] + b.worlds[kind]);
  const sums = countsOf(NUMBERS, (key) => a[key] + b[key]);
  const looks = { ...a.looks };
  for (const [what, count] of Object.entries(b.looks)) looks[what] = (looks[what] ?? 0) + count;
  return { ...sums, looks, runs: a.runs + b.runs, findings: [...a.findings, ...b.findings], faults, worlds };
}

function pickNumbers(from: Pick<Campaign, (typeof NUMBERS)[number]>) {
  return countsOf(NUMBERS, (key) => from[key]);
}

/** Returns a digest of all events, in order. */
export function digestOf({ trace }: WorldResult): string {
  return createHash("sha256").update(trace.join("\n")).digest("hex");
}
