/** Kubernetes' disruption controller for the embedded cluster, which has none. */
import type { KubernetesObject, LabelSelector, Pod } from "../../../shared/api/kubernetes.ts";
import type { Clock } from "../../../shared/controller/loop/clock.ts";
import { selectorMatches } from "../../../shared/go/label-selector.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, DISRUPTION_BUDGETS, PODS } from "../../../shared/kube/port.ts";
import { isReady } from "../fixture.ts";

/** The time after which the controller assumes that a counted pod was not disrupted. */
const FORGOTTEN_MS = 120_000;
const POLL_MS = 400;

export interface Budget extends KubernetesObject {
  readonly spec: { readonly selector: LabelSelector; readonly minAvailable: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly disruptionsAllowed?: number;
    readonly currentHealthy?: number;
    readonly desiredHealthy?: number;
    readonly expectedPods?: number;
    readonly disruptedPods?: Readonly<Record<string, string>>;
  };
}

type Status = NonNullable<Budget["status"]>;

/** @returns a function that stops the controller, and resolves after that */
export function startDisruptionController(cluster: Cluster, clock: Clock): () => Promise<void> {
  const stopped = new AbortController();
  const running = (async () => {
    while (!stopped.signal.aborted) {
      await syncBudgets(cluster, clock);
      await clock.sleep(POLL_MS, stopped.signal);
    }
  })();
  return async () => {
    stopped.abort();
    await running;
  };
}

/** Updates all budgets once. A write that conflicts is tried again later. */
export async function syncBudgets(cluster: Cluster, clock: Clock): Promise<void> {
  const { items: budgets } = await cluster.list<Budget>(DISRUPTION_BUDGETS);
  const { items: pods } = await cluster.list<Pod>(PODS);
  for (const budget of budgets) {
    const { namespace = "", name = "", uid, resourceVersion } = budget.metadata ?? {};
    const own = pods.filter(({ metadata }) => metadata?.namespace === namespace);
    const status = statusOf(budget, own, clock.epochMs());
    if (isSame(budget.status, status)) continue;
    // A merge patch removes a member with null.
    const gone = Object.keys(budget.status?.disruptedPods ?? {}).filter((pod) => !(pod in status.disruptedPods));
    const disruptedPods = { ...status.disruptedPods, ...Object.fromEntries(gone.map((pod) => [pod, null])) };
    const body = { metadata: { uid, resourceVersion }, status: { ...status, disruptedPods } };
    await cluster
      .patch(DISRUPTION_BUDGETS, { namespace, name }, { type: "merge", body }, { subresource: "status" })
      .catch((error: unknown) => {
        if (!(isKubeError(error, 409) || isKubeError(error, 404))) throw error;
      });
  }
}

function statusOf(budget: Budget, inNamespace: readonly Pod[], nowMs: number): Required<Status> {
  const { selector, minAvailable } = budget.spec;
  const pods = inNamespace.filter(({ metadata }) => selectorMatches(selector, metadata?.labels) === true);
  const marks = budget.status?.disruptedPods ?? {};
  const isDisrupted = ({ metadata: { name = "", deletionTimestamp } = {} }: Pod) =>
    deletionTimestamp === undefined && Date.parse(marks[name] ?? "") + FORGOTTEN_MS >= nowMs;
  const disrupted = pods.filter(isDisrupted).map(({ metadata }) => metadata?.name ?? "");
  const isHealthy = (pod: Pod) => isReady(pod) && !pod.metadata?.deletionTimestamp && !isDisrupted(pod);
  const currentHealthy = pods.filter(isHealthy).length;
  return {
    observedGeneration: budget.metadata?.generation ?? 0,
    disruptionsAllowed: pods.length === 0 ? 0 : Math.max(0, currentHealthy - minAvailable),
    currentHealthy,
    desiredHealthy: minAvailable,
    expectedPods: pods.length,
    disruptedPods: Object.fromEntries(disrupted.map((name) => [name, marks[name] ?? ""])),
  };
}

function isSame(before: Status = {}, after: Required<Status>): boolean {
  const { disruptedPods = {}, ...counts } = before;
  const { disruptedPods: then, ...others } = after;
  const sorted = (object: object) => JSON.stringify(Object.entries(object).toSorted());
  return sorted(disruptedPods) === sorted(then) && sorted(counts) === sorted(others);
}
