import { defineConfig } from "vitest/config";
import { PATIENT } from "../support/patient.ts";
import { ON_NODE } from "./node/on-node.ts";
import { LongestFirst } from "./support/longest-first.ts";
import { filesNotOn, RUN_NAME, VERSION_VARIABLE } from "./support/versions.ts";

export default defineConfig({
  test: {
    include: process.env["E2E_NODE"] === "1" ? ON_NODE : ["test/e2e/**/*.e2e.ts"],
    globalSetup: ["test/e2e/support/cluster-setup.ts"],
    exclude: [...filesNotOn(process.env[VERSION_VARIABLE])],
    // There are more workers than processors, because workers wait half of the time. Each has its own control plane.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: PATIENT },
    passWithNoTests: false,
    reporters: ["default", "json", "./test/e2e/support/report.ts"],
    outputFile: { json: `reports/${RUN_NAME}-tests.json` },
  },
});
