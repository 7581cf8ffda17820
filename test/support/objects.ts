/** Pods for tests. Only here is one written out: what tests add is what they are about. */
import type { ObjectMeta, Pod, PodSpec, PodStatus } from "../../shared/api/kubernetes.ts";

/** As its author writes it; with one container, "main", where no other is given. */
export function newPod(
  metadata: ObjectMeta,
  spec: PodSpec = { containers: [{ name: "main", image: "nginx:1" }] },
  status?: PodStatus,
): Pod {
  return { apiVersion: "v1", kind: "Pod", ...listedPod(metadata, spec, status) };
}

/** As lists have it: without version and kind; without containers where none is given. */
export function listedPod(metadata: ObjectMeta, spec: PodSpec = { containers: [] }, status?: PodStatus): Pod {
  return status === undefined ? { metadata, spec } : { metadata, spec, status };
}
