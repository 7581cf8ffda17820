import type { ControllerRevision } from "../../api/kubernetes.ts";
import { READY_AT_ANNOTATION, RESET_CONTAINER_FAILED_EVENT, RESET_CONTAINER_SUCCEED_EVENT } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Action } from "../../core/actions.ts";
import {
  isGenerationObservable,
  isSameLedger,
  type LedgerPlan,
  ledgerSubject,
  reconcileLedger,
  withoutThese,
  withSteering,
} from "../../core/ledger.ts";
import { steeringDigest } from "../../core/pod/steering/steered.ts";
import { natureOf } from "../../core/rollout/conditions/verdict.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { readyAt } from "../../core/rollout/history/history.ts";
import { CLOCKED, nextEnd } from "../../core/rollout/hold-effects.ts";
import { isSoakBehind } from "../../core/rollout/rules/waves/standing.ts";
import { withDoing } from "../../doings.ts";
import { CONTROLLER_REVISIONS, SIDECARSETS } from "../../kube/port.ts";
import { timestamp } from "../loop/clock.ts";
import { act, attempt, type Outcome } from "./act.ts";
import { seeDisruptionBudgets } from "./count-disruptions.ts";
import { type Decided, decideRound, withChecks } from "./decide-round.ts";
import { departedOf, withDepartures } from "./departures.ts";
import { forgetWorkloads } from "./known-workloads.ts";
import { swapLedger } from "./ledger-store.ts";
import { tellPods } from "./notify.ts";
import { type Context, readSame, type Snapshot, seeReserved } from "./observe.ts";
import type { PatchPod } from "./pod-patch.ts";
import { readPulls, withPulls, writePulls } from "./pre-pull.ts";
import {
  forgetReserved,
  isCertainlyRefused,
  noteTakenBack,
  refusedNow,
  rememberReserved,
  withRefusals,
} from "./refused-pods.ts";
import { remember, truncateRevisions } from "./register-revision.ts";
import { verdictNow } from "./status-additions.ts";
import { restartWorkloads, withRestarts } from "./workloads.ts";
import { type Written, writePods } from "./write-pods.ts";
import { announceLedger, writeStatus } from "./write-status.ts";

export interface RoundResult {
  readonly decision: Decision;
  /** number of pods for writes; the ledger has the outcome until the next round */
  readonly written: number;
  /** number of valid reservations */
  readonly reserved: number;
  /** true: every pod with room has its patch, and the decision has more pods, or refused ones freed room */
  readonly isMoreToWrite: boolean;
  /** true: a new snapshot is needed, because the SidecarSet changed during the writes, or the ledger may have */
  readonly isOutdated: boolean;
  /** true: a wave has passed, and the status says so, so the next one may begin */
  readonly isWaveNext: boolean;
  /** true: the status has changed, but was written just now */
  readonly isStatusOwed: boolean;
  /** time on the clock at which a hold ends that a pass waits for; absent: none */
  readonly holdEndsAtMs?: number;
}

const NOTHING_WRITTEN: Written = {
  done: new Set(),
  refused: new Map(),
  notEvicted: new Set(),
  isOutdated: false,
};

/**
 * Runs a round. "record" frees completed reservations and writes the status, but writes to no pod. Undefined: somebody
 * else wrote the ledger or the SidecarSet, so a new snapshot is needed.
 */
export async function round(
  context: Context,
  snapshot: Snapshot,
  mode: "act" | "record",
): Promise<RoundResult | undefined> {
  context.tally.rounds++;
  const subject = ledgerSubject(snapshot.sidecarSet);
  forgetWorkloads(snapshot, mode, context.clock);
  const seen = await seeReserved(context, snapshot);
  const reconciled = reconcileLedger(snapshot.stored.ledger, seen, subject, (one) => isCertainlyRefused(context, one));
  if (!reconciled) return undefined;
  const { kept } = reconciled;
  noteTakenBack(context, snapshot);
  await seeDisruptionBudgets(context, snapshot);
  snapshot.pulls = await readPulls(context, snapshot);
  const decided = snapshot.sidecarSet;
  const {
    decision,
    plan: reserved,
    checked,
    isCountOutdated,
  } = await deciding(() => decideRound(context, snapshot, kept, mode));
  const held = new Set(kept.map(({ uid }) => uid));
  const awaiting = withDepartures(reserved, decision, departedOf(context, snapshot, kept));
  const restarting = withPulls(withRestarts({ context, snapshot, kept: held }, awaiting, decision), snapshot, decision);
  const { view } = snapshot.observed;
  const isThere = (uid: string) => typeof view.versionOf(uid) === "string";
  const plan = withRefusals(restarting, refusedNow(context, snapshot, subject), isThere);
  if (plan.ledger.reservations.length > 0 && !(await announceLedger(context, snapshot, decision))) return undefined;
  if (!(await store(context, snapshot, withChecks(plan, decision, checked, held), kept.length))) return undefined;
  rememberReserved(context, kept, plan);
  const isObservable = isGenerationObservable(plan.ledger, subject);
  const statusWrite = await writeStatus(context, snapshot, decision, {
    isObservable,
    mayWait: mayStatusWait(mode, decided, decision),
  });
  if (statusWrite === "lost") return undefined;
  await rememberReady(context, snapshot, { decision, statusWrite });
  const { done, refused, notEvicted, isLeft, isOutdated } =
    mode === "act" ? await writing(() => carryOut(context, snapshot, decision, plan)) : NOTHING_WRITTEN;
  if (mode === "act") await undoHalted(context, snapshot, decision, decided);
  const { granted, fenced } = plan;
  return {
    decision,
    written: granted.size + fenced.length,
    reserved: snapshot.stored.ledger.reservations.length,
    isMoreToWrite:
      isCountOutdated ||
      isLeft ||
      refused.size + notEvicted.size > 0 ||
      (done.size > 0 && done.size === granted.size && decision.summary.selected > granted.size),
    isOutdated,
    isWaveNext: isWaveNext(decision),
    isStatusOwed: statusWrite === "owed",
    ...holdEnd(context, decision),
  };
}

const deciding = (work: () => Promise<Decided>) =>
  withDoing("decide", {}, work, ({ decision: { summary } }) => ({
    values: { "sidecarset.pods.selected": summary.selected, "sidecarset.hold": summary.hold },
  }));

const writing = (work: () => Promise<Written>) =>
  withDoing("write", {}, work, ({ done, refused }) => ({
    values: { "sidecarset.pods.written": done.size, "sidecarset.pods.refused": refused.size },
    problems: [...refused.values()],
  }));

/** True unless later rounds need the status. It is then written before pods, even right after the last write. */
function mayStatusWait(mode: "act" | "record", { status }: SidecarSet, decision: Decision): boolean {
  const { waves } = decision;
  return mode === "act" && !isWaveNext(decision) && !(waves && isSoakBehind(status?.waves, waves));
}

function isWaveNext({ summary }: Decision): boolean {
  return summary.rules.waves?.isTurning === true;
}

function holdEnd({ clock }: Context, { summary }: Decision): Pick<RoundResult, "holdEndsAtMs"> {
  const seconds = nextEnd(summary, timestamp(clock), CLOCKED);
  return seconds === undefined ? {} : { holdEndsAtMs: clock.now() + 1_000 * seconds };
}

async function carryOut(context: Context, snapshot: Snapshot, decision: Decision, plan: LedgerPlan): Promise<Written> {
  await writePulls(context, snapshot, decision);
  const written = await writePods(context, snapshot, decision, plan);
  const refused = new Set([...written.notEvicted, ...(await restartWorkloads(context, snapshot, decision, plan))]);
  const isLost = refused.size > 0 && !(await letGo(context, snapshot, refused));
  tellPods(context, snapshot.sidecarSet, patchesIn(decision, written));
  await recordEvents(context, snapshot, decision, written);
  await truncateRevisions(context, snapshot, decision);
  return { ...written, notEvicted: refused, ...(isLost ? { isOutdated: true } : {}) };
}

function patchesIn({ actions }: Decision, { done }: Written): readonly PatchPod[] {
  return actions.filter((action) => action.kind === "PatchPod").filter(({ pod }) => done.has(pod.uid));
}

/** Frees refused evictions and restarts, which no other pass sends late. False: another pass wrote the ledger. */
async function letGo(context: Context, snapshot: Snapshot, uids: ReadonlySet<string>): Promise<boolean> {
  const { ledger } = snapshot.stored;
  const refused = new Set(ledger.reservations.filter(({ uid }) => uids.has(uid)));
  const departed = (ledger.departed ?? []).filter(({ uid }) => !uids.has(uid));
  const restarted = (ledger.restarted ?? []).filter(({ uid }) => !uids.has(uid));
  const place = { namespace: context.kruiseNamespace, owner: snapshot.sidecarSet };
  const stored = await swapLedger(context.cluster, place, snapshot.stored, {
    ...withoutThese(ledger, refused),
    departed,
    restarted,
  });
  if (stored) {
    snapshot.stored = stored;
    forgetReserved(context, refused);
  }
  return stored !== undefined;
}

/** Writes the ledger. `kept`: number of earlier reservations. False: somebody else wrote it, or the SidecarSet. */
async function store(context: Context, snapshot: Snapshot, plan: LedgerPlan, kept: number): Promise<boolean> {
  const ledger = withSteering(plan.ledger, snapshot.stored.ledger, kept, steeringDigest(snapshot.sidecarSet));
  if (isSameLedger(snapshot.stored.ledger, ledger)) return true;
  const place = { namespace: context.kruiseNamespace, owner: snapshot.sidecarSet };
  const isNew = snapshot.stored.resourceVersion === undefined;
  const stored = await swapLedger(context.cluster, place, snapshot.stored, ledger);
  if (!stored) return false;
  snapshot.stored = stored;
  // Pods that missed their sidecars may be evicted after the same look.
  const mayWriteToPods = ledger.reservations.length > 0 || snapshot.missed?.length !== 0;
  // A deleted ledger may have named a newer generation that the status already shows. From here on other passes find
  // this one.
  return !isNew || !mayWriteToPods || (await readSame(context, snapshot)) !== undefined;
}

/** Records each Event once in a pass, and only for completed actions, or for a refused flip. */
async function recordEvents(
  context: Context,
  snapshot: Snapshot,
  { actions }: Decision,
  { done, refused }: Written,
): Promise<void> {
  const patched = new Set(actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.uid] : [])));
  for (const planned of actions.filter((action) => action.kind === "RecordEvent")) {
    const { uid } = planned.regarding;
    const event = refused.has(uid) ? failedFlip(planned, refused.get(uid) ?? "") : planned;
    const key = JSON.stringify([uid, event.reason, event.message]);
    if (context.recorded.has(key) || (event === planned && patched.has(uid) && !done.has(uid))) continue;
    context.recorded.add(key);
    await act(event, { ...context, sidecarSet: snapshot.sidecarSet });
  }
}

type RecordEvent = Extract<Action, { kind: "RecordEvent" }>;

function failedFlip(event: RecordEvent, why: string): RecordEvent {
  if (event.reason !== RESET_CONTAINER_SUCCEED_EVENT) return event;
  const message = `reset sidecar container image empty failed: ${why}`;
  return { ...event, type: "Warning", reason: RESET_CONTAINER_FAILED_EVENT, message };
}

/** Writes on a ControllerRevision the time when its rollout was first complete, for `undo` and `history`. */
interface Shown {
  readonly decision: Decision;
  /** the result of the status write */
  readonly statusWrite: "done" | "owed";
}

/** Writes once for each release, after the status shows it. After a failure the next round tries again. */
async function rememberReady(context: Context, snapshot: Snapshot, { decision, statusWrite }: Shown): Promise<void> {
  if (statusWrite !== "done") return;
  const { status, summary } = decision;
  const revision = snapshot.revisions.find(({ metadata }) => metadata?.name === status.latestRevision);
  if (!revision || readyAt(revision) !== undefined || summary.updatedReady === 0) return;
  const verdict = verdictNow(context, snapshot, decision);
  if (verdict === undefined || natureOf(verdict).isReady !== true) return;
  const { namespace = "", name = "", uid, resourceVersion } = revision.metadata ?? {};
  const annotations = { [READY_AT_ANNOTATION]: timestamp(context.clock) };
  const body = { metadata: { uid, resourceVersion, annotations } };
  const outcome = await attempt(() =>
    context.cluster.patch<ControllerRevision>(CONTROLLER_REVISIONS, { namespace, name }, { type: "merge", body }),
  );
  if (outcome.kind === "done") remember(snapshot, outcome.object as ControllerRevision);
  else if (outcome.kind === "refused") noteUnmarked(context, { namespace, name }, outcome.error.message);
}

/** Notes one problem per pass. Later rounds and passes try again. */
function noteUnmarked({ tally }: Context, place: { namespace: string; name: string }, why: string): void {
  const unmarked = "the ControllerRevision is not marked as ready, and undo may take it for one that never was:";
  if (!tally.problems.some(({ message }) => message.startsWith(unmarked)))
    tally.problems.push({ ...place, message: `${unmarked} ${why}` });
}

// Restores a halted SidecarSet on request, once, and only if it is unchanged.

/** Undoes the release. `decided`: the SidecarSet of the decision; its status may have changed since. */
export async function undoHalted(
  context: Context,
  snapshot: Snapshot,
  { undo }: Decision,
  decided: SidecarSet,
): Promise<void> {
  if (!undo || !isSame(decided, snapshot.sidecarSet)) return;
  const { name = "", uid = "", resourceVersion } = snapshot.sidecarSet.metadata ?? {};
  const { spec, annotations, message } = undo;
  const body = { metadata: { uid, resourceVersion, annotations }, spec };
  const outcome = await attempt(() =>
    context.cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body }, {}),
  );
  if (outcome.kind !== "done") return noteFailure(context, name, outcome);
  context.tally.undone = message;
  const regarding = { kind: "SidecarSet", name, uid } as const;
  // The condition leads to the same event, in case this one is lost.
  const event = { kind: "RecordEvent", regarding, type: "Warning", reason: "Undone", message } as const;
  await act(event, { ...context, sidecarSet: snapshot.sidecarSet });
}

function isSame(one: SidecarSet, other: SidecarSet): boolean {
  const [a, b] = [ledgerSubject(one), ledgerSubject(other)];
  return a.uid === b.uid && a.generation === b.generation && a.revision === b.revision;
}

/** Records a failure. A change by somebody else wins: the next snapshot shows it. */
function noteFailure({ tally }: Context, name: string, { error }: Exclude<Outcome, { kind: "done" }>): void {
  if (error.code === 404 || error.code === 409 || !error.isOutcomeKnown) return;
  const hint = error.code === 403 ? " (infra/rbac/optional/undo.yaml permits it)" : "";
  const message = `the SidecarSet is not undone: ${error.message}${hint}`;
  if (!tally.problems.some((problem) => problem.message === message))
    tally.problems.push({ namespace: "", name, message });
}
