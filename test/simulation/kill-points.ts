/**
 * Kills a pass at every API call of a scenario: before the call, and after a write. A pass that dies after a read
 * leaves the same world as one that dies before it.
 */
import { type Campaign, campaignOf, emptyCampaign, merged } from "./campaign.ts";
import { ordinaryScenarioOf } from "./scenario.ts";
import { type Intervention, World } from "./world.ts";

const WRITES = /^(CREATE|PATCH|DELETE) /;

interface Call {
  readonly name: string;
  readonly index: number;
  readonly call: string;
}

/** Runs the scenarios `from` … `to` - 1. `runs` counts the worlds in which a pass was killed. */
export async function runKillPoints(from: number, to: number): Promise<Campaign> {
  let campaign = emptyCampaign();
  for (let seed = from; seed < to; seed++) {
    const calls = await callsOf(seed);
    for (const { name, index, call } of calls)
      for (const kind of WRITES.test(call) ? (["killBefore", "killAfter"] as const) : (["killBefore"] as const)) {
        const blowAt: Intervention["blowAt"] = (sending) =>
          sending.process.name === name && sending.index === index ? { kind } : undefined;
        const result = await new World(ordinaryScenarioOf(seed), { blowAt }).run();
        const where = `${kind} at call ${index} of ${name}`;
        campaign = merged(
          campaign,
          campaignOf({ ...result, violations: result.violations.map((v) => `${where}: ${v}`) }),
        );
      }
  }
  return campaign;
}

/** Returns every call of the scenario's passes while faults occur, if no pass is killed. */
async function callsOf(seed: number): Promise<readonly Call[]> {
  const scenario = ordinaryScenarioOf(seed);
  const names = new Set(scenario.passes.map((_, index) => `pass-${index + 1}`));
  const calls: Call[] = [];
  const blowAt: Intervention["blowAt"] = ({ process: { name }, index, call }) => {
    if (names.has(name)) calls.push({ name, index, call });
    return undefined;
  };
  await new World(scenario, { blowAt }).run();
  return calls;
}
