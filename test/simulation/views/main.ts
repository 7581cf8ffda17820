/**
 * `npm run simulate:views` runs worlds of pod webhooks with announcements, and of passes that maintain the
 * registration; test/simulation/seeds-main.ts has the options.
 */
import { type SeedResult, seedsMain } from "../seeds-main.ts";
import { POD_TROUBLE, PodWorld } from "./pod-world.ts";
import { REGISTRATION_TROUBLE, RegistrationWorld } from "./registration-world.ts";
import { TROUBLE, ViewWorld } from "./world.ts";

await seedsMain({
  name: "views",
  runSeed,
  trouble: [...TROUBLE, ...REGISTRATION_TROUBLE, ...POD_TROUBLE],
  counts: ["writes", "pods", "unasked", "warned", "judged"],
  needed: ["writes", "pods", "unasked", "judged"],
});

/**
 * Every fourth world is about the registration, which says which pods the webhook sees. Every second world is followed
 * by one of whole pods.
 */
async function runSeed(seed: number): Promise<SeedResult<"writes" | "pods" | "unasked" | "warned" | "judged">> {
  const first = await (seed % 4 === 3 ? new RegistrationWorld(seed) : new ViewWorld(seed)).run();
  if (seed % 2 === 1) return { ...first, counts: { ...first.counts, judged: 0 } };
  const whole = await new PodWorld(seed).run();
  const happened = { ...first.happened };
  for (const [kind, times = 0] of Object.entries(whole.happened)) happened[kind] = (happened[kind] ?? 0) + times;
  return {
    seed,
    violations: [...first.violations, ...whole.violations],
    trace: [...first.trace, ...whole.trace],
    happened,
    counts: { ...first.counts, pods: first.counts.pods + whole.counts.pods, judged: whole.counts.judged },
  };
}
