/** Runs one action of a decision, under its precondition, and reports the result. */
import type { ControllerRevision, KubernetesObject } from "../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, RESTARTED_AT_ANNOTATION, RESTARTED_FOR_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../api/sidecarset.ts";
import type { Action } from "../../core/actions.ts";
import type { PodState } from "../../core/ledger.ts";
import type { RestartWorkload } from "../../core/rollout/rules/restarts/restarts.ts";
import { isKubeError, KubeError } from "../../kube/error.ts";
import {
  BUILT_IN_STATEFUL_SETS,
  type Cluster,
  CONTROLLER_REVISIONS,
  DAEMON_SETS,
  DEPLOYMENTS,
  type PartialObject,
  PODS,
  SIDECARSETS,
} from "../../kube/port.ts";
import { type Clock, timestamp } from "../loop/clock.ts";
import { recordEvent } from "../loop/event-feed.ts";
import { conditionPatch, evictPod, podPatch, resizePatch } from "./pod-patch.ts";

export interface ActContext {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** the SidecarSet as read, which is the precondition of its status */
  readonly sidecarSet: SidecarSet;
}

export type Outcome =
  /** `object`: the API server's answer, if a caller needs it */
  | { readonly kind: "done"; readonly object?: KubernetesObject }
  /** the object does not exist any more */
  | { readonly kind: "gone"; readonly error: KubeError }
  /** the object has changed since it was observed, so it must be observed again */
  | { readonly kind: "conflict"; readonly error: KubeError }
  /** no clear answer, so the object must be read before any decision */
  | { readonly kind: "unknown"; readonly error: KubeError }
  /** certainly not done, and not because another writer was faster */
  | { readonly kind: "refused"; readonly error: KubeError };

export type NotDone = Exclude<Outcome, { kind: "done" }>;

/** Runs the action. It never throws a KubeError. */
export function act(action: Action, context: ActContext): Promise<Outcome> {
  return attempt(() => carryOut(action, context));
}

/** A conditional write, with its failure as a value. */
export async function attempt(write: () => Promise<KubernetesObject | undefined>): Promise<Outcome> {
  try {
    const object = await write();
    return object === undefined ? { kind: "done" } : { kind: "done", object };
  } catch (error) {
    if (error instanceof KubeError) return outcomeOf(error);
    throw error;
  }
}

function outcomeOf(error: KubeError): Outcome {
  if (error.code === 404) return { kind: "gone", error };
  if (!error.isOutcomeKnown) return { kind: "unknown", error };
  // 422 means a failed test of a JSON patch, or an invalid object.
  return { kind: isKubeError(error, 409, 422) ? "conflict" : "refused", error };
}

function asItWas({ uid, resourceVersion }: { readonly uid?: string; readonly resourceVersion?: string }) {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

function carryOut(action: Action, context: ActContext): Promise<KubernetesObject | undefined> {
  const { cluster } = context;
  switch (action.kind) {
    case "CreateRevision":
      return cluster.create(CONTROLLER_REVISIONS, action.revision);
    case "RenumberRevision":
      return patchRevision(cluster, action, { revision: action.revision });
    case "LabelRevision":
      return patchRevision(cluster, action, { metadata: { labels: customVersionLabel(action.customVersion) } });
    case "DeleteRevision":
      return cluster.delete(CONTROLLER_REVISIONS, action, asItWas(action)).then(nothing);
    case "PatchStatus":
      return patchStatus(context, action.status);
    case "PatchPod":
      if (action.resources !== undefined) {
        const patch = resizePatch(action.pod, action.resources);
        return cluster.patch<PartialObject>(PODS, action.pod, patch, {
          subresource: "resize",
          answer: "metadata",
        });
      }
      return cluster.patch<PartialObject>(PODS, action.pod, podPatch(action), { answer: "metadata" });
    case "EvictPod":
      return evictPod(cluster, action.pod);
    case "CreatePullPod":
      return cluster.create(PODS, action.pod);
    case "DeletePullPod":
      return cluster.delete(PODS, action, { uid: action.uid }).then(nothing);
    case "RestartWorkload":
      return restartWorkload(cluster, action);
    case "PatchPodCondition":
      return cluster.patch<PartialObject>(PODS, action.pod, conditionPatch(action), {
        subresource: "status",
        answer: "metadata",
      });
    case "RecordEvent":
      return recordEvent(cluster, action, timestamp(context.clock)).then(nothing);
    default:
      return action satisfies never;
  }
}

/** Ignores the API server's answer. */
const nothing = () => undefined;

function patchRevision(
  cluster: Cluster,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  body: object,
): Promise<ControllerRevision> {
  return cluster.patch<ControllerRevision>(CONTROLLER_REVISIONS, { namespace, name }, { type: "merge", body });
}

function customVersionLabel(customVersion: string) {
  return { [CUSTOM_VERSION_LABEL]: customVersion };
}

/** Patches the status if the SidecarSet is unchanged: a late write must not restore older counts. */
async function patchStatus({ cluster, sidecarSet }: ActContext, status: SidecarSetStatus): Promise<SidecarSet> {
  const { name = "", uid, resourceVersion } = sidecarSet.metadata ?? {};
  const { status: before = {} } = sidecarSet;
  const { observedAnnotations: next } = status;
  const observedAnnotations = next && { ...nullOf(before.observedAnnotations ?? {}, next), ...next };
  const merged = { ...nullOf(ownStatus(before), status), ...status, ...(next ? { observedAnnotations } : {}) };
  return await cluster.patch<SidecarSet>(
    SIDECARSETS,
    { name },
    { type: "merge", body: { metadata: { uid, resourceVersion }, status: merged } },
    { subresource: "status" },
  );
}

/** The null members with which a merge patch removes fields. */
function nullOf(before: object, after: object): Readonly<Record<string, null>> {
  const absent = Object.keys(before).filter((key) => !(key in after));
  return Object.fromEntries(absent.map((key) => [key, null]));
}

/** The fields of a status that passes write. A newer version's fields and waiting notifications (notify.ts) stay. */
const FIELDS: Readonly<Record<Exclude<keyof SidecarSetStatus, "notifications">, true>> = {
  observedGeneration: true,
  matchedPods: true,
  updatedPods: true,
  readyPods: true,
  updatedReadyPods: true,
  latestRevision: true,
  collisionCount: true,
  conditions: true,
  selection: true,
  ledgerNamespace: true,
  observedAnnotations: true,
  waves: true,
};

export const STATUS_FIELDS = Object.keys(FIELDS) as readonly (keyof typeof FIELDS)[];

/** The status without fields of other writers. */
function ownStatus(status: SidecarSetStatus): SidecarSetStatus {
  return Object.fromEntries(Object.entries(status).filter(([field]) => field in FIELDS));
}

/**
 * Restarts a workload, if it is unchanged, with the same write as `kubectl rollout restart` and the SidecarSet's name.
 */
const RESOURCES = { Deployment: DEPLOYMENTS, StatefulSet: BUILT_IN_STATEFUL_SETS, DaemonSet: DAEMON_SETS } as const;

/** Returns the resource of a reserved object: pods, or the kind of its workload. */
export function resourceOf({ workload }: Pick<PodState, "workload">) {
  return workload === undefined ? PODS : RESOURCES[workload];
}

async function restartWorkload(
  cluster: Cluster,
  { workload, at, restartedFor }: RestartWorkload,
): Promise<PartialObject> {
  const { uid, resourceVersion } = workload;
  const body = {
    metadata: { uid, resourceVersion, annotations: { [RESTARTED_FOR_ANNOTATION]: restartedFor } },
    spec: { template: { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: at } } } },
  };
  return await cluster.patch<PartialObject>(
    resourceOf(workload),
    workload,
    { type: "merge", body },
    { answer: "metadata" },
  );
}
