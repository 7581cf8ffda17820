import { defineConfig } from "vitest/config";
import { PATIENT } from "./test/support/patient.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "infra/local/test/*.test.ts"],
    exclude: ["test/e2e/**", "**/node_modules/**"],
    // Vitest itself leaves a core free, which is half of two. A third of the time tests wait for something.
    maxWorkers: "150%",
    // Nothing may hang on how busy the machine is.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    expect: { poll: PATIENT },
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/vitest.json" },
  },
});
