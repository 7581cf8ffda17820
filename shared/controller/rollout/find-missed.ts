/** Finds pods that were made without the sidecars that they should have: the webhook was down, or not registered. */
import type { Namespace, Pod } from "../../api/kubernetes.ts";
import { CONTROL_PLANE_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { EXEMPT_NAMESPACES } from "../../core/injection/match/matches.ts";
import { mayHaveMissed, missedPods } from "../../core/injection/missed/missed-pods.ts";
import { isCanaryOf } from "../../core/injection/replace-by-canary.ts";
import { injectedBy, podName } from "../../core/pod/is-matched.ts";
import { selectionOf } from "../../core/rollout/missed/selection.ts";
import type { Sequence } from "../../go/sequence.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, NAMESPACES, SIDECARSETS } from "../../kube/port.ts";
import { type Clock, timestamp } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency.ts";
import { listAll, readSidecarSet } from "./observe-pods.ts";
import type { MissedReport } from "./report.ts";

const NAMED = 10;
/** More names than pods are injected by: then it is cheaper to list all SidecarSets. A pod may say any number of names. */
const MOST_READ_ALONE = 20;
const READS_AT_ONCE = 4;

/** `pods` are those that it selects; `keep` makes one that can be kept. undefined: it could not be found out. Costs a list of the few namespaces that are exempt, and only when there may be any. */
export async function findMissed(
  { cluster, clock }: { readonly cluster: Cluster; readonly clock: Clock },
  sidecarSet: SidecarSet,
  pods: Sequence<Pod>,
  keep: (pod: Pod) => Pod = (pod) => pod,
): Promise<readonly Pod[] | undefined> {
  const { since } = selectionOf(sidecarSet, timestamp(clock));
  const candidates = mayHaveMissed(pods, sidecarSet, since).map(keep);
  if (candidates.length === 0) return [];
  try {
    const [exempt, canaries] = await Promise.all([listExempt(cluster), findCanaries(cluster, sidecarSet, candidates)]);
    return missedPods(candidates, { exemptNamespaces: new Set([...EXEMPT_NAMESPACES, ...exempt]), canaries });
  } catch (error) {
    if (isKubeError(error)) return undefined;
    throw error;
  }
}

/** Namespaces that the pod webhook is not registered for, beside those that are left out by name. */
async function listExempt(cluster: Cluster): Promise<readonly string[]> {
  const { items } = await listAll<Namespace, string>(
    cluster,
    NAMESPACES,
    { labelSelector: CONTROL_PLANE_LABEL },
    ({ metadata }) => metadata?.name,
  );
  return items;
}

/** Of the SidecarSets that the pods have sidecars of, those that are canaries of this one. */
async function findCanaries(cluster: Cluster, base: SidecarSet, pods: readonly Pod[]): Promise<readonly string[]> {
  const names = new Set(pods.flatMap(injectedBy));
  if (names.size > MOST_READ_ALONE) return listCanaries(cluster, base);
  const read = await mapLimited([...names], READS_AT_ONCE, (name) => readSidecarSet(cluster, name));
  return read.flatMap((one) => (one && isCanaryOf(one, base) ? (one.metadata?.name ?? []) : []));
}

async function listCanaries(cluster: Cluster, base: SidecarSet): Promise<readonly string[]> {
  const { items } = await listAll<SidecarSet, string>(cluster, SIDECARSETS, {}, (sidecarSet) =>
    isCanaryOf(sidecarSet, base) ? sidecarSet.metadata?.name : undefined,
  );
  return items;
}

/** SidecarSets that are settled have a pass every five minutes where they go through a queue. */
const RECENT_MS = 600_000;

/** `nowMs`: epoch milliseconds */
export function missedReport(
  { missed }: { readonly missed?: readonly Pod[] | undefined },
  nowMs: number,
): MissedReport | undefined {
  const isRecent = ({ metadata }: Pod) => Date.parse(metadata?.creationTimestamp ?? "") > nowMs - RECENT_MS;
  return (
    missed && {
      count: missed.length,
      recent: missed.filter(isRecent).length,
      pods: missed.slice(0, NAMED).map(podName),
    }
  );
}
