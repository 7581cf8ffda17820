/**
 * Runs short simulations of the webhooks' views with one test for each seed. A mutant runs the tests that reach it
 * until one fails.
 */
import { expect, it } from "vitest";
import { PodWorld } from "../simulation/views/pod-world.ts";
import { RegistrationWorld } from "../simulation/views/registration-world.ts";
import { ViewWorld } from "../simulation/views/world.ts";

const seeds = Array.from({ length: 24 }, (_, seed) => seed);

it.each(seeds)("a simulated webhook's view of SidecarSets breaks no rule with seed %i", async (seed) => {
  const { violations, counts } = await new ViewWorld(seed).run();
  expect(violations).toEqual([]);
  expect(counts.pods).toBeGreaterThan(0);
});

it.each(seeds)("the simulated registration of the pod webhook breaks no rule with seed %i", async (seed) => {
  const { violations, counts } = await new RegistrationWorld(seed).run();
  expect(violations).toEqual([]);
  expect(counts.writes).toBeGreaterThan(0);
});

it.each(seeds)("the simulated admission of whole pods breaks no rule with seed %i", async (seed) => {
  const { violations, counts } = await new PodWorld(seed).run();
  expect(violations).toEqual([]);
  expect(counts.judged).toBeGreaterThan(0);
});
