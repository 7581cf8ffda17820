import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { MUTATED, PARTS, type Part } from "./parts.ts";

const { tests, leftOut = [], slow = [], setup = [] }: Part = PARTS[MUTATED];

/** The first test that fails ends a mutant's run: those come first that found the one before, then what takes the least. */
class SoonestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const longestFirst = await super.sort(files);
    const hasFailed = (file: TestSpecification) => this.ctx.cache.getTestSpecificationResult(file)?.failed === true;
    return [...longestFirst.filter(hasFailed), ...longestFirst.filter((file) => !hasFailed(file)).toReversed()];
  }
}

/** What Stryker runs against each mutant. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, "../.."),
    include: [...tests],
    exclude: [...leftOut],
    setupFiles: [...setup],
    isolate: false,
    sequence: { sequencer: SoonestFirst },
    ...(slow.length > 0 ? { testNamePattern: new RegExp(`^(?!.*(?:${slow.join("|")}))`) } : {}),
    testTimeout: 10_000,
    passWithNoTests: false,
  },
});
