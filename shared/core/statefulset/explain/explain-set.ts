/** The text about a set: its progress, what it waits for, and why it does not do more. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec } from "../../../api/stateful-set.ts";
import { ordinalOf, parsePodName } from "../../pod/workload.ts";
import { whyNotCompleted } from "../in-place/update-completed.ts";
import { isInRange, type OrdinalRange, ordinalRange } from "../pods/ordinals.ts";
import {
  isFinished,
  isRunningAndReady,
  isTerminating,
  lifecycleState,
  revisionOf,
  secondsUntilAvailable,
} from "../pods/pod-phase.ts";
import type { SetObservation } from "../reconcile.ts";

export interface WaitingPod {
  readonly name: string;
  /** completes "NAME …" */
  readonly why: string;
}

export interface SetStanding {
  /** number of wanted pods */
  readonly desired: number;
  /** how many of them exist */
  readonly existing: number;
  readonly ready: number;
  /** of the template of now */
  readonly updated: number;
  /** pods beyond the range: they go */
  readonly outOfRange: number;
  /** pods that are not as they should be, lowest ordinal first */
  readonly waitingFor: readonly WaitingPod[];
  /** why pods keep an older template */
  readonly hold: "none" | "paused" | "partition" | "OnDelete";
}

type Seen = Pick<SetObservation, "set" | "pods" | "gates" | "now">;

/** `updateRevision`: name of the revision of the template of now. */
export function setStanding({ set, pods, gates, now }: Seen, updateRevision: string | undefined): SetStanding {
  const range = ordinalRange(set.spec, gates.StatefulSetStartOrdinal);
  const own = pods.filter((pod) => isPodOfSet(set, pod));
  const inRange = own.filter((pod) => isInRange(ordinalOf(pod), range));
  const updated = inRange.filter((pod) => revisionOf(pod) === updateRevision).length;
  const { updateStrategy } = set.spec;
  const minReadySeconds = updateStrategy?.rollingUpdate?.minReadySeconds ?? 0;
  const waiting = inRange.flatMap((pod) => {
    const why = whyNotAvailable(pod, minReadySeconds, now);
    return why === undefined ? [] : [{ name: pod.metadata?.name ?? "", why }];
  });
  return {
    desired: set.spec.replicas ?? 1,
    existing: inRange.length,
    ready: inRange.filter(isRunningAndReady).length,
    updated,
    outOfRange: own.length - inRange.length,
    waitingFor: [...waiting, ...missing(set, inRange, range)].toSorted((a, b) => ordinal(a) - ordinal(b)),
    hold: updated < inRange.length ? holdOf(updateStrategy) : "none",
  };
}

/** True for a pod of the set, by its name and its controller. */
export function isPodOfSet(set: StatefulSet, { metadata }: Pod): boolean {
  const controller = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const isNamed = parsePodName(metadata?.name ?? "").parent === set.metadata?.name;
  return isNamed && controller?.uid === set.metadata?.uid && ordinal({ name: metadata?.name ?? "" }) >= 0;
}

function ordinal({ name }: { readonly name: string }): number {
  return parsePodName(name).ordinal;
}

function missing(set: StatefulSet, inRange: readonly Pod[], range: OrdinalRange): readonly WaitingPod[] {
  const there = new Set(inRange.map(ordinalOf));
  const ordinals = Array.from({ length: range.end - range.start }, (_, index) => range.start + index);
  return ordinals
    .filter((one) => !range.reserved.has(one) && !there.has(one))
    .map((one) => ({ name: `${set.metadata?.name}-${one}`, why: "does not exist" }));
}

function holdOf(strategy: StatefulSetSpec["updateStrategy"]): SetStanding["hold"] {
  if (strategy?.type === "OnDelete") return "OnDelete";
  if (strategy?.rollingUpdate?.paused) return "paused";
  return (strategy?.rollingUpdate?.partition ?? 0) > 0 ? "partition" : "none";
}

/** Undefined for one that is; completes "NAME …". */
export function whyNotAvailable(pod: Pod, minReadySeconds: number, now: string): string | undefined {
  if (isTerminating(pod)) return "is being deleted";
  if (isFinished(pod)) return `has ended: ${pod.status?.phase}`;
  const state = lifecycleState(pod);
  if (state !== "" && state !== "Normal") return `is held by a lifecycle hook: ${state}`;
  const inPlace = whyNotCompleted(pod);
  if (inPlace !== undefined) return `is being updated in place: ${inPlace}`;
  if (!isRunningAndReady(pod)) return `is not ready${reasonOf(pod)}`;
  const seconds = secondsUntilAvailable(pod, minReadySeconds, now) ?? 0;
  return seconds > 0 ? `has to be ready for ${seconds} s more` : undefined;
}

/** The waiting reason of its containers. */
function reasonOf({ status }: Pod): string {
  const statuses = (status?.containerStatuses ?? []) as readonly {
    readonly name: string;
    readonly state?: { readonly waiting?: { readonly reason?: string } };
  }[];
  const waiting = statuses.find(({ state }) => state?.waiting?.reason);
  return waiting ? ` (container ${waiting.name}: ${waiting.state?.waiting?.reason})` : "";
}

/** True when nothing changes until somebody changes the set or a pod. */
export function isSetSettled({ waitingFor, outOfRange, desired, updated, hold }: SetStanding): boolean {
  return waitingFor.length === 0 && outOfRange === 0 && (updated >= desired || hold !== "none");
}

const NAMED = 3;

/** One sentence about the set. */
export function explainSet(standing: SetStanding): string {
  const { desired, existing, ready, updated, outOfRange, waitingFor } = standing;
  const count = `${existing} of ${desired} pods, ${ready} ready, ${updated} updated`;
  const named = waitingFor.slice(0, NAMED).map(({ name, why }) => `${name} ${why}`);
  const more = waitingFor.length > NAMED ? [`${waitingFor.length - NAMED} more`] : [];
  const waiting = named.length > 0 ? `; ${[...named, ...more].join(", ")}` : "";
  const beyond = outOfRange > 0 ? `; ${outOfRange} to be removed` : "";
  return `${count}${holdText(standing)}${waiting}${beyond}`;
}

function holdText({ hold, desired, updated }: SetStanding): string {
  switch (hold) {
    case "none":
      return "";
    case "paused":
      return "; the update is paused";
    case "OnDelete":
      return "; pods are updated when they are deleted (OnDelete)";
    case "partition":
      return `; the partition keeps ${Math.max(0, desired - updated)} of them`;
    default:
      return hold satisfies never;
  }
}
