import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { MEASURING } from "./durations.ts";
import { MUTATED, PARTS, type Part } from "./parts.ts";
import { Outcomes, SoonestFirst } from "./soonest-first.ts";

const { tests, setup = [] }: Part = PARTS[MUTATED];

/** Runs Stryker's tests against each mutant. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, "../.."),
    include: [...tests],
    setupFiles: ["test/mutation/quick-tests.ts", ...setup],
    isolate: false,
    reporters: ["dot", new Outcomes()],
    sequence: { sequencer: SoonestFirst },
    // A measured test may take long. A test with an endless mutant may not.
    testTimeout: process.env[MEASURING] ? 60_000 : 10_000,
    passWithNoTests: false,
  },
});
