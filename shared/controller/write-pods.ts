/** Writes a batch to its pods: what is reserved is patched, what is not wanted any more is fenced. */
import type { ObjectMeta, Pod } from "../api/kubernetes.ts";
import type { Decision } from "../core/decide.ts";
import type { Action } from "../core/lib/action.ts";
import type { LedgerPlan, PodState, Reservation } from "../core/upgrade/ledger.ts";
import { isUpgradableBy, planCondition } from "../core/upgrade/upgradable-condition.ts";
import { type PartialObject, PODS } from "../kube/port.ts";
import { act, attempt, type NotDone, type Outcome } from "./act.ts";
import { timestamp } from "./clock.ts";
import { mapLimited } from "./concurrency.ts";
import { type Look, type RolloutContext, readPod, WRITES_AT_ONCE } from "./look.ts";
import { mapPaced, Pace } from "./paced.ts";
import { fencePatch, isPatched, type PatchPod, patchedPod } from "./pod-patch.ts";
import { SpecCheck } from "./spec-check.ts";

type Condition = Extract<Action, { kind: "PatchPodCondition" }>;

const MAX_RETRY_AFTER_SECONDS = 5;
/** The kubelet writes to the status as well. */
const CONDITION_ATTEMPTS = 4;
/** of each rollout, over its batches */
const paces = new WeakMap<RolloutContext, Pace>();

export interface Written {
  /** uids of the pods that carry their patch now */
  readonly done: ReadonlySet<string>;
  /** the SidecarSet said something else before the end, and the rest was left: it is reserved as before */
  readonly isOutdated: boolean;
}

/** @throws KubeError only when the API server cannot be asked any more what came of a write */
export async function writePods(
  context: RolloutContext,
  look: Look,
  decision: Decision,
  plan: LedgerPlan,
): Promise<Written> {
  const patches = decision.actions.filter((action) => action.kind === "PatchPod");
  const isSkipped = context.inPlaceGates?.SkipUpgradableCondition === true;
  const conditions = isSkipped ? [] : decision.actions.filter((action) => action.kind === "PatchPodCondition");
  const conditionOf = new Map(conditions.map((condition) => [condition.pod.uid, condition]));
  const isPatch = new Set(patches.map(({ pod }) => pod.uid));
  const granted = patches.filter(({ pod }) => plan.granted.has(pod.uid));
  if (granted.length > 0) context.tally.batches++;
  await mapLimited(plan.fenced, WRITES_AT_ONCE, (reservation) => fence(context, look, reservation));
  const done = new Set<string>();
  const pace = paces.get(context) ?? new Pace(WRITES_AT_ONCE, context.clock, context.endsAtMs);
  paces.set(context, pace);
  const spec = new SpecCheck(context, look);
  const write = async (patch: PatchPod) => {
    const outcome = await act(patch, { ...context, sidecarSet: look.sidecarSet });
    if (isBusy(outcome)) return waitMsOf(outcome);
    if (await isPatchedBy(context, look, patch, outcome)) {
      done.add(patch.pod.uid);
      await setCondition(context, look, conditionOf.get(patch.pod.uid));
    }
    return undefined;
  };
  await mapPaced(granted, pace, write, () => spec.check());
  const others = spec.isOutdated ? [] : conditions.filter(({ pod }) => !isPatch.has(pod.uid));
  await mapLimited(others, WRITES_AT_ONCE, (condition) => setCondition(context, look, condition));
  return { done, isOutdated: spec.isOutdated };
}

/** True when the pod carries the patch. */
async function isPatchedBy(context: RolloutContext, look: Look, patch: PatchPod, outcome: Outcome): Promise<boolean> {
  const isDone = outcome.kind === "done" || (await learn(context, look, { state: patch.pod, patch }, outcome));
  if (!isDone) return false;
  if (patch.purpose === "upgrade") context.tally.upgraded++;
  if (patch.purpose === "flip") context.tally.flipped++;
  noteWrite(look, patch.pod, outcome.kind === "done" ? outcome.object?.metadata : undefined, patch);
  return true;
}

async function fence(context: RolloutContext, look: Look, reservation: Reservation): Promise<void> {
  const pod = look.observed.view.get(reservation.uid) ?? (await readPod(context, look, reservation));
  if (!pod) return;
  const patch = fencePatch(reservation, pod.metadata?.annotations === undefined);
  const outcome = await attempt(() =>
    context.cluster.patch<PartialObject>(PODS, reservation, patch, { answer: "metadata" }),
  );
  if (outcome.kind !== "done") return void (await learn(context, look, { state: reservation }, outcome));
  noteWrite(look, reservation, outcome.object?.metadata, { images: [] });
  context.tally.fenced++;
}

function noteWrite(
  look: Look,
  { uid }: PodState,
  metadata: ObjectMeta | undefined,
  patch: Pick<PatchPod, "images" | "resources">,
) {
  const { view } = look.observed;
  const pod = view.get(uid);
  if (metadata) view.see(pod ? patchedPod(pod, metadata, patch) : { metadata, spec: { containers: [] } });
}

/** After a write that did not simply succeed: what is the pod now? True when it carries `patch` after all. */
async function learn(
  context: RolloutContext,
  look: Look,
  { state, patch }: { readonly state: PodState; readonly patch?: PatchPod },
  outcome: NotDone,
): Promise<boolean> {
  switch (outcome.kind) {
    case "gone":
      look.observed.view.remove(state.uid, null);
      return false;
    case "refused":
      await backOff(context, state, outcome);
      return false;
    case "conflict":
    case "unknown": {
      context.tally.conflicts++;
      const pod = await readPod(context, look, state);
      const isUntouched = pod?.metadata?.resourceVersion === state.resourceVersion;
      // Still what it was: then it was not another writer that made the API server refuse.
      if (isUntouched && outcome.error.code === 422) noteProblem(context, state, outcome.error.message);
      return pod !== undefined && patch !== undefined && isPatched(pod, patch);
    }
    default:
      return outcome satisfies never;
  }
}

async function backOff(context: RolloutContext, state: PodState, outcome: Refused): Promise<void> {
  const { error } = outcome;
  // No answer and nothing sent: the next pods would fare no better.
  if (error.code === 0) throw error;
  if (!isBusy(outcome)) return noteProblem(context, state, error.message);
  await context.clock.sleep(waitMsOf(outcome));
}

type Refused = Extract<Outcome, { kind: "refused" }>;

/** It was not carried out, and may be sent again later: its reservation stands. */
function isBusy(outcome: Outcome): outcome is Refused {
  return outcome.kind === "refused" && outcome.error.code === 429;
}

function waitMsOf({ error }: Refused): number {
  return 1000 * Math.min(error.retryAfterSeconds ?? 1, MAX_RETRY_AFTER_SECONDS);
}

/** The condition is shared by all SidecarSets of the pod: what another has written meanwhile must stay. */
async function setCondition(context: RolloutContext, look: Look, condition: Condition | undefined): Promise<void> {
  const known = condition && look.observed.view.get(condition.pod.uid);
  let wanted = condition && planOn(context, look, condition, known ?? (await readPod(context, look, condition.pod)));
  for (let attempt = 1; wanted && attempt <= CONDITION_ATTEMPTS; attempt++) {
    const outcome = await act(wanted, { ...context, sidecarSet: look.sidecarSet });
    if (outcome.kind === "refused") await backOff(context, wanted.pod, outcome);
    if (outcome.kind === "done" || outcome.kind === "gone" || isForGood(outcome)) return;
    wanted = await planAgain(context, look, wanted, outcome);
  }
}

/** undefined: it is as it should be, or was refused although nobody else wrote. */
async function planAgain(
  context: RolloutContext,
  look: Look,
  tried: Condition,
  { kind, error }: NotDone,
): Promise<Condition | undefined> {
  const pod = await readPod(context, look, tried.pod);
  const isUntouched = pod?.metadata?.resourceVersion === tried.pod.resourceVersion;
  if (!isUntouched || kind !== "conflict") return planOn(context, look, tried, pod);
  noteProblem(context, tried.pod, error.message);
  return undefined;
}

function isForGood(outcome: Outcome): boolean {
  return outcome.kind === "refused" && !isBusy(outcome);
}

/** The condition as the pod is now; undefined: there is nothing to write any more. */
function planOn(
  context: RolloutContext,
  look: Look,
  condition: Condition,
  pod: Pod | undefined,
): Condition | undefined {
  if (!pod) return undefined;
  const sidecarSet = look.sidecarSet.metadata?.name ?? "";
  const isUpgradable = isUpgradableBy(condition.condition, sidecarSet);
  const plan = planCondition(pod, { sidecarSet, isUpgradable, now: timestamp(context.clock) });
  if (plan.kind !== "changed") return undefined;
  const { resourceVersion = "" } = pod.metadata ?? {};
  const conditions = pod.status?.conditions ?? [];
  return { ...condition, pod: { ...condition.pod, resourceVersion }, conditions, condition: plan.condition };
}

/** A pod's trouble is told once a pass. */
function noteProblem(
  { tally }: RolloutContext,
  { namespace, name }: Pick<PodState, "namespace" | "name">,
  message: string,
) {
  const isKnown = tally.problems.some((known) => known.namespace === namespace && known.name === name);
  if (!isKnown) tally.problems.push({ namespace, name, message });
}
