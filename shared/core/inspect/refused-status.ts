/** Gives a SidecarSet the conditions that passes may not write, as their Event about the refusal tells. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { conditionsOfFailure } from "../rollout/pass-trouble.ts";
import { lastWriteOf } from "./check/passes.ts";

/** Passes run each minute, so an older refusal is over. */
const CURRENT_SECONDS = 180;

/** A refused write of a status. */
export interface StatusRefusal {
  /** of the SidecarSet */
  readonly uid: string;
  readonly text: string;
  /** RFC3339: the last time */
  readonly at: string;
}

/** `now`: RFC3339 */
export function withRefusal(sidecarSet: SidecarSet, refusals: readonly StatusRefusal[], now: string): SidecarSet {
  const isCurrent = ({ uid, at }: StatusRefusal) =>
    uid === sidecarSet.metadata?.uid &&
    (secondsBetween(at, now) ?? 0) < CURRENT_SECONDS &&
    !isWrittenSince(sidecarSet, at);
  const [last] = refusals.filter(isCurrent).toSorted((one, other) => compareUtf8(other.at, one.at));
  if (last === undefined) return sidecarSet;
  const failed = (before: SidecarSet): SidecarSet => {
    const conditions = conditionsOfFailure(before, { hold: "passRefused", text: last.text }, last.at);
    return { ...before, status: { ...before.status, conditions } };
  };
  // The second failure blocks.
  return failed(failed(sidecarSet));
}

/** The managed fields and the conditions have the times of writes. */
function isWrittenSince(sidecarSet: SidecarSet, at: string): boolean {
  const changes = sidecarSet.status?.conditions?.map(({ lastTransitionTime }) => lastTransitionTime) ?? [];
  return [...changes, lastWriteOf(sidecarSet, ["status"])].some((time) => time !== undefined && time > at);
}
