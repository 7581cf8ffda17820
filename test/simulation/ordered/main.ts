/**
 * `npm run simulate:ordered` runs worlds with an ordered set on all cores; test/simulation/seeds-main.ts has the
 * options.
 */
import { type SeedResult, seedsMain } from "../seeds-main.ts";
import { STRIKES, setScenarioOf } from "./scenario.ts";
import { SetWorld } from "./world.ts";

type Count = "calls" | "writes" | "created" | "taken" | "fences";

await seedsMain<Count>({
  name: "ordered",
  runSeed,
  trouble: [
    ...STRIKES,
    "pass killed",
    "pass frozen for 15 minutes",
    "overlapping passes",
    "409 conflict",
    "refused by a policy",
    "429 for many seconds",
    "page of a proxy",
  ],
  counts: ["calls", "writes", "created", "taken", "fences"],
  needed: ["created", "taken"],
  isParallel: true,
  enoughSeeds: 1_000,
});

async function runSeed(seed: number): Promise<SeedResult<Count>> {
  const { violations, trace, counts, strikes, ...numbers } = await new SetWorld(setScenarioOf(seed)).run();
  return { seed, violations, trace, happened: Object.fromEntries([...counts, ...strikes]), counts: numbers };
}
