/** Orders waiting pods by their labels, as updateStrategy.priorityStrategy asks for. */
import type { Labels, Pod } from "../../../api/kubernetes.ts";
import type { UpdateStrategy, WeightPriority } from "../../../api/sidecarset.ts";
import { selectorMatches } from "../../../go/label-selector.ts";

const INT64_MAX = 2n ** 63n - 1n;

type OrderPriority = readonly { readonly orderedKey: string }[];

/** Sorts stably by weight or, without weights, by the first ordered label and the number at its end. */
export function prioritize(pods: readonly Pod[], strategy: UpdateStrategy["priorityStrategy"]): readonly Pod[] {
  const weights = strategy?.weightPriority ?? [];
  if (weights.length > 0) return byWeight(pods, weights);
  const keys = strategy?.orderPriority ?? [];
  return keys.length > 0 ? byOrder(pods, keys) : pods;
}

function byWeight(pods: readonly Pod[], weights: readonly WeightPriority[]): readonly Pod[] {
  const weighed = pods.map((pod) => ({ pod, weight: weightOf(pod, weights) }));
  return weighed.sort((a, b) => b.weight - a.weight).map(({ pod }) => pod);
}

function weightOf(pod: Pod, weights: readonly WeightPriority[]): number {
  // In Go the selector is not a pointer: a missing one matches every pod.
  const matching = weights.filter(
    ({ matchSelector }) => selectorMatches(matchSelector ?? {}, pod.metadata?.labels) === true,
  );
  return matching.reduce((sum, { weight }) => sum + weight, 0);
}

function byOrder(pods: readonly Pod[], keys: OrderPriority): readonly Pod[] {
  const ranked = pods.map((pod) => ({ pod, ...rankOf(pod.metadata?.labels ?? {}, keys) }));
  return ranked.sort((a, b) => a.level - b.level || compareBig(b.order, a.order)).map(({ pod }) => pod);
}

/** Compat: a pod without any of the labels comes before all others (upgrade-select, hand/priority-order). */
function rankOf(labels: Labels, keys: OrderPriority) {
  const level = keys.findIndex(({ orderedKey }) => Object.hasOwn(labels, orderedKey));
  return { level, order: trailingNumber(labels[keys[level]?.orderedKey ?? ""] ?? "") };
}

/** The number at the end of the text; 0 without one, or when it does not fit into 64 bits. */
function trailingNumber(text: string): bigint {
  const number = BigInt(/[0-9]*$/.exec(text)?.[0] ?? 0);
  return number > INT64_MAX ? 0n : number;
}

function compareBig(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
