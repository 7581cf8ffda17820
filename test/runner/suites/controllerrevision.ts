/** Tests a new ControllerRevision: its bytes, its name and its metadata. */

import { REVISION_HASH_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { newRevision, revisionText } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly sidecarSet: SidecarSet;
  readonly namespace: string;
  readonly revision: number;
  readonly collisionCount: number | null;
}

export function controllerRevisionSuite(input: Input, expected: unknown): readonly Difference[] {
  const { sidecarSet, namespace, revision } = input;
  const created = newRevision(sidecarSet, { namespace, revision, collisionCount: input.collisionCount ?? undefined });
  const { metadata, data } = created;
  const hashLabel = metadata?.labels?.[REVISION_HASH_LABEL];
  return compare({ ...metadata, hashLabel, dataRaw: revisionText(data), revision: created.revision }, expected);
}
