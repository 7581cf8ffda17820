import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/install/**/*.install.ts"],
    testTimeout: 120_000,
    hookTimeout: 600_000,
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/install.json" },
  },
});
