/**
 * Orders files so that a mutant's first failing test comes early. Files that killed a recent mutant come first, because
 * mutants come in the order of the source. The fastest files follow. A file's other tests, which never reach the
 * mutant, are ignored: Stryker names the tests by a pattern.
 */
import { BaseSequencer, type Reporter, type TestCase, type TestModule, type TestSpecification } from "vitest/node";
import { type Durations, fileOf, MEASURING, NEVER_MS, readDurations, writeDurations } from "./durations.ts";

/** Files that killed a recent mutant, the latest first. */
let finders: readonly string[] = [];
const MOST_FINDERS = 4;

/** Records the time of each test, and then the files that killed a mutant. */
export class Outcomes implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (process.env[MEASURING]) keepDurations(modules);
    else keepFinder(modules);
  }
}

function keepFinder(modules: readonly TestModule[]): void {
  const finder = modules.find((module) => !module.ok())?.moduleId;
  if (finder) finders = [finder, ...finders.filter((one) => one !== finder)].slice(0, MOST_FINDERS);
}

/** A skipped test keeps its earlier time. */
function keepDurations(modules: readonly TestModule[]): void {
  const known = readDurations() ?? {};
  const durations = modules.map(({ moduleId, children }) => {
    const file = fileOf(moduleId);
    const tests = [...children.allTests()].map((test) => [test.fullName, durationOf(test, known[file])]);
    return [file, Object.fromEntries(tests)];
  });
  writeDurations(Object.fromEntries(durations));
}

function durationOf(test: TestCase, known: Durations[string] = {}): number {
  const { state } = test.result();
  if (state === "failed") return NEVER_MS;
  return (state === "skipped" ? known[test.fullName] : test.diagnostic()?.duration) ?? 0;
}

export class SoonestFirst extends BaseSequencer {
  readonly #durations = readDurations();

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durations = this.#durations;
    if (!durations) return super.sort(files);
    const costs = new Map(files.map((file) => [file, costOf(durations[fileOf(file.moduleId)] ?? {}, file)]));
    return files.toSorted((a, b) => rank(a) - rank(b) || (costs.get(a) ?? 0) - (costs.get(b) ?? 0));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const index = finders.indexOf(moduleId);
  return index < 0 ? MOST_FINDERS : index;
}

function costOf(durations: Durations[string], { project }: TestSpecification): number {
  const { testNamePattern } = project.config;
  const reached = Object.keys(durations).filter((name) => !testNamePattern || testNamePattern.test(name));
  return reached.reduce((sum, name) => sum + (durations[name] ?? 0), 0);
}
