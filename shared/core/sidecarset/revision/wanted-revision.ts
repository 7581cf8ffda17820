/** Tells whether new pods get a revision other than the current one, and which. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";

/** A ControllerRevision to fetch: by its name, or else by the labels of its SidecarSet and custom version. */
export interface RevisionWanted {
  readonly sidecarSet: string;
  readonly revisionName?: string;
  readonly customVersion?: string;
}

/** Undefined: new pods get the current one. A name goes before a custom version. */
export function wantedRevision(sidecarSet: SidecarSet): RevisionWanted | undefined {
  const { revisionName, customVersion } = sidecarSet.spec.injectionStrategy?.revision ?? {};
  const name = sidecarSet.metadata?.name ?? "";
  if (typeof revisionName === "string") return { sidecarSet: name, revisionName };
  return typeof customVersion === "string" ? { sidecarSet: name, customVersion } : undefined;
}

// The pod webhook loads this file with each cold start, and compares no revisions.

/** True if the owner is its controller. A revision that somebody else created is never used. */
export function isControlledBy({ metadata }: KubernetesObject, { metadata: owner }: KubernetesObject): boolean {
  const controller = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return controller !== undefined && controller.uid === owner?.uid;
}
