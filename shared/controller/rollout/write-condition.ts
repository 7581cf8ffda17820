/** Writes the condition that says whether a pod's sidecars can be updated in place. */
import type { Pod } from "../../api/kubernetes.ts";
import type { Action } from "../../core/actions.ts";
import { isUpgradableBy, planCondition } from "../../core/rollout/upgrade/pod-change.ts";
import { timestamp } from "../loop/clock.ts";
import { act, type NotDone, type Outcome } from "./act.ts";
import { type Context, readPod, type Snapshot } from "./observe.ts";
import { backOff, isBusy, type Refused } from "./pod-trouble.ts";
import { noteProblem } from "./report.ts";

type Condition = Extract<Action, { kind: "PatchPodCondition" }>;

/** Limit of tries, because the kubelet writes to the status too. */
const CONDITION_ATTEMPTS = 4;
/**
 * Milliseconds between tries without the right to write a pod's status: a namespace full of such pods would be tried in
 * every round.
 */
const REFUSED_MS = 30_000;
/** times of refused conditions by uid of the pod, for each rollout */
const refusals = new WeakMap<Context, Map<string, number>>();

/** Sets the condition, which all SidecarSets of the pod share: what another one has written must stay. */
export async function setCondition(
  context: Context,
  snapshot: Snapshot,
  condition: Condition | undefined,
): Promise<void> {
  if (!condition || wasJustRefused(context, condition)) return;
  const known = snapshot.observed.view.get(condition.pod.uid);
  let wanted = planOn(context, snapshot, condition, known ?? (await readPod(context, snapshot, condition.pod)));
  for (let attempt = 1; wanted && attempt <= CONDITION_ATTEMPTS; attempt++) {
    const outcome = await act(wanted, { ...context, sidecarSet: snapshot.sidecarSet });
    if (outcome.kind === "refused") await refused(context, wanted, outcome);
    if (outcome.kind === "done" || outcome.kind === "gone" || isForGood(outcome)) return;
    wanted = await planAgain(context, snapshot, wanted, outcome);
  }
}

/** The new plan; undefined: the condition is correct, or the API server refused although nobody else wrote. */
async function planAgain(
  context: Context,
  snapshot: Snapshot,
  tried: Condition,
  { kind, error }: NotDone,
): Promise<Condition | undefined> {
  const pod = await readPod(context, snapshot, tried.pod);
  const isUntouched = pod?.metadata?.resourceVersion === tried.pod.resourceVersion;
  if (!isUntouched || kind !== "conflict") return planOn(context, snapshot, tried, pod);
  noteProblem(context, tried.pod, error.message);
  return undefined;
}

function wasJustRefused(context: Context, { pod }: Condition): boolean {
  return context.clock.now() - (refusals.get(context)?.get(pod.uid) ?? Number.NEGATIVE_INFINITY) < REFUSED_MS;
}

async function refused(context: Context, { pod }: Condition, outcome: Refused): Promise<void> {
  await backOff(context, pod, outcome);
  if (outcome.error.code !== 403) return;
  const own = refusals.get(context) ?? new Map<string, number>();
  refusals.set(context, own.set(pod.uid, context.clock.now()));
}

function isForGood(outcome: Outcome): boolean {
  return outcome.kind === "refused" && !isBusy(outcome);
}

/** The condition for the pod as it is now; undefined: nothing is left to write. */
function planOn(
  context: Context,
  snapshot: Snapshot,
  condition: Condition,
  pod: Pod | undefined,
): Condition | undefined {
  if (!pod) return undefined;
  const sidecarSet = snapshot.sidecarSet.metadata?.name ?? "";
  const isUpgradable = isUpgradableBy(condition.condition, sidecarSet);
  const plan = planCondition(pod, { sidecarSet, isUpgradable, now: timestamp(context.clock) });
  if (plan.kind !== "changed") return undefined;
  const { resourceVersion = "" } = pod.metadata ?? {};
  const conditions = pod.status?.conditions ?? [];
  return { ...condition, pod: { ...condition.pod, resourceVersion }, conditions, condition: plan.condition };
}
