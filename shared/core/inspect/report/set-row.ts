/** Decides what lists say about SidecarSets: a line each, from what is stored of it alone, those that need somebody first. */

import type { SidecarSet } from "../../../api/sidecarset.ts";
import { byVerdict, countedVerdict, type RolloutVerdict, storedVerdict } from "../../rollout/conditions/verdict.ts";
import { lastFailure } from "../../rollout/pass-trouble.ts";
import { imagesOf } from "./revision-row.ts";

export interface SetRow {
  readonly name: string;
  readonly images: readonly string[];
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  /** pods that have the current version and are ready */
  readonly updatedReady: number;
  /** absent: no pass has seen its last change yet */
  readonly verdict?: RolloutVerdict;
  /** RFC3339 */
  readonly since?: string;
  /** one clause */
  readonly reason: string;
}

export function setRows(sidecarSets: readonly SidecarSet[]): readonly SetRow[] {
  return sidecarSets.map(rowOf).toSorted(byVerdict);
}

function rowOf(sidecarSet: SidecarSet): SetRow {
  const { metadata, spec, status = {} } = sidecarSet;
  const row = {
    name: metadata?.name ?? "",
    images: imagesOf(spec),
    matched: status.matchedPods ?? 0,
    updated: status.updatedPods ?? 0,
    ready: status.readyPods ?? 0,
    updatedReady: status.updatedReadyPods ?? 0,
  };
  return { ...row, ...standingOf(sidecarSet) };
}

function standingOf(sidecarSet: SidecarSet): Pick<SetRow, "verdict" | "since" | "reason"> {
  const { metadata, status = {} } = sidecarSet;
  const stored = storedVerdict(sidecarSet);
  if (stored === undefined && (status.observedGeneration ?? 0) < (metadata?.generation ?? 0))
    return { reason: "no pass has seen its last change yet" };
  const { message, ...known } = stored ?? countedVerdict(sidecarSet);
  const isEmpty = (status.matchedPods ?? 0) === 0 && lastFailure(sidecarSet) === undefined;
  return { ...known, reason: isEmpty ? "it selects no pod that has its sidecars" : message };
}
