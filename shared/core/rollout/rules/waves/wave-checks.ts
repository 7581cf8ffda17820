/**
 * Tells which metric checks are asked now: those of the current wave, before each batch and before the wave passes. At
 * its end only results count that are newer than its soak and its last batch.
 */
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import type { MetricCheck } from "../../../pod/steering/metric-checks.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { type CheckRecord, type KnownCheck, knownChecks } from "../checks/check-records.ts";

/** The current wave. */
export interface AtWork {
  /** the last wave that has begun; "": the namespaces outside all waves, which come last */
  readonly atWork: string;
  /** set while it waits only for its checks, RFC3339: earlier results do not count */
  readonly checkedFrom?: string;
}

/** `wave`: its name; undefined or unknown: all checks. */
export function checksAsked(sidecarSet: SidecarSet, wave: string | undefined): readonly MetricCheck[] {
  const { checks, waves } = steeringOf(sidecarSet);
  const named = waves?.find(({ name }) => name === wave)?.checks;
  return checks.filter(({ name }) => named === undefined || named.includes(name));
}

/** The checks to evaluate now, with their results. `waves`: absent without waves. */
export function checksNow(
  sidecarSet: SidecarSet,
  records: readonly CheckRecord[],
  waves: AtWork | undefined,
): readonly KnownCheck[] {
  const known = knownChecks(sidecarSet, records, checksAsked(sidecarSet, waves?.atWork));
  const from = waves?.checkedFrom;
  return from === undefined ? known : known.map((one) => withoutOld(one, from));
}

/** True when a complete wave has passed these checks. `from`: start of its soak, RFC3339. `pods`: its number. */
export function areChecksPassed(known: readonly KnownCheck[], from: string, pods: number): boolean {
  // A wave without pods shows nothing of the release, but earlier results stay valid.
  if (pods === 0) return known.every(({ record }) => record === undefined || record.outcome === "pass");
  return known
    .map((one) => withoutOld(one, from))
    .every(({ record }) => record?.outcome === "pass" && record.isUsed !== true);
}

/** Marks a result older than `from` as used, so that a pass evaluates the check again. */
function withoutOld(known: KnownCheck, from: string): KnownCheck {
  const { record } = known;
  const isOld = record?.outcome === "pass" && (secondsBetween(from, record.at) ?? -1) < 0;
  return isOld ? { ...known, record: { ...record, isUsed: true } } : known;
}
