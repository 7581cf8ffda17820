/** Decides what a node makes of a pod of a set: when its containers stop, run and are ready. */
import type { Pod } from "../../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION, POD_READY_CONDITION } from "../../../api/names.ts";
import { conditionOf, setCondition } from "../../pod/conditions.ts";
import { failureOf } from "../../pod/container-failure.ts";
import { running, stopped } from "../../rollout/plan/simulated-kubelet.ts";
import { isFinished, isTerminating } from "../pods/pod-phase.ts";

/** Opened by a pass; who opens others does so once the containers are ready. */
const OUR_GATES: ReadonlySet<string> = new Set([IN_PLACE_READY_CONDITION, POD_READY_CONDITION]);

/** Its node is at work on it, so that it will be ready, or gone. */
export function isComing(pod: Pod): boolean {
  if (isTerminating(pod)) return (pod.metadata?.finalizers ?? []).length === 0;
  const isUnschedulable = !pod.spec.nodeName && conditionOf(pod, "PodScheduled")?.status === "False";
  const isReady = conditionOf(pod, "Ready")?.status === "True";
  return !isReady && !isFinished(pod) && !isUnschedulable && failureOf(pod) === undefined;
}

export function imageOf({ spec }: Pod, container: string): string | undefined {
  return spec.containers.find(({ name }) => name === container)?.image;
}

/** Containers with another image are restarted. */
export function withChanged(before: Pod, after: Pod): Pod {
  const containerStatuses = after.spec.containers.map(({ name, image = "" }) => {
    const known = before.status?.containerStatuses?.find((status) => status.name === name);
    const status = known ?? { name, ready: true, image };
    return imageOf(before, name) === image ? status : stopped(status);
  });
  return { ...after, status: { ...after.status, containerStatuses } };
}

export function started(pod: Pod, now: string): Pod {
  const statuses = new Map((pod.status?.containerStatuses ?? []).map((status) => [status.name, status]));
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }) => {
    const status = statuses.get(name) ?? { name };
    return status.ready === true && status.image === image ? status : running(status, image);
  });
  const others = (pod.spec.readinessGates ?? []).filter(({ conditionType }) => !OUR_GATES.has(conditionType));
  const runs: Pod = { ...pod, status: { ...pod.status, phase: "Running", containerStatuses } };
  return others.reduce(
    (open, { conditionType: type }) => setCondition(open, { type, status: "True", lastTransitionTime: now }),
    runs,
  );
}

/** A pod whose containers have no status stays as it is. */
export function withReadiness(pod: Pod, now: string): Pod {
  const statuses = pod.status?.containerStatuses ?? [];
  if (statuses.length === 0) return pod;
  const areReady = statuses.every(({ ready }) => ready === true);
  const areOpen = (pod.spec.readinessGates ?? []).every(
    ({ conditionType }) => conditionOf(pod, conditionType)?.status === "True",
  );
  const withContainers = setCondition(pod, condition("ContainersReady", areReady, now));
  return setCondition(withContainers, condition("Ready", areReady && areOpen, now));
}

function condition(type: string, isTrue: boolean, lastTransitionTime: string) {
  return { type, status: isTrue ? "True" : "False", lastTransitionTime };
}
