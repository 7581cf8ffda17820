/** Many seeds in a row: what was found, and how much was looked at. */
import { FAULTS, type Fault } from "../faults.ts";
import { STRIKES, type Strike, setScenarioOf } from "./scenario.ts";
import { SetWorld, type SetWorldResult } from "./world.ts";

const NUMBERS = ["calls", "writes", "created", "taken", "fences"] as const;

type Numbers = Readonly<Record<(typeof NUMBERS)[number], number>>;

export interface SetCampaign extends Numbers {
  readonly runs: number;
  readonly findings: readonly { readonly seed: number; readonly violations: readonly string[] }[];
  readonly happened: Readonly<Partial<Record<Fault | Strike, number>>>;
}

export const EMPTY: SetCampaign = {
  runs: 0,
  findings: [],
  happened: {},
  calls: 0,
  writes: 0,
  created: 0,
  taken: 0,
  fences: 0,
};

export function runSetSeed(seed: number): Promise<SetWorldResult> {
  return new SetWorld(setScenarioOf(seed)).run();
}

/** `from` … `to` - 1. Ends early after the first finding when `isFirstEnough`. */
export async function runSetSeeds(from: number, to: number, isFirstEnough = false): Promise<SetCampaign> {
  let campaign = EMPTY;
  for (let seed = from; seed < to; seed++) {
    campaign = mergedSets(campaign, campaignOf(await runSetSeed(seed)));
    if (isFirstEnough && campaign.findings.length > 0) break;
  }
  return campaign;
}

function campaignOf({ seed, violations, counts, strikes, ...result }: SetWorldResult): SetCampaign {
  const happened = Object.fromEntries([...counts, ...strikes]);
  const numbers = Object.fromEntries(NUMBERS.map((key) => [key, result[key]])) as Numbers;
  return { ...numbers, runs: 1, happened, findings: violations.length > 0 ? [{ seed, violations }] : [] };
}

export function mergedSets(a: SetCampaign, b: SetCampaign): SetCampaign {
  const kinds = [...FAULTS, ...STRIKES];
  const counted = kinds.map((kind) => [kind, (a.happened[kind] ?? 0) + (b.happened[kind] ?? 0)] as const);
  const sums = Object.fromEntries(NUMBERS.map((key) => [key, a[key] + b[key]])) as Numbers;
  const happened = Object.fromEntries(counted.filter(([, count]) => count > 0));
  return { ...sums, runs: a.runs + b.runs, findings: [...a.findings, ...b.findings], happened };
}
