/** Decides name, labels and content of the ControllerRevision that records a set's pod template. */
import type { ControllerRevision, KubernetesObject, OwnerReference } from "../../../api/kubernetes.ts";
import { REVISION_HASH_LABEL, SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../../api/names.ts";
import type { StatefulSet } from "../../../api/stateful-set.ts";
import { revisionHash } from "../../sidecarset/hash/revision-hash.ts";
import { revisionName } from "../../sidecarset/revision/new-revision.ts";
import { revisionText } from "../../sidecarset/revision/revision-data.ts";
import { templateData } from "./revision-data.ts";

export function controllerReference({ metadata }: StatefulSet): OwnerReference {
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: STATEFUL_SET_KIND,
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

/**
 * Of what is adopted, in the order of a strategic merge patch: a new owner comes first, one that is there without being
 * the controller becomes it where it stands.
 */
export function adoptedOwners({ metadata }: KubernetesObject, owner: OwnerReference): readonly OwnerReference[] {
  const before = metadata?.ownerReferences ?? [];
  const isThere = before.some(({ uid }) => uid === owner.uid);
  return isThere ? before.map((one) => (one.uid === owner.uid ? { ...one, ...owner } : one)) : [owner, ...before];
}

/** A revision that is not stored yet. Source: OpenKruise stateful_set_utils.go, newRevision. */
export function newSetRevision(set: StatefulSet, revision: number, collisionCount: number): ControllerRevision {
  const { name = "", namespace = "", annotations } = set.metadata ?? {};
  const data = templateData(set);
  const text = revisionText(data);
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: revisionName(name, text, collisionCount),
      namespace,
      labels: {
        ...set.spec.template?.metadata?.labels,
        [REVISION_HASH_LABEL]: revisionHash(text, collisionCount),
      },
      annotations: { ...annotations },
      ownerReferences: [controllerReference(set)],
    },
    data,
    revision,
  };
}
