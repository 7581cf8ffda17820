/** The parts of a SidecarSet that admission policies cannot express. */
import {
  CONTAINER_PRIORITY_ENV,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../api/names.ts";
import type { PatchPodMetadata, SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { isHotUpgrade, slotNames } from "../../pod/sidecar-containers.ts";
import { wantedRevision } from "../../sidecarset/revision/wanted-revision.ts";

export interface NotExpressible {
  /** of the SidecarSet, such as `spec.containers[0].resourcesPolicy` */
  readonly field: string;
  /** why it cannot be said */
  readonly reason: string;
  /** the policy's own effect; "nothing is compiled" if that would be another injection */
  readonly effect: string;
  /** true: no policy would be correct */
  readonly isFatal: boolean;
}

const NOTHING = "nothing is compiled";

const RECORDS: ReadonlySet<string> = new Set([
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
]);

export function fatal(field: string, reason: string): NotExpressible {
  return { field, reason, effect: NOTHING, isFatal: true };
}

function ofResources(path: string, hasPairs: boolean): NotExpressible {
  const field = `${path}.resourcesPolicy`;
  // The webhook would count the pair among the containers that resources are derived from.
  if (hasPairs) return fatal(field, "beside a hot upgrade the webhook could not fix what the policy leaves out");
  return {
    field,
    reason: "CEL can compare and add quantities, but not write one as text again",
    effect: "the container is injected without resources",
    isFatal: false,
  };
}

/** A container of the pod has no sidecar's name where the policy speaks, so there is nothing to take over from it. */
function ofTransfers({ transferEnv = [] }: SidecarContainer, path: string, names: ReadonlySet<string>) {
  return transferEnv.flatMap(({ sourceContainerName = "", sourceContainerNameFrom }, index) =>
    !sourceContainerNameFrom && names.has(sourceContainerName)
      ? [
          fatal(
            `${path}.transferEnv[${index}].sourceContainerName`,
            "where the policy has injected that sidecar, the webhook would take variables from it",
          ),
        ]
      : [],
  );
}

/** All sidecars of the SidecarSet. */
interface Beside {
  readonly hasPairs: boolean;
  /** in the pod */
  readonly names: ReadonlySet<string>;
}

function besides(sidecars: readonly SidecarContainer[]): Beside {
  const names = sidecars.flatMap((sidecar) => (isHotUpgrade(sidecar) ? slotNames(sidecar.name) : [sidecar.name]));
  return { hasPairs: sidecars.some(isHotUpgrade), names: new Set(names) };
}

function ofSidecar(sidecar: SidecarContainer, path: string, { hasPairs, names }: Beside): readonly NotExpressible[] {
  const priority = sidecar.env?.findIndex(({ name }) => name === CONTAINER_PRIORITY_ENV) ?? -1;
  const order = fatal(
    `${path}.env[${priority}]`,
    "a launch order needs the pod's name, which most pods are given after policies have run",
  );
  return [
    ...(priority < 0 ? [] : [order]),
    ...ofTransfers(sidecar, path, names),
    ...(sidecar.resourcesPolicy ? [ofResources(path, hasPairs)] : []),
  ];
}

function isRecord(key: string): boolean {
  return RECORDS.has(key) || key.startsWith(VERSION_ANNOTATION_PREFIX) || key.startsWith(VERSION_ALT_ANNOTATION_PREFIX);
}

function ofPatch({ annotations = {}, patchPolicy }: PatchPodMetadata, path: string): readonly NotExpressible[] {
  const record = Object.keys(annotations).find(isRecord);
  const own = fatal(`${path}.annotations[${record}]`, "the injection keeps its own records in this annotation");
  const merge: NotExpressible = {
    field: `${path}.patchPolicy`,
    reason: "CEL cannot read JSON, so it cannot merge it",
    effect: "a pod that brings the annotation keeps it as it is; others get it",
    isFatal: false,
  };
  return [...(record === undefined ? [] : [own]), ...(patchPolicy === "MergePatchJson" ? [merge] : [])];
}

function ofSelectors({ spec }: SidecarSet): readonly NotExpressible[] {
  const { selector, namespaceSelector } = spec;
  return Object.entries({ selector, namespaceSelector }).flatMap(([name, given]) =>
    given && typeof selectorMatches(given, {}) !== "boolean"
      ? [fatal(`spec.${name}`, "it has an operator that no API server knows")]
      : [],
  );
}

function ofRevision(sidecarSet: SidecarSet): readonly NotExpressible[] {
  const { updateStrategy, injectionStrategy } = sidecarSet.spec;
  const isByChance = injectionStrategy?.revision?.policy === "Partial" && !updateStrategy?.paused;
  if (wantedRevision(sidecarSet) === undefined || !isByChance) return [];
  return [fatal("spec.injectionStrategy.revision.policy", "Partial draws a lot for each pod, and CEL has no chance")];
}

/** All of them, in the order of the fields. Empty: the policy does everything that the webhook does. */
export function notExpressible(sidecarSet: SidecarSet): readonly NotExpressible[] {
  const { initContainers = [], containers = [], patchPodMetadata = [] } = sidecarSet.spec;
  const beside = besides([...initContainers, ...containers]);
  return [
    ...ofSelectors(sidecarSet),
    ...initContainers.flatMap((sidecar, index) => ofSidecar(sidecar, `spec.initContainers[${index}]`, beside)),
    ...containers.flatMap((sidecar, index) => ofSidecar(sidecar, `spec.containers[${index}]`, beside)),
    ...ofRevision(sidecarSet),
    ...patchPodMetadata.flatMap((patch, index) => ofPatch(patch, `spec.patchPodMetadata[${index}]`)),
  ];
}
