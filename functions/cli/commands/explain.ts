/** `explain`: an ordered trace of every rule, for a pod, a workload or a SidecarSet. */

import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { explainSidecarSet } from "../../../shared/core/inspect/explain/explain.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, type ObjectKey, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { CliError } from "../../terminal/screen.ts";
import { showSteps } from "../../terminal/table.ts";
import type { Command } from "../command.ts";
import {
  printPodExplanation,
  printWorkloadExplanation,
  readUnasked,
  type WorkloadTarget,
  workloadTarget,
} from "../input/explain-pod.ts";
import { listSets, readFacts, SET_KIND, type Target, targetOf } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { printStatefulSetExplanation } from "../statefulset/status.ts";

export const EXPLAIN: Command = {
  name: "explain",
  group: "During a rollout",
  summary: "why a pod, or those of a workload, have their sidecars or not, are updated or not, and what they wait for",
  details:
    "Every rule in the order in which it is looked at, with its verdict: ✓ nothing in the way, · good to know, … goes on by itself, ✗ goes on only when you do something. Of a pod, every SidecarSet is told that is meant for it or has been, with --all the others too; where there is none, the nearest ones, and what each of them misses.",
  arguments: [
    {
      name: "<KIND/NAME>",
      about: `pod/NAME (-n), pod/NAMESPACE/NAME, deployment/NAME and other workloads, ${SET_KIND}/NAME; a NAME alone is a SidecarSet's`,
      completion: "set",
    },
  ],
  options: [
    { flags: "--sidecarset <NAME>", about: "of a pod or workload: only this SidecarSet" },
    { flags: "--all", about: "of a pod or workload: also SidecarSets whose selector does not match it" },
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset explain pod/shop/web-0",
    "sidecarset explain deployment/web -n shop",
    "sidecarset explain log-agent",
    "sidecarset explain statefulset.apps.kruise.io/db -n shop",
  ],
  run: async (input, session) => {
    subjectOf(input.argument(0));
    const cluster = await session.cluster();
    const target = await settled(session, cluster, input.argument(0));
    if (target.kind === "statefulset") await printStatefulSetExplanation(session, cluster, target);
    else if (target.kind === "sidecarset") await printSidecarSetExplanation(session, cluster, target.name);
    else {
      const choice = { isAll: input.isSet("all"), only: input.text("sidecarset") };
      const { name, namespace = await session.namespace() } = target;
      if (target.kind === "workload")
        await printWorkloadExplanation(session, cluster, { ...target, namespace, ...choice });
      else await printPodExplanation(session, cluster, { namespace, name, ...choice });
    }
    return 0;
  },
};

type Subject = Target | WorkloadTarget | { readonly kind: "pod"; readonly name: string; readonly namespace?: string };

const POD = /^(pods?|po)$/;
/** Matches the kind of a StatefulSet of apps/v1, and of an Advanced StatefulSet. */
const EITHER = /^(statefulsets?|sts)$/i;

function subjectOf(text: string): Subject {
  const [kind = "", first = "", second, ...rest] = text.split("/");
  const isNamed = first !== "" && second !== "" && rest.length === 0;
  if (POD.test(kind) && isNamed)
    return { kind: "pod", name: second ?? first, ...(second === undefined ? {} : { namespace: first }) };
  const workload = workloadTarget(text);
  if (workload) return workload;
  if (kind && !POD.test(kind) && (first || !text.includes("/"))) return targetOf(text);
  throw new CliError(
    `${text}: write the name of a SidecarSet, pod/NAME, deployment/NAME, KIND/NAMESPACE/NAME or ${SET_KIND}/NAME`,
  );
}

/** Resolves a name without a kind: of two possible objects, the existing one. */
async function settled(session: Session, cluster: Cluster, text: string): Promise<Subject> {
  const subject = subjectOf(text);
  if (subject.kind !== "workload" || !EITHER.test(text.split("/")[0] ?? "")) return subject;
  const { name, namespace = await session.namespace() } = subject;
  const isThere = async (resource: Resource) => (await find(cluster, resource, { namespace, name })) !== undefined;
  const [isBuiltIn, isOrdered] = await Promise.all([isThere(subject.resource), isThere(STATEFUL_SETS)]);
  // The error says how to name the wanted object.
  if (isBuiltIn && isOrdered) return targetOf(text);
  return isOrdered ? { kind: "statefulset", name, namespace } : subject;
}

async function find(cluster: Cluster, resource: Resource, key: ObjectKey): Promise<KubernetesObject | undefined> {
  try {
    return await cluster.get(resource, key);
  } catch (error) {
    if (isKubeError(error, 403, 404)) return undefined;
    throw error;
  }
}

async function printSidecarSetExplanation(session: Session, cluster: Cluster, name: string): Promise<void> {
  const { sidecarSet, facts } = await readFacts(session, cluster, name);
  const sidecarSets: readonly SidecarSet[] = await listSets(cluster);
  const unasked = await readUnasked(cluster, sidecarSets);
  const steps = explainSidecarSet(sidecarSet, { ...facts, sidecarSets, unasked });
  session.print({ sidecarSet: name, steps }, (screen) => showSteps(`SidecarSet ${name}`, steps, screen));
}
