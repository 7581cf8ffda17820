import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { MUTATED, PARTS, type Part } from "./parts.ts";
import { Outcomes, SoonestFirst } from "./soonest-first.ts";

const { tests, leftOut = [], slow = [], setup = [] }: Part = PARTS[MUTATED];

/** What Stryker runs against each mutant. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, "../.."),
    include: [...tests],
    exclude: [...leftOut],
    setupFiles: [...setup],
    isolate: false,
    reporters: [new Outcomes()],
    sequence: { sequencer: SoonestFirst },
    ...(slow.length > 0 ? { testNamePattern: new RegExp(`^(?!.*(?:${slow.join("|")}))`) } : {}),
    testTimeout: 10_000,
    passWithNoTests: false,
  },
});
