/** `explain` of an Advanced StatefulSet, and of the pods that it has or is to have. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { STATEFUL_SET_KIND } from "../../../shared/api/names.ts";
import type { SetKey } from "../../../shared/controller/statefulset/observe.ts";
import { parsePodName } from "../../../shared/core/pod/pod-name.ts";
import { explainSetPod, type SetStep } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { explainWholeSet } from "../../../shared/core/statefulset/explain/trace-set.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { showSteps } from "../../terminal/show-steps.ts";
import type { SetTarget } from "../input/target.ts";
import type { Session } from "../session.ts";
import { findStatefulSet, readStatefulSet } from "./read-statefulset.ts";

export async function printStatefulSetExplanation(
  session: Session,
  cluster: Cluster,
  target: SetTarget,
): Promise<void> {
  const facts = await readStatefulSet(session, cluster, target);
  const { namespace, name } = facts.key;
  const steps = explainWholeSet(facts);
  session.print({ statefulSet: { namespace, name }, steps }, (screen) =>
    showSteps(`StatefulSet ${namespace}/${name}`, steps, screen),
  );
}

export interface SetPodTrace {
  /** name of the set */
  readonly statefulSet: string;
  readonly steps: readonly SetStep[];
}

/** Traces the Advanced StatefulSet that owns the pod. undefined: there is none, or the caller may not read it. */
export async function traceSetPod(session: Session, cluster: Cluster, pod: Pod): Promise<SetPodTrace | undefined> {
  const { namespace = "", name = "", ownerReferences = [] } = pod.metadata ?? {};
  const owner = ownerReferences.find(({ controller }) => controller === true);
  const isOfSet = owner?.kind === STATEFUL_SET_KIND && owner.apiVersion.startsWith("apps.kruise.io/");
  return isOfSet ? await trace(session, cluster, { namespace, name: owner.name }, name) : undefined;
}

/** Traces a missing pod whose name is one of an Advanced StatefulSet. */
export async function traceMissingPod(
  session: Session,
  cluster: Cluster,
  { namespace, name }: SetKey,
): Promise<SetPodTrace | undefined> {
  const { parent, ordinal } = parsePodName(name);
  if (ordinal < 0 || parent === "" || name !== `${parent}-${ordinal}`) return undefined;
  return await trace(session, cluster, { namespace, name: parent }, name);
}

async function trace(session: Session, cluster: Cluster, key: SetKey, pod: string): Promise<SetPodTrace | undefined> {
  try {
    const facts = await findStatefulSet(session, cluster, key);
    return facts && { statefulSet: key.name, steps: explainSetPod(pod, facts) };
  } catch (error) {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  }
}
