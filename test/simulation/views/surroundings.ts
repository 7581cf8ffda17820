/** Plans Namespaces, and ControllerRevisions that passes or others create. */
import type { ControllerRevision, KubernetesObject, Namespace } from "../../../shared/api/kubernetes.ts";
import {
  CONTROL_PLANE_LABEL,
  CUSTOM_VERSION_LABEL,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  KRUISE_NAMESPACE,
  NAMESPACE_NAME_LABEL,
  SIDECARSET_NAME_LABEL,
} from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import type { Chance } from "../chance.ts";
import type { Place } from "./object-states.ts";
import { planBrought, VERSIONS } from "./sidecarset-plans.ts";

export function planNamespace(name: string, chance: Chance): Namespace {
  const labels = {
    [NAMESPACE_NAME_LABEL]: name,
    ...(chance.isLucky(0.7) ? { team: chance.pick(["red", "red", "blue", "green"]) } : {}),
    ...(chance.isLucky(0.5) ? { env: chance.pick(["prod", "dev"]) } : {}),
    ...(chance.isLucky(0.04) ? { [CONTROL_PLANE_LABEL]: "true" } : {}),
  };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

/** Returns a revision of a SidecarSet, or an object that only looks like one. */
export function planRevision({ metadata }: KubernetesObject, serial: number, chance: Chance) {
  const { name: set = "", uid } = metadata ?? {};
  const owner = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", name: set, uid };
  const owners = chance.pick([
    [{ ...owner, controller: true }],
    [{ ...owner, controller: true }],
    [{ ...owner, controller: true }],
    [{ ...owner, uid: "of-another", controller: true }],
    [{ ...owner, controller: false }],
    [],
  ]);
  const namespace = chance.isLucky(0.9) ? KRUISE_NAMESPACE : "shop";
  const name = `${set}-${serial}`;
  const nothing = {
    containers: null,
    initContainers: null,
    volumes: null,
    imagePullSecrets: null,
    patchPodMetadata: null,
  };
  const object = {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      labels: { [SIDECARSET_NAME_LABEL]: set, [CUSTOM_VERSION_LABEL]: chance.pick(VERSIONS) },
      annotations: { [HASH_ANNOTATION]: `hash-${serial}`, [HASH_WITHOUT_IMAGE_ANNOTATION]: `shape-${serial}` },
      ownerReferences: owners,
    },
    revision: serial,
    data: { spec: { $patch: "replace", ...nothing, ...inGo(planBrought(set, serial, chance)) } },
  };
  const place: Place = { plural: "controllerrevisions", namespace, name };
  return { place, object: object as ControllerRevision };
}

/** Returns a recorded spec in Go's form, which always has resources. */
function inGo({ containers = [], initContainers, ...rest }: Partial<SidecarSetSpec>): Partial<SidecarSetSpec> {
  const written = (all: readonly SidecarContainer[]) => all.map((one) => ({ resources: {}, ...one }));
  return {
    ...rest,
    containers: written(containers),
    ...(initContainers ? { initContainers: written(initContainers) } : {}),
  };
}
