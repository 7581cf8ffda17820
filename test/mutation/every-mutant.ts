/** A test runner that repeats each test with every mutant that the test reaches. Modules are loaded only once for it. */
import { appendFileSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { configureGlobal } from "fast-check";
import { type RunnerTestCase, type RunnerTestSuite, TestRunner } from "vitest";
import { fileOf } from "./durations.ts";
import { type Outcome, PATHS, readLines, readOutcomes, SURVIVORS, VECTORS } from "./killers.ts";

/** Switches of Stryker that instrumented code reads. */
interface Switches {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: { readonly perTest: Record<string, Readonly<Record<string, number>>> };
}

const { setTimeout, clearTimeout } = globalThis;
const switches: Switches = {};
/** The most hits of a mutant in a loop, as a multiple of the hits without the mutant. */
const MOST_HITS = 100;
/** Milliseconds for a promise, on top of ten times its time without a mutant. */
const PATIENCE_MS = 2_000;
/** The number of vectors of one kind after which a surviving mutant is tried only with other kinds. */
const MOST_TRIES = 8;
/**
 * A mutant with ENOUGH known killers is not tried again. Tests slower than MOST_MS are left out, because with every
 * mutant they would take hours.
 */
const [ENOUGH, MOST_MS] = process.env[SURVIVORS] ? [1, 1_500] : [3, 60];

const memories: (() => void)[] = [];

class ForgetfulWeakMap<K extends WeakKey, V> {
  #map = new WeakMap<K, V>();

  constructor() {
    memories.push(() => {
      this.#map = new WeakMap();
    });
  }

  readonly get = (key: K) => this.#map.get(key);
  readonly has = (key: K) => this.#map.has(key);
  readonly delete = (key: K) => this.#map.delete(key);
  readonly set = (key: K, value: V) => this.#map.set(key, value);
}

class ForgetfulMap<K, V> extends Map<K, V> {
  constructor() {
    super();
    memories.push(() => this.clear());
  }
}

Object.assign(globalThis, { ForgetfulMap, ForgetfulWeakMap, __stryker__: switches });
configureGlobal({ endOnFailure: true });

const keyOf = ({ file, line, title }: { file: string; line: number; title: string }) => `${file}:${line} ${title}`;
const isVector = (file: string) => file.endsWith(VECTORS);
const earlier = readOutcomes();
const done = new Set(earlier.map(keyOf));
const settled = new Set(readLines(PATHS.endless));
const killers = new Map<string, number>();
const tries = new Map<string, number>();
for (const { file, killed } of earlier) countKillers(file, killed);
const now = openSync(PATHS.now, "w");

function countKillers(file: string, killed: readonly string[]): void {
  for (const id of killed) {
    const count = isVector(file) ? ENOUGH : increment(killers, id);
    if (count >= ENOUGH) settled.add(id);
  }
}

function increment(counts: Map<string, number>, key: string): number {
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  return count;
}

const isWorthTrying = (id: string, { file, suite }: RunnerTestCase) =>
  !settled.has(id) && !(isVector(file.filepath) && increment(tries, `${id} ${suite?.id}`) > MOST_TRIES);

async function passes(run: () => unknown, mostMs: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  for (const forget of memories) forget();
  try {
    const result = run();
    if (!(result instanceof Promise)) return true;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("late")), mostMs);
    });
    await Promise.race([result, late]);
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

async function passesWithMutant(id: string, hits: number, mostMs: number, run: () => unknown): Promise<boolean> {
  writeSync(now, `${id} ${performance.now()}\n`, 0);
  Object.assign(switches, { activeMutant: id, hitCount: 0, hitLimit: hits * MOST_HITS });
  const isFine = await passes(run, mostMs);
  Object.assign(switches, { activeMutant: undefined, hitCount: undefined });
  return isFine;
}

/** Returns the mutants that a test reaches, and how often. */
async function reachedBy(run: () => unknown): Promise<readonly (readonly [string, number])[]> {
  for (const forget of memories) forget();
  switches.currentTestId = "test";
  await run();
  switches.currentTestId = undefined;
  const { perTest = {} } = switches.mutantCoverage ?? {};
  const reached = Object.entries(perTest["test"] ?? {});
  delete perTest["test"];
  return reached;
}

/** Returns the mutants that a test kills; undefined: unknown, because the test is slow or its second run fails. */
async function killedBy(test: RunnerTestCase, run: () => unknown): Promise<readonly string[] | undefined> {
  const started = performance.now();
  const reached = await reachedBy(run);
  const again = performance.now();
  const mostMs = PATIENCE_MS + 10 * (again - started);
  if (!(await passes(run, mostMs))) return undefined;
  if (performance.now() - again > MOST_MS && !isVector(test.file.filepath)) return undefined;
  const killed: string[] = [];
  for (const [id, hits] of reached)
    if (isWorthTrying(id, test) && !(await passesWithMutant(id, hits, mostMs, run))) killed.push(id);
  // If a test now fails without a mutant, an earlier mutant left something behind.
  return (await passes(run, mostMs)) ? killed : undefined;
}

/** Returns the suites from the file down to the test. */
function suitesOf(test: RunnerTestCase): readonly RunnerTestSuite[] {
  const suites: RunnerTestSuite[] = [];
  for (let suite = test.suite; suite && suite !== test.file; suite = suite.suite) suites.unshift(suite);
  return [test.file, ...suites];
}

/** Runs hooks in order. The functions that they return undo them. */
async function runHooks<A extends readonly unknown[]>(hooks: readonly ((...given: A) => unknown)[], ...given: A) {
  const undo: (() => unknown)[] = [];
  for (const hook of hooks) {
    const returned = await hook(...given);
    if (typeof returned === "function") undo.unshift(returned as () => unknown);
  }
  return () => runHooks(undo);
}

/** Returns a test together with all hooks of its suites, so that it finds no objects of the last run. */
function whole(test: RunnerTestCase): () => Promise<void> {
  const hooks = suitesOf(test).map((suite) => TestRunner.getSuiteHooks(suite));
  const ofAll = <K extends keyof (typeof hooks)[number]>(name: K) => hooks.map((those) => those[name]);
  const testFn = TestRunner.getTestFn(test);
  return async () => {
    const undoAll = await runHooks(ofAll("beforeAll").flat(), test.file);
    const undo = await runHooks(ofAll("beforeEach").flat(), test.context, test.file);
    try {
      await testFn();
    } finally {
      await runHooks(ofAll("afterEach").toReversed().flat(), test.context, test.file);
      await undo();
      await runHooks(ofAll("afterAll").toReversed().flat(), test.file);
      await undoAll();
    }
  };
}

/** Runs the "before all" hooks again, because other tests of the file need them. */
async function beginAgain(test: RunnerTestCase): Promise<void> {
  const hooks = suitesOf(test).flatMap((suite) => TestRunner.getSuiteHooks(suite).beforeAll);
  await runHooks(hooks, test.file);
}

export default class EveryMutant extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    const file = fileOf(test.file.filepath).slice(1);
    const place = { file, line: test.location?.line ?? 0, title: test.fullTestName };
    if (done.has(keyOf(place))) return;
    const killed = await killedBy(test, whole(test));
    await beginAgain(test);
    countKillers(file, killed ?? []);
    const outcome: Outcome = { ...place, isMeasured: killed !== undefined, killed: killed ?? [] };
    appendFileSync(PATHS.outcomes, `${JSON.stringify(outcome)}\n`);
    ftruncateSync(now);
  }
}
