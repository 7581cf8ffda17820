/**
 * Runs short simulations of passes with one test for each seed. A mutant runs the tests that reach it until one fails.
 */
import { expect, it } from "vitest";
import { runSeed } from "../simulation/campaign.ts";
import { setScenarioOf } from "../simulation/ordered/scenario.ts";
import { SetWorld } from "../simulation/ordered/world.ts";

const seeds = Array.from({ length: 60 }, (_, seed) => seed);

it.each(seeds)("simulated passes over SidecarSets break no rule with seed %i", async (seed) => {
  const { violations, calls } = await runSeed(seed);
  expect(violations).toEqual([]);
  expect(calls).toBeGreaterThan(0);
});

it.each(seeds.slice(0, 24))("simulated passes over Advanced StatefulSets break no rule with seed %i", async (seed) => {
  const { violations, calls } = await new SetWorld(setScenarioOf(seed)).run();
  expect(violations).toEqual([]);
  expect(calls).toBeGreaterThan(0);
});
