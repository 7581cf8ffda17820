/** StatefulSets: pods numbered from 0, created upwards and replaced downwards, one at a time. */

import { templateHash } from "../kinds/names.ts";
import { POD, STATEFUL_SET } from "../kinds/registry.ts";
import { type Api, component } from "../storage/api.ts";
import { type ApiObject, asNumber, at, controllerOf, type JsonObject, textAt } from "../storage/json.ts";
import type { Change } from "../storage/store.ts";
import { controlledBy, type Ownership } from "./garbage-collector.ts";
import { type Controller, runController } from "./work-queue.ts";
import { createPod, deletePod, isActive, isReady, writeStatus } from "./workload-pods.ts";

const CALLER = component("statefulset-controller");
const REVISION_LABEL = "controller-revision-hash";

function ordinalOf(pod: ApiObject): number {
  return Number(/-(\d+)$/.exec(pod.metadata.name ?? "")?.[1] ?? -1);
}

function revisionOf(set: ApiObject): string {
  return `${set.metadata.name}-${templateHash(at(set, "spec", "template"))}`;
}

function statusOf(set: ApiObject, pods: readonly ApiObject[]): JsonObject {
  const revision = revisionOf(set);
  const updated = pods.filter((pod) => pod.metadata.labels?.[REVISION_LABEL] === revision).length;
  const ready = pods.filter(isReady).length;
  const isDone = updated === pods.length;
  const current = isDone ? revision : textAt(set, "status", "currentRevision") || revision;
  return {
    observedGeneration: set.metadata.generation,
    replicas: pods.length,
    availableReplicas: ready,
    ...(ready === 0 ? {} : { readyReplicas: ready }),
    currentReplicas: isDone ? pods.length : pods.length - updated,
    updatedReplicas: updated,
    currentRevision: current,
    updateRevision: revision,
    collisionCount: 0,
  };
}

function create(api: Api, set: ApiObject, ordinal: number): Promise<ApiObject> {
  const name = `${set.metadata.name}-${ordinal}`;
  const labels = {
    [REVISION_LABEL]: revisionOf(set),
    "statefulset.kubernetes.io/pod-name": name,
    "apps.kubernetes.io/pod-index": String(ordinal),
  };
  return createPod(api, CALLER, set, { name, labels });
}

/** Creates missing pods. True if all wanted pods exist. */
async function createMissing(api: Api, set: ApiObject, pods: readonly ApiObject[]): Promise<boolean> {
  const isOrdered = at(set, "spec", "podManagementPolicy") !== "Parallel";
  for (let ordinal = 0; ordinal < asNumber(at(set, "spec", "replicas"), 1); ordinal += 1) {
    const pod = pods.find((one) => ordinalOf(one) === ordinal);
    if (pod === undefined) await create(api, set, ordinal);
    const mustWait = pod === undefined || !isReady(pod) || !isActive(pod);
    if (isOrdered && mustWait) return false;
  }
  return true;
}

async function replaceOutdated(api: Api, set: ApiObject, pods: readonly ApiObject[]): Promise<void> {
  if (at(set, "spec", "updateStrategy", "type") === "OnDelete" || !pods.every(isReady)) return;
  const partition = asNumber(at(set, "spec", "updateStrategy", "rollingUpdate", "partition"), 0);
  const outdated = pods.filter((pod) => pod.metadata.labels?.[REVISION_LABEL] !== revisionOf(set));
  const last = outdated
    .filter((pod) => ordinalOf(pod) >= partition)
    .sort((one, two) => ordinalOf(two) - ordinalOf(one))[0];
  if (last !== undefined) await deletePod(api, CALLER, last);
}

async function scale(api: Api, set: ApiObject, pods: readonly ApiObject[]): Promise<void> {
  const replicas = asNumber(at(set, "spec", "replicas"), 1);
  const surplus = pods.filter((pod) => ordinalOf(pod) >= replicas).sort((one, two) => ordinalOf(two) - ordinalOf(one));
  const isComplete = await createMissing(api, set, pods);
  if (!isComplete || pods.some((pod) => !isActive(pod))) return;
  if (surplus[0] === undefined) await replaceOutdated(api, set, pods);
  else await deletePod(api, CALLER, surplus[0]);
}

export function runStatefulSetController(api: Api, ownership: Ownership): Controller {
  const keysOf = (change: Change): readonly string[] => {
    if (change.collection === STATEFUL_SET.collection) return [change.key];
    if (change.collection !== POD.collection) return [];
    const owner = controllerOf(change.object);
    return owner?.kind === "StatefulSet" && owner.apiVersion === "apps/v1"
      ? [`${change.object.metadata.namespace}/${owner.name}`]
      : [];
  };
  return runController(api, {
    keysOf,
    async reconcile(key) {
      const set = api.store.get(STATEFUL_SET.collection, key);
      if (set === undefined) return;
      const pods = controlledBy(api.store, ownership, set, POD.collection);
      await writeStatus(api, { caller: CALLER, kind: STATEFUL_SET }, set, statusOf(set, pods.filter(isActive)));
      if (set.metadata.deletionTimestamp === undefined) await scale(api, set, pods);
    },
  });
}
