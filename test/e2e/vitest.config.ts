import { defineConfig } from "vitest/config";
import { PATIENT } from "../support/patient.ts";
import { LongestFirst } from "./support/longest-first.ts";

export default defineConfig({
  test: {
    include: ["test/e2e/**/*.e2e.ts"],
    globalSetup: ["test/e2e/support/cluster-setup.ts"],
    // Each has a control plane of its own.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: PATIENT },
    passWithNoTests: false,
    reporters: ["default", "json", "./test/e2e/support/report.ts"],
    outputFile: { json: "reports/e2e-tests.json" },
  },
});
