import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/e2e/**/*.e2e.ts"],
    globalSetup: ["test/e2e/support/cluster-setup.ts"],
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
    reporters: ["default", "./test/e2e/support/report.ts"],
  },
});
