/** The status fields that this project's CRD adds to OpenKruise's: conditions, and their facts. */
import type { SidecarSet, SidecarSetStatus, StatusCondition } from "../../api/sidecarset.ts";
import type { Action } from "../../core/actions.ts";
import { podName } from "../../core/pod/is-matched.ts";
import { steeringAnnotations, steeringDigest } from "../../core/pod/steering/steered.ts";
import { conditionsOf } from "../../core/rollout/conditions/conditions.ts";
import { ROLLOUT_VERDICTS, type RolloutVerdict, troubleSince } from "../../core/rollout/conditions/verdict.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { withEvictionsRefused } from "../../core/rollout/narrow.ts";
import { type News, withNews } from "../../core/rollout/notifications.ts";
import { selectionOf } from "../../core/rollout/rules/missed/selection.ts";
import { counted } from "../../go/counted.ts";
import { timestamp } from "../loop/clock.ts";
import { hasAskedForEvictions, serverTimestamp } from "./departures.ts";
import type { Context, Snapshot } from "./observe.ts";
import { sayRefused } from "./refused-writes.ts";
import type { SidecarSetReport } from "./report.ts";

type RecordEvent = Extract<Action, { kind: "RecordEvent" }>;

/**
 * The fields to add. The project's CRD defaults conditions to an empty list. A status without one means OpenKruise's
 * CRD, which prunes conditions, so every pass would write them again.
 */
export function statusAdditions(context: Context, snapshot: Snapshot, decision: Decision): Partial<SidecarSetStatus> {
  const { sidecarSet } = snapshot;
  const waves = decision.waves ? { waves: decision.waves } : {};
  if (!keepsConditions(sidecarSet)) return waves;
  const now = timestamp(context.clock);
  const conditions = conditionsNow(context, snapshot, decision);
  return { conditions, selection: selectionOf(sidecarSet, now), ...ledgerFacts(context, snapshot), ...waves };
}

function keepsConditions({ status }: SidecarSet): boolean {
  return status === undefined || status.conditions !== undefined;
}

function conditionsNow(
  context: Context,
  { sidecarSet, missed }: Snapshot,
  decided: Decision,
): readonly StatusCondition[] {
  const told = sayRefused(context, sidecarSet, decided);
  // Until the API server answers this pass, its last answer is valid.
  const decision = hasAskedForEvictions(context) ? told : withEvictionsRefused(sidecarSet, told);
  const { summary, failing, halt, status } = decision;
  const standing = { summary, failing, halt, latestRevision: status.latestRevision, missed: missed?.map(podName) };
  return conditionsOf(sidecarSet, standing, timestamp(context.clock));
}

/** The state as the condition `Ready` has it, even if the definition keeps no conditions. */
export function verdictNow(context: Context, snapshot: Snapshot, decision: Decision): RolloutVerdict | undefined {
  const ready = conditionsNow(context, snapshot, decision).find(({ type }) => type === "Ready");
  return ROLLOUT_VERDICTS.find((word) => word === ready?.reason);
}

/** The state for a report, with the time since which it needs attention. */
export function stateNow(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
): Pick<SidecarSetReport, "state" | "troubleSince"> {
  const state = verdictNow(context, snapshot, decision);
  if (state === undefined) return {};
  const conditions = keepsConditions(snapshot.sidecarSet) ? conditionsNow(context, snapshot, decision) : [];
  const since = troubleSince(conditions, state);
  return { state, ...(since === undefined ? {} : { troubleSince: since }) };
}

/** An older version of this project's CRD has conditions, but not these fields. */
function ledgerFacts({ kruiseNamespace }: Context, { sidecarSet, stored }: Snapshot): Partial<SidecarSetStatus> {
  const { status } = sidecarSet;
  if (status !== undefined && status.ledgerNamespace === undefined) return {};
  const isObserved = stored.ledger.steering === steeringDigest(sidecarSet);
  const observedAnnotations = isObserved ? steeringAnnotations(sidecarSet) : (status?.observedAnnotations ?? {});
  return { ledgerNamespace: kruiseNamespace, observedAnnotations };
}

/** Writes the status, with the news for receivers of notifications. */
export function statusPatch(context: Context, sidecarSet: SidecarSet, status: SidecarSetStatus) {
  const news = context.gates?.notify ? newsOf(sidecarSet.status, status) : [];
  const next = withNews(sidecarSet, status, news, serverTimestamp(context));
  return { kind: "PatchStatus", sidecarSet: sidecarSet.metadata?.name ?? "", status: next } as const;
}

/** The Events about this change, each once. A pass that is killed after the status write loses them. */
export function transitions(
  { status: before }: SidecarSet,
  { metadata, status: after }: SidecarSet,
): readonly RecordEvent[] {
  const regarding = { kind: "SidecarSet", name: metadata?.name ?? "", uid: metadata?.uid ?? "" } as const;
  return newsOf(before, after).map(({ cause: _, ...news }) => ({ kind: "RecordEvent", regarding, ...news }));
}

type Status = SidecarSetStatus | undefined;

/** News: the start of a rollout, new blockers, passed waves, and the end. */
export function newsOf(before: Status, after: Status): readonly News[] {
  const changes = (after?.conditions ?? []).flatMap((condition): readonly News[] => {
    const { type, reason: cause, message } = condition;
    const was = before?.conditions?.find((one) => one.type === type);
    const news = type === "Progressing" ? endOfRollout(condition, was, before) : obstacleIn(condition, was);
    return news ? [{ ...news, cause, message }] : [];
  });
  return [...startOf(before, after), ...passedWaves(before, after), ...changes];
}

/**
 * News of the start. Pods of the first revision were created with their sidecars. OpenKruise's CRD has no conditions.
 */
function startOf(before: Status, after: Status): readonly News[] {
  const { latestRevision, conditions, updatedPods = 0, matchedPods = 0 } = after ?? {};
  const progress = conditions?.find(({ type }) => type === "Progressing");
  const isNew = before?.latestRevision && latestRevision !== before.latestRevision;
  if (!isNew || progress === undefined || updatedPods >= matchedPods) return [];
  const message = `revision ${latestRevision}: ${progress.message}`;
  return [{ type: "Normal", reason: "RolloutStarted", message }];
}

/** News of waves. Waves of an annotation that comes later are passed already, and so is a wave without pods. */
function passedWaves(before: Status, after: Status): readonly News[] {
  const { waves: was } = before ?? {};
  const { revision, list = [] } = after?.waves ?? {};
  if (was === undefined) return [];
  const isPassed = new Set(was.revision === revision ? was.list.filter((one) => one.passedAt).map(waveName) : []);
  return list.flatMap(({ name, passedAt, pods, updatedReady }, index): readonly News[] => {
    if (passedAt === undefined || isPassed.has(name) || pods === 0) return [];
    const next = list[index + 1];
    const then = next === undefined ? "it is the last one" : `the next one is ${next.name}`;
    const message = `wave ${name} is passed, ${updatedReady} of its ${counted(pods, "pod")} updated and ready; ${then}`;
    return [{ type: "Normal", reason: "WavePassed", message }];
  });
}

const waveName = ({ name }: { readonly name: string }) => name;

/** Conditions without news. Pods that cannot be upgraded are reported elsewhere; the last three only summarize. */
const UNTOLD: ReadonlySet<string> = new Set(["NotUpgradable", "Ready", "Reconciling", "Stalled"]);

function obstacleIn(
  { type, status, reason }: StatusCondition,
  was: StatusCondition | undefined,
): Pick<RecordEvent, "type" | "reason"> | undefined {
  // A new blocker is news, even if another one blocked before it.
  const isNew = was?.status !== status || (type === "Blocked" && was.reason !== reason);
  return isNew && status === "True" && !UNTOLD.has(type) ? { type: "Warning", reason: type } : undefined;
}

/** News of the end. A rollout at rest, such as one held by its partition, also ends when its last old pod is gone. */
function endOfRollout(
  { status, reason }: StatusCondition,
  was: StatusCondition | undefined,
  before: Status,
): Pick<RecordEvent, "type" | "reason"> | undefined {
  const { updatedPods = 0, matchedPods = 0 } = before ?? {};
  const wasOpen =
    was?.status === "True" || (was !== undefined && was.reason !== "Finished" && updatedPods < matchedPods);
  return wasOpen && status === "False" && reason === "Finished"
    ? { type: "Normal", reason: "RolloutFinished" }
    : undefined;
}
