/** Decides which claims a pod of a set has, and what they look like when they are made. */
import type { Pod, Volume } from "../../../api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../api/stateful-set.ts";
import { ordinalOf } from "../../pod/pod-name.ts";

/** A volume of a pod, as far as claims go. */
interface ClaimVolume extends Volume {
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

export function claimName(set: StatefulSet, template: PersistentVolumeClaim, ordinal: number): string {
  return `${template.metadata?.name ?? ""}-${set.metadata?.name ?? ""}-${ordinal}`;
}

/** Compat: of several with one name the last counts (OpenKruise getPersistentVolumeClaims). */
function distinctTemplates({ spec }: StatefulSet): readonly PersistentVolumeClaim[] {
  return [...new Map(spec.volumeClaimTemplates?.map((template) => [template.metadata?.name, template])).values()];
}

/** In the order of the templates. Of the selector, only the labels that it names are put on a claim. */
export function claimsOf(set: StatefulSet, ordinal: number): readonly PersistentVolumeClaim[] {
  return distinctTemplates(set).map((template) => ({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    ...template,
    metadata: {
      ...template.metadata,
      name: claimName(set, template, ordinal),
      namespace: set.metadata?.namespace ?? "",
      labels: { ...template.metadata?.labels, ...set.spec.selector?.matchLabels },
    },
  }));
}

/** A volume for each claim, then those of the pod that no claim replaces. */
export function withClaimVolumes(set: StatefulSet, pod: Pod): Pod {
  const volumes = distinctTemplates(set).map((template) => ({
    name: template.metadata?.name ?? "",
    persistentVolumeClaim: { claimName: claimName(set, template, ordinalOf(pod)) },
  }));
  const names = new Set(volumes.map(({ name }) => name));
  const others = (pod.spec.volumes ?? []).filter(({ name }) => !names.has(name));
  const all = [...volumes, ...others];
  return all.length === 0 ? pod : { ...pod, spec: { ...pod.spec, volumes: all } };
}

/** Every claim is mounted as the volume of its template. */
export function hasClaimVolumes(set: StatefulSet, pod: Pod): boolean {
  const volumes: readonly ClaimVolume[] = pod.spec.volumes ?? [];
  return (set.spec.volumeClaimTemplates ?? []).every((template) => {
    const volume = volumes.findLast(({ name }) => name === template.metadata?.name);
    return volume?.persistentVolumeClaim?.claimName === claimName(set, template, ordinalOf(pod));
  });
}
