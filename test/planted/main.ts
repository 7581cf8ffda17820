/**
 * `npm run planted -- --patches DIR` measures which tests find planted bugs. Each patch of the folder is applied to a
 * copy. First the unit tests run there, then the simulations that run such code. One line and one record follow for
 * each patch, in `--json FILE`. An interrupted run continues from these records.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import { findBug, type PlantedBug, plantBug } from "../simulation/planted-bug.ts";
import { SIMULATIONS, type Simulation } from "../simulation/simulations.ts";
import { readOptions } from "../support/read-options.ts";

const run = promisify(execFile);
const COPIED = [
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
  "vitest.all.config.ts",
  "serverless.yml",
  ".ci",
  ".github",
  "README.md",
  "CHANGELOG.md",
  "shared",
  "functions",
  "infra",
  "test",
  "docs",
];
/** The tests that a bug in `shared` can reach, without tests that start processes. */
const TESTS = ["core", "controller", "webhook", "kube", "vectors.test.ts"];
const LEFT_OUT = ["serve", "ui", "hint-in-process"].map((name) => `test/webhook/${name}.slow.ts`);
/** The first tests for each path, and the simulations that run this code. Code without simulations runs only tests. */
const AREAS: readonly Area[] = [
  {
    path: /approval/,
    tests: ["gate", "core/gate", "controller/ask-", "controller/metric-checks", "shared/"],
    simulations: [],
  },
  {
    path: /^shared\/(settings|aws)/,
    tests: ["shared/", "kube/cluster-access", "webhook/authenticate", "infra/aws", "infra/outages", "lambda/"],
    simulations: [],
  },
  {
    path: /^functions/,
    tests: ["functions/", "lambda/", "webhook/serve", "tracing/", "infra/outages"],
    simulations: [],
  },
  { path: /^infra/, tests: ["infra/", "docs/deploy", "lambda/"], simulations: [] },
  { path: /statefulset/, tests: ["core/ordered-set", "controller/ordered-set"], simulations: ["ordered"] },
  { path: /^shared\/webhook|registration/, tests: ["webhook", "controller"], simulations: ["views"] },
  { path: /serve-work|rollout\/queue/, tests: ["controller"], simulations: ["queue"] },
  { path: /^shared\/kube/, tests: ["kube"], simulations: ["client", "rollout", "views", "ordered"] },
  { path: /^shared\/core\/injection/, tests: ["core"], simulations: ["rollout", "views"] },
  { path: /^shared\/core/, tests: ["core"], simulations: ["rollout", "queue"] },
  { path: /loop\/pages/, tests: ["controller"], simulations: ["client", "rollout", "queue"] },
  { path: /./, tests: ["controller"], simulations: ["rollout", "queue"] },
];
/** Numbers of seeds; CI runs ten times as many. */
const SEEDS: Readonly<Record<string, number>> = {
  rollout: 10_000,
  views: 300,
  queue: 500,
  ordered: 2_000,
  client: 320,
};

interface Area {
  readonly path: RegExp;
  /** paths of tests below test/ */
  readonly tests: readonly string[];
  readonly simulations: readonly string[];
}

interface Outcome {
  readonly name: string;
  /** title of the first test that failed; null: none did */
  readonly test: string | null;
  /** simulation and seed that found the bug; null: none did */
  readonly simulation: string | null;
}

const { values } = readOptions({
  options: {
    patches: { type: "string" },
    "at-once": { type: "string", default: "1" },
    json: { type: "string", default: "reports/planted.json" },
  },
});
if (values.patches === undefined) throw new Error("--patches names the folder of the patches to measure");
const folder = resolve(values.patches);
const done = new Map(read().map((outcome) => [outcome.name, outcome]));
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".patch"))
  .map((file) => file.slice(0, -".patch".length));

await mapLimited(
  names.filter((name) => !done.has(name)),
  Number(values["at-once"]),
  async (name) => {
    const outcome = await measure(name);
    done.set(name, outcome);
    writeFileSync(values.json, `${JSON.stringify([...done.values()], undefined, 2)}\n`);
    process.stdout.write(`${name}: ${outcome.test ?? "no test"}; ${outcome.simulation ?? "no simulation"}\n`);
  },
);
const outcomes = names.flatMap((name) => done.get(name) ?? []);
const count = (isIt: (outcome: Outcome) => boolean) => outcomes.filter(isIt).length;
process.stdout.write(
  `${outcomes.length} bugs: ${count(({ test }) => test !== null)} found by unit tests, ` +
    `${count(({ simulation }) => simulation !== null)} by simulations, ` +
    `${count(({ test, simulation }) => test === null && simulation === null)} by neither\n`,
);
process.exitCode = outcomes.length === 0 ? 1 : 0;

function read(): readonly Outcome[] {
  try {
    return JSON.parse(readFileSync(values.json, "utf8"));
  } catch {
    return [];
  }
}

async function measure(name: string): Promise<Outcome> {
  const patch = join(folder, `${name}.patch`);
  const [, path = ""] = /^\+\+\+ b\/(.*)$/m.exec(readFileSync(patch, "utf8")) ?? [];
  const area = AREAS.find((one) => one.path.test(path));
  const bug = await plantBug(patch, COPIED);
  try {
    if (area === undefined || bug.problems.length > 0) throw new Error(`${name} does not compile: ${bug.problems[0]}`);
    const others = area.simulations.length === 0 ? [] : TESTS.filter((tests) => !area.tests.includes(tests));
    const test = (await failingTest(bug, area.tests)) ?? (others.length > 0 ? await failingTest(bug, others) : null);
    return { name, test, simulation: await findingSimulation(bug, area.simulations) };
  } finally {
    await bug.remove();
  }
}

/**
 * Returns the title of the first test that fails with the bug. Runs the quick tests in `tests` (paths below test/)
 * first.
 */
async function failingTest(bug: PlantedBug, tests: readonly string[]): Promise<string | null> {
  return (await failingOf(bug, "quick", tests)) ?? (await failingOf(bug, "slow", tests));
}

async function failingOf({ folder: root }: PlantedBug, project: string, tests: readonly string[]) {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const report = join(root, "planted-report.json");
  const excluded = LEFT_OUT.flatMap((path) => ["--exclude", path]);
  const options = [
    "--config=vitest.all.config.ts",
    `--project=${project}`,
    "--passWithNoTests",
    "--bail=1",
    "--reporter=json",
    `--outputFile=${report}`,
    "--maxWorkers=1",
    ...excluded,
  ];
  const argv = [vitest, "run", ...options, ...tests.map((path) => `test/${path}`)];
  const hasPassed = await run(process.execPath, argv, { cwd: root }).then(
    () => true,
    () => false,
  );
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as VitestReport;
  for (const { name, status: ofFile, assertionResults } of testResults) {
    for (const { status, fullName } of assertionResults)
      if (status === "failed") return `${relative(root, name)}: ${fullName}`;
    if (ofFile === "failed") return `${relative(root, name)} does not load`;
  }
  if (!hasPassed) throw new Error(`the tests of ${root} did not run to their end`);
  return null;
}

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

async function findingSimulation(bug: PlantedBug, simulations: readonly string[]): Promise<string | null> {
  for (const name of simulations) {
    const { script } = SIMULATIONS[name] as Simulation;
    const seed = await findBug(bug, script, 0, SEEDS[name] ?? 1_000);
    if (seed !== undefined) return `${name}, seed ${seed}`;
  }
  return null;
}
