/**
 * `npm run simulate:queue` runs worlds whose SidecarSets go through a queue; test/simulation/seeds-main.ts has the
 * options.
 */
import { seedsMain } from "../seeds-main.ts";
import { QUEUE_TROUBLE, QueueWorld } from "./world.ts";

await seedsMain({
  name: "queue",
  runSeed: (seed) => new QueueWorld(seed).run(),
  trouble: QUEUE_TROUBLE,
  counts: ["messages", "passes", "skipped", "upgrades"],
  needed: ["messages", "passes", "skipped", "upgrades"],
});
