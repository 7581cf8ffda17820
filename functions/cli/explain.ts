/** `explain`: an ordered trace of every rule, for a pod or a SidecarSet. */

import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Step } from "../../shared/core/explain/step.ts";
import { explainPod, explainSidecarSet } from "../../shared/core/explain.ts";
import { counted } from "../../shared/core/lib/counted.ts";
import { isInjected } from "../../shared/core/pod/is-matched.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { CliError } from "../cli-error.ts";
import type { Command } from "./command.ts";
import { tellOrderedSet, traceMissingPod, traceSetPod } from "./ordered-set/explain.ts";
import { listSets, readFacts, readNamespace, readRegistrations } from "./read-set.ts";
import type { Session } from "./session.ts";
import { showSteps } from "./show-steps.ts";
import { SET_KIND, type Target, targetOf } from "./target.ts";

export const EXPLAIN: Command = {
  name: "explain",
  group: "During a rollout",
  summary: "why a pod has its sidecars or not, why it is updated or not, and what it waits for",
  details:
    "Every rule in the order in which it is looked at, with its verdict: ✓ nothing in the way, · good to know, … goes on by itself, ✗ goes on only when somebody does something. Of a pod, every SidecarSet is told that is meant for it or has been; with --all the others too.",
  arguments: [
    {
      name: "<KIND/NAME>",
      about: `pod/NAME (-n), pod/NAMESPACE/NAME, sidecarset/NAME or ${SET_KIND}/NAME`,
      completion: "set",
    },
  ],
  options: [
    { flags: "--sidecarset <NAME>", about: "of a pod: only this SidecarSet" },
    { flags: "--all", about: "of a pod: also SidecarSets whose selector does not match it" },
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset explain pod/shop/web-0",
    "sidecarset explain sidecarset/log-agent",
    "sidecarset explain statefulset.apps.kruise.io/db -n shop",
  ],
  run: async (input, session) => {
    const target = subjectOf(input.argument(0));
    const cluster = await session.cluster();
    if (target.kind === "statefulset") await tellOrderedSet(session, cluster, target);
    else if (target.kind === "sidecarset") await tellSet(session, cluster, target.name);
    else {
      const { name, namespace = await session.namespace() } = target;
      await tellPod(session, cluster, { namespace, name, isAll: input.isSet("all"), only: input.text("sidecarset") });
    }
    return 0;
  },
};

type Subject = Target | { readonly kind: "pod"; readonly name: string; readonly namespace?: string };

function subjectOf(text: string): Subject {
  const [kind = "", ...rest] = text.split("/");
  const [first = "", second] = rest;
  if (["pod", "pods", "po"].includes(kind) && first && rest.length <= 2)
    return { kind: "pod", name: second ?? first, ...(second === undefined ? {} : { namespace: first }) };
  if (kind && first && !["pod", "pods", "po"].includes(kind)) return targetOf(text);
  throw new CliError(`${text}: write pod/NAME, pod/NAMESPACE/NAME, sidecarset/NAME or ${SET_KIND}/NAME`);
}

interface Wanted {
  readonly namespace: string;
  readonly name: string;
  readonly only: string | undefined;
  readonly isAll: boolean;
}

interface Trace {
  readonly sidecarSet: string;
  readonly steps: readonly Step[];
}

async function tellPod(session: Session, cluster: Cluster, wanted: Wanted): Promise<void> {
  const { namespace, name, only, isAll } = wanted;
  const pod = await findPod(cluster, wanted);
  if (pod === undefined) return await tellMissing(session, cluster, wanted);
  const [all, namespaceObject, registrations] = await Promise.all([
    listSets(cluster),
    readNamespace(cluster, namespace),
    readRegistrations(cluster),
  ]);
  if (only !== undefined && !all.some(({ metadata }) => metadata?.name === only))
    throw new CliError(`there is no SidecarSet ${only}; sidecarset status lists those that there are`);
  const traces: Trace[] = [];
  for (const { metadata } of all.filter(({ metadata }) => only === undefined || metadata?.name === only)) {
    const { sidecarSet, facts } = await readFacts(session, cluster, metadata?.name ?? "");
    const steps = explainPod(pod, sidecarSet, {
      ...facts,
      namespace: namespaceObject,
      registrations,
      sidecarSets: all,
    });
    traces.push({ sidecarSet: metadata?.name ?? "", steps });
  }
  const isMeant = (trace: Trace) => only !== undefined || isAll || isRelated(pod, trace);
  const shown = traces.filter(isMeant);
  const own = only === undefined ? await traceSetPod(session, cluster, pod) : undefined;
  session.print({ pod: { namespace, name }, sidecarSets: shown, ...(own ? { orderedSet: own } : {}) }, (screen) => {
    if (own) showSteps(`pod ${namespace}/${name}, StatefulSet ${own.statefulSet}`, own.steps, screen);
    for (const { sidecarSet, steps } of shown)
      showSteps(`pod ${namespace}/${name}, SidecarSet ${sidecarSet}`, steps, screen);
    const left = traces.length - shown.length;
    if (traces.length === 0) screen.line("The cluster has no SidecarSets.");
    else if (left > 0)
      screen.line({
        text: `${counted(left, "other SidecarSet is", "other SidecarSets are")} not meant for the pod; --all tells why.`,
        color: "dim",
      });
  });
}

function isRelated(pod: Pod, { sidecarSet, steps }: Trace): boolean {
  if (isInjected(pod, sidecarSet)) return true;
  return !steps.some(
    ({ reason, verdict }) => verdict === "stop" && ["SelectorNotMatched", "NamespaceNotSelected"].includes(reason),
  );
}

async function findPod(cluster: Cluster, { namespace, name }: Wanted): Promise<Pod | undefined> {
  try {
    return await cluster.get<Pod>(PODS, { namespace, name });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** One that an ordered set is to have, or could have. @throws CliError for any other */
async function tellMissing(session: Session, cluster: Cluster, { namespace, name }: Wanted): Promise<void> {
  const own = await traceMissingPod(session, cluster, { namespace, name });
  if (own === undefined)
    throw new CliError(
      `there is no pod ${name} in the namespace ${namespace}; choose another with -n, or write pod/NAMESPACE/NAME`,
    );
  session.print({ pod: { namespace, name }, sidecarSets: [], orderedSet: own }, (screen) =>
    showSteps(`pod ${namespace}/${name}, StatefulSet ${own.statefulSet}`, own.steps, screen),
  );
}

async function tellSet(session: Session, cluster: Cluster, name: string): Promise<void> {
  const { sidecarSet, facts } = await readFacts(session, cluster, name);
  const sidecarSets: readonly SidecarSet[] = await listSets(cluster);
  const steps = explainSidecarSet(sidecarSet, { ...facts, sidecarSets });
  session.print({ sidecarSet: name, steps }, (screen) => showSteps(`SidecarSet ${name}`, steps, screen));
}
