/** Tests GetNextUpgradePods: which pods wait, in which order after each sort, and how many are selected. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { classify } from "../../../shared/core/rollout/select/classify.ts";
import { prioritize } from "../../../shared/core/rollout/select/prioritize.ts";
import { selectPods, sortByDefault } from "../../../shared/core/rollout/select/select.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly sidecarSet: SidecarSet;
  readonly pods: readonly Pod[];
}

interface Expected {
  readonly waitIndexes: readonly number[];
  readonly notUpgradableIndexes: readonly number[];
  readonly defaultSortedIndexes: readonly number[];
  readonly prioritySortedIndexes: readonly number[];
  readonly sortedIndexes: readonly number[];
  readonly upgradeCount: number;
  readonly upgradePods: readonly string[];
  readonly notUpgradablePods: readonly string[];
}

type Answer = Expected & { readonly orderDependsOnUnstableSort: boolean };

function nameOf({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

export function upgradeSelectSuite({ sidecarSet, pods }: Input, expected: Answer): readonly Difference[] {
  const states = pods.map((pod) => podStateOf(projectPod(pod, sidecarSet), sidecarSet, undefined));
  const indexes = (list: readonly Pod[]) => list.map((pod) => states.findIndex((state) => state.pod === pod));
  const waiting = states.filter((state) => classify(state, sidecarSet) === "waiting");
  const sorted = Array.from(sortByDefault(waiting), ({ pod }) => pod);
  const prioritized = prioritize(sorted, sidecarSet.spec.updateStrategy?.priorityStrategy);
  const selection = selectPods(sidecarSet, states, { reserved: new Set(), StrictMaxUnavailable: false, rules: {} });
  const selected = selection.selected.map(({ pod }) => pod);
  const notUpgradable = Array.from(selection.notUpgradable, ({ pod }) => pod);
  const answer: Expected = {
    waitIndexes: indexes(waiting.map(({ pod }) => pod)),
    notUpgradableIndexes: indexes(notUpgradable),
    defaultSortedIndexes: indexes(sorted),
    prioritySortedIndexes: indexes(prioritized),
    sortedIndexes: indexes(Array.from(selection.waiting, ({ pod }) => pod)),
    upgradeCount: selected.length,
    upgradePods: selected.map(nameOf),
    notUpgradablePods: notUpgradable.map(nameOf),
  };
  const { orderDependsOnUnstableSort: _, ...wanted } = expected;
  return compare(answer, wanted);
}
