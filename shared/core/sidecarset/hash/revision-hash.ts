/** Decides the hash in a ControllerRevision's name. */
import { safeEncode } from "../../../go/safe-text.ts";

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
