/** In which namespaces no pod is replaced any more, since one came there without what it should have. Told apart from the core. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECT_KEY, RESTARTED_AT_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { isMissedByRestarts } from "./evictions.ts";
import { hashOfPod, isInjected } from "./objects.ts";
import { isRestartingMissed } from "./replacements.ts";
import { podsWithout } from "./set-conditions.ts";

/** Calls so soon after a change may still have got the state before it. */
const SETTLED_MS = 15_000;

/** `matched`: with its sidecars; `pods`: all there are. Two namespaces are all of them. */
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

/** Others of the same controller have sidecars. */
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

/** A restart since the SidecarSet was written has brought it, and it has no sidecars all the same. `gave`: restarts that have brought some. */
export function isRestartedInVain(sidecarSet: SidecarSet, pod: Pod, gave: ReadonlySet<string>): boolean {
  const writtenMs = writtenMsOf(sidecarSet);
  const restartedMs = Date.parse(pod.metadata?.annotations?.[RESTARTED_AT_ANNOTATION] ?? "");
  const isBrought = restartedMs >= writtenMs && !gave.has(broughtBy(pod));
  return isBrought && isMissedByRestarts(sidecarSet, pod, writtenMs + SETTLED_MS);
}

/** The controller, and the restart of it: tells one restart from others. */
export function broughtBy(pod: Pod): string {
  return `${ownerOf(pod)} ${pod.metadata?.annotations?.[RESTARTED_AT_ANNOTATION]}`;
}

function ownerOf({ metadata }: Pod): string | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

/** When its spec was written last. */
function writtenMsOf({ metadata }: SidecarSet): number {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly { readonly time: string }[] };
  const times = managedFields.map(({ time }) => time);
  return Math.max(...[metadata?.creationTimestamp ?? "", ...times].map(Date.parse));
}
