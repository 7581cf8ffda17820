import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/page/**/*.page.ts"],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
    reporters: ["default", "json"],
    outputFile: { json: "reports/page.json" },
  },
});
