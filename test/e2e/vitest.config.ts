import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/e2e/**/*.e2e.ts"],
    globalSetup: ["test/e2e/support/cluster-setup.ts"],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/e2e.json" },
  },
});
