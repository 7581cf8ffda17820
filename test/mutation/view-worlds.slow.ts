/** Short simulations of what webhooks know, each seed a test of its own: a mutant runs those that reach it, up to the first that finds it. */
import { expect, it } from "vitest";
import { PodWorld } from "../simulation/views/pod-world.ts";
import { RegistrationWorld } from "../simulation/views/registration-world.ts";
import { ViewWorld } from "../simulation/views/world.ts";

const seeds = Array.from({ length: 24 }, (_, seed) => seed);

it.each(seeds)("what a webhook knows of SidecarSets, seed %i", async (seed) => {
  const { violations, counts } = await new ViewWorld(seed).run();
  expect(violations).toEqual([]);
  expect(counts.pods).toBeGreaterThan(0);
});

it.each(seeds)("the registration of the pod webhook, seed %i", async (seed) => {
  const { violations, counts } = await new RegistrationWorld(seed).run();
  expect(violations).toEqual([]);
  expect(counts.writes).toBeGreaterThan(0);
});

it.each(seeds)("whole pods, seed %i", async (seed) => {
  const { violations, counts } = await new PodWorld(seed).run();
  expect(violations).toEqual([]);
  expect(counts.judged).toBeGreaterThan(0);
});
