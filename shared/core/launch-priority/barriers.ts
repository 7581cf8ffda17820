/** Tells whether a pod's containers start one after another, and what makes them wait. */
import type { Container, EnvVar, Pod } from "../../api/kubernetes.ts";
import {
  CONTAINER_BARRIER_ENV,
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
} from "../../api/names.ts";
import { atoiProblem } from "../../go/int-or-percent.ts";
import { safeRandom } from "../../go/safe-text.ts";
import { Refusal } from "../admission/admission.ts";

const RANDOM_LENGTH = 5;
/** The part of generateName that Kubernetes keeps, so that the name fits a label. */
const BASE_LENGTH = 63 - RANDOM_LENGTH;

/** Reads an integer as Go's strconv.Atoi does, with 64 bits. */
function parseInteger(text: string): bigint | Refusal {
  const problem = atoiProblem(text);
  return problem === undefined ? BigInt(text) : new Refusal(problem);
}

/** The priority from the variable: 0 without the variable, and the last one of several. */
function priorityOf({ env }: Container): bigint | Refusal {
  let priority: bigint | Refusal = 0n;
  for (const { name, value } of env ?? []) {
    if (name !== CONTAINER_PRIORITY_ENV) continue;
    priority = parseInteger(value ?? "");
    if (priority instanceof Refusal) return priority;
  }
  return priority;
}

/** One priority for each container; empty if all are equal. */
function givenPriorities(containers: readonly Container[]): readonly bigint[] | Refusal {
  const priorities: bigint[] = [];
  for (const container of containers) {
    const priority = priorityOf(container);
    if (priority instanceof Refusal) return priority;
    priorities.push(priority);
  }
  return new Set(priorities).size > 1 ? priorities : [];
}

function priorities({ metadata }: Pod, containers: readonly Container[]): readonly bigint[] | Refusal {
  if (containers.length === 1) return [];
  const isOrdered = metadata?.annotations?.[CONTAINER_LAUNCH_PRIORITY_ANNOTATION] === "Ordered";
  return isOrdered ? containers.map((_, index) => BigInt(-index)) : givenPriorities(containers);
}

/** A name with a prefix. `random`: returns a number in [0, 1). Source: apiserver names.SimpleNameGenerator. */
function generatedName(generateName: string, random: () => number): string {
  return generateName.slice(0, BASE_LENGTH) + safeRandom(RANDOM_LENGTH, random);
}

/** The pod with a name. The barrier contains the name, so the API server cannot choose it later. */
function withName(pod: Pod, random: () => number): Pod {
  const { name, generateName } = pod.metadata ?? {};
  if (name || !generateName) return pod;
  return { ...pod, metadata: { ...pod.metadata, name: generatedName(generateName, random) } };
}

/** Compat: a barrier is added even if the container has one (vector existing-barrier). */
function withBarrier(container: Container, podName: string, priority: bigint): Container {
  const configMapKeyRef = { name: `${podName}-barrier`, key: `p_${priority}` };
  const barrier: EnvVar = { name: CONTAINER_BARRIER_ENV, valueFrom: { configMapKeyRef } };
  return { ...container, env: [...(container.env ?? []), barrier] };
}

/** The pod with a barrier in every container; the same object if the order has no effect. */
export function initializeLaunchPriority(pod: Pod, random: () => number): Pod | Refusal {
  const containers = pod.spec?.containers ?? [];
  const order = priorities(pod, containers);
  if (order instanceof Refusal) return order;
  if (order.length === 0) return pod;
  const named = withName(pod, random);
  const waiting = containers.map((container, index) =>
    withBarrier(container, named.metadata?.name ?? "", order[index] ?? 0n),
  );
  return { ...named, spec: { ...named.spec, containers: waiting } };
}
