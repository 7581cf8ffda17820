/** Tests an in-place upgrade, condition or flip of one pod, and its status afterwards, tick by tick. */
import type { Namespace, Pod, PodCondition, PodStatus } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { matches } from "../../../shared/core/injection/match/matches.ts";
import { isHotUpgrade } from "../../../shared/core/pod/sidecar-containers.ts";
import { isServing, slotsToEmpty } from "../../../shared/core/rollout/upgrade/hot-slot.ts";
import { planFlip, planUpgrade } from "../../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { type PodPlan, planCondition } from "../../../shared/core/rollout/upgrade/pod-change.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { compare, type Difference } from "../compare.ts";
import { predicatesOf } from "./status.ts";

interface Input {
  readonly op: "upgrade" | "mark-not-upgradable" | "mark-upgradable" | "flip-hot-upgrade";
  readonly now: string;
  readonly sidecarSet: SidecarSet;
  readonly pod: Pod;
  readonly otherObjects?: readonly (SidecarSet | Namespace)[];
  readonly statusTicks?: readonly PodStatus[];
}

interface Expected {
  readonly pod: Pod;
  readonly before: unknown;
  readonly after: unknown;
  readonly ticks?: readonly unknown[];
  readonly error?: string;
  readonly panics?: string;
}

interface Outcome {
  readonly pod: Pod;
  readonly isRefused: boolean;
}

/** Returns a pod with its planned change, as the API server would store it. */
export function withPlan(pod: Pod, plan: PodPlan): Pod {
  if (plan.kind === "refused") return pod;
  const images = new Map(plan.images.map(({ index, to }) => [index, to]));
  const containers = pod.spec.containers.map((container, index) => {
    const image = images.get(index);
    return image === undefined ? container : { ...container, image };
  });
  const annotations = { ...pod.metadata?.annotations, ...plan.annotations };
  return { ...pod, metadata: { ...pod.metadata, annotations }, spec: { ...pod.spec, containers } };
}

/** Returns a pod with the condition added or replaced. */
export function withCondition(pod: Pod, condition: PodCondition): Pod {
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== condition.type);
  return { ...pod, status: { ...pod.status, conditions: [...others, condition] } };
}

function mark(pod: Pod, input: Input, isUpgradable: boolean): Outcome {
  const sidecarSet = input.sidecarSet.metadata?.name ?? "";
  const plan = planCondition(projectPod(input.pod, input.sidecarSet), { sidecarSet, isUpgradable, now: input.now });
  return {
    pod: plan.kind === "changed" ? withCondition(pod, plan.condition) : pod,
    isRefused: plan.kind === "refused",
  };
}

function isMatching(input: Input, sidecarSet: SidecarSet): boolean {
  const namespace = (input.otherObjects ?? []).find(
    (object) => object.kind === "Namespace" && object.metadata?.name === input.pod.metadata?.namespace,
  );
  return matches(sidecarSet, { namespace, podLabels: input.pod.metadata?.labels }) === true;
}

function matchingNames(input: Input): readonly string[] {
  const sidecarSets = (input.otherObjects ?? []).filter((object) => object.kind === "SidecarSet") as SidecarSet[];
  const matching = sidecarSets.filter((sidecarSet) => isMatching(input, sidecarSet));
  return matching.map(({ metadata }) => metadata?.name ?? "").sort();
}

function run(input: Input): Outcome {
  const { pod, sidecarSet, now, op } = input;
  if (op === "mark-upgradable" || op === "mark-not-upgradable") return mark(pod, input, op === "mark-upgradable");
  const seen = projectPod(pod, sidecarSet);
  if (op === "flip-hot-upgrade") return { pod: withPlan(pod, planFlip(seen, sidecarSet, now)), isRefused: false };
  const latestRevision = sidecarSet.status?.latestRevision ?? "";
  const plan = planUpgrade(seen, sidecarSet, { now, latestRevision, matching: matchingNames(input) });
  return plan.kind === "refused" ? { pod, isRefused: true } : mark(withPlan(pod, plan), input, true);
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Parses annotations that are JSON, and keys conditions by type. */
export function comparable(pod: Pod) {
  const annotations = Object.entries(pod.metadata?.annotations ?? {});
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: Object.fromEntries(annotations.map(([key, v]) => [key, parsed(v)])) },
    status: {
      ...pod.status,
      conditions: Object.fromEntries((pod.status?.conditions ?? []).map((condition) => [condition.type, condition])),
    },
  };
}

function everyPredicateOf(pod: Pod, sidecarSet: SidecarSet) {
  const predicates = predicatesOf(pod, sidecarSet);
  if (!sidecarSet.spec.containers?.some(isHotUpgrade)) return predicates;
  const inHotUpgrading = slotsToEmpty(pod, sidecarSet).length > 0;
  return { ...predicates, inHotUpgrading, hotUpgradingReady: isServing(pod, sidecarSet) };
}

/** Runs one case. If the reference panics, only a panic of the product is an error. */
export function podUpdateSuite(input: Input, expected: Expected): readonly Difference[] {
  const { pod, isRefused } = run(input);
  const see = (seen: Pod) => everyPredicateOf(projectPod(seen, input.sidecarSet), input.sidecarSet);
  if (expected.panics !== undefined) return compare(see(input.pod), expected.before ?? see(input.pod), "$.before");
  const ticks = input.statusTicks?.map((status) => see({ ...pod, status }));
  return [
    ...compare(comparable(pod), comparable(expected.pod), "$.pod"),
    ...compare(see(input.pod), expected.before, "$.before"),
    ...compare(see(pod), expected.after, "$.after"),
    ...compare(ticks, expected.ticks, "$.ticks"),
    ...compare(isRefused, expected.error !== undefined, "$.error"),
  ];
}
