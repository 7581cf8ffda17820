/** Tests the mutating webhook of SidecarSets: the object after defaults, and its hashes. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { hashInput } from "../../../shared/core/sidecarset/hash/sidecarset-hash.ts";
import { mutateSidecarSet } from "../../../shared/core/sidecarset/mutate.ts";
import { decodeGo } from "../../../shared/go/types/decode-go.ts";
import { SIDECAR_SET } from "../../../shared/go/types/sidecarset.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly operation: string;
  /** version of the request's resource; absent: the object's version */
  readonly version?: string;
  readonly object: KubernetesObject;
}

interface Expected {
  readonly allowed: boolean;
  readonly code?: number;
  readonly panicked?: boolean;
  readonly patched: boolean;
  readonly object?: unknown;
  readonly hash?: string;
  readonly hashWithoutImage?: string;
  readonly hashInput?: string;
}

/** Returns the hashed text. The vectors do not say whether an empty list was given, so the input decides. */
function hashInputOf(object: KubernetesObject, given: KubernetesObject): string {
  const decoded = decodeGo(SIDECAR_SET, object);
  if (decoded.kind === "DecodeError") throw new Error(decoded.message);
  const isEmptyList = (given as Partial<SidecarSet>).spec?.containers?.length === 0;
  return hashInput({ ...decoded.value.spec, ...(isEmptyList ? { containers: [] } : {}) });
}

export function sidecarSetDefaultAndHashSuite(input: Input, expected: Expected): readonly Difference[] {
  const { operation, object: given } = input;
  const version = input.version ?? given.apiVersion?.split("/")[1] ?? "";
  const resource = { group: "apps.kruise.io", version, resource: "sidecarsets" };
  const admission = mutateSidecarSet({ uid: "vector", operation, resource, object: given });
  const { allowed, patched, object, code, hash, hashWithoutImage, hashInput: expectedInput } = expected;
  if (admission.kind === "denied") {
    // Where the reference crashes, every refusal is right.
    const wanted = { allowed, patched, code: expected.panicked ? admission.code : code };
    return compare({ allowed: false, patched: false, code: admission.code }, wanted);
  }
  const actual = admission.object ?? given;
  const { annotations } = actual.metadata ?? {};
  return compare(
    {
      allowed: true,
      patched: admission.object !== undefined,
      object: actual,
      hash: annotations?.[HASH_ANNOTATION] ?? "",
      hashWithoutImage: annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "",
      hashInput: hashInputOf(actual, given),
    },
    { allowed, patched, object, hash, hashWithoutImage, hashInput: expectedInput },
  );
}
