/** The two hashes of a SidecarSet. They show which pods are up to date, or upgradable in place. */
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
 * The hashed text. Absent containers are `null`, an empty list is `[]`. One native sidecar includes every init
 * container, even plain ones; without one, init containers do not count.
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

/** The hash in a ControllerRevision's name. */
const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

/** FNV-1 of 32 bits: multiply, then xor (not FNV-1a). */
function fnv32(bytes: Uint8Array): number {
  let hash = OFFSET_BASIS;
  for (const byte of bytes) hash = (Math.imul(hash, PRIME) ^ byte) >>> 0;
  return hash;
}

/**
 * The hash of a revision's data. A collision count, 0 too, is appended to the data in decimal; undefined adds nothing.
 * Source: Kubernetes pkg/controller/history, HashControllerRevision.
 */
export function revisionHash(data: string, collisionCount: number | undefined): string {
  return safeEncode(String(fnv32(new TextEncoder().encode(`${data}${collisionCount ?? ""}`))));
}
