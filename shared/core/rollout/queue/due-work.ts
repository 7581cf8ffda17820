/** Decides which SidecarSets get their turn in a minute: all under way, and of those that are settled some to look after. */
import { createHash } from "node:crypto";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { askedHolds } from "../hold.ts";
import { partitionOf } from "../select/budget.ts";

/** A settled SidecarSet is looked after this often: its pods come and go, and its status counts them. */
export const AUDIT_MINUTES = 5;

/** `minute`: whole minutes since 1970. */
export function isDue(sidecarSet: SidecarSet, minute: number): boolean {
  return !isSettled(sidecarSet) || minute % AUDIT_MINUTES === auditMinute(sidecarSet.metadata?.name ?? "");
}

/** As far as its own status says: everything was seen that it wants, and nothing is under way. */
export function isSettled({ metadata, spec, status }: SidecarSet): boolean {
  const { observedGeneration, latestRevision, matchedPods = 0, updatedPods = 0, updatedReadyPods = 0 } = status ?? {};
  if (observedGeneration === undefined || observedGeneration !== metadata?.generation || !latestRevision) return false;
  const { updateStrategy } = spec;
  if (askedHolds({ spec }).length > 0) return true;
  const wanted = matchedPods - partitionOf(updateStrategy, matchedPods);
  return updatedPods >= wanted && updatedReadyPods === updatedPods;
}

function auditMinute(name: string): number {
  return createHash("sha256").update(name).digest().readUInt32BE() % AUDIT_MINUTES;
}
