/** Tells whether a pass recorded a revision for this owner. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";

/** With the owner as its controller. One that somebody else has put there is used for nothing. */
export function isControlledBy({ metadata }: KubernetesObject, { metadata: owner }: KubernetesObject): boolean {
  const controller = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return controller !== undefined && controller.uid === owner?.uid;
}
