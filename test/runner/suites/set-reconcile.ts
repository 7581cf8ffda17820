/** Tests passes over a set in a small cluster: after each pass it must equal the reference's cluster. */
import type {
  ControllerRevision,
  KubernetesObject,
  Labels,
  OwnerReference,
  Pod,
  PodStatus,
} from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import { revisionText } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { reconcileSet } from "../../../shared/core/statefulset/reconcile.ts";
import {
  DEFAULT_STATEFUL_SET_FEATURE_GATES,
  type StatefulSetFeatureGates,
} from "../../../shared/core/statefulset/step.ts";
import { selectorMatches } from "../../../shared/go/label-selector.ts";
import { withoutNoise } from "../clean.ts";
import { compare, type Difference } from "../compare.ts";
import { type FailNext, nameOf, SetCluster } from "./set-cluster.ts";

interface Metadata {
  readonly labels: Labels | null;
  readonly annotations: Labels | null;
  readonly finalizers: readonly string[] | null;
  readonly ownerReferences: readonly OwnerReference[] | null;
}

type Step =
  | { readonly op: "reconcile"; readonly now: string }
  | { readonly op: "advance" }
  | { readonly op: "setPodStatus"; readonly pod: string; readonly status: PodStatus; readonly nodeName?: string }
  | { readonly op: "podGone" | "deletePod"; readonly pod: string; readonly gone: boolean }
  | ({ readonly op: "setPodMeta"; readonly pod: string } & Metadata)
  | { readonly op: "create" | "updateSet" | "setPVC"; readonly object: KubernetesObject }
  | { readonly op: "deleteSet"; readonly gone: boolean }
  | { readonly op: "deletePVC"; readonly pvc: string; readonly gone: boolean }
  | ({ readonly op: "failNext" } & FailNext);

interface Input {
  readonly now: string;
  readonly set: string;
  readonly reads: string;
  readonly featureGates?: Partial<StatefulSetFeatureGates>;
  readonly objects: readonly KubernetesObject[];
  readonly steps: readonly Step[];
}

type Members = Readonly<Record<string, unknown>>;

interface Expected {
  readonly reconciles: readonly Members[];
  readonly revisionData: Labels;
}

/** Returns the annotations with JSON values parsed. */
function parsedAnnotations(annotations: Labels | undefined): Members | undefined {
  if (!annotations) return undefined;
  const entries = Object.entries(annotations).map(([key, text]) => {
    return [key, key.startsWith("apps.kruise.io/inplace-update-") ? withoutNoise(JSON.parse(text)) : text];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function ownersOf({ metadata }: KubernetesObject): readonly string[] | undefined {
  const owners = (metadata?.ownerReferences ?? []).map(
    ({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }) =>
      [
        apiVersion,
        kind,
        name,
        uid,
        ...(controller ? ["controller"] : []),
        ...(blockOwnerDeletion ? ["block"] : []),
      ].join("|"),
  );
  return owners.length > 0 ? owners : undefined;
}

const CONDITIONS = ["Ready", "InPlaceUpdateReady", "KruisePodReady"];

function podView(pod: Pod): Members {
  const { metadata, spec, status } = pod;
  const volumes = (spec.volumes ?? []) as readonly { name: string; persistentVolumeClaim?: { claimName: string } }[];
  const conditions = (status?.conditions ?? []).filter(({ type }) => CONDITIONS.includes(type));
  return {
    uid: metadata?.uid,
    labels: metadata?.labels,
    annotations: parsedAnnotations(metadata?.annotations),
    owners: ownersOf(pod),
    images: Object.fromEntries(spec.containers.map(({ name, image }) => [name, image])),
    phase: status?.phase,
    terminating: metadata?.deletionTimestamp ? true : undefined,
    finalizers: metadata?.finalizers?.length ? metadata.finalizers : undefined,
    volumes: volumes.length
      ? volumes.map(({ name, persistentVolumeClaim: claim }) => `${name}=${claim?.claimName ?? "other"}`).sort()
      : undefined,
    conditions: conditions.length
      ? Object.fromEntries(conditions.map(({ type, ...rest }) => [type, withoutNoise(rest)]))
      : undefined,
  };
}

function claimView(claim: PersistentVolumeClaim): Members {
  const { metadata, spec } = claim;
  return {
    uid: metadata?.uid,
    labels: metadata?.labels,
    annotations: metadata?.annotations,
    owners: ownersOf(claim),
    storage: spec?.resources?.requests?.["storage"],
    terminating: metadata?.deletionTimestamp ? true : undefined,
  };
}

function revisionView(revision: ControllerRevision): Members {
  const { labels, annotations = {}, name } = revision.metadata ?? {};
  return {
    name,
    revision: revision.revision,
    labels,
    owners: ownersOf(revision),
    annotations: Object.keys(annotations).length > 0 ? annotations : undefined,
  };
}

function byName<T extends KubernetesObject>(objects: readonly T[], view: (object: T) => Members): Members | undefined {
  return objects.length === 0 ? undefined : Object.fromEntries(objects.map((object) => [nameOf(object), view(object)]));
}

function viewOf(cluster: SetCluster): Members {
  const revisions = cluster.list<ControllerRevision>("ControllerRevision").toSorted((a, b) => a.revision - b.revision);
  return {
    status: cluster.set ? withoutZeros(cluster.set.status) : null,
    pods: byName(cluster.list<Pod>("Pod"), podView),
    pvcs: byName(cluster.list<PersistentVolumeClaim>("PersistentVolumeClaim"), claimView),
    controllerRevisions: revisions.length > 0 ? revisions.map(revisionView) : undefined,
  };
}

/** Removes counters that Go leaves out if they are 0. */
function withoutZeros(status: StatefulSet["status"]): unknown {
  const { updatedReadyReplicas, updatedAvailableReplicas, ...rest } = status ?? { replicas: 0 };
  return {
    ...rest,
    ...(updatedReadyReplicas ? { updatedReadyReplicas } : {}),
    ...(updatedAvailableReplicas ? { updatedAvailableReplicas } : {}),
  };
}

function reconcile(cluster: SetCluster, gates: StatefulSetFeatureGates, now: string): Members {
  const { set } = cluster;
  if (!set) return { ...viewOf(cluster), requeueAfterSeconds: 0, isFailed: false, events: [] };
  const revisions = cluster
    .list<ControllerRevision>("ControllerRevision")
    .filter(({ metadata }) => selectorMatches(set.spec.selector, metadata?.labels) === true);
  const outcome = cluster.run(reconcileSet({ set, pods: cluster.list("Pod"), revisions, gates, now }), now);
  return {
    ...viewOf(cluster),
    requeueAfterSeconds: outcome.requeueAfterSeconds,
    isFailed: outcome.failure !== undefined,
    events: [...cluster.events].sort(),
  };
}

function withMeta(
  object: KubernetesObject,
  { labels, annotations, finalizers, ownerReferences }: Metadata,
): KubernetesObject {
  const { labels: _l, annotations: _a, finalizers: _f, ownerReferences: _o, ...rest } = object.metadata ?? {};
  return {
    ...object,
    metadata: {
      ...rest,
      ...(labels ? { labels } : {}),
      ...(annotations ? { annotations } : {}),
      ...(finalizers ? { finalizers } : {}),
      ...(ownerReferences ? { ownerReferences } : {}),
    },
  };
}

function apply(
  cluster: SetCluster,
  step: Exclude<Step, { op: "reconcile" }>,
  { now, set }: { now: string; set: string },
): void {
  const terminating = (object: KubernetesObject) => ({
    ...object,
    metadata: { ...object.metadata, deletionTimestamp: object.metadata?.deletionTimestamp ?? now },
  });
  switch (step.op) {
    case "advance":
      break;
    case "setPodStatus":
      cluster.change("Pod", step.pod, (pod) => {
        const { spec } = pod as Pod;
        return {
          ...pod,
          spec: { ...spec, ...(step.nodeName ? { nodeName: step.nodeName } : {}) },
          status: step.status,
        } as Pod;
      });
      break;
    case "podGone":
    case "deletePod":
      if (step.gone || step.op === "podGone") cluster.objects.Pod.delete(step.pod);
      else cluster.change("Pod", step.pod, terminating);
      break;
    case "setPodMeta":
      cluster.change("Pod", step.pod, (pod) => withMeta(pod, step));
      break;
    case "create":
    case "setPVC":
      cluster.add({ ...(step.op === "setPVC" ? { kind: "PersistentVolumeClaim" } : {}), ...step.object });
      break;
    case "updateSet":
      cluster.change(
        "StatefulSet",
        set,
        (before) => ({ ...step.object, kind: "StatefulSet", status: (before as StatefulSet).status }) as StatefulSet,
      );
      break;
    case "deleteSet":
      if (step.gone) cluster.objects.StatefulSet.delete(set);
      else cluster.change("StatefulSet", set, terminating);
      break;
    case "deletePVC":
      if (step.gone) cluster.objects.PersistentVolumeClaim.delete(step.pvc);
      else cluster.change("PersistentVolumeClaim", step.pvc, terminating);
      break;
    case "failNext":
      cluster.failNext.push(step);
      break;
    default:
      step satisfies never;
  }
}

/** Returns the expected view without the reference's collision with its own earlier write. */
function expectedView({ error, events, ...rest }: Members, actual: Members | undefined): Members {
  const isCollision = typeof error === "string" && error.includes("object was modified");
  return {
    ...withoutNoiseIn(rest),
    isFailed: isCollision ? actual?.["isFailed"] : error !== undefined,
    events: isCollision ? actual?.["events"] : events,
    pods: expectedPods(rest["pods"] as Members | undefined),
  };
}

/** Makes missing owners null. */
function withoutNoiseIn(view: Members): Members {
  const revisions = view["controllerRevisions"] as readonly Members[] | undefined;
  const controllerRevisions = revisions?.map((revision) => ({ ...revision, owners: revision["owners"] ?? undefined }));
  return { ...view, controllerRevisions };
}

function expectedPods(pods: Members | undefined): Members | undefined {
  if (!pods || Object.keys(pods).length === 0) return undefined;
  const entries = Object.entries(pods).map(([name, pod]) => {
    const { annotations, owners, ...rest } = pod as { readonly annotations?: Labels; readonly owners: unknown };
    return [name, { ...rest, owners: owners ?? undefined, annotations: parsedAnnotations(annotations) }];
  });
  return Object.fromEntries(entries);
}

export function setReconcileSuite(input: Input, expected: Expected): readonly Difference[] {
  const set = input.set.split("/")[1] ?? "";
  const cluster = new SetCluster(set, input.reads === "snapshot");
  const gates = { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, ...input.featureGates };
  for (const object of input.objects) cluster.add(object);
  const views: Members[] = [];
  const data = new Map<string, string>();
  let { now } = input;
  for (const step of input.steps) {
    if (step.op !== "reconcile") apply(cluster, step, { now, set });
    else {
      now = step.now;
      views.push(reconcile(cluster, gates, now));
      for (const revision of cluster.list<ControllerRevision>("ControllerRevision")) {
        data.set(nameOf(revision), revisionText(revision.data));
      }
    }
  }
  return [
    ...compare(
      views,
      expected.reconciles.map((view, index) => expectedView(view, views[index])),
      "$.reconciles",
    ),
    ...compare(Object.fromEntries(data), expected.revisionData, "$.revisionData"),
  ];
}
