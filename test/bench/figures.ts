/**
 * `npm run figures`: measures sizes, cold starts and costs, takes in what benchmarks and simulation have left in reports/
 * (with --reports only that), prints all, and writes figures.json and the tables of docs/deploy.md.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { countAlarmMetrics } from "../../infra/aws/alarms.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { type BundleSize, bundle, FUNCTIONS } from "../../infra/build.ts";
import { RUNTIME_CLIENT } from "../lambda/runtime-process.ts";
import { type ColdStartFigures, measureColdStart } from "./cold-start.ts";
import { doorsMonth, idleMonth, type Measurements, podsMonth, rolloutOnce } from "./cost.ts";
import { type Figures, tables, withTable } from "./figures-table.ts";
import { takenFigures } from "./taken-figures.ts";

const PROCESSES = 30;
const PODS_PER_MINUTE = 3_000;

/** Milliseconds of a cold start, above an empty handler, and dollars a month: what is promised. */
const TARGETS = { "mutate-sidecarset": 25, "mutate-pod": 40, idle: 1, pods: 28 };

async function measureSizes(): Promise<Readonly<Record<string, BundleSize>>> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-figures-"));
  const sizes: [string, BundleSize][] = [];
  for (const name of FUNCTIONS) sizes.push([name, await bundle(name, join(folder, name))]);
  await rm(folder, { recursive: true });
  return Object.fromEntries(sizes);
}

async function measurements({ functions }: ColdStartFigures): Promise<Measurements> {
  const { "mutate-pod": pod, rollout } = functions;
  if (pod === undefined || rollout === undefined) throw new Error("mutate-pod or rollout was not measured");
  const settings = await readSettings("sidecarset", "prod", async () => "");
  return {
    idleTickMs: rollout.warm.median,
    podMs: pod.warm.cpu ?? pod.warm.median,
    podAnswerBytes: pod.warm.answerBytes,
    tickLogBytes: rollout.warm.logBytes,
    alarmMetrics: countAlarmMetrics(settings),
  };
}

/** Sizes, cold starts and costs. */
async function measureHere() {
  const sizes = await measureSizes();
  const coldStart = await measureColdStart(PROCESSES);
  const measured = await measurements(coldStart);
  const cost = {
    measured,
    idleMonth: idleMonth(measured),
    podsPerMinute: PODS_PER_MINUTE,
    podsMonth: podsMonth(PODS_PER_MINUTE, measured),
    doorsMonth: doorsMonth(PODS_PER_MINUTE, measured),
    rolloutOf10000Pods: rolloutOnce(10_000, 500, 30),
  };
  const machine = { node: process.version, processor: cpus()[0]?.model ?? "unknown", runtimeClient: RUNTIME_CLIENT };
  const cold = (name: string) => {
    const figures = coldStart.functions[name];
    return (figures?.coldCpu ?? figures?.cold)?.median ?? Number.NaN;
  };
  const targets = [
    {
      what: "cold start of mutate-sidecarset, ms",
      target: TARGETS["mutate-sidecarset"],
      is: cold("mutate-sidecarset"),
    },
    { what: "cold start of mutate-pod, ms", target: TARGETS["mutate-pod"], is: cold("mutate-pod") },
    { what: "an idle month, $", target: TARGETS.idle, is: cost.idleMonth.total },
    { what: "a month of 3,000 pods a minute, $", target: TARGETS.pods, is: cost.podsMonth.total },
  ].map((row) => ({ ...row, isMet: row.is <= row.target }));
  return { measuredAt: new Date().toISOString().slice(0, 10), machine, targets, sizes, coldStart, cost };
}

/** Digits that mean something, so that a new run changes no more than it must. */
const rounded = (_: string, value: unknown) =>
  typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(3)) : value;
const before = JSON.parse(await readFile("figures.json", "utf8")) as Figures;
const measuredNow = process.argv.includes("--reports") ? {} : await measureHere();
const all = { ...before, ...measuredNow, ...(await takenFigures()) } as Awaited<ReturnType<typeof measureHere>>;
const text = `${JSON.stringify(all, rounded, 2)}\n`;
await writeFile("figures.json", text);
let document = await readFile("docs/deploy.md", "utf8");
for (const [name, table] of Object.entries(tables(JSON.parse(text) as Figures)))
  document = withTable(document, name, table);
await writeFile("docs/deploy.md", document);
process.stdout.write(text);
for (const { what, target, is, isMet } of all.targets)
  process.stderr.write(`${isMet ? "met   " : "MISSED"} ${what}: ${is.toPrecision(3)}, at most ${target}\n`);
