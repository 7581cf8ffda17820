/** Tests whole reconciles in sequence, with hot upgrades and rollouts, and a kubelet that the case controls. */
import type {
  ControllerRevision,
  KubernetesObject,
  Pod,
  PodCondition,
  PodStatus,
} from "../../../shared/api/kubernetes.ts";
import { UPGRADABLE_CONDITION } from "../../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { sortedGoJson } from "../../../shared/go/json/go-json.ts";
import { compare, type Difference } from "../compare.ts";
import { comparable } from "./pod-update.ts";
import { keyOf, ReconcileCluster, type RecordedEvent } from "./reconcile-cluster.ts";

/** A reconcile, or a change between two reconciles. */
export type ReconcileStep =
  | { readonly op: "reconcile"; readonly now: string; readonly sidecarSet: string }
  | { readonly op: "advance" }
  | { readonly op: "updateSidecarSet"; readonly object: SidecarSet }
  | { readonly op: "setPodStatus"; readonly pod: string; readonly status: PodStatus }
  | {
      readonly op: "setPodMeta";
      readonly pod: string;
      readonly annotations?: Readonly<Record<string, string>>;
      readonly labels?: Readonly<Record<string, string>>;
    }
  | { readonly op: "create"; readonly object: KubernetesObject }
  | { readonly op: "deletePod"; readonly pod: string; readonly gone: boolean }
  | { readonly op: "deleteSidecarSet"; readonly name: string };

export interface ReconcileInput {
  readonly now: string;
  readonly kruiseNamespace: string;
  readonly objects: readonly KubernetesObject[];
  readonly steps: readonly ReconcileStep[];
}

interface PodView {
  readonly annotations: Readonly<Record<string, string>>;
  readonly images: Readonly<Record<string, string>>;
  readonly initImages?: Readonly<Record<string, string>>;
  readonly sidecarSetUpgradableCondition?: PodCondition;
}

export interface Reconciled {
  readonly sidecarSetStatus?: SidecarSetStatus;
  readonly pods: Readonly<Record<string, PodView>>;
  readonly controllerRevisions: readonly Readonly<Record<string, unknown>>[];
  readonly events: readonly RecordedEvent[];
  readonly sidecarSetResourceVersionAtRead: string;
}

export interface ReconcileExpectation {
  readonly reconciles: readonly Reconciled[];
}

function imagesOf(containers: readonly { readonly name: string; readonly image?: string }[]) {
  return Object.fromEntries(containers.map(({ name, image }) => [name, image ?? ""]));
}

function viewOf(pod: Pod) {
  const condition = pod.status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION);
  return {
    annotations: comparable(pod).metadata.annotations,
    images: imagesOf(pod.spec.containers),
    ...(pod.spec.initContainers ? { initImages: imagesOf(pod.spec.initContainers) } : {}),
    ...(condition ? { sidecarSetUpgradableCondition: condition } : {}),
  };
}

/** Returns the expected view with JSON annotations parsed. */
function parsedView({ annotations, ...view }: PodView) {
  return {
    ...view,
    annotations: comparable({ metadata: { annotations }, spec: { containers: [] } }).metadata.annotations,
  };
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Readonly<Record<string, U>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

/** Returns revisions in the form of the reference's history: data as text, in the reference's sort order. */
export function revisionViews(revisions: Iterable<ControllerRevision>): readonly unknown[] {
  const sorted = [...revisions].sort((a, b) => a.revision - b.revision || (keyOf(a) < keyOf(b) ? -1 : 1));
  return sorted.map(({ metadata = {}, revision, data }) => {
    const { name, namespace, labels, annotations, ownerReferences } = metadata;
    return { name, namespace, labels, annotations, ownerReferences, revision, dataRaw: sortedGoJson(data) };
  });
}

/** Carries out the acts of users, kubelets and owners between reconciles. */
export function take(cluster: ReconcileCluster, step: Exclude<ReconcileStep, { op: "reconcile" }>): void {
  switch (step.op) {
    case "advance":
      break;
    case "updateSidecarSet":
      cluster.updateSidecarSet(step.object);
      break;
    case "setPodStatus":
      cluster.setPodStatus(step.pod, step.status);
      break;
    case "setPodMeta": {
      const { annotations, labels } = step;
      const change = { ...(annotations ? { annotations } : {}), ...(labels ? { labels } : {}) };
      cluster.updatePod(step.pod, (pod) => ({ ...pod, metadata: { ...pod.metadata, ...change } }));
      break;
    }
    case "create":
      cluster.add(step.object);
      break;
    case "deletePod":
      deletePod(cluster, step);
      break;
    case "deleteSidecarSet":
      cluster.sidecarSets.delete(step.name);
      break;
    default:
      step satisfies never;
  }
}

/** Deletes a pod. A finalizer keeps a pod that is not gone. */
function deletePod(cluster: ReconcileCluster, { pod: key, gone }: Extract<ReconcileStep, { op: "deletePod" }>): void {
  const deletionTimestamp = "2025-06-01T00:00:00Z";
  if (gone) cluster.pods.delete(key);
  else cluster.updatePod(key, (pod) => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } }));
}

/** Removes nulls, which stand for Go's nil maps and lists. */
function withoutNulls(view: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value !== null));
}

/** Returns the differences between the cluster and the reference's after the same reconcile. */
export function compareRound(cluster: ReconcileCluster, name: string, expected: Reconciled, path: string) {
  const { sidecarSetStatus, events } = expected;
  const pods = mapValues(expected.pods, parsedView);
  const controllerRevisions = expected.controllerRevisions.map(withoutNulls);
  const actual = {
    sidecarSetStatus: cluster.sidecarSets.get(name)?.status,
    pods: Object.fromEntries([...cluster.pods].map(([key, pod]) => [key, viewOf(pod)])),
    controllerRevisions: revisionViews(cluster.revisions.values()),
    events: cluster.events,
  };
  return compare(actual, { sidecarSetStatus, pods, controllerRevisions, events }, path);
}

export function reconcileSuite(input: ReconcileInput, expected: ReconcileExpectation): readonly Difference[] {
  const cluster = new ReconcileCluster();
  for (const object of input.objects) cluster.add(object);
  const differences: Difference[] = [];
  let round = 0;
  for (const step of input.steps) {
    if (step.op !== "reconcile") {
      take(cluster, step);
      continue;
    }
    const wanted = expected.reconciles[round];
    if (!wanted) throw new Error(`no expectation for reconcile ${round}`);
    const { kruiseNamespace } = input;
    const resourceVersion = wanted.sidecarSetResourceVersionAtRead;
    cluster.reconcile(step.sidecarSet, { now: step.now, kruiseNamespace, resourceVersion });
    differences.push(...compareRound(cluster, step.sidecarSet, wanted, `$.reconciles[${round}]`));
    round++;
  }
  return differences;
}
