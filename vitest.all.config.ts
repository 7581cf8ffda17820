import { defineConfig, type TestUserConfig } from "vitest/config";
import { QUICK, RUN } from "./vitest.config.ts";

/** Functions read their settings when they are loaded, so each slow file loads them anew. */
const SLOW = {
  ...QUICK,
  include: ["test/**/*.slow.ts", "infra/local/test/*.slow.ts"],
  isolate: true,
  // What ends a process, such as a fault of the runtime, ends one file.
  pool: "forks",
} satisfies TestUserConfig;

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
