/** Tells which containers of a pod belong to a SidecarSet, and which one of a hot-upgrade pair works. */
import type { Pod } from "../../api/kubernetes.ts";
import { WORKING_HOT_UPGRADE_ANNOTATION } from "../../api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../api/sidecarset.ts";
import { jsonObjectOf } from "../../go/json/json-object.ts";

/** The two containers that one hot-upgrade sidecar has in a pod. */
export interface Slots {
  readonly working: string;
  /** holds the empty image unless an upgrade is under way */
  readonly other: string;
}

export function isHotUpgrade(sidecar: SidecarContainer): boolean {
  return sidecar.upgradeStrategy?.upgradeType === "HotUpgrade";
}

/** An init container counts only when it is a native sidecar. */
export function isHotUpgradeIn(sidecar: SidecarContainer, list: "initContainers" | "containers"): boolean {
  return isHotUpgrade(sidecar) && (list === "containers" || sidecar.restartPolicy === "Always");
}

/** Names of the sidecars that are upgraded hot, init containers first. */
export function hotSidecars({ spec }: SidecarSet): readonly string[] {
  const hot = (list: "initContainers" | "containers") =>
    (spec[list] ?? []).filter((sidecar) => isHotUpgradeIn(sidecar, list)).map(({ name }) => name);
  return [...hot("initContainers"), ...hot("containers")];
}

/** The two names of a hot-upgrade sidecar in a pod: NAME-1 and NAME-2. */
export function slotNames(sidecar: string): readonly [string, string] {
  return [`${sidecar}-1`, `${sidecar}-2`];
}

/** The SidecarSet's name of a container, given the container's name in a pod. */
export function sidecarOf(sidecarSet: SidecarSet, container: string): string {
  return hotSidecars(sidecarSet).find((name) => slotNames(name).includes(container)) ?? container;
}

/** Names by spec, because every pod needs them. */
const knownNames = new WeakMap<SidecarSetSpec, ReadonlySet<string>>();

/** Names, in a pod, of the containers in spec.containers of the SidecarSet. */
export function sidecarContainerNames({ spec }: SidecarSet): ReadonlySet<string> {
  const known = knownNames.get(spec);
  if (known) return known;
  const sidecars = spec.containers ?? [];
  const names = new Set(sidecars.flatMap((one) => (isHotUpgrade(one) ? slotNames(one.name) : [one.name])));
  knownNames.set(spec, names);
  return names;
}

const knownSingles = new WeakMap<SidecarSetSpec, ReadonlyMap<string, ReadonlySet<string>>>();

/** Maps each name to a set of only that name. */
export function singleContainerNames(sidecarSet: SidecarSet): ReadonlyMap<string, ReadonlySet<string>> {
  const known = knownSingles.get(sidecarSet.spec);
  if (known) return known;
  const singles = new Map([...sidecarContainerNames(sidecarSet)].map((name) => [name, new Set([name])]));
  knownSingles.set(sidecarSet.spec, singles);
  return singles;
}

/** The annotation that says which slot of each hot-upgrade sidecar works; empty when it is missing or unreadable. */
export function workingSlots(pod: Pod): Readonly<Record<string, unknown>> {
  return jsonObjectOf(pod.metadata?.annotations?.[WORKING_HOT_UPGRADE_ANNOTATION]) ?? {};
}

/** NAME-2 works unless the annotation says NAME-1. */
export function slotsOf(pod: Pod, sidecar: string): Slots {
  const [first, second] = slotNames(sidecar);
  return workingSlots(pod)[sidecar] === first ? { working: first, other: second } : { working: second, other: first };
}

/** Names of the slots that do not work, of all hot-upgrade sidecars. */
export function otherSlots(pod: Pod, sidecarSet: SidecarSet): ReadonlySet<string> {
  const hot = (sidecarSet.spec.containers ?? []).filter(isHotUpgrade);
  return new Set(hot.map(({ name }) => slotsOf(pod, name).other));
}
