/** Tests hashes of a SidecarSet, its recorded revision, and the SidecarSet that an old revision restores. */
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { sidecarSetHash, sidecarSetHashWithoutImage } from "../../../shared/core/sidecarset/hash/sidecarset-hash.ts";
import { newRevision, revisionText } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { restoreRevision } from "../../../shared/core/sidecarset/revision/restore-revision.ts";
import { decodeGo } from "../../../shared/go/types/decode-go.ts";
import { SIDECAR_SET_SPEC } from "../../../shared/go/types/sidecarset.ts";
import { withoutNoise } from "../clean.ts";
import { compare, type Difference } from "../compare.ts";

interface HistoryRevision {
  readonly name: string;
  readonly namespace: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly dataRaw: string;
}

interface Input {
  readonly sidecarSet: SidecarSet;
  readonly historyRevision?: HistoryRevision;
}

const COLLISION_COUNTS = [0, 1, 2];
const PLACE = { namespace: "kruise-system", revision: 4, collisionCount: 0 };

function hashes({ spec }: SidecarSet): object {
  const decoded = decodeGo(SIDECAR_SET_SPEC, spec);
  if (decoded.kind === "DecodeError") return decoded;
  return { hash: sidecarSetHash(decoded.value), hashWithoutImage: sidecarSetHashWithoutImage(decoded.value) };
}

function restored(sidecarSet: SidecarSet, { dataRaw, ...metadata }: HistoryRevision): unknown {
  const result = restoreRevision(sidecarSet, { metadata, revision: 1, data: JSON.parse(dataRaw) });
  return result.kind === "Decoded" ? withoutNoise(result.value) : result;
}

export function revisionSuite({ sidecarSet, historyRevision }: Input, expected: unknown): readonly Difference[] {
  const { metadata, data, revision } = newRevision(sidecarSet, PLACE);
  const actual = {
    ...hashes(sidecarSet),
    dataRaw: revisionText(data),
    revisionNamesByCollisionCount: COLLISION_COUNTS.map(
      (collisionCount) => newRevision(sidecarSet, { ...PLACE, collisionCount }).metadata?.name,
    ),
    revision: { ...metadata, revision },
    ...(historyRevision === undefined ? {} : { restoredSidecarSet: restored(sidecarSet, historyRevision) }),
  };
  return compare(actual, expected);
}
