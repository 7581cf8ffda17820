/** Name, labels and content of the ControllerRevision that records a SidecarSet. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import {
  CUSTOM_VERSION_LABEL,
  REVISION_HASH_LABEL,
  SIDECARSET_KIND,
  SIDECARSET_NAME_LABEL,
  SIDECARSET_V1BETA1,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { revisionHash } from "../hash/sidecarset-hash.ts";
import { revisionData, revisionText } from "./revision-data.ts";

/** The room in a name before "-" and the hash. */
const MAX_NAME = 223;

export interface RevisionPlace {
  readonly namespace: string;
  /** number in the history, from 1 */
  readonly revision: number;
  /** undefined adds nothing to what is hashed, 0 does */
  readonly collisionCount: number | undefined;
}

/** `text` is the revision's data as `revisionText` gives it. */
export function revisionName(sidecarSetName: string, text: string, collisionCount: number | undefined): string {
  return nameWith(sidecarSetName, revisionHash(text, collisionCount));
}

function nameWith(sidecarSetName: string, hash: string): string {
  return `${sidecarSetName.slice(0, MAX_NAME)}-${hash}`;
}

/** A revision that is not stored yet. Source: OpenKruise sidecarset history_control.go, NewRevision. */
export function newRevision(
  sidecarSet: SidecarSet,
  { namespace, revision, collisionCount }: RevisionPlace,
): ControllerRevision {
  const { name = "", uid = "", labels, annotations } = sidecarSet.metadata ?? {};
  const { customVersion } = sidecarSet.spec;
  const data = revisionData(sidecarSet);
  const hash = revisionHash(revisionText(data), collisionCount);
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: nameWith(name, hash),
      namespace,
      labels: {
        ...labels,
        [REVISION_HASH_LABEL]: hash,
        [SIDECARSET_NAME_LABEL]: name,
        ...(customVersion ? { [CUSTOM_VERSION_LABEL]: customVersion } : {}),
      },
      annotations: { ...annotations },
      ownerReferences: [
        {
          apiVersion: SIDECARSET_V1BETA1,
          kind: SIDECARSET_KIND,
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    data,
    revision,
  };
}
