/** Finds the objects of the world's set, and the parts of its pods and revisions that a judge reads. */
import type { ControllerRevision, KubernetesObject, OwnerReference, Pod } from "../../../shared/api/kubernetes.ts";
import type { PodTemplateSpec, StatefulSet } from "../../../shared/api/stateful-set.ts";
import { SET } from "./objects.ts";

const NAME = new RegExp(`^${SET}-\\d+$`);

export function controllerOf({ metadata }: KubernetesObject): OwnerReference | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

/** Returns the set's pods, and the pods that it will adopt: its name and label, and no other owner. */
export function podsOf({ metadata }: StatefulSet, pods: readonly Pod[]): readonly Pod[] {
  return pods.filter((pod) => {
    if (!NAME.test(pod.metadata?.name ?? "") || pod.metadata?.labels?.["app"] !== SET) return false;
    const controller = controllerOf(pod);
    return controller
      ? controller.uid === metadata?.uid
      : !pod.metadata.deletionTimestamp && !metadata?.deletionTimestamp;
  });
}

export function revisionsOf(
  { metadata }: StatefulSet,
  revisions: readonly ControllerRevision[],
): readonly ControllerRevision[] {
  return revisions.filter((one) => {
    const controller = controllerOf(one);
    return one.metadata?.labels?.["app"] === SET && (!controller || controller.uid === metadata?.uid);
  });
}

/** Returns as text all parts in which the world's templates differ. */
export function printOf({ metadata, spec }: PodTemplateSpec | Pod): string {
  const [container] = spec?.containers ?? [];
  return JSON.stringify([container?.image, envOf(container), metadata?.annotations?.["release"]]);
}

/** Returns as text the fields that no update in place changes. */
export function fixedPrintOf({ spec }: PodTemplateSpec | Pod): string {
  return JSON.stringify([envOf(spec?.containers?.[0])]);
}

function envOf(container: unknown): unknown {
  return (container as { readonly env?: unknown } | undefined)?.env ?? [];
}

export function templateIn({ data }: ControllerRevision): PodTemplateSpec {
  return (data as { readonly spec: { readonly template: PodTemplateSpec } }).spec.template;
}

export function revisionIn({ metadata }: Pod): string {
  return metadata?.labels?.["controller-revision-hash"] ?? "";
}

/** Returns the newest revision that records the template of the set. */
export function updateRevisionOf(
  set: StatefulSet,
  revisions: readonly ControllerRevision[],
): ControllerRevision | undefined {
  const print = printOf(set.spec.template ?? {});
  return revisionsOf(set, revisions)
    .toSorted((a, b) => a.revision - b.revision)
    .findLast((one) => printOf(templateIn(one)) === print);
}

export function ownerProblems(object: KubernetesObject, { metadata }: StatefulSet): readonly string[] {
  const wanted = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "StatefulSet",
    name: SET,
    uid: metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
  const owner = (object.metadata?.ownerReferences ?? []).find(({ uid }) => uid === wanted.uid) ?? {};
  const wrong = Object.entries(wanted).filter(([key, value]) => (owner as Record<string, unknown>)[key] !== value);
  return wrong.map(([key]) => `has an owner whose ${key} is wrong`);
}
