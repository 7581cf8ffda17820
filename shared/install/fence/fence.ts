/**
 * A fence around the reconciler: what its roles permit and no pass ever writes, API servers refuse. Roles name kinds; these
 * policies look at what is written, so that a token that leaks is worth no more than a rollout.
 */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { OBJECT_POLICIES } from "./fence-objects.ts";
import { podPolicy } from "./fence-pods.ts";
import { policyObjects } from "./fence-policy.ts";

/** Policies and bindings. `annotations`: those that SidecarSets may patch into pods that run; a prefix ends with a slash. */
export function fenceObjects(annotations: readonly string[] = []): readonly KubernetesObject[] {
  return [podPolicy(annotations), ...OBJECT_POLICIES].flatMap(policyObjects);
}
