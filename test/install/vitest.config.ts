import { defineConfig } from "vitest/config";
import { PATIENT } from "../support/patient.ts";

export default defineConfig({
  test: {
    include: ["test/install/**/*.install.ts"],
    testTimeout: 120_000,
    hookTimeout: 600_000,
    expect: { poll: PATIENT },
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/install.json" },
  },
});
