/** The ordinals for which a set wants pods. */
import type { IntOrString } from "../../../api/kubernetes.ts";
import type { StatefulSetSpec } from "../../../api/stateful-set.ts";
import { atoiProblem } from "../../../go/int-or-percent.ts";
import { StepFailed } from "../step.ts";

export interface OrdinalRange {
  readonly start: number;
  /** the first ordinal beyond the range */
  readonly end: number;
  readonly reserved: ReadonlySet<number>;
}

/** Limit for replicas, and for all reserved ordinals together. With more the passes over other sets would wait. */
const MOST_ORDINALS = 20_000;
/** Labels, volumes and claims of all pods together, which a pass makes before it writes any. A claim counts as 10. */
const MOST_PARTS = 1_000_000;
const LEFT = "passes make, update and delete no pod of the set";

/** `hasStart`: the gate StatefulSetStartOrdinal; without it a set starts at 0. Throws for a meaningless range. */
export function ordinalRange(spec: StatefulSetSpec, hasStart: boolean): OrdinalRange {
  const { replicas = 1, reserveOrdinals, ordinals } = spec;
  if (replicas > MOST_ORDINALS)
    throw new StepFailed(`spec.replicas: ${replicas} is more than ${MOST_ORDINALS}, and ${LEFT}: lower it`);
  refuseManyParts(spec);
  const start = hasStart ? (ordinals?.start ?? 0) : 0;
  const reserved = reservedOrdinals(reserveOrdinals ?? []);
  let end = start;
  for (let found = 0; found < replicas; end++) if (!reserved.has(end)) found++;
  return { start, end, reserved };
}

/** The reason why passes skip the set, as in their report; undefined: they do not. */
export function whyLeftAlone(spec: StatefulSetSpec, hasStart: boolean): string | undefined {
  try {
    ordinalRange(spec, hasStart);
    return undefined;
  } catch (error) {
    if (error instanceof StepFailed) return error.message;
    throw error;
  }
}

export function isInRange(ordinal: number, { start, end, reserved }: OrdinalRange): boolean {
  return ordinal >= start && ordinal < end && !reserved.has(ordinal);
}

/** Compat: one text that is no range voids the whole list (vector ordinal-range, range-descending-voids-everything). */
function reservedOrdinals(entries: readonly IntOrString[]): ReadonlySet<number> {
  const ranges: (readonly [number, number])[] = [];
  for (const bounds of entries.map(boundsOf)) {
    if (bounds === undefined) return new Set();
    ranges.push(bounds);
  }
  // Beyond 2^53 the next integer is the same number.
  const odd = ranges.flat().find((bound) => !Number.isInteger(bound) || Math.abs(bound) >= 2 ** 31);
  if (odd !== undefined) throw new StepFailed(`spec.reserveOrdinals: ${odd} is no ordinal, and ${LEFT}: correct it`);
  const count = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  if (count > MOST_ORDINALS)
    throw new StepFailed(
      `spec.reserveOrdinals: its ranges have ${count} ordinals, more than ${MOST_ORDINALS}, and ${LEFT}: reserve fewer`,
    );
  const reserved = new Set<number>();
  for (const [first, last] of ranges) for (let ordinal = first; ordinal <= last; ordinal++) reserved.add(ordinal);
  return reserved;
}

/** Throws for a set whose missing pods would take too much memory in a pass. */
export function refuseManyParts({ replicas = 1, selector, template, volumeClaimTemplates }: StatefulSetSpec): void {
  const count = (labels?: object) => Object.keys(labels ?? {}).length;
  const own = count(template?.metadata?.labels) + (template?.spec?.volumes ?? []).length;
  const perClaim = 10 + count(selector?.matchLabels);
  const parts = (volumeClaimTemplates ?? []).reduce((sum, one) => sum + perClaim + count(one.metadata?.labels), own);
  const have = `${replicas} pods with ${parts} labels, volumes and claims each (a claim counts as 10)`;
  if (replicas * parts > MOST_PARTS)
    throw new StepFailed(`spec.replicas: ${have} have more than ${MOST_PARTS}, and ${LEFT}: lower one of them`);
}

/** Both bounds, inclusive; undefined for a text that is not an ascending range. */
function boundsOf(entry: IntOrString): readonly [number, number] | undefined {
  if (typeof entry === "number") return [entry, entry];
  if (rangeProblem(entry) !== undefined) return undefined;
  const [first, last] = entry.split("-");
  return [Number(first), Number(last)];
}

/** The problem of a range; undefined for an ascending range. Source: OpenKruise pkg/util/api, ParseRange. */
export function rangeProblem(entry: string): string | undefined {
  const [first, last, ...rest] = entry.split("-");
  if (first === undefined || last === undefined || rest.length > 0) return `invalid range ${entry}`;
  const isDescending = () => (BigInt(first) > BigInt(last) ? `invalid range ${entry}` : undefined);
  return atoiProblem(first) ?? atoiProblem(last) ?? isDescending();
}
