/** `explain` of a workload: the sidecars of its new pods, and why its running pods are as they are. */

import type { KubernetesObject, LabelSelector, Pod } from "../../../shared/api/kubernetes.ts";
import { selectorText } from "../../../shared/controller/loop/pages.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { podsOf } from "../../../shared/core/injection/preview.ts";
import { explainPod, groupTraces } from "../../../shared/core/inspect/explain/explain.ts";
import type { Step } from "../../../shared/core/inspect/explain/step.ts";
import { traceTemplate } from "../../../shared/core/inspect/explain/trace-injection.ts";
import { isActive } from "../../../shared/core/pod/is-matched.ts";
import { workloadOf } from "../../../shared/core/pod/workload.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, PODS, type Resource } from "../../../shared/kube/port.ts";
import { CliError } from "../../terminal/error.ts";
import { showSteps } from "../../terminal/show-steps.ts";
import type { Session } from "../session.ts";
import { type Choice, meantFor, nearestOf, readSurroundings, type Surroundings, showNearest } from "./explain-pod.ts";
import { readFacts } from "./read-set.ts";

export interface WorkloadTarget {
  readonly kind: "workload";
  readonly resource: Resource;
  /** in the form of `workloadOf`: `deployment/web` */
  readonly workload: string;
  readonly name: string;
  /** absent: the namespace of -n, or of the context */
  readonly namespace?: string;
}

const KINDS: readonly (readonly [string, RegExp, string])[] = [
  ["deployment", /^(deployments?(\.apps)?|deploy)$/, "apps"],
  ["statefulset", /^(statefulsets?(\.apps)?|sts)$/, "apps"],
  ["daemonset", /^(daemonsets?(\.apps)?|ds)$/, "apps"],
  ["replicaset", /^(replicasets?(\.apps)?|rs)$/, "apps"],
  ["job", /^jobs?(\.batch)?$/, "batch"],
];

/** undefined: the kind is unknown */
export function workloadTarget(text: string): WorkloadTarget | undefined {
  const [kind = "", first = "", second, ...rest] = text.split("/");
  const known = KINDS.find(([, pattern]) => pattern.test(kind.toLowerCase()));
  if (known === undefined || first === "" || second === "" || rest.length > 0) return undefined;
  const [singular, , group] = known;
  const name = second ?? first;
  const resource = { group, version: "v1", plural: `${singular}s`, namespaced: true };
  const namespace = second === undefined ? {} : { namespace: first };
  return { kind: "workload", resource, workload: `${singular}/${name}`, name, ...namespace };
}

interface Workload extends KubernetesObject {
  readonly spec?: { readonly selector?: LabelSelector };
}

interface Trace {
  readonly sidecarSet: string;
  /** steps of its next pods */
  readonly newPods: readonly Step[];
  /** steps of the running pods */
  readonly pods: readonly Step[];
}

type Wanted = WorkloadTarget & Choice & { readonly namespace: string };

export async function printWorkloadExplanation(session: Session, cluster: Cluster, target: Wanted): Promise<void> {
  const { namespace, name, workload } = target;
  const object = await readWorkload(cluster, target, namespace);
  const [template] = podsOf({ ...object, metadata: { name, namespace } });
  if (template === undefined) throw new CliError(`${workload} has no pod template`);
  const [pods, around] = await Promise.all([
    readPods(cluster, object, { namespace, workload }),
    readSurroundings(cluster, namespace),
  ]);
  const traces = await traceAll(session, cluster, { template, pods, around, choice: target });
  const nearest = traces.length === 0 ? nearestOf(template, around) : undefined;
  const what = `${workload} in the namespace ${namespace}`;
  session.print({ workload, namespace, sidecarSets: traces, ...nearest }, (screen) => {
    for (const { sidecarSet, newPods, pods: running } of traces) {
      showSteps(`${what}, SidecarSet ${sidecarSet}: new pods`, newPods, screen);
      showSteps(`Pods that run: ${pods.length}`, running, screen);
    }
    if (nearest) showNearest(what, nearest, screen);
  });
}

interface Subject {
  readonly template: Pod;
  readonly pods: readonly Pod[];
  readonly around: Surroundings;
  readonly choice: Choice;
}

async function traceAll(session: Session, cluster: Cluster, { template, pods, around, choice }: Subject) {
  const traces: Trace[] = [];
  for (const { metadata } of meantFor([template, ...pods], around, choice)) {
    const { sidecarSet, facts } = await readFacts(session, cluster, metadata?.name ?? "");
    const all = { ...facts, ...around };
    const running = pods.map((pod) => ({ pod: pod.metadata?.name ?? "", steps: explainPod(pod, sidecarSet, all) }));
    const newPods = traceTemplate(template, sidecarSet, all);
    traces.push({ sidecarSet: metadata?.name ?? "", newPods, pods: groupTraces(running) });
  }
  return traces;
}

async function readWorkload(cluster: Cluster, target: WorkloadTarget, namespace: string): Promise<Workload> {
  const { resource, name, workload } = target;
  try {
    return await cluster.get<Workload>(resource, { namespace, name });
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
    throw new CliError(
      `there is no ${workload} in the namespace ${namespace}; choose another with -n, or write KIND/NAMESPACE/NAME`,
    );
  }
}

/** Reads pods by owner, because selectors of two workloads may overlap. */
async function readPods(
  cluster: Cluster,
  { spec, metadata }: Workload,
  { namespace, workload }: { readonly namespace: string; readonly workload: string },
): Promise<readonly Pod[]> {
  const text = spec?.selector && selectorText(spec.selector);
  const isOwn = (pod: Pod) =>
    workloadOf(pod).workload === workload ||
    pod.metadata?.ownerReferences?.some(({ uid }) => uid === metadata?.uid) === true;
  const options = { namespace, ...(text ? { labelSelector: text } : {}) };
  const { items } = await listAll<Pod, Pod>(cluster, PODS, options, (pod) =>
    isActive(pod) && isOwn(pod) ? pod : undefined,
  );
  return items;
}
