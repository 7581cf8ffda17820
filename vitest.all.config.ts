import { defineConfig } from "vitest/config";
import { QUICK, RUN } from "./vitest.config.ts";

/** Functions read their settings when they are loaded, so each slow file loads them anew. */
const SLOW = { ...QUICK, include: ["test/**/*.slow.ts", "infra/local/test/*.slow.ts"], isolate: true };

/** `npm run test:all`: what `npm test` runs, with properties at full length, and what takes long. */
export default defineConfig({
  test: {
    ...RUN,
    outputFile: { json: "reports/vitest.json" },
    // A third of the time slow tests wait for processes.
    maxWorkers: "150%",
    projects: [{ test: { ...QUICK, name: "quick" } }, { test: { ...SLOW, name: "slow" } }],
  },
});
