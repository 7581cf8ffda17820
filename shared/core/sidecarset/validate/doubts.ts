/** Finds valid settings of a SidecarSet that make its pods fail, or update in an unintended way. */
import { VALUE_ANNOTATION_SUFFIX } from "../../../api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { parseImageReference } from "../../../go/image-reference.ts";
import { isHotUpgradeIn, slotNames } from "../../pod/sidecar-containers.ts";
import { competitorsOf } from "./conflict.ts";
import { newerFields } from "./newer-fields.ts";

const LISTS = ["initContainers", "containers"] as const;
/** of a container's name */
const MOST_LETTERS = 63;
const MOST_DOUBTS = 20;
/** of an image that no kubelet would take */
const MOST_SHOWN = 200;

interface Named {
  /** in a pod */
  readonly name: string;
  readonly field: string;
  /** the sidecar whose hot upgrades need the name; absent: the name is the sidecar's own */
  readonly slotOf?: string;
}

/** At most twenty sentences, each beginning with the field. */
export function doubtsOf(sidecarSet: SidecarSet, others: readonly SidecarSet[]): readonly string[] {
  const own = namesIn(sidecarSet);
  return [
    ...LISTS.flatMap((list) =>
      (sidecarSet.spec[list] ?? []).flatMap((one, index) => unreadableImage(one, `spec.${list}[${index}]`)),
    ),
    ...own.flatMap(tooLong),
    ...takenTwice(own),
    ...takenElsewhere(own, competitorsOf(sidecarSet, others)),
    ...unknownType(sidecarSet),
    ...tooMany(sidecarSet),
    ...beyondReference(sidecarSet),
    ...filesOfValues(sidecarSet),
  ].slice(0, MOST_DOUBTS);
}

function namesIn({ spec }: SidecarSet): readonly Named[] {
  return LISTS.flatMap((list) =>
    (spec[list] ?? []).flatMap((sidecar, index): readonly Named[] => {
      const field = `spec.${list}[${index}].name`;
      if (!isHotUpgradeIn(sidecar, list)) return [{ name: sidecar.name, field }];
      return slotNames(sidecar.name).map((name) => ({ name, field, slotOf: sidecar.name }));
    }),
  );
}

function unreadableImage({ image }: SidecarContainer, place: string): readonly string[] {
  if (!image || parseImageReference(image) !== undefined) return [];
  const shown = JSON.stringify(image.slice(0, MOST_SHOWN));
  return [`${place}.image: ${shown} is no image reference: kubelets refuse it (InvalidImageName)`];
}

function tooLong({ name, field, slotOf }: Named): readonly string[] {
  if (slotOf === undefined || name.length <= MOST_LETTERS || name.endsWith("-2")) return [];
  return [
    `${field}: hot upgrades add -1 and -2 to the name, which is longer than ${MOST_LETTERS} letters then: the API server would refuse every pod that gets it`,
  ];
}

function byName(names: readonly Named[]): ReadonlyMap<string, readonly Named[]> {
  const groups = new Map<string, Named[]>();
  for (const one of names) {
    const group = groups.get(one.name);
    if (group) group.push(one);
    else groups.set(one.name, [one]);
  }
  return groups;
}

/** Every further container with a taken name. If neither is a slot, the SidecarSet is refused elsewhere. */
function takenTwice(own: readonly Named[]): readonly string[] {
  return [...byName(own).values()].flatMap(([first, ...others]) =>
    others.flatMap((one) => {
      const slotOf = first?.slotOf ?? one.slotOf;
      if (slotOf === undefined) return [];
      return [
        `${one.field}: a pod would have two containers ${one.name}, because hot upgrades of ${slotOf} need that name too: the API server would refuse every pod that gets them`,
      ];
    }),
  );
}

function takenElsewhere(own: readonly Named[], competitors: readonly SidecarSet[]): readonly string[] {
  return competitors.flatMap((other) => {
    const theirs = byName(namesIn(other));
    return own.flatMap((one) => {
      const [taken] = theirs.get(one.name) ?? [];
      const slotOf = taken?.slotOf ?? one.slotOf;
      if (taken === undefined || slotOf === undefined) return [];
      return [
        `${one.field}: a pod of SidecarSet ${other.metadata?.name} too would have two containers ${one.name}, because hot upgrades of ${slotOf} need that name: the API server would refuse it`,
      ];
    });
  });
}

/** OpenKruise stores it, and passes only ask whether it is NotUpdate. */
function unknownType({ spec: { updateStrategy } }: SidecarSet): readonly string[] {
  const { type } = updateStrategy ?? {};
  if (!type || type === "RollingUpdate" || type === "NotUpdate") return [];
  const shown = JSON.stringify(type.slice(0, MOST_SHOWN));
  return [
    `spec.updateStrategy.type: ${shown} is neither RollingUpdate nor NotUpdate: pods are updated as with RollingUpdate, and the other fields of the strategy are not checked`,
  ];
}

/** The webhook does not know the version of the API server. */
function beyondReference(sidecarSet: SidecarSet): readonly string[] {
  return newerFields(sidecarSet)
    .filter(({ isRefusedByReference }) => isRefusedByReference)
    .map(
      ({ field, since }) =>
        `${field}: API servers before Kubernetes 1.${since} drop it or refuse pods that have it, and OpenKruise refuses the SidecarSet`,
    );
}

const SHARES = ["maxUnavailable", "partition"] as const;

/** Percentages over 100 count as 100. */
function tooMany({ spec: { updateStrategy = {} } }: SidecarSet): readonly string[] {
  return SHARES.flatMap((name) => {
    const share = updateStrategy[name];
    const percent = typeof share === "string" ? Number(/^(\d+)%$/.exec(share)?.[1] ?? 0) : 0;
    return percent > 100 ? [`spec.updateStrategy.${name}: ${share} is more than all pods; it counts as 100%`] : [];
  });
}

/** A kubelet does not wait for files before it starts a container again (docs/decisions/0023-files.md). */
function filesOfValues({ spec }: SidecarSet): readonly string[] {
  return (spec.volumes ?? []).flatMap((volume, index) =>
    JSON.stringify(volume).includes(`${VALUE_ANNOTATION_SUFFIX}/`)
      ? [
          `spec.volumes[${index}]: a container may start again with the former file of a value: let it write the variable to a file (docs/values-in-place.md)`,
        ]
      : [],
  );
}

// Which sidecars the creator of a pod can use to exceed the pod's own rights.

/** Names of containers that have more privileges than others and share parts of pods. */
export function powerfulSharing({ initContainers = [], containers = [] }: SidecarSetSpec): readonly string[] {
  const all = [...initContainers, ...containers];
  return all.filter((one) => isSharing(one) && isPowerful(one)).map(({ name }) => name);
}

function isSharing({ shareVolumePolicy, shareVolumeDevicePolicy }: SidecarContainer): boolean {
  return shareVolumePolicy?.type === "enabled" || shareVolumeDevicePolicy?.type === "enabled";
}

interface SecurityContext {
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly runAsUser?: number;
  readonly capabilities?: { readonly add?: readonly string[] };
}

function isPowerful(container: SidecarContainer): boolean {
  const { securityContext } = container as { readonly securityContext?: SecurityContext };
  const { privileged, allowPrivilegeEscalation, runAsUser, capabilities } = securityContext ?? {};
  return Boolean(privileged || allowPrivilegeEscalation || runAsUser === 0 || capabilities?.add?.length);
}
