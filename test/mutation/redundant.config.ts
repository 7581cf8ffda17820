/** Runs tests on code that contains all mutants at once. every-mutant.ts activates them one at a time. */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { Instrumenter } from "@stryker-mutator/instrumenter";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { type Mutant, PATHS, SOURCES, VECTORS } from "./killers.ts";
import { MUTATED, PARTS, type Part } from "./parts.ts";

const root = join(import.meta.dirname, "../..");
const { setup = [] }: Part = PARTS[MUTATED];
const SILENT = { isDebugEnabled: () => false, debug: () => undefined, info: () => undefined };

/** Returns the instrumented text of each source file, by its path. */
async function instrument(): Promise<ReadonlyMap<string, string>> {
  const sources = (process.env[SOURCES] ?? "").split(" ");
  const names = sources.flatMap((name) => (/\.ts\b/.test(name) ? [name] : globSync(`${name}/**/*.ts`, { cwd: root })));
  const texts = names.toSorted().map((name) => {
    const [file = "", lines] = name.split(":");
    const path = join(root, file);
    const [from = 1, to = from] = (lines ?? "").split("-").map(Number);
    const range = { start: { line: from - 1, column: 0 }, end: { line: to, column: 0 } };
    return { name: path, content: readFileSync(path, "utf8"), mutate: lines === undefined || [range] };
  });
  const options = { plugins: null, excludedMutations: [], ignorers: [] };
  const { files, mutants } = await new Instrumenter(SILENT as never).instrument(texts, options);
  const lines = mutants.map(({ id, fileName, location, replacement }) => {
    const { line, column } = location.start;
    const mutant: Mutant = {
      id,
      file: relative(root, fileName),
      line: line + 1,
      column,
      replacement: replacement ?? "",
    };
    return `${JSON.stringify(mutant)}\n`;
  });
  writeFileSync(join(root, PATHS.mutants), lines.join(""));
  return new Map(files.map(({ name, content }) => [name, countOnce(forgetful(content))]));
}

/** Makes modules reset their memory between two runs of a test, so that no effect of a mutant stays there. */
const forgetful = (text: string) =>
  text.replaceAll(/^(const \w+ = new )((?:Weak)?Map)(<.*\(\);)$/gm, "$1globalThis.Forgetful$2$3");

/** Makes the code count hits only in a test's first run, because counting takes most of the time. */
const countOnce = (text: string) =>
  text.replace("function cover() {", "function cover() { if (ns.currentTestId === undefined) return;");

const instrumented = await instrument();

/**
 * Runs vectors first: other tests need not try a mutant that vectors kill. The longest files run last, because these
 * should become shorter.
 */
class LongestLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => lengthOf(a) - lengthOf(b));
  }
}

const lengthOf = ({ moduleId }: TestSpecification) =>
  moduleId.endsWith(VECTORS) ? 0 : readFileSync(moduleId, "utf8").length;

export default defineConfig({
  plugins: [{ name: "mutants", enforce: "pre", load: (id) => instrumented.get(id.split("?")[0] ?? "") }],
  test: {
    root,
    include: ["test/**/*.test.ts"],
    setupFiles: [...setup],
    runner: "test/mutation/every-mutant.ts",
    isolate: false,
    // The cache knows a file by its text without mutants.
    fsModuleCache: false,
    pool: "threads",
    maxWorkers: 1,
    includeTaskLocation: true,
    reporters: ["minimal"],
    silent: true,
    // A test runs once for each mutant. Another process watches for an endless loop.
    testTimeout: 0,
    sequence: { sequencer: LongestLast },
  },
});
