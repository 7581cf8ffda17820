/** Counts of a SidecarSet's pods by node and by workload. */
import { compareUtf8 } from "../../../go/json/go-json.ts";
import type { PodStanding, Standing } from "./pod-standing.ts";

/** The number of pods by standing; an absent one is 0. */
export type StandingCounts = Readonly<Partial<Record<Standing, number>>>;

export interface PodGroup {
  /** name of the node or workload; "" for pods without a node */
  readonly name: string;
  readonly total: number;
  readonly counts: StandingCounts;
  /** sorted by namespace and name */
  readonly pods: readonly PodStanding[];
}

/** Sorted by name. */
export function groupPods(pods: readonly PodStanding[], by: "node" | "workload"): readonly PodGroup[] {
  return [...Map.groupBy(pods, (pod) => pod[by])]
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, group]) => ({
      name,
      total: group.length,
      counts: countStandings(group),
      pods: group.toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name)),
    }));
}

/** Sorts groups by the number of pods that need somebody, most first. */
export function byNeed(groups: readonly PodGroup[]): readonly PodGroup[] {
  const need = ({ counts: { failing = 0, down = 0, without = 0, notUpgradable = 0 } }: PodGroup) =>
    failing + down + without + notUpgradable;
  return groups.toSorted((a, b) => need(b) - need(a));
}

export function countStandings(pods: readonly PodStanding[]): StandingCounts {
  const counts: Partial<Record<Standing, number>> = {};
  for (const { standing } of pods) counts[standing] = (counts[standing] ?? 0) + 1;
  return counts;
}
