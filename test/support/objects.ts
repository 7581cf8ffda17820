/** Builds pods for tests. Only this file writes a pod out; tests add the fields that they need. */
import type { ObjectMeta, Pod, PodSpec, PodStatus } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";

/** Returns a pod as its author writes it; its only container is "main" unless others are given. */
export function newPod(
  metadata: ObjectMeta,
  spec: PodSpec = { containers: [{ name: "main", image: "nginx:1" }] },
  status?: PodStatus,
): Pod {
  return { apiVersion: "v1", kind: "Pod", ...listedPod(metadata, spec, status) };
}

/** Returns a pod as a list has it: without apiVersion and kind, and without containers unless some are given. */
export function listedPod(metadata: ObjectMeta, spec: PodSpec = { containers: [] }, status?: PodStatus): Pod {
  return status === undefined ? { metadata, spec } : { metadata, spec, status };
}

interface Injection {
  readonly hash: string;
  readonly withoutImage: string;
  readonly sidecars: readonly string[];
  /** time of the injection, RFC 3339 */
  readonly at?: string;
}

/** Returns the annotations that injection by a SidecarSet adds to a pod. */
export function injectedBy(name: string, { hash, withoutImage, sidecars, at = "2025-06-01T00:00:00Z" }: Injection) {
  const record = (value: string) =>
    JSON.stringify({ [name]: { updateTimestamp: at, hash: value, sidecarSetName: name, sidecarList: sidecars } });
  return {
    [INJECTED_LIST_ANNOTATION]: name,
    [HASH_ANNOTATION]: record(hash),
    [HASH_WITHOUT_IMAGE_ANNOTATION]: record(withoutImage),
  };
}
