/**
 * Finds the namespaces where restarts and evictions stop because a new pod came without its sidecars. The rules are
 * written here again, independently of the core.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECT_KEY, RESTARTED_AT_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { isMissedByRestarts } from "./evictions.ts";
import { hashOfPod, isInjected } from "./objects.ts";
import { isRestartingMissed } from "./replacements.ts";
import { podsWithout } from "./set-conditions.ts";

/** A call within this time after a change may still have got the earlier state. */
const SETTLED_MS = 15_000;

/** `matched`: the pods with their sidecars; `pods`: all pods. Two stopped namespaces stop all namespaces. */
export function isStoppedIn(set: SidecarSet, matched: readonly Pod[], pods: readonly Pod[]): (pod: Pod) => boolean {
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const lateMs = writtenMsOf(set) + SETTLED_MS;
  const isLate = ({ metadata }: Pod) => Date.parse(metadata?.creationTimestamp ?? "") > lateMs;
  const old = matched.filter((pod) => hashOfPod(pod, set.metadata?.name ?? "") !== hash && isLate(pod));
  const bare = isRestartingMissed(set)
    ? restartedInVain(set, pods)
    : bareBesideOthers(set, matched, pods).filter(isLate);
  const namespaces = new Set([...old, ...bare].map(({ metadata }) => metadata?.namespace));
  return ({ metadata }) => namespaces.size > 1 || namespaces.has(metadata?.namespace);
}

/** True if other pods of the same controller have sidecars. */
function bareBesideOthers(set: SidecarSet, matched: readonly Pod[], pods: readonly Pod[]): readonly Pod[] {
  const owners = new Set(matched.map(ownerOf));
  return podsWithout(set, pods).filter((pod) => {
    const owner = ownerOf(pod);
    return owner !== undefined && owners.has(owner) && pod.metadata?.annotations?.[INJECT_KEY] !== "false";
  });
}

function restartedInVain(set: SidecarSet, pods: readonly Pod[]): readonly Pod[] {
  const gave = new Set(pods.filter((pod) => isInjected(pod, set.metadata?.name ?? "")).map(broughtBy));
  return pods.filter((pod) => isRestartedInVain(set, pod, gave));
}

/**
 * True if a pod has no sidecars although it was restarted after the SidecarSet's last write. `gave`: restarts that gave
 * sidecars to some pods.
 */
export function isRestartedInVain(sidecarSet: SidecarSet, pod: Pod, gave: ReadonlySet<string>): boolean {
  const writtenMs = writtenMsOf(sidecarSet);
  const restartedMs = Date.parse(pod.metadata?.annotations?.[RESTARTED_AT_ANNOTATION] ?? "");
  const isBrought = restartedMs >= writtenMs && !gave.has(broughtBy(pod));
  return isBrought && isMissedByRestarts(sidecarSet, pod, writtenMs + SETTLED_MS);
}

/** Returns the controller and the restart as one text, which tells restarts apart. */
export function broughtBy(pod: Pod): string {
  return `${ownerOf(pod)} ${pod.metadata?.annotations?.[RESTARTED_AT_ANNOTATION]}`;
}

function ownerOf({ metadata }: Pod): string | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

/** Returns the time of the last write of the SidecarSet's spec. */
function writtenMsOf({ metadata }: SidecarSet): number {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly { readonly time: string }[] };
  const times = managedFields.map(({ time }) => time);
  return Math.max(...[metadata?.creationTimestamp ?? "", ...times].map(Date.parse));
}
