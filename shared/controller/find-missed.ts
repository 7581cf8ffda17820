/** Finds pods that were made without the sidecars that they should have: the webhook was down, or not registered. */
import type { Namespace, Pod } from "../api/kubernetes.ts";
import { CONTROL_PLANE_LABEL } from "../api/names.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { isCanaryOf } from "../core/inject/replace-by-canary.ts";
import type { Sequence } from "../core/lib/sequence.ts";
import { EXEMPT_NAMESPACES } from "../core/match/exempt-pods.ts";
import { mayHaveMissed, missedPods } from "../core/missed-injection/missed-pods.ts";
import { selectionOf } from "../core/missed-injection/selection.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, NAMESPACES, SIDECARSETS } from "../kube/port.ts";
import { type Clock, timestamp } from "./clock.ts";
import { listAll } from "./observe.ts";
import type { MissedReport } from "./report.ts";

const NAMED = 10;

/** `pods` are those that it selects; `keep` makes one that can be kept. undefined: it could not be found out. Costs two lists, and only when there may be any. */
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
    const [exempt, canaries] = await Promise.all([listExempt(cluster), listCanaries(cluster, sidecarSet)]);
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

async function listCanaries(cluster: Cluster, base: SidecarSet): Promise<readonly string[]> {
  const { items } = await listAll<SidecarSet, string>(cluster, SIDECARSETS, {}, (sidecarSet) =>
    isCanaryOf(sidecarSet, base) ? sidecarSet.metadata?.name : undefined,
  );
  return items;
}

export function missedReport({ missed }: { readonly missed?: readonly Pod[] | undefined }): MissedReport | undefined {
  return missed && { count: missed.length, pods: missed.slice(0, NAMED).map(podName) };
}

export function podName({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}
