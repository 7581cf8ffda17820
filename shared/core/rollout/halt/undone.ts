/** Decides what a SidecarSet's annotation says of releases that were taken back. */
import { HASH_ANNOTATION, UNDONE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";

/** Of a release that was taken back: it is never taken back again, and what it was taken back to is not given up. */
export interface Undone {
  /** hash of the release */
  readonly from: string;
  /** hash of what worked before */
  readonly to: string;
  /** RFC3339 */
  readonly at: string;
  /** what was done and why, one sentence */
  readonly message: string;
}

/** undefined: what is there cannot be read. */
export function undoneOf({ metadata }: SidecarSet): readonly Undone[] | undefined {
  const text = metadata?.annotations?.[UNDONE_ANNOTATION];
  if (text === undefined) return [];
  const list = jsonOf(text);
  return Array.isArray(list) && list.every(isUndone) ? list : undefined;
}

function isUndone(value: unknown): value is Undone {
  return isJsonObject(value) && ["from", "to", "at", "message"].every((key) => typeof value[key] === "string");
}

/** Why a release, named by its hash, was taken back once; undefined: it was not. */
export function undoneBefore(sidecarSet: SidecarSet, hash: string): string | undefined {
  return undoneOf(sidecarSet)?.findLast(({ from }) => from === hash)?.message;
}

/** The last that was done; `isCurrent`: nothing was released since. undefined: nothing was ever undone. */
export function lastUndone(
  sidecarSet: SidecarSet,
): { readonly message: string; readonly at: string; readonly isCurrent: boolean } | undefined {
  const last = undoneOf(sidecarSet)?.at(-1);
  if (!last) return undefined;
  const isCurrent = sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] === last.to;
  return { message: last.message, at: last.at, isCurrent };
}
