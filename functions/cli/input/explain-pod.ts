/** `explain` of a pod: a trace for every SidecarSet meant for it, or else the nearest ones with the reason why not. */
import type { KubernetesObject, LabelSelector, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { selectorText } from "../../../shared/controller/loop/pages.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { readNamespace, readRegistrations } from "../../../shared/controller/rollout/read-observation.ts";
import { matches } from "../../../shared/core/injection/match/matches.ts";
import { podsOf } from "../../../shared/core/injection/preview.ts";
import {
  explainPod,
  explainPodAlone,
  groupTraces,
  type NearSet,
  nearestSets,
} from "../../../shared/core/inspect/explain/explain.ts";
import {
  namespaceNamed,
  type Registrations,
  traceRegistration,
  whyUnasked,
} from "../../../shared/core/inspect/explain/registration.ts";
import type { Step } from "../../../shared/core/inspect/explain/step.ts";
import { traceTemplate } from "../../../shared/core/inspect/explain/trace-injection.ts";
import type { Unasked } from "../../../shared/core/inspect/restart-advice.ts";
import { isActive, isInjected } from "../../../shared/core/pod/is-matched.ts";
import { workloadOf } from "../../../shared/core/pod/workload.ts";
import { counted } from "../../../shared/go/counted.ts";
import { ifAllowed, isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, PODS, type Resource } from "../../../shared/kube/port.ts";
import { CliError, type Screen } from "../../terminal/screen.ts";
import { showSteps } from "../../terminal/table.ts";
import type { Session } from "../session.ts";
import { traceMissingPod, traceSetPod } from "../statefulset/status.ts";
import { listSets, readFacts, readFactsWithin } from "./read-set.ts";

/** The SidecarSets to explain: the ones meant for the pod, unless options say otherwise. */
interface Choice {
  readonly only: string | undefined;
  readonly isAll: boolean;
}

interface Wanted extends Choice {
  readonly namespace: string;
  readonly name: string;
}

/** Facts that the rules of every SidecarSet read. */
interface Surroundings {
  readonly sidecarSets: readonly SidecarSet[];
  readonly namespace: Namespace | undefined;
  readonly registrations: Registrations;
}

async function readSurroundings(cluster: Cluster, namespace: string): Promise<Surroundings> {
  const [sidecarSets, namespaceObject, registrations] = await Promise.all([
    listSets(cluster),
    readNamespace(cluster, namespace),
    readRegistrations(cluster),
  ]);
  return { sidecarSets, namespace: namespaceObject, registrations };
}

/** Reasons why the webhook is not asked, from registrations and labels of namespaces that may be read. */
export async function readUnasked(cluster: Cluster, sidecarSets: readonly SidecarSet[]): Promise<Unasked> {
  const [registrations, listed] = await Promise.all([
    readRegistrations(cluster),
    ifAllowed(listAll<Namespace, Namespace>(cluster, NAMESPACES, {}, (one) => one)),
  ]);
  const namespaces = new Map(listed?.items.map((one) => [one.metadata?.name, one]));
  return (pod) => {
    const { namespace: name = "" } = pod.metadata ?? {};
    const namespace = namespaces.get(name) ?? namespaceNamed(name);
    return whyUnasked(pod, { namespace, registrations, sidecarSets });
  };
}

interface Trace {
  readonly sidecarSet: string;
  readonly steps: readonly Step[];
}

export async function printPodExplanation(session: Session, cluster: Cluster, wanted: Wanted): Promise<void> {
  const { namespace, name, only } = wanted;
  const pod = await findPod(cluster, wanted);
  if (pod === undefined) return await printMissing(session, cluster, wanted);
  const around = await readSurroundings(cluster, namespace);
  const meant = meantFor([pod], around, wanted);
  const traces: Trace[] = [];
  for (const { metadata } of meant) {
    const set = metadata?.name ?? "";
    traces.push({ sidecarSet: set, steps: await stepsOf(session, cluster, { pod, set, around }) });
  }
  const own = only === undefined ? await traceSetPod(session, cluster, pod) : undefined;
  const nearest = meant.length === 0 ? nearestOf(pod, around) : undefined;
  const data = { pod: { namespace, name }, sidecarSets: traces, ...nearest, ...(own ? { orderedSet: own } : {}) };
  session.print(data, (screen) => {
    if (own) showSteps(`pod ${namespace}/${name}, StatefulSet ${own.statefulSet}`, own.steps, screen);
    for (const { sidecarSet, steps } of traces)
      showSteps(`pod ${namespace}/${name}, SidecarSet ${sidecarSet}`, steps, screen);
    if (nearest) showNearest(`pod ${namespace}/${name}`, nearest, screen);
    else showOthers(around.sidecarSets.length - traces.length, screen);
  });
}

/** Steps of a trace. If the caller may not read the whole rollout, it reads less and says so. */
async function stepsOf(
  session: Session,
  cluster: Cluster,
  { pod, set, around }: { readonly pod: Pod; readonly set: string; readonly around: Surroundings },
): Promise<readonly Step[]> {
  try {
    const { sidecarSet, facts } = await readFacts(session, cluster, set);
    return explainPod(pod, sidecarSet, { ...facts, ...around });
  } catch (error) {
    const namespace = pod.metadata?.namespace ?? "";
    const { sidecarSet, facts } = await readFactsWithin(session, cluster, { name: set, namespace, error });
    return explainPodAlone(pod, sidecarSet, { ...facts, ...around });
  }
}

/** SidecarSets that are meant for the pod. @throws CliError if `only` names none */
function meantFor(
  pods: readonly Pod[],
  { sidecarSets, namespace }: Surroundings,
  { only, isAll }: Choice,
): readonly SidecarSet[] {
  if (only === undefined)
    return sidecarSets.filter((one) => isAll || pods.some((pod) => isRelated(pod, one, namespace)));
  const named = sidecarSets.filter(({ metadata }) => metadata?.name === only);
  if (named.length > 0) return named;
  throw new CliError(`there is no SidecarSet ${only}; sidecarset status lists those that there are`);
}

/** True if the SidecarSet is meant for the pod or was injected into it. */
function isRelated(pod: Pod, sidecarSet: SidecarSet, namespace: Namespace | undefined): boolean {
  const subject = { namespace, podLabels: pod.metadata?.labels };
  return isInjected(pod, sidecarSet.metadata?.name ?? "") || matches(sidecarSet, subject) !== false;
}

interface Nearest {
  readonly nearest: readonly NearSet[];
  /** number of all SidecarSets */
  readonly of: number;
  /** the reason why the API server does not ask the webhook; absent: it asks, or the answer is unknown */
  readonly webhook?: Step;
}

function nearestOf(pod: Pod, { sidecarSets, namespace, registrations }: Surroundings): Nearest {
  const webhook = traceRegistration(pod, { namespace, registrations, sidecarSets });
  const nearest = nearestSets(pod, namespace, sidecarSets);
  return { nearest, of: sidecarSets.length, ...(webhook.verdict === "stop" ? { webhook } : {}) };
}

/** Prints the nearest SidecarSets. `what`: text such as `pod shop/web-0`. */
function showNearest(what: string, { nearest, of, webhook }: Nearest, screen: Screen): void {
  const title = of === 0 ? "The cluster has no SidecarSets." : `No SidecarSet is meant for ${what}`;
  if (webhook) showSteps(title, [webhook], screen);
  else screen.line({ text: title, color: "bold" });
  if (of > 0) screen.line(of > nearest.length ? `The nearest of ${of}:` : "What each of them misses:");
  for (const { sidecarSet, steps } of nearest) showSteps(`SidecarSet ${sidecarSet}`, steps, screen);
}

function showOthers(left: number, screen: Screen): void {
  if (left === 0) return;
  const text = `${counted(left, "other SidecarSet is", "other SidecarSets are")} not meant for the pod; --all tells why.`;
  screen.line({ text, color: "dim" });
}

async function findPod(cluster: Cluster, { namespace, name }: Wanted): Promise<Pod | undefined> {
  try {
    return await cluster.get<Pod>(PODS, { namespace, name });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Explains a missing pod that an Advanced StatefulSet will have or could have. @throws CliError for any other pod */
async function printMissing(session: Session, cluster: Cluster, { namespace, name }: Wanted): Promise<void> {
  const own = await traceMissingPod(session, cluster, { namespace, name });
  if (own === undefined)
    throw new CliError(
      `there is no pod ${name} in the namespace ${namespace}; choose another with -n, or write pod/NAMESPACE/NAME`,
    );
  session.print({ pod: { namespace, name }, sidecarSets: [], orderedSet: own }, (screen) =>
    showSteps(`pod ${namespace}/${name}, StatefulSet ${own.statefulSet}`, own.steps, screen),
  );
}

// `explain` of a workload: the sidecars of its new pods, and the reasons for the state of its running pods.

export interface WorkloadTarget {
  readonly kind: "workload";
  readonly resource: Resource;
  /** the workload in the form of `workloadOf`: `deployment/web` */
  readonly workload: string;
  readonly name: string;
  /** the workload's namespace; absent: the namespace of -n, or of the context */
  readonly namespace?: string;
}

const KINDS: readonly (readonly [string, RegExp, string])[] = [
  ["deployment", /^(deployments?(\.apps)?|deploy)$/, "apps"],
  ["statefulset", /^(statefulsets?(\.apps)?|sts)$/, "apps"],
  ["daemonset", /^(daemonsets?(\.apps)?|ds)$/, "apps"],
  ["replicaset", /^(replicasets?(\.apps)?|rs)$/, "apps"],
  ["job", /^jobs?(\.batch)?$/, "batch"],
];

/** The workload that a text names; undefined: the kind is unknown. */
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

interface WorkloadTrace {
  readonly sidecarSet: string;
  /** steps of the workload's next pods */
  readonly newPods: readonly Step[];
  /** steps of the running pods */
  readonly pods: readonly Step[];
}

type WantedWorkload = WorkloadTarget & Choice & { readonly namespace: string };

export async function printWorkloadExplanation(
  session: Session,
  cluster: Cluster,
  target: WantedWorkload,
): Promise<void> {
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
  const traces: WorkloadTrace[] = [];
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
