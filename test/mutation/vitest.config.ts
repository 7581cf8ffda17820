import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** What Stryker runs against each mutant: the tests of the core, its vectors in small lots, properties cut short. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, "../.."),
    include: ["test/core/**/*.test.ts", "test/mutation/vectors.test.ts"],
    setupFiles: ["test/mutation/short-properties.ts"],
    isolate: false,
    testTimeout: 10_000,
    passWithNoTests: false,
  },
});
