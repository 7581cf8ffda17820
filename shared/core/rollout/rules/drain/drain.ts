/** When a pod leaves the endpoints of its Services before its sidecars restart, and when it returns. */
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
import { type PodPlan, plannedPatch } from "../../upgrade/pod-change.ts";
import type { ReplacementPlan } from "../replacement/plan-replacement.ts";

type PatchPod = Extract<Action, { kind: "PatchPod" }>;
type Planned = Extract<PodPlan, { kind: "planned" }>;
/** A wait while the pod is out of endpoints. The write follows after these seconds. */
export interface DrainWait {
  readonly kind: "draining";
  readonly seconds: number;
}

/**
 * True if the drain belongs to a release that checks or a gate did not allow, or if the SidecarSet has no drains. The
 * pod is restored first.
 */
export function isDrainedForAnother({ drain }: PodState, sidecarSet: SidecarSet): boolean {
  const isAsked = steeringOf(sidecarSet).drainSeconds !== undefined;
  return drain !== undefined && !(isAsked && drain.release === releaseOf(sidecarSet));
}

function releaseOf({ metadata }: SidecarSet): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

/** True if Services select, or would select, the pod by the label. Another value of it belongs to another author. */
export function isDrainable({ metadata }: Pod): boolean {
  const traffic = metadata?.labels?.[TRAFFIC_LABEL];
  return traffic === SERVING || traffic === DRAINED;
}

/**
 * The plan of a pod with its drain: it leaves the endpoints, waits for the configured time, and then follows the plan.
 * A pod that is not ready is in no endpoints, so one write does both.
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

/** The drain with `now` as its start, because a gate or a long batch may take longer than the drain itself. */
export function drainNow(patch: PatchPod, { metadata: { name = "" } = {} }: SidecarSet, now: string): PatchPod {
  const holds = jsonObjectOf(patch.annotations[DRAINED_BY_ANNOTATION]) ?? {};
  const own = holds[name];
  if (patch.purpose !== "drain" || !isJsonObject(own)) return patch;
  const text = goJson({ ...holds, [name]: { ...own, since: now } });
  return { ...patch, annotations: { ...patch.annotations, [DRAINED_BY_ANNOTATION]: text } };
}

/** Seconds of a drain, and the number of pods without the label for drains. */
export interface DrainsAhead {
  readonly seconds: number;
  readonly undrained: number;
}

/** The drains of a plan; undefined: none, or all sidecars are upgraded hot. `pods`: pods to update in place */
export function drainsAhead(sidecarSet: SidecarSet, pods: Sequence<PodState>): DrainsAhead | undefined {
  const { drainSeconds: seconds } = steeringOf(sidecarSet);
  const sidecars = [...(sidecarSet.spec.containers ?? []), ...nativeSidecars(sidecarSet)];
  if (seconds === undefined || sidecars.every(isHotUpgrade)) return undefined;
  return { seconds, undrained: countOf(pods, ({ pod }) => !isDrainable(pod)) };
}

/** True when a container restarts. The two containers of a hot upgrade take turns, so that pod needs no drain. */
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

/**
 * The write that ends these SidecarSets' drains of a pod. The pod returns to the endpoints if no drain is left and it
 * is ready.
 */
export function putBack(pod: Pod, names: readonly string[]): PatchPod {
  const holds = Object.entries(drainHolds(pod)).filter(([name]) => !names.includes(name));
  const plan = { kind: "planned", images: [], ...held(pod, Object.fromEntries(holds)), isAllowed: true } as const;
  return plannedPatch(pod, plan, "putBack", false);
}

/**
 * Restores every drained pod whose containers match its spec: the restart is done, or never began. `kept`: uids of pods
 * that are selected or written to otherwise. Pods that somebody drains repeatedly are skipped.
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

/** The drains of the selected pods. `plans`: plans of all selected pods. */
export function drainingOf(plans: Iterable<PodPlan | DrainWait | ReplacementPlan>) {
  const seconds = [...plans].flatMap((plan) => (plan.kind === "draining" ? [plan.seconds] : []));
  return seconds.length === 0 ? undefined : { pods: seconds.length, seconds: Math.min(...seconds) };
}
