/** Decides when a pod leaves the endpoints of its Services before its sidecars restart, and when it is put back. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { DRAINED, DRAINED_BY_ANNOTATION, HASH_ANNOTATION, SERVING, TRAFFIC_LABEL } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { goJson } from "../../../../go/json/go-json.ts";
import { isJsonObject, jsonObjectOf } from "../../../../go/json/json-object.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import { countOf, type Sequence, where } from "../../../../go/sequence.ts";
import type { Action, ImageChange } from "../../../actions.ts";
import { isPodReady } from "../../../pod/is-ready.ts";
import { nativeSidecars } from "../../../pod/native-sidecars.ts";
import { drainHolds } from "../../../pod/pod-records.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { isHotUpgrade, slotNames } from "../../../pod/sidecar-containers.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { NONE_PASSED_OVER, type PassedOver } from "../../../refused-pods.ts";
import { plannedPatch } from "../../upgrade/pod-actions.ts";
import type { PodPlan } from "../../upgrade/pod-change.ts";
import type { ReplacementPlan } from "../replacement/plan-replacement.ts";

type PatchPod = Extract<Action, { kind: "PatchPod" }>;
type Planned = Extract<PodPlan, { kind: "planned" }>;
/** The pod is out of endpoints, and is written to in so many seconds. */
export interface DrainWait {
  readonly kind: "draining";
  readonly seconds: number;
}

/** It is held for what checks and a gate have not allowed, or for a SidecarSet that asks for no drains: it is put back first. */
export function isDrainedForAnother({ drain }: PodState, sidecarSet: SidecarSet): boolean {
  const isAsked = steeringOf(sidecarSet).drainSeconds !== undefined;
  return drain !== undefined && !(isAsked && drain.release === releaseOf(sidecarSet));
}

function releaseOf({ metadata }: SidecarSet): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

/** Its Services select it by the label, or would. Any other value is somebody else's. */
export function isDrainable({ metadata }: Pod): boolean {
  const traffic = metadata?.labels?.[TRAFFIC_LABEL];
  return traffic === SERVING || traffic === DRAINED;
}

/**
 * The plan of a pod whose containers restart, with its drain: first out of endpoints, then nothing for the seconds that
 * the SidecarSet asks for, then the plan itself. A pod that is not ready is in no endpoints: both are one write.
 */
export function withDrain(state: PodState, sidecarSet: SidecarSet, plan: PodPlan, now: string): PodPlan | DrainWait {
  if (plan.kind !== "planned" || !restarts(plan.images, sidecarSet)) return plan;
  const { drainSeconds } = steeringOf(sidecarSet);
  const { drain, pod } = state;
  const age = drain && secondsBetween(drain.since, now);
  if (age !== undefined && drainSeconds !== undefined && age >= drainSeconds) return { ...plan, isAllowed: true };
  if (drainSeconds === undefined || !isDrainable(pod)) return plan;
  return age === undefined || age < 0
    ? beginDrain(pod, sidecarSet, plan, now)
    : { kind: "draining", seconds: drainSeconds - age };
}

function beginDrain(pod: Pod, sidecarSet: SidecarSet, plan: Planned, now: string): Planned {
  const own = { [sidecarSet.metadata?.name ?? ""]: { since: now, release: releaseOf(sidecarSet) } };
  const hold = held(pod, { ...drainHolds(pod), ...own });
  if (isPodReady(pod)) return { kind: "planned", images: [], ...hold, isDrain: true };
  return { ...plan, ...hold, annotations: { ...plan.annotations, ...hold.annotations } };
}

/** The same drain as if it was decided at `now`: a gate, or a long batch, may take longer than the drain itself. */
export function drainNow(patch: PatchPod, { metadata: { name = "" } = {} }: SidecarSet, now: string): PatchPod {
  const holds = jsonObjectOf(patch.annotations[DRAINED_BY_ANNOTATION]) ?? {};
  const own = holds[name];
  if (patch.purpose !== "drain" || !isJsonObject(own)) return patch;
  const text = goJson({ ...holds, [name]: { ...own, since: now } });
  return { ...patch, annotations: { ...patch.annotations, [DRAINED_BY_ANNOTATION]: text } };
}

/** For how long pods are drained, and how many of these have no label for that. */
export interface DrainsAhead {
  readonly seconds: number;
  readonly undrained: number;
}

/** `pods`: that are to be updated in place. Undefined: nobody asks for drains, or all sidecars are upgraded hot. */
export function drainsAhead(sidecarSet: SidecarSet, pods: Sequence<PodState>): DrainsAhead | undefined {
  const { drainSeconds: seconds } = steeringOf(sidecarSet);
  const sidecars = [...(sidecarSet.spec.containers ?? []), ...nativeSidecars(sidecarSet)];
  if (seconds === undefined || sidecars.every(isHotUpgrade)) return undefined;
  return { seconds, undrained: countOf(pods, ({ pod }) => !isDrainable(pod)) };
}

/** A hot upgrade's containers take turns, so its pod need not be drained. */
function restarts(images: readonly ImageChange[], { spec }: SidecarSet): boolean {
  const slots = new Set(
    (spec.containers ?? []).flatMap((sidecar) => (isHotUpgrade(sidecar) ? slotNames(sidecar.name) : [])),
  );
  return images.some(({ container }) => !slots.has(container));
}

function held(pod: Pod, holds: Readonly<Record<string, unknown>>): Required<Pick<Planned, "labels" | "annotations">> {
  const traffic = Object.keys(holds).length > 0 ? DRAINED : SERVING;
  const labels = pod.metadata?.labels?.[TRAFFIC_LABEL] === traffic ? {} : { [TRAFFIC_LABEL]: traffic };
  return { labels, annotations: { [DRAINED_BY_ANNOTATION]: goJson(holds) } };
}

/** What ends the holds of these SidecarSets. The pod is in endpoints again when nobody holds it, and it is ready. */
export function putBack(pod: Pod, names: readonly string[]): PatchPod {
  const holds = Object.entries(drainHolds(pod)).filter(([name]) => !names.includes(name));
  const plan = { kind: "planned", images: [], ...held(pod, Object.fromEntries(holds)), isAllowed: true } as const;
  return plannedPatch(pod, plan, "putBack", false);
}

/**
 * Puts every drained pod back whose containers run what its spec says: its restart is done, or did not begin. `kept`: uids
 * of the pods whose turn it still is, or that are written to otherwise. Those that somebody drains again and again are left alone.
 */
export function planPutBacks(
  { metadata }: SidecarSet,
  pods: Sequence<PodState>,
  kept: ReadonlySet<string>,
  { takenBack }: PassedOver = NONE_PASSED_OVER,
): readonly Action[] {
  const isLeft = (uid: string) => kept.has(uid) || takenBack.has(uid);
  const isOver = ({ drain, isConsistent, pod }: PodState) =>
    drain !== undefined && isConsistent && !isLeft(pod.metadata?.uid ?? "");
  return where(pods, isOver).map(({ pod }) => putBack(pod, [metadata?.name ?? ""]));
}

/** `plans`: of all pods whose turn it is. */
export function drainingOf(plans: Iterable<PodPlan | DrainWait | ReplacementPlan>) {
  const seconds = [...plans].flatMap((plan) => (plan.kind === "draining" ? [plan.seconds] : []));
  return seconds.length === 0 ? undefined : { pods: seconds.length, seconds: Math.min(...seconds) };
}
