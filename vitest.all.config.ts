import { defineConfig } from "vitest/config";
import quick, { SETUP } from "./vitest.config.ts";

/** `npm run test:all`: what `npm test` runs, with properties at full length, and what takes long. */
export default defineConfig({
  test: {
    ...quick.test,
    include: [...(quick.test?.include ?? []), "test/**/*.slow.ts", "infra/local/test/*.slow.ts"],
    setupFiles: SETUP,
    // A third of the time slow tests wait for processes.
    maxWorkers: "150%",
    outputFile: { json: "reports/vitest.json" },
  },
});
