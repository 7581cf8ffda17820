/** Decides how the pods of a SidecarSet are summed up by where they are. */
import { compareUtf8 } from "../../../go/json/go-json.ts";
import type { PodStanding, Standing } from "./pod-standing.ts";

/** How many pods stand where; what is absent is 0. */
export type StandingCounts = Readonly<Partial<Record<Standing, number>>>;

export interface PodGroup {
  /** of the node or the workload; "" for pods that have no node yet */
  readonly name: string;
  readonly total: number;
  readonly counts: StandingCounts;
  /** by namespace and name */
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

/** Groups in which pods need somebody first, those with most of them before others. */
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
