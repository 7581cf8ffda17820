/** Runs the small worlds of the protocol as a part of the simulation. */
import { type Campaign, emptyCampaign, merged } from "../campaign.ts";
import { explore } from "./explore.ts";
import { SETTINGS } from "./settings.ts";

export const PROTOCOLS = SETTINGS.length;

/** Runs the worlds `from` … `to` - 1. `runs` counts states, and `calls` counts transitions. */
export function runProtocols(from: number, to: number): Campaign {
  let campaign = emptyCampaign();
  for (const [index, setting] of SETTINGS.slice(from, to).entries()) {
    const { states, transitions, updates, isEndReached, broken } = explore(setting);
    const problem = broken ?? (isEndReached || setting.isCutShort ? undefined : "no way leads to the wanted state");
    const findings = problem ? [{ seed: from + index, violations: [`${setting.name}: ${problem}`] }] : [];
    campaign = merged(campaign, {
      ...emptyCampaign(),
      runs: states,
      calls: transitions,
      upgrades: updates,
      findings,
    });
  }
  return campaign;
}
