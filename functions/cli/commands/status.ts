/** `status`: SidecarSets, their revisions and pods, and how far a rollout is. */
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { explain } from "../../../shared/controller/rollout/dry-run.ts";
import { withStatusRefusals } from "../../../shared/controller/rollout/read-observation.ts";
import { type SetRow, setRows } from "../../../shared/core/inspect/report/rows.ts";
import { natureOf, type RolloutVerdict } from "../../../shared/core/rollout/conditions/verdict.ts";
import { stageText, waveName } from "../../../shared/core/rollout/rules/waves/wave-text.ts";
import { secondsBetween } from "../../../shared/go/seconds-between.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { within } from "../../../shared/webhook/server/http.ts";
import type { NamedCluster } from "../../server/named-cluster.ts";
import { age, duration } from "../../terminal/duration.ts";
import { CliError, type Part, type Screen } from "../../terminal/screen.ts";
import { bar, imagesText, printTable, showTree, wrap } from "../../terminal/table.ts";
import type { Command, Input } from "../command.ts";
import { type PodRow, podRows } from "../input/pod-rows.ts";
import { NOT_DONE, type Progress, progressOf, watch, watchCode } from "../input/progress.ts";
import { listSets, nowText, readFacts, readSet, TARGET_ARGUMENT, targetOf } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { showStatefulSetStatus } from "../statefulset/status.ts";

export const NEEDS_SOMEBODY = 4;

type Row = Omit<SetRow, "images">;

async function statusOfAll(input: Input, session: Session): Promise<number> {
  const cluster = await session.cluster();
  const read = async () => storedRows(cluster, await listSets(cluster, input.text("selector")));
  if (!input.isSet("watch")) {
    const rows = await read();
    session.print(rows, (screen) => showRows(rows, screen, input.text("selector") !== undefined));
    return rows.some(({ verdict }) => verdict !== undefined && natureOf(verdict).isTrouble) ? NEEDS_SOMEBODY : 0;
  }
  let before: readonly Row[] | undefined;
  return watch(input, session, async () => {
    const rows = await read();
    const show = showLater(rows, before);
    before = rows;
    return { data: rows, show, code: codeOf(rows) };
  });
}

async function storedRows(cluster: Cluster, sidecarSets: readonly SidecarSet[]): Promise<readonly Row[]> {
  const told = await withStatusRefusals({ cluster, clock: systemClock }, sidecarSets);
  return setRows(told).map(({ images, ...row }): Row => row);
}

/** Prints only changes after the first look, for a file or a pipe. Whole lists would hide them. */
function showLater(rows: readonly Row[], before: readonly Row[] | undefined): (screen: Screen) => void {
  return (screen) => {
    if (before === undefined || screen.isTerminal) return showRows(rows, screen);
    const known = new Map(before.map((row) => [row.name, JSON.stringify(row)]));
    const now = nowText();
    for (const row of rows.filter((one) => known.get(one.name) !== JSON.stringify(one)))
      screen.line(...cellsOf(row, now).flatMap((cell) => [cell, "  "]));
    const names = new Set(rows.map(({ name }) => name));
    for (const { name } of before.filter((row) => !names.has(row.name))) screen.line(`${name}  is gone`);
  };
}

/**
 * Shows the counts of the last pass if the caller may not read pods.
 * @throws `error` if it has another cause
 */
async function showStored(session: Session, cluster: Cluster, name: string, error: unknown): Promise<void> {
  if (!isKubeError(error, 403)) throw error;
  session.screen.warn(
    `${error.message}. This is what the last pass wrote; sidecarset pods ${name} -n NAMESPACE lists pods of one namespace.`,
  );
  const rows = await storedRows(cluster, [await readSet(cluster, name)]);
  session.print(rows[0], (screen) => showRows(rows, screen));
}

function showRows(rows: readonly Row[], screen: Screen, isChosen = false): void {
  if (rows.length === 0) {
    screen.line(isChosen ? "No SidecarSet has these labels." : "The cluster has no SidecarSets.");
    return;
  }
  const now = nowText();
  const cells = rows.map((row) => cellsOf(row, now));
  printTable(screen, HEADINGS, cells, "STATE");
}

export const HEADINGS = ["NAME", "UPDATED", "READY", "STATE", "SINCE", "WHY"];

/** Cells of a row, below HEADINGS. */
export function cellsOf(row: Row, now: string): readonly Part[] {
  const { name, matched, updated, ready, verdict, since, reason } = row;
  return [
    name,
    `${updated}/${matched}`,
    String(ready),
    verdict === undefined ? { text: "not seen yet", color: "yellow" } : { text: verdict, color: colorOf(verdict) },
    since === undefined ? "" : age(secondsBetween(since, now) ?? 0),
    reason,
  ];
}

function colorOf(verdict: RolloutVerdict) {
  const { isTrouble, isReady } = natureOf(verdict);
  if (isTrouble) return "red";
  return isReady ? "green" : "yellow";
}

/** The exit code; undefined: at least one rollout still moves without help. */
function codeOf(rows: readonly Row[]): number | undefined {
  if (rows.some(({ verdict }) => verdict === undefined || verdict === "Updating")) return undefined;
  return rows.every(({ verdict }) => verdict !== undefined && natureOf(verdict).isReady) ? 0 : NOT_DONE;
}

/** `status --all-clusters`: SidecarSets of every cluster in one table. SidecarSets that need a person come first. */
const NOT_READ = 5;

/** Time limit in milliseconds for one answer of an API server, without --request-timeout. */
const REQUEST_MS = 10_000;
/** Time limit in milliseconds for all requests to one cluster. After it the other clusters wait no longer. */
const CLUSTER_MS = 15_000;

interface ClusterRows {
  readonly cluster: string;
  readonly rows: readonly Row[];
  /** the reason why the cluster could not be read */
  readonly problem?: string;
}

async function statusOfClusters(input: Input, session: Session): Promise<number> {
  const odd = input.arguments[0] ?? (input.isSet("watch") ? "--watch" : undefined);
  if (odd !== undefined) throw new CliError(`--all-clusters looks once at every SidecarSet: leave out ${odd}`);
  const clusters = await session.clusters(REQUEST_MS);
  const read = await Promise.all(clusters.map((one) => readRows(one, input.text("selector"))));
  const all = read.toSorted((one, other) => rankOf(one) - rankOf(other));
  session.print(all, (screen) => show(all, screen));
  if (all.some(({ problem }) => problem !== undefined)) return NOT_READ;
  return all.some(({ rows }) => rows.some(isTrouble)) ? NEEDS_SOMEBODY : 0;
}

async function readRows({ name, connect }: NamedCluster, selector: string | undefined): Promise<ClusterRows> {
  try {
    const rows = await within(CLUSTER_MS, async () => {
      const cluster = await connect();
      return storedRows(cluster, await listSets(cluster, selector));
    });
    return { cluster: name, rows };
  } catch (error) {
    return { cluster: name, rows: [], problem: withoutSecrets(error instanceof Error ? error.message : String(error)) };
  }
}

/** Unknown clusters come first, then clusters in trouble. */
function rankOf({ problem, rows }: ClusterRows): number {
  if (problem !== undefined) return 0;
  return rows.some(isTrouble) ? 1 : 2;
}

function isTrouble({ verdict }: Row): boolean {
  return verdict !== undefined && natureOf(verdict).isTrouble === true;
}

/** The worst rows of all clusters come first; clusters without SidecarSets come last. */
function show(all: readonly ClusterRows[], screen: Screen): void {
  const now = nowText();
  const unread = all.flatMap(({ cluster, problem }): readonly (readonly Part[])[] =>
    problem === undefined ? [] : [[cluster, "", "", "", { text: "not read", color: "red" }, "", problem]],
  );
  const rows = all.flatMap(({ cluster, rows }) => rows.map((row) => ({ cluster, row })));
  const worstFirst = [...rows.filter(({ row }) => isTrouble(row)), ...rows.filter(({ row }) => !isTrouble(row))];
  const read = worstFirst.map(({ cluster, row }) => [cluster, ...cellsOf(row, now)]);
  const empty = all.flatMap(({ cluster, rows, problem }): readonly (readonly Part[])[] =>
    problem === undefined && rows.length === 0 ? [[cluster, "", "", "", "", "", "no SidecarSets"]] : [],
  );
  printTable(screen, ["CLUSTER", ...HEADINGS], [...unread, ...read, ...empty], "STATE");
}

export const STATUS: Command = {
  name: "status",
  group: "During a rollout",
  summary: "SidecarSets, their revisions and pods with images and states, progress and how long it will take",
  arguments: [
    {
      ...TARGET_ARGUMENT,
      name: "[NAME]",
      about: `${TARGET_ARGUMENT.about}; default: a line for each SidecarSet, the worst first`,
    },
  ],
  options: [
    { flags: "-w, --watch", about: "look again until the rollout is done, or cannot go on by itself" },
    { flags: "--timeout <DURATION>", about: "how long to watch; default: as long as it takes" },
    { flags: "-l, --selector <LABELS>", about: "without a name: only SidecarSets with these labels" },
    { flags: "--all-clusters", about: "of every context of the kubeconfig, or of every cluster of the table CLUSTERS" },
    { flags: "--pods", about: "every pod, not only a few of each revision" },
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset status",
    "sidecarset status -l team=mesh",
    "sidecarset status --all-clusters",
    "sidecarset status log-agent",
    "sidecarset status log-agent -w --timeout 10m",
    "sidecarset status statefulset.apps.kruise.io/db -n shop",
  ],
  exits: [
    "3 watched, and it was not done in the end",
    `${NEEDS_SOMEBODY} without a name: a rollout is Halted, Blocked, Degraded or NotUpgradable`,
    `${NOT_READ} with --all-clusters: a cluster could not be read`,
  ],
  run: async (input, session) => {
    const [given] = input.arguments;
    if (input.isSet("all-clusters")) return statusOfClusters(input, session);
    const target = given === undefined ? undefined : targetOf(given);
    if (target?.kind === "statefulset") return showStatefulSetStatus(input, session, target);
    if (target === undefined) return statusOfAll(input, session);
    if (input.text("selector") !== undefined)
      throw new CliError(`-l chooses among SidecarSets: leave out ${given}, or -l`);
    const cluster = await session.cluster();
    const { name } = target;
    const look = async () => lookAt(await readStatus(session, cluster, name), input.isSet("pods"));
    if (input.isSet("watch")) return watch(input, session, look);
    try {
      const { data, show } = await look();
      session.print(data, show);
    } catch (error) {
      await showStored(session, cluster, name, error);
    }
    return 0;
  },
};

interface SetStatus {
  readonly sidecarSet: SidecarSet;
  readonly progress: Progress;
  readonly rows: readonly PodRow[];
  readonly revisions: readonly ControllerRevision[];
}

async function readStatus(session: Session, cluster: Cluster, name: string): Promise<SetStatus> {
  const { sidecarSet, facts } = await readFacts(session, cluster, name);
  const rows = podRows({ sidecarSet, facts });
  return { sidecarSet, progress: progressOf(sidecarSet, facts), rows, revisions: facts.revisions };
}

function lookAt(status: SetStatus, hasAll: boolean) {
  const { sidecarSet, progress, rows } = status;
  const why = explain("oneRound", progress.summary);
  const data = { name: sidecarSet.metadata?.name, why, ...progress, pods: rows };
  return { why, data, show: (screen: Screen) => showOne(status, screen, hasAll), code: watchCode(status) };
}

function showOne({ sidecarSet, progress, rows, revisions }: SetStatus, screen: Screen, hasAll: boolean): void {
  const { summary, etaSeconds } = progress;
  const eta = etaSeconds === undefined ? "" : `  about ${duration(etaSeconds)} left`;
  screen.line(
    { text: sidecarSet.metadata?.name ?? "", color: "bold" },
    "  ",
    ...bar(summary.updatedReady, summary.updated, summary.matched),
    eta,
  );
  for (const line of wrap(explain("oneRound", summary), screen.width)) screen.line(line);
  for (const row of summary.rules.waves?.rows ?? []) screen.line(`  ${waveName(row.name)}: ${stageText(row)}`);
  const pods = rows.map((row) => ({ ...row, label: `${row.namespace}/${row.name}`, state: statePart(row) }));
  showTree({ revisions, pods, imagesOf: imagesText, hasAll }, screen);
}

export function statePart({ state, isReady, isUpdated }: PodRow): Part {
  if (!isUpdated) return { text: state, color: "yellow" };
  return { text: state, color: isReady ? "green" : "red" };
}
