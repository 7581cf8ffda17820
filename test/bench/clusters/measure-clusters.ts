/**
 * Measures the cost of several clusters in one function: cold start and memory by their number, a cluster that does not
 * answer, and dollars.
 */
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countAlarmMetrics } from "../../../infra/aws/alarms.ts";
import { readSettings } from "../../../infra/aws/settings.ts";
import { startLocalCluster } from "../../../infra/local/cluster.ts";
import { clusterPath } from "../../../shared/webhook/server/cluster-path.ts";
import { pathSecretOf } from "../../../shared/webhook/server/path-secret.ts";
import { MUTATE_POD_PATH, secretPath } from "../../../shared/webhook/server/paths.ts";
import { httpEvent } from "../../lambda/http-event.ts";
import { type FunctionProcess, startFunction } from "../../lambda/runtime-process.ts";
import { type Cost, idleMonth, type Measurements } from "../cost.ts";
import { prepareSubjects, type Subject } from "../lambda-subjects.ts";
import { ALARM_METRIC_MONTH } from "../prices.ts";

export interface ClustersFigures {
  readonly processes: number;
  readonly rows: readonly ClustersRow[];
  /**
   * milliseconds of later requests in one process: the first for a second cluster, and later ones for a known cluster
   */
  readonly further: { readonly first: number; readonly later: number };
  /**
   * milliseconds of successive requests for a cluster that does not answer, and of one request for another cluster
   * after them
   */
  readonly silent: { readonly held: readonly number[]; readonly other: number };
  /** dollars of a month for each further cluster */
  readonly furtherMonth: Cost;
}

interface ClustersRow {
  /** number of clusters; 1: there is no table of clusters */
  readonly clusters: number;
  /** milliseconds from the start of a process to its first answer: the best, and the median of the computing */
  readonly coldMs: number;
  readonly coldCpuMs: number;
  /** the most megabytes that a process had, median */
  readonly megabytes: number;
  /** dollars of a month without rollouts */
  readonly month: number;
}

const COUNTS = [1, 2, 5, 10];
const SILENT_REQUESTS = 4;
const TIMEOUT_MS = 20_000;

interface Ground {
  readonly subject: Subject;
  readonly secret: string;
  readonly address: Readonly<Record<string, string>>;
}

/** Measures `processes` new processes for each number of clusters, in turn. */
export async function measureClusters(processes: number): Promise<ClustersFigures> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-clusters-"));
  const local = await startLocalCluster();
  try {
    const subject = (await prepareSubjects(folder, local)).find(({ name }) => name === "mutate-pod");
    const { PATH_SECRETS = "", CLUSTER_TOKEN = "", CLUSTER_SERVER = "", CLUSTER_CA = "" } = subject?.env ?? {};
    if (subject === undefined) throw new Error("there is no function mutate-pod");
    const secret = (await readFile(PATH_SECRETS, "utf8")).trim();
    const ground = { subject, secret, address: { CLUSTER_TOKEN, CLUSTER_SERVER, CLUSTER_CA } };
    const measured = await measuredBefore();
    const furtherMonth = idleMonth({ ...measured, alarmMetrics: await alarmsOfOne() });
    const first = idleMonth(measured).total;
    const cold = await measureCold(ground, processes);
    const rows = cold.map((row) => ({ ...row, month: monthOf(row.clusters, first, furtherMonth.total) }));
    return {
      processes,
      rows,
      further: await measureFurther(ground),
      silent: await measureSilent(ground),
      furtherMonth,
    };
  } finally {
    await local.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the price of a month. Each cluster has its own alarms; with a table the first one does too. */
function monthOf(clusters: number, first: number, further: number): number {
  return clusters === 1 ? first : first + (clusters - 1) * further + ALARMS_OF_FIRST;
}

/** Dollars of a month for the first cluster's alarms. */
const ALARMS_OF_FIRST = 4 * ALARM_METRIC_MONTH;

/** Returns milliseconds and bytes of a tick, as `npm run figures -- lambda` has measured them. */
async function measuredBefore(): Promise<Measurements> {
  const { cost } = JSON.parse(await readFile("test/bench/figures.json", "utf8")) as {
    readonly cost: { measured: Measurements };
  };
  return cost.measured;
}

/** Returns the number of alarm metrics that one more cluster adds. */
async function alarmsOfOne(): Promise<number> {
  const settings = await readSettings("sidecarset", "prod", async () => "");
  const metrics = (names: readonly string[]) =>
    countAlarmMetrics({ ...settings, clusters: new Map(names.map((name) => [name, { EKS_CLUSTER: name }])) });
  return metrics(["a", "b"]) - metrics(["a"]);
}

type Entry = Readonly<Record<string, string>>;

/** Returns the function's environment with this table of clusters. */
function envOf({ subject, address }: Ground, table: Readonly<Record<string, Entry>>): Record<string, string> {
  const common = Object.entries(subject.env ?? {}).filter(([name]) => !(name in address));
  return { ...Object.fromEntries(common), CLUSTERS: JSON.stringify(table) };
}

function eventOf({ subject, secret }: Ground, cluster: string) {
  const { body } = subject.event as { readonly body: string };
  const below = clusterPath(cluster);
  const path = secretPath(pathSecretOf(secret, below + MUTATE_POD_PATH), MUTATE_POD_PATH);
  // The pod webhook's registration has this query.
  return { ...httpEvent(below + path, body), rawQueryString: "timeout=5s" };
}

async function ask({ invoke }: FunctionProcess, event: unknown, wanted: readonly number[] = [200]): Promise<number> {
  const begin = performance.now();
  const answer = (await invoke(event, TIMEOUT_MS)) as { readonly statusCode?: number };
  if (wanted.includes(answer.statusCode ?? 0)) return performance.now() - begin;
  throw new Error(`mutate-pod answered ${JSON.stringify(answer)}`);
}

async function measureCold(ground: Ground, processes: number) {
  const taken = COUNTS.map((clusters) => ({
    clusters,
    wall: [] as number[],
    cpu: [] as number[],
    memory: [] as number[],
  }));
  for (let round = 0; round < processes; round++)
    for (const { clusters, wall, cpu, memory } of taken) {
      const names = Array.from({ length: clusters }, (_, index) => `cluster-${index}`);
      const table = Object.fromEntries(names.map((name) => [name, ground.address]));
      const [env, event] =
        clusters === 1
          ? [ground.subject.env ?? {}, ground.subject.event]
          : [envOf(ground, table), eventOf(ground, names.at(-1) ?? "")];
      const begin = performance.now();
      const started = await startFunction({ folder: ground.subject.folder, env });
      await ask(started, event);
      wall.push(performance.now() - begin);
      cpu.push(await started.cpuMs());
      memory.push(await peakMegabytes(started));
      await started.kill();
    }
  return taken.map(({ clusters, wall, cpu, memory }) => ({
    clusters,
    coldMs: Math.min(...wall),
    coldCpuMs: median(cpu),
    megabytes: median(memory),
  }));
}

async function peakMegabytes({ process: { pid } }: FunctionProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1_024;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function measureFurther(ground: Ground) {
  const { subject, address } = ground;
  const started = await startFunction({ folder: subject.folder, env: envOf(ground, { a: address, b: address }) });
  for (let call = 0; call < 50; call++) await ask(started, eventOf(ground, "a"));
  const first = await ask(started, eventOf(ground, "b"));
  const later: number[] = [];
  for (let call = 0; call < 50; call++) later.push(await ask(started, eventOf(ground, call % 2 === 0 ? "a" : "b")));
  await started.kill();
  return { first, later: median(later) };
}

async function measureSilent(ground: Ground) {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const place = silent.address();
  const away = {
    ...ground.address,
    CLUSTER_SERVER: `https://127.0.0.1:${typeof place === "object" ? place?.port : 0}`,
  };
  const env = envOf(ground, { well: ground.address, away });
  const started = await startFunction({ folder: ground.subject.folder, env });
  await ask(started, eventOf(ground, "well"));
  const held: number[] = [];
  for (let call = 0; call < SILENT_REQUESTS; call++) held.push(await ask(started, eventOf(ground, "away"), [500, 503]));
  const other = await ask(started, eventOf(ground, "well"));
  await started.kill();
  silent.close();
  return { held, other };
}

export function clustersTable({ processes, rows, further, silent, furtherMonth }: ClustersFigures): string {
  const head = [
    "| clusters | first answer, best | computing, median | memory, peak | at rest, a month |",
    "|---|---|---|---|---|",
  ];
  const lines = rows.map(
    ({ clusters, coldMs, coldCpuMs, megabytes, month }) =>
      `| ${clusters}${clusters === 1 ? ", without a table" : ""} | ${coldMs.toFixed(0)} ms | ${coldCpuMs.toFixed(0)} ms | ${megabytes.toFixed(0)} MB | $${month.toFixed(2)} |`,
  );
  const parts = Object.entries(furtherMonth.parts).map(([what, dollars]) => `${what} $${dollars.toFixed(2)}`);
  return [
    ...head,
    ...lines,
    "",
    `${processes} processes of mutate-pod for each number. Each further cluster: $${furtherMonth.total.toFixed(2)} a month at rest (${parts.join(", ")}).`,
    `In a process that serves one cluster, the first request of another: ${further.first.toFixed(1)} ms; later ones of either: ${further.later.toFixed(1)} ms.`,
    `Requests of a cluster that does not answer, one after the other: ${silent.held.map((ms) => `${ms.toFixed(0)} ms`).join(", ")}; then one of another cluster: ${silent.other.toFixed(1)} ms.`,
    "",
  ].join("\n");
}
