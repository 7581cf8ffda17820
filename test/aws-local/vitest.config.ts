import { defineConfig } from "vitest/config";
import { PATIENT } from "../support/patient.ts";

export default defineConfig({
  test: {
    include: ["test/aws-local/**/*.queue.ts"],
    testTimeout: 120_000,
    hookTimeout: 300_000,
    expect: { poll: PATIENT },
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/queue.json" },
  },
});
