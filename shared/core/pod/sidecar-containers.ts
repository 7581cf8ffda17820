/** Finds the containers of a pod that belong to a SidecarSet, and the working container of a hot-upgrade pair. */
import type { Pod } from "../../api/kubernetes.ts";
import { WORKING_HOT_UPGRADE_ANNOTATION } from "../../api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../api/sidecarset.ts";
import { jsonObjectOf } from "../../go/json/json-object.ts";

/** The two containers that one hot-upgrade sidecar has in a pod. */
export interface Slots {
  readonly working: string;
  /** name of the idle container, which holds the empty image unless an upgrade is running */
  readonly other: string;
}

export function isHotUpgrade(sidecar: SidecarContainer): boolean {
  return sidecar.upgradeStrategy?.upgradeType === "HotUpgrade";
}

/** True if the sidecar has a hot-upgrade pair. An init container counts only if it is a native sidecar. */
export function isHotUpgradeIn(sidecar: SidecarContainer, list: "initContainers" | "containers"): boolean {
  return isHotUpgrade(sidecar) && (list === "containers" || sidecar.restartPolicy === "Always");
}

/** Names of the sidecars with a hot upgrade, init containers first. */
export function hotSidecars({ spec }: SidecarSet): readonly string[] {
  const hot = (list: "initContainers" | "containers") =>
    (spec[list] ?? []).filter((sidecar) => isHotUpgradeIn(sidecar, list)).map(({ name }) => name);
  return [...hot("initContainers"), ...hot("containers")];
}

/** The two names of a hot-upgrade sidecar in a pod: NAME-1 and NAME-2. */
export function slotNames(sidecar: string): readonly [string, string] {
  return [`${sidecar}-1`, `${sidecar}-2`];
}

/** The name in the SidecarSet for a container's name in a pod. */
export function sidecarOf(sidecarSet: SidecarSet, container: string): string {
  return hotSidecars(sidecarSet).find((name) => slotNames(name).includes(container)) ?? container;
}

/** Names of containers by spec. The cache exists because every pod needs them. */
const knownNames = new WeakMap<SidecarSetSpec, ReadonlySet<string>>();

/** Names of the containers in spec.containers of the SidecarSet, as a pod has them. */
export function sidecarContainerNames({ spec }: SidecarSet): ReadonlySet<string> {
  const known = knownNames.get(spec);
  if (known) return known;
  const sidecars = spec.containers ?? [];
  const names = new Set(sidecars.flatMap((one) => (isHotUpgrade(one) ? slotNames(one.name) : [one.name])));
  knownNames.set(spec, names);
  return names;
}

const knownSingles = new WeakMap<SidecarSetSpec, ReadonlyMap<string, ReadonlySet<string>>>();

/** Maps each name to a set that holds only this name. */
export function singleContainerNames(sidecarSet: SidecarSet): ReadonlyMap<string, ReadonlySet<string>> {
  const known = knownSingles.get(sidecarSet.spec);
  if (known) return known;
  const singles = new Map([...sidecarContainerNames(sidecarSet)].map((name) => [name, new Set([name])]));
  knownSingles.set(sidecarSet.spec, singles);
  return singles;
}

/** The working slot of each hot-upgrade sidecar, from the annotation; empty if it is missing or unreadable. */
export function workingSlots(pod: Pod): Readonly<Record<string, unknown>> {
  return jsonObjectOf(pod.metadata?.annotations?.[WORKING_HOT_UPGRADE_ANNOTATION]) ?? {};
}

/** The slots of a sidecar. NAME-2 works unless the annotation says NAME-1. */
export function slotsOf(pod: Pod, sidecar: string): Slots {
  const [first, second] = slotNames(sidecar);
  return workingSlots(pod)[sidecar] === first ? { working: first, other: second } : { working: second, other: first };
}

/** Names of the idle slots of all hot-upgrade sidecars. */
export function otherSlots(pod: Pod, sidecarSet: SidecarSet): ReadonlySet<string> {
  const hot = (sidecarSet.spec.containers ?? []).filter(isHotUpgrade);
  return new Set(hot.map(({ name }) => slotsOf(pod, name).other));
}
