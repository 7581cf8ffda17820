import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/e2e/**/*.e2e.ts"],
    globalSetup: ["test/e2e/support/cluster-setup.ts"],
    // Each has a control plane of its own.
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
    reporters: ["default", "./test/e2e/support/report.ts"],
  },
});
