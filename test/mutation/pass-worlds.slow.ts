/** Short simulations of passes, each seed a test of its own: a mutant runs those that reach it, up to the first that finds it. */
import { expect, it } from "vitest";
import { runSeed } from "../simulation/campaign.ts";
import { setScenarioOf } from "../simulation/ordered/scenario.ts";
import { SetWorld } from "../simulation/ordered/world.ts";

const seeds = Array.from({ length: 60 }, (_, seed) => seed);

it.each(seeds)("passes over SidecarSets, seed %i", async (seed) => {
  const { violations, calls } = await runSeed(seed);
  expect(violations).toEqual([]);
  expect(calls).toBeGreaterThan(0);
});

it.each(seeds.slice(0, 24))("passes over Advanced StatefulSets, seed %i", async (seed) => {
  const { violations, calls } = await new SetWorld(setScenarioOf(seed)).run();
  expect(violations).toEqual([]);
  expect(calls).toBeGreaterThan(0);
});
