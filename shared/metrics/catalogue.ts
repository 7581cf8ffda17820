/** Every number that is reported of passes: what it counts, and where a report has it. */
import { isGraveStop, type PassReport, type SidecarSetReport } from "../controller/rollout/report.ts";
import { natureOf } from "../core/rollout/conditions/verdict.ts";
import { unavailableOf } from "../core/rollout/summary.ts";

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
