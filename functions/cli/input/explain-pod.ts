/** `explain` of a pod: a trace for every SidecarSet meant for it, or else the nearest ones with the reason why not. */

import type { Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { readNamespace, readRegistrations } from "../../../shared/controller/rollout/read-admission.ts";
import { matches } from "../../../shared/core/injection/match/matches.ts";
import {
  explainPod,
  explainPodAlone,
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
import type { Unasked } from "../../../shared/core/inspect/restart-advice.ts";
import { isInjected } from "../../../shared/core/pod/is-matched.ts";
import { counted } from "../../../shared/go/counted.ts";
import { ifAllowed, isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, PODS } from "../../../shared/kube/port.ts";
import { CliError } from "../../terminal/error.ts";
import type { Screen } from "../../terminal/screen.ts";
import { showSteps } from "../../terminal/show-steps.ts";
import type { Session } from "../session.ts";
import { traceMissingPod, traceSetPod } from "../statefulset/explain.ts";
import { listSets, readFacts, readFactsWithin } from "./read-set.ts";

/** The SidecarSets to explain: the ones meant for the pod, unless options say otherwise. */
export interface Choice {
  readonly only: string | undefined;
  readonly isAll: boolean;
}

interface Wanted extends Choice {
  readonly namespace: string;
  readonly name: string;
}

/** Facts that the rules of every SidecarSet read. */
export interface Surroundings {
  readonly sidecarSets: readonly SidecarSet[];
  readonly namespace: Namespace | undefined;
  readonly registrations: Registrations;
}

export async function readSurroundings(cluster: Cluster, namespace: string): Promise<Surroundings> {
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

/** Less, and said so, where these rights do not let the whole rollout be read. */
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

/** @throws CliError when `only` names none */
export function meantFor(
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

/** True if the SidecarSet is meant for the pod, or has injected it. */
function isRelated(pod: Pod, sidecarSet: SidecarSet, namespace: Namespace | undefined): boolean {
  const subject = { namespace, podLabels: pod.metadata?.labels };
  return isInjected(pod, sidecarSet.metadata?.name ?? "") || matches(sidecarSet, subject) !== false;
}

export interface Nearest {
  readonly nearest: readonly NearSet[];
  /** number of SidecarSets */
  readonly of: number;
  /** the reason why the webhook is not even asked; absent: it is, or nobody knows */
  readonly webhook?: Step;
}

export function nearestOf(pod: Pod, { sidecarSets, namespace, registrations }: Surroundings): Nearest {
  const webhook = traceRegistration(pod, { namespace, registrations, sidecarSets });
  const nearest = nearestSets(pod, namespace, sidecarSets);
  return { nearest, of: sidecarSets.length, ...(webhook.verdict === "stop" ? { webhook } : {}) };
}

/** `what`: text such as `pod shop/web-0`. */
export function showNearest(what: string, { nearest, of, webhook }: Nearest, screen: Screen): void {
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
