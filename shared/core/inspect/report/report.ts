/** A report about SidecarSets: the state of each, its history, its next batches, and what holds its rollout. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { BOOK } from "../../rollout/book.ts";
import { conditionsOf } from "../../rollout/conditions/conditions.ts";
import { natureOf, ROLLOUT_VERDICTS, type RolloutVerdict } from "../../rollout/conditions/verdict.ts";
import { type DecideContext, type Decision, decide, type Observation } from "../../rollout/decide.ts";
import { outcomeFacts, wayBack } from "../../rollout/history/history.ts";
import { asLastAnswered } from "../../rollout/narrow.ts";
import { planRollout } from "../../rollout/plan/plan.ts";
import { lastUndone } from "../../rollout/rules/halt/undone.ts";
import { lastSpecWrite } from "../../rollout/rules/missed/selection.ts";
import { stageText, waveName } from "../../rollout/rules/waves/wave-text.ts";
import { partitionOf } from "../../rollout/select/budget.ts";
import { stateReader } from "../../rollout/select/observed-states.ts";
import { type Summary, unavailableOf } from "../../rollout/summary.ts";
import { traceTick } from "../explain/trace-hold.ts";
import { batchesOf, type Course, progressOf } from "./batches.ts";
import type { NextBatch, SetDetail } from "./content.ts";
import { byNeed, countStandings, groupPods, podStanding } from "./pod-standing.ts";
import { type Reason, reasonsOf, sentence } from "./reasons.ts";
import { type EventObject, eventLines, imagesOf, type RevisionRow, revisionRows } from "./rows.ts";

export interface ReportSubject {
  readonly observation: Observation;
  /** Events of the SidecarSet and its pods; undefined: they cannot be read */
  readonly events: readonly EventObject[] | undefined;
  /** uids of pods that were created without the sidecars that they should have */
  readonly missed: ReadonlySet<string>;
  /** time at which a pass last renewed its Lease, RFC3339; undefined: it is unknown */
  readonly lastPass: string | undefined;
}

/** Number of future batches that the report names. */
const BATCHES_FORESEEN = 5;

/**
 * The page's content about one SidecarSet, from the same observation that a pass decides on. No side effects. @throws
 * TypeError for a spec that the API server would not have stored
 */
export function reportOnSidecarSet(subject: ReportSubject, context: DecideContext): SetDetail {
  const { observation, events, missed, lastPass } = subject;
  const { sidecarSet, revisions } = observation;
  const isMissed = ({ metadata }: Pod) => missed.has(metadata?.uid ?? "");
  const stateOf = stateReader(observation, context.settings);
  const states = Array.from(observation.pods, stateOf);
  const pods = states
    .map((state) => podStanding(state, sidecarSet, isMissed(state.pod)))
    .filter((pod) => pod !== undefined);
  const updated = pods.filter(
    ({ standing }) => standing === "updated" || standing === "down" || standing === "failing",
  );
  const decision = asLastAnswered(observation, decide(observation, context), context.now);
  const { summary, status, halt } = decision;
  const rows = revisionRows(sidecarSet, revisions, pods);
  const hasWayBack = wayBack(outcomeFacts(sidecarSet, revisions, states)) !== undefined;
  const idle = BOOK[summary.hold].reason === "Finished" ? undefined : idleness(lastPass, context.now);
  const reasons = [
    ...(idle ? [idle] : []),
    ...reasonsOf(sidecarSet, pods, {
      ...summary,
      rules: { ...summary.rules, halt: { ...summary.rules.halt, hasWayBack } },
      halt,
    }),
  ];
  const verdict = idle ? "Blocked" : verdictOf(sidecarSet, decision, context.now);
  return {
    name: sidecarSet.metadata?.name ?? "",
    at: context.now,
    verdict,
    headline: headlineOf(summary),
    images: imagesOf(sidecarSet.spec),
    facts: factsOf(sidecarSet, summary, status),
    matched: summary.matched,
    updated: summary.updated,
    ready: summary.ready,
    maxUnavailable: summary.maxUnavailable,
    target: summary.matched - partitionOf(sidecarSet.spec.updateStrategy, summary.matched),
    counts: countStandings(pods),
    reasons,
    progress: progressOf(updated, {
      ...changeOf(sidecarSet, rows),
      endedAt: endOf(sidecarSet, natureOf(verdict).isReady === true),
      maxUnavailable: summary.maxUnavailable,
      now: context.now,
    }),
    batches: batchesOf(updated, summary.maxUnavailable),
    next: nextBatches(observation, context),
    nodes: groupPods(pods, "node"),
    workloads: byNeed(groupPods(pods, "workload")),
    pods,
    revisions: rows,
    events: events && eventLines(events),
  };
}

/** The reason why no pass runs, if it is known. `lastPass`: time of the last renewal of a Lease, RFC3339 */
export function idleness(lastPass: string | undefined, now: string): Reason | undefined {
  const { reason, verdict, message, hint } = traceTick(lastPass, now);
  if (verdict !== "stop") return undefined;
  return { reason, kind: "trouble", title: sentence(message), text: "", next: hint, pods: [] };
}

/** The state that a pass would record now. */
function verdictOf(sidecarSet: SidecarSet, decision: Decision, now: string): RolloutVerdict {
  const { summary, failing, halt, status } = decision;
  const standing = { summary, failing, halt, latestRevision: status.latestRevision, missed: undefined };
  const ready = conditionsOf(sidecarSet, standing, now).find(({ type }) => type === "Ready");
  return ROLLOUT_VERDICTS.find((word) => word === ready?.reason) ?? "Updating";
}

function headlineOf(summary: Summary): string {
  const { matched, updated, updatedReady, maxUnavailable } = summary;
  if (matched === 0) return "It matches no running pod.";
  const pods = `${matched} ${matched === 1 ? "pod" : "pods"}`;
  if (updated === matched && updatedReady === matched)
    return matched === 1
      ? "Its only pod has the current version, and is ready."
      : `All of its ${pods} have the current version, and are ready.`;
  return `${updated} of ${pods} have the current version, ${updatedReady} of them ready; ${unavailableOf(summary)} of at most ${maxUnavailable} unavailable.`;
}

function factsOf(
  { metadata, spec }: SidecarSet,
  { matched, maxUnavailable, partition, rules: { waves } }: Summary,
  { latestRevision }: Decision["status"],
): SetDetail["facts"] {
  const strategy = spec.updateStrategy ?? {};
  const share = (value: number | string, pods: number) =>
    typeof value === "string" ? `${value} (${pods})` : `${value}`;
  return [
    ["Update strategy", strategy.type ?? "RollingUpdate"],
    ["Partition", share(strategy.partition ?? 0, partitionOf(strategy, matched))],
    ...(partition > 0 ? [["Kept by it now", `${partition}`] as const] : []),
    ["Max unavailable", share(strategy.maxUnavailable ?? 1, maxUnavailable)],
    ["Paused", strategy.paused ? "yes" : "no"],
    ...(waves?.rows ?? []).map((row) => [sentence(waveName(row.name)), stageText(row)] as const),
    ["Revision", latestRevision ?? "none yet"],
    ["Generation", `${metadata?.generation ?? 0}`],
    ...(spec.customVersion ? [["Custom version", spec.customVersion] as const] : []),
  ];
}

function nextBatches(observation: Observation, context: DecideContext): readonly NextBatch[] {
  const plan = planRollout(observation, { ...context, readyAfterSeconds: 1, maxSteps: BATCHES_FORESEEN });
  return plan.steps.map(({ pods, purpose }) => ({
    pods: pods.map(({ namespace, name }) => `${namespace}/${name}`),
    isFlip: purpose === "flip",
    isDrain: purpose === "drain",
  }));
}

// The recorded times at which a SidecarSet got its present spec, and at which its rollout ended.

/**
 * The time at which the spec changed. The first pass after a change records the revision, up to a minute late. A
 * rollback reuses an older revision, so the change came after the newest other revision.
 */
function changeOf(sidecarSet: SidecarSet, rows: readonly RevisionRow[]): Pick<Course, "after" | "changedAt"> {
  const recordedAt = rows.find(({ isCurrent }) => isCurrent)?.createdAt;
  const after = latest(rows.flatMap(({ isCurrent, createdAt = "" }) => (isCurrent ? [] : createdAt)));
  const isBack = recordedAt !== undefined && after !== undefined && isBefore(recordedAt, after);
  const undone = lastUndone(sidecarSet);
  if (isBack && undone?.isCurrent && isBefore(after, undone.at)) return { after, changedAt: undone.at };
  const written = lastSpecWrite(sidecarSet.metadata);
  const isSince = written !== undefined && (after === undefined || isBefore(after, written));
  if (isBack) return { after, changedAt: undefined };
  return {
    after,
    changedAt: isSince && recordedAt !== undefined && isBefore(written, recordedAt) ? written : recordedAt,
  };
}

/** The time when `Progressing` ended; without the condition, the time of the last pod. */
function endOf({ status }: SidecarSet, isAtRest: boolean): string | undefined {
  if (!isAtRest) return undefined;
  const progressing = status?.conditions?.find(({ type }) => type === "Progressing");
  return progressing?.status === "False" ? progressing.lastTransitionTime : NEVER;
}

/** A time before any change, so that the last pod counts. */
const NEVER = "1970-01-01T00:00:00Z";

function latest(times: readonly string[]): string | undefined {
  return times.reduce<string | undefined>((a, b) => (a === undefined || isBefore(a, b) ? b : a), undefined);
}

function isBefore(one: string, other: string): boolean {
  return (secondsBetween(one, other) ?? 0) > 0;
}
