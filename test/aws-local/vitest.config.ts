import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/aws-local/**/*.queue.ts"],
    testTimeout: 120_000,
    hookTimeout: 300_000,
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/queue.json" },
  },
});
