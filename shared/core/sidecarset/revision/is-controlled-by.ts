/** Tells whether a pass recorded a revision for this owner. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";

/** True if the owner is its controller. A revision that somebody else created is never used. */
export function isControlledBy({ metadata }: KubernetesObject, { metadata: owner }: KubernetesObject): boolean {
  const controller = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return controller !== undefined && controller.uid === owner?.uid;
}
