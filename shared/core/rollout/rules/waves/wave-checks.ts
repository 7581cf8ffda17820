/**
 * Decides which checks of metrics are asked now: those of the wave at work, before each of its batches and before it is
 * passed. At its end only what was seen after it had soaked counts, and since the last batch.
 */
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import type { MetricCheck } from "../../../pod/steering/metric-checks.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { type CheckRecord, type KnownCheck, knownChecks } from "../checks/check-records.ts";

/** Which wave is at work. */
export interface AtWork {
  /** the last one that has begun; "": the namespaces of no wave, which come last */
  readonly atWork: string;
  /** set while it waits for nothing but its checks, RFC3339: what they came to before does not count */
  readonly checkedFrom?: string;
}

/** `wave`: its name; another one, or none: all checks. */
export function checksAsked(sidecarSet: SidecarSet, wave: string | undefined): readonly MetricCheck[] {
  const { checks, waves } = steeringOf(sidecarSet);
  const named = waves?.find(({ name }) => name === wave)?.checks;
  return checks.filter(({ name }) => named === undefined || named.includes(name));
}

/** The checks that are evaluated now, with their results. `waves`: absent where there are none. */
export function checksNow(
  sidecarSet: SidecarSet,
  records: readonly CheckRecord[],
  waves: AtWork | undefined,
): readonly KnownCheck[] {
  const known = knownChecks(sidecarSet, records, checksAsked(sidecarSet, waves?.atWork));
  const from = waves?.checkedFrom;
  return from === undefined ? known : known.map((one) => withoutOld(one, from));
}

/** A wave that is complete has these behind it. `from`: since when it has soaked, RFC3339. `pods`: of the wave. */
export function areChecksPassed(known: readonly KnownCheck[], from: string, pods: number): boolean {
  // Where there are no pods there is nothing of the release to be seen; but what was seen before stays.
  if (pods === 0) return known.every(({ record }) => record === undefined || record.outcome === "pass");
  return known
    .map((one) => withoutOld(one, from))
    .every(({ record }) => record?.outcome === "pass" && record.isUsed !== true);
}

/** What was seen before that time is like what a batch has begun by: it is to be looked at again. */
function withoutOld(known: KnownCheck, from: string): KnownCheck {
  const { record } = known;
  const isOld = record?.outcome === "pass" && (secondsBetween(from, record.at) ?? -1) < 0;
  return isOld ? { ...known, record: { ...record, isUsed: true } } : known;
}
