/**
 * `npm run attack` tries everything that is known to have been tried, or might be, against the doors, as a tenant and by
 * an operator's mistakes, and says table by table how much that was and how much of it held. `--times N`: N times as many,
 * where they are made by chance. `--cluster`: what a stolen credential would write, too, on a real API server.
 * `--counted`: nothing is run; what the runs of all tests have left in reports/ is counted. `--json FILE` keeps the figures.
 * Exits 1 where anything did not hold, or a table is empty.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { relative } from "node:path";
import { keepReport } from "../simulation/report-file.ts";
import { readOptions } from "../support/read-options.ts";
import type { Tried } from "./attacks.ts";

interface Table {
  readonly title: string;
  readonly files: readonly string[];
  /** of those files; absent: all tests */
  readonly tests?: RegExp;
  /** on a real API server */
  readonly isOfCluster?: boolean;
}

const TABLES: readonly Table[] = [
  { title: "requests, connections and bodies that nobody should send", files: ["test/security/doors.test.ts"] },
  {
    title: "callers who prove nothing, or too little",
    files: ["test/webhook/authenticate.test.ts", "test/webhook/https-authentication.test.ts"],
  },
  { title: "headers that a load balancer did not write", files: ["test/lambda/doors.test.ts"], tests: /certificate/ },
  {
    title: "bodies, and pods, made to keep a webhook computing",
    files: ["test/security/hostile-bodies.test.ts", "test/security/hostile-pods.test.ts"],
  },
  { title: "secrets that might be learnt", files: ["test/security/canaries.test.ts"] },
  { title: "lines that might fill the log, or a terminal", files: ["test/shared/log.test.ts"] },
  { title: "names that might lead elsewhere in the API", files: ["test/kube/client.test.ts"], tests: /name|path/i },
  { title: "gates that are somewhere else", files: ["test/gate/ask-gate.test.ts"] },
  {
    title: "tenants: pods that want more than is theirs",
    files: [
      "test/security/threats.test.ts",
      "test/security/tenants.test.ts",
      "test/core/halt/witnesses.test.ts",
      "test/core/upgrade/never-ready.test.ts",
      "test/webhook/admission-warnings.test.ts",
    ],
  },
  {
    title: "operators' mistakes",
    files: ["test/cli/bad-input.test.ts", "test/infra/aws-settings.test.ts"],
    tests: /bad input|one sentence|refused/,
  },
  {
    title: "writes that no rollout makes, by the reconciler's credential",
    files: ["test/e2e/fence.e2e.ts"],
    tests: /may not/,
    isOfCluster: true,
  },
];

const COUNTS = "reports/attacks.jsonl";
const [UNIT, CLUSTER] = ["reports/vitest.json", "reports/e2e-tests.json"];

interface TestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

interface Outcome {
  readonly tried: number;
  readonly held: number;
  readonly broken: readonly string[];
}

const { values } = readOptions({
  options: {
    times: { type: "string" },
    cluster: { type: "boolean" },
    counted: { type: "boolean" },
    json: { type: "string" },
  },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

function runTests(): void {
  mkdirSync("reports", { recursive: true });
  for (const file of [COUNTS, UNIT, ...(values.cluster ? [CLUSTER] : [])]) rmSync(file, { force: true });
  const env = { ...process.env, ATTACKS: COUNTS, ATTACK_TIMES: values.times ?? "1" };
  const filesOf = (isOfCluster: boolean) =>
    TABLES.filter((table) => (table.isOfCluster ?? false) === isOfCluster).flatMap(({ files }) => files);
  const run = (args: readonly string[]) => spawnSync(process.execPath, args, { stdio: "inherit", env });
  run(["node_modules/vitest/vitest.mjs", "run", ...filesOf(false)]);
  if (values.cluster) run(["test/e2e/main.ts", ...filesOf(true)]);
}

function readTests(file: string): TestReport["testResults"] {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as TestReport).testResults : [];
}

function readCounts(): ReadonlyMap<string, number> {
  const lines = existsSync(COUNTS) ? readFileSync(COUNTS, "utf8").split("\n").filter(Boolean) : [];
  const all = lines.map((line) => JSON.parse(line) as Tried);
  return new Map(all.map(({ file, test, count }) => [`${file} ${test}`, count]));
}

/** Of a table: a test is one attack, unless it says how many. */
function outcomeOf({ files, tests }: Table, results: TestReport["testResults"], counts: ReadonlyMap<string, number>) {
  const outcomes = results.flatMap(({ name, assertionResults }): Outcome[] => {
    const file = relative(process.cwd(), name);
    if (!files.includes(file)) return [];
    const wanted = assertionResults.filter(({ fullName }) => tests?.test(fullName) ?? true);
    return wanted.map(({ fullName, status }) => {
      const count = counts.get(`${file} ${fullName}`) ?? 1;
      const isHeld = status === "passed";
      return { tried: count, held: isHeld ? count : 0, broken: isHeld ? [] : [`${file}: ${fullName}`] };
    });
  });
  return outcomes.reduce(
    (sum, one) => ({
      tried: sum.tried + one.tried,
      held: sum.held + one.held,
      broken: [...sum.broken, ...one.broken],
    }),
    { tried: 0, held: 0, broken: [] as readonly string[] },
  );
}

function main(): boolean {
  if (!values.counted) runTests();
  const results = [...readTests(UNIT), ...readTests(CLUSTER)];
  const counts = readCounts();
  const isWanted = ({ isOfCluster = false }: Table) => !isOfCluster || values.cluster || values.counted === true;
  const rows = TABLES.filter(isWanted).map((table) => ({ title: table.title, ...outcomeOf(table, results, counts) }));
  for (const { title, tried, held, broken } of rows) {
    print(`${tried > 0 && held === tried ? "held  " : "BROKEN"} ${held} of ${tried} ${title}`);
    for (const one of broken) print(`       ${one}`);
  }
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
  const [tried, held] = [sum((row) => row.tried), sum((row) => row.held)];
  print(`${tried} attacks of ${rows.length} tables were tried, ${held} held`);
  if (values.json)
    keepReport(values.json, "attacks", { tried, held, tables: rows.length, times: Number(values.times ?? 1) });
  return rows.every((row) => row.tried > 0 && row.held === row.tried);
}

process.exitCode = main() ? 0 : 1;
