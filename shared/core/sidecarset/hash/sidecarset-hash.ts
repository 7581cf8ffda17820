/** Decides the two hashes of a SidecarSet, by which pods are known to be up to date or upgradable in place. */
import { createHash } from "node:crypto";
import type { SidecarContainer, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { goJson } from "../../../go/json/go-json.ts";
import { safeEncode } from "../../../go/safe-text.ts";

/** The part of a spec that is hashed, as `decodeGo` gives it: in Go's field order, zeros dropped. */
export type HashedSpec = Pick<SidecarSetSpec, "containers" | "initContainers">;

export function isNative({ restartPolicy }: SidecarContainer): boolean {
  return restartPolicy === "Always";
}

function withoutImages({ containers, initContainers }: HashedSpec): HashedSpec {
  const strip = ({ image: _image, ...container }: SidecarContainer): SidecarContainer => container;
  return {
    ...(containers === undefined ? {} : { containers: containers.map(strip) }),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(strip) }),
  };
}

/**
 * The text that is hashed. Containers that are absent are `null`, an empty list is `[]`. One native sidecar brings in
 * every init container, plain ones too; without any, init containers do not count.
 */
export function hashInput({ containers, initContainers }: HashedSpec): string {
  const isInitHashed = initContainers?.some(isNative);
  return goJson({ containers: containers ?? null, ...(isInitHashed ? { initContainers } : {}) });
}

function digest(text: string): string {
  return safeEncode(createHash("sha256").update(text).digest("hex"));
}

/** Value of the annotation `kruise.io/sidecarset-hash`: 64 characters. Source: OpenKruise SidecarSetHash. */
export function sidecarSetHash(spec: HashedSpec): string {
  return digest(hashInput(spec));
}

/** Value of `kruise.io/sidecarset-hash-without-image`: equal for two specs that differ in images only. */
export function sidecarSetHashWithoutImage(spec: HashedSpec): string {
  return digest(hashInput(withoutImages(spec)));
}
