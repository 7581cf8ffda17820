/**
 * The first test that fails ends a mutant's run. So those files come first that found a mutant lately, since mutants come
 * in the order of the source; then those whose tests take least. Of a file only those tests count that reach the mutant:
 * Stryker names them by a pattern.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from "vitest/node";
import { MUTATED } from "./parts.ts";

/** Milliseconds by the full name of a test, by the end of its file's path. */
type Durations = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** In the sandbox that all of Stryker's processes share: one of them runs all tests before any mutant is tried. */
const FILE = join(import.meta.dirname, "../../reports/mutation", `${MUTATED}-durations.json`);
const nameOf = (path: string) => path.slice(path.lastIndexOf("/test/"));

/** Files that found one of the last mutants, the latest first. */
let finders: readonly string[] = [];
const MOST_FINDERS = 4;

/** Keeps how long each test takes, and what has found a mutant. */
export class Outcomes implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.some(({ project }) => project.config.testNamePattern)) keepFinder(modules);
    else keepDurations(modules);
  }
}

function keepFinder(modules: readonly TestModule[]): void {
  const finder = modules.find((module) => !module.ok())?.moduleId;
  if (finder) finders = [finder, ...finders.filter((one) => one !== finder)].slice(0, MOST_FINDERS);
}

function keepDurations(modules: readonly TestModule[]): void {
  const durations = modules.map(({ moduleId, children }) => {
    const tests = [...children.allTests()].map((test) => [test.fullName, test.diagnostic()?.duration ?? 0]);
    return [nameOf(moduleId), Object.fromEntries(tests)];
  });
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(FILE, JSON.stringify(Object.fromEntries(durations)));
}

export class SoonestFirst extends BaseSequencer {
  #durations: Durations | undefined;

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    this.#durations ??= readDurations();
    const durations = this.#durations;
    if (!durations) return super.sort(files);
    const costs = new Map(files.map((file) => [file, costOf(durations[nameOf(file.moduleId)] ?? {}, file)]));
    return files.toSorted((a, b) => rank(a) - rank(b) || (costs.get(a) ?? 0) - (costs.get(b) ?? 0));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const index = finders.indexOf(moduleId);
  return index < 0 ? MOST_FINDERS : index;
}

/** undefined: the tests run for the first time. */
function readDurations(): Durations | undefined {
  try {
    return JSON.parse(readFileSync(FILE, "utf8"));
  } catch {
    return undefined;
  }
}

function costOf(durations: Durations[string], { project }: TestSpecification): number {
  const { testNamePattern } = project.config;
  const reached = Object.keys(durations).filter((name) => !testNamePattern || testNamePattern.test(name));
  return reached.reduce((sum, name) => sum + (durations[name] ?? 0), 0);
}
