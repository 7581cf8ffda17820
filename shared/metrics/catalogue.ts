/** Every number that is reported of passes: what it counts, and where a report has it. */
import { isGraveStop, type PassReport, type SidecarSetReport } from "../controller/rollout/report.ts";
import { natureOf } from "../core/rollout/conditions/verdict.ts";
import { unavailableOf } from "../core/rollout/summary.ts";
import type { LogFields } from "../log.ts";

interface Metric<T> {
  /** name in CloudWatch; Prometheus has sidecarset_ and the name in snake case */
  readonly name: string;
  readonly help: string;
  /** counter: the increase by one pass; gauge: the value after it */
  readonly kind: "gauge" | "counter";
  readonly unit: "Count" | "Seconds";
  /** undefined: not known this time */
  readonly of: (report: T) => number | undefined;
}

/** Metrics of each SidecarSet. */
export const SIDECARSET_METRICS: readonly Metric<SidecarSetReport>[] = [
  gauge("MatchedPods", "Pods that have the sidecars", ({ summary }) => summary?.matched),
  gauge("UpdatedPods", "Pods whose sidecars are the latest", ({ summary }) => summary?.updated),
  gauge("ReadyPods", "Pods that are ready", ({ summary }) => summary?.ready),
  gauge("UpdatedReadyPods", "Pods that are ready with the latest sidecars", ({ summary }) => summary?.updatedReady),
  gauge("UnavailablePods", "Pods that use up the budget", ({ summary }) => summary && unavailableOf(summary)),
  gauge("MaxUnavailablePods", "Pods that may be unavailable", ({ summary }) => summary?.maxUnavailable),
  gauge("NotUpgradablePods", "Pods that cannot be upgraded in place", ({ summary }) => summary?.notUpgradable),
  gauge("MissedPods", "Pods that were made without the sidecars", ({ missed }) => missed?.count),
  gauge(
    "RecentlyMissedPods",
    "Pods that were made without the sidecars in the last ten minutes",
    ({ missed }) => missed?.recent,
  ),
  gauge(
    "InTrouble",
    "1 where the state needs attention (Halted, Blocked, Degraded, NotUpgradable), or the pass failed, was refused or lost every race, else 0",
    inTrouble,
  ),
  counter("UpgradedPods", "Pods that were given new images", ({ tally }) => tally.upgraded),
  counter("Conflicts", "Writes that found another state than they were made for", ({ tally }) => tally.conflicts),
];

/** Metrics of each pass. */
export const PASS_METRICS: readonly Metric<PassReport>[] = [
  counter("Passes", "Passes that were made", () => 1),
  counter("FailedPasses", "Passes that could not list SidecarSets", ({ failure }) => (failure === undefined ? 0 : 1)),
  counter("Problems", "Sentences of trouble in reports of passes", ({ problems }) => problems.length),
  counter("Notifications", "Notifications that receivers have taken", ({ sidecarSets }) =>
    sidecarSets.reduce((sum, { tally }) => sum + (tally.notified ?? 0), 0),
  ),
  counter(
    "FailedNotifications",
    "SidecarSets with a notification that a pass could not send",
    ({ sidecarSets }) => sidecarSets.filter(({ tally }) => tally.notificationProblem !== undefined).length,
  ),
  counter("ApiCalls", "Calls to the API server", ({ calls }) => Object.values(calls).reduce((sum, n) => sum + n, 0)),
  gauge("SidecarSets", "SidecarSets that the last pass served", ({ sidecarSets }) => sidecarSets.length),
  gauge("NotReached", "SidecarSets that the time did not suffice for", ({ notReached }) => notReached.length),
  gauge("Unread", "SidecarSets whose pods a whole pass was too short to read", ({ unread }) => unread.length),
  {
    name: "PassDuration",
    help: "How long the last pass took",
    kind: "gauge",
    unit: "Seconds",
    of: ({ durationMs }) => durationMs / 1000,
  },
];

function inTrouble({ state, stop }: SidecarSetReport): number | undefined {
  if (isGraveStop(stop)) return 1;
  return state === undefined ? undefined : Number(natureOf(state).isTrouble ?? false);
}

function gauge<T>(name: string, help: string, of: Metric<T>["of"]): Metric<T> {
  return { name, help, kind: "gauge", unit: "Count", of };
}

function counter<T>(name: string, help: string, of: Metric<T>["of"]): Metric<T> {
  return { name, help, kind: "counter", unit: "Count", of };
}

/** `sidecarset_updated_pods`, `sidecarset_upgraded_pods_total`, `sidecarset_pass_duration_seconds` */
export function prometheusName({ name, kind, unit }: Pick<Metric<never>, "name" | "kind" | "unit">): string {
  const snake = name.replaceAll(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
  return `sidecarset_${snake}${unit === "Seconds" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
}

// Numbers of a pass in a log line, from which CloudWatch makes metrics (Embedded Metric Format).

/** In CloudWatch. */
export const NAMESPACE = "SidecarSet";

type Values = readonly (readonly [name: string, unit: string, value: number | undefined])[];

/** The dimensions of the numbers beside SidecarSets. */
export interface MetricsOf {
  /** of the deployment */
  readonly stage?: string | undefined;
  /** of several */
  readonly cluster?: string | undefined;
}

/** The fields of one line for the pass, and of one for each SidecarSet. `at`: epoch milliseconds. */
export function embeddedMetrics(report: PassReport, at: number, of: MetricsOf = {}): readonly LogFields[] {
  const { stage, cluster } = of;
  const ofAll = {
    ...(stage === undefined ? {} : { Stage: stage }),
    ...(cluster === undefined ? {} : { Cluster: cluster }),
  };
  const ofPass = PASS_METRICS.map(({ name, unit, of }) => [name, unit, of(report)] as const);
  const ofSets = report.sidecarSets.map((one) =>
    fields(
      { ...ofAll, SidecarSet: one.name, ...wordsOf(one) },
      SIDECARSET_METRICS.map(({ name, unit, of }) => [name, unit, of(one)] as const),
      at,
    ),
  );
  return [fields(ofAll, ofPass, at), ...ofSets];
}

function wordsOf({ state, cause }: SidecarSetReport): Readonly<Record<string, string>> {
  return { ...(state === undefined ? {} : { State: state }), ...(cause === undefined ? {} : { Cause: cause }) };
}

/** Words to search the log for, not dimensions: CloudWatch charges for each value of a dimension. */
const WORDS: ReadonlySet<string> = new Set(["State", "Cause"]);

function fields(words: Readonly<Record<string, string>>, values: Values, at: number): LogFields {
  const known = values.flatMap(([name, unit, value]) => (value === undefined ? [] : [{ name, unit, value }]));
  const directive = {
    Namespace: NAMESPACE,
    Dimensions: [Object.keys(words).filter((name) => !WORDS.has(name))],
    Metrics: known.map(({ name: Name, unit: Unit }) => ({ Name, Unit })),
  };
  return {
    _aws: { Timestamp: at, CloudWatchMetrics: [directive] },
    ...words,
    ...Object.fromEntries(known.map(({ name, value }) => [name, value])),
  };
}
