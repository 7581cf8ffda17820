/**
 * `npm run simulate:views`: worlds of pod webhooks that go by announcements, and of those who keep the registration;
 * test/simulation/seeds-main.ts says what it takes.
 */
import { seedsMain } from "../seeds-main.ts";
import { REGISTRATION_TROUBLE, RegistrationWorld } from "./registration-world.ts";
import { TROUBLE, ViewWorld } from "./world.ts";

await seedsMain({
  name: "views",
  /** Every fourth one is about the registration that says which pods are asked about. */
  runSeed: (seed) => (seed % 4 === 3 ? new RegistrationWorld(seed) : new ViewWorld(seed)).run(),
  trouble: [...TROUBLE, ...REGISTRATION_TROUBLE],
  counts: ["writes", "pods", "unasked", "warned"],
  needed: ["writes", "pods", "unasked"],
});
