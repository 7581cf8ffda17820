/** Tests that simulated tenants' pods do not delay, stop or undo other tenants' rollouts. */
import { expect, test } from "vitest";
import { runSeed } from "../simulation/campaign.ts";
import { scenarioOf } from "../simulation/scenario.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";

/** The first seed with tenants; every twentieth world has them. */
const FIRST = 13;
const EVERY = 20;

test("every simulated rollout ends although the pods of tenants never work", async () => {
  const seeds = Array.from({ length: 60 * ATTACK_TIMES }, (_, at) => FIRST + EVERY * at);
  let pods = 0;
  for (const seed of seeds) {
    pods += scenarioOf(seed).tenantPods ?? 0;
    expect([seed, (await runSeed(seed)).violations]).toEqual([seed, []]);
  }
  addAttacks(pods);
});
