/**
 * `npm run simulate:client` runs worlds of a client whose connections fail; test/simulation/seeds-main.ts has the
 * options.
 */
import { seedsMain } from "../seeds-main.ts";
import { CLIENT_TROUBLE, ClientWorld } from "./world.ts";

await seedsMain({
  name: "client",
  runSeed: (seed) => new ClientWorld(seed).run(),
  trouble: CLIENT_TROUBLE,
  counts: ["calls", "requests", "writes", "events"],
  needed: ["calls", "writes", "events"],
  atOnce: 32,
});
