/** Deployments: a ReplicaSet per template, the newest scaled up and the others down within surge and unavailability. */

import { templateHash } from "../kinds/names.ts";
import { DEPLOYMENT, POD, REPLICA_SET } from "../kinds/registry.ts";
import { type Api, component, internalCall } from "../storage/api.ts";
import {
  type ApiObject,
  asNumber,
  asObject,
  at,
  controllerOf,
  type JsonObject,
  keyOf,
  objectsIn,
  textAt,
  textMap,
  timestamp,
} from "../storage/json.ts";
import type { Change } from "../storage/store.ts";
import { changeObject } from "../storage/update.ts";
import { createObject } from "../storage/write.ts";
import { controlledBy, type Ownership } from "./garbage-collector.ts";
import { type Controller, runController } from "./work-queue.ts";
import { createPod, deletePod, isActive, isReady, ownerReference, writeStatus } from "./workload-pods.ts";

const CALLER = component("deployment-controller");
const HASH_LABEL = "pod-template-hash";
const REVISION = "deployment.kubernetes.io/revision";

function replicasOf(object: ApiObject): number {
  return asNumber(at(object, "spec", "replicas"), 1);
}

function readyOf(object: ApiObject): number {
  return asNumber(at(object, "status", "readyReplicas"), 0);
}

function sum(sets: readonly ApiObject[], count: (set: ApiObject) => number): number {
  return sets.reduce((total, set) => total + count(set), 0);
}

function share(value: unknown, replicas: number, round: (value: number) => number): number {
  if (typeof value === "number") return value;
  return round((Number.parseInt(String(value ?? "25%"), 10) * replicas) / 100);
}

function revisionOf(set: ApiObject): number {
  return Number(set.metadata.annotations?.[REVISION] ?? 0);
}

async function createSet(api: Api, deployment: ApiObject, hash: string, revision: number): Promise<ApiObject> {
  const template = asObject(at(deployment, "spec", "template"));
  const labels = { ...textMap(at(template, "metadata", "labels")), [HASH_LABEL]: hash };
  const selector = asObject(at(deployment, "spec", "selector"));
  const name = `${deployment.metadata.name}-${hash}`;
  const body = {
    metadata: {
      name,
      labels,
      annotations: { [REVISION]: String(revision) },
      ownerReferences: [ownerReference(deployment)],
    },
    spec: {
      replicas: 0,
      selector: { ...selector, matchLabels: { ...textMap(selector["matchLabels"]), [HASH_LABEL]: hash } },
      template: { ...template, metadata: { ...asObject(template["metadata"]), labels } },
    },
  };
  const key = { namespace: deployment.metadata.namespace ?? "", name };
  return createObject(api, internalCall(CALLER, REPLICA_SET, key), body);
}

async function scale(api: Api, set: ApiObject, replicas: number): Promise<void> {
  if (replicasOf(set) === replicas) return;
  const transform = (current: ApiObject): ApiObject => ({
    ...current,
    spec: { ...asObject(current["spec"]), replicas },
  });
  const call = internalCall(CALLER, REPLICA_SET, keyOf(set));
  await changeObject(api, call, { verb: "update", transform });
}

interface Rollout {
  readonly deployment: ApiObject;
  readonly newest: ApiObject;
  readonly others: readonly ApiObject[];
}

async function scaleUp(api: Api, { deployment, newest, others }: Rollout): Promise<void> {
  const replicas = replicasOf(deployment);
  const strategy = at(deployment, "spec", "strategy");
  const isRecreate = at(strategy, "type") === "Recreate";
  const running = sum(others, (set) => Math.max(replicasOf(set), asNumber(at(set, "status", "replicas"), 0)));
  const surge = isRecreate ? 0 : share(at(strategy, "rollingUpdate", "maxSurge"), replicas, Math.ceil);
  const room = isRecreate && running > 0 ? 0 : replicas + surge - sum(others, replicasOf);
  const grown = Math.min(replicas, Math.max(replicasOf(newest), room));
  await scale(api, newest, grown);
}

async function scaleDown(api: Api, { deployment, newest, others }: Rollout): Promise<void> {
  const replicas = replicasOf(deployment);
  const strategy = at(deployment, "spec", "strategy");
  const isRecreate = at(strategy, "type") === "Recreate";
  const unavailable = share(at(strategy, "rollingUpdate", "maxUnavailable"), replicas, Math.floor);
  const unready = replicasOf(newest) - readyOf(newest);
  const total = sum([newest, ...others], replicasOf);
  let spare = isRecreate ? total : total - (replicas - unavailable) - unready;
  for (const set of others) {
    // A pod that is not ready is no loss.
    const broken = replicasOf(set) - readyOf(set);
    const removed = Math.min(replicasOf(set), Math.max(Math.min(broken, replicasOf(set)), Math.max(0, spare)));
    spare -= removed;
    await scale(api, set, replicasOf(set) - removed);
  }
}

async function rolloutOf(api: Api, ownership: Ownership, deployment: ApiObject): Promise<Rollout> {
  const sets = controlledBy(api.store, ownership, deployment, REPLICA_SET.collection);
  const hash = templateHash(at(deployment, "spec", "template"));
  const found = sets.find((set) => set.metadata.labels?.[HASH_LABEL] === hash);
  const newest = found ?? (await createSet(api, deployment, hash, Math.max(0, ...sets.map(revisionOf)) + 1));
  return { deployment, newest, others: sets.filter((set) => set.metadata.uid !== newest.metadata.uid) };
}

export function runDeploymentController(api: Api, ownership: Ownership): Controller {
  const keysOf = (change: Change): readonly string[] => {
    if (change.collection === DEPLOYMENT.collection) return [change.key];
    if (change.collection !== REPLICA_SET.collection) return [];
    const owner = controllerOf(change.object);
    return owner?.kind === "Deployment" ? [`${change.object.metadata.namespace}/${owner.name}`] : [];
  };
  return runController(api, {
    keysOf,
    async reconcile(key) {
      const deployment = api.store.get(DEPLOYMENT.collection, key);
      if (deployment === undefined || deployment.metadata.deletionTimestamp !== undefined) return;
      const rollout = await rolloutOf(api, ownership, deployment);
      const isPaused = at(deployment, "spec", "paused") === true;
      if (!isPaused) await scaleUp(api, rollout);
      if (!isPaused) await scaleDown(api, rollout);
      const status = deploymentStatus(deployment, rollout.newest, rollout.others, timestamp(api.clock.now()));
      await writeStatus(api, { caller: CALLER, kind: DEPLOYMENT }, deployment, status);
    },
  });
}

/** A Deployment's status from its ReplicaSets. */
function count(sets: readonly ApiObject[], field: string): number {
  return sets.reduce((total, set) => total + asNumber(at(set, "status", field), 0), 0);
}

function condition(deployment: ApiObject, wanted: JsonObject, now: string): JsonObject {
  const before = objectsIn(at(deployment, "status", "conditions")).find((one) => one["type"] === wanted["type"]);
  const isSame = before?.["status"] === wanted["status"] && before?.["reason"] === wanted["reason"];
  if (isSame && before !== undefined) return before;
  const since = before?.["status"] === wanted["status"] ? before?.["lastTransitionTime"] : now;
  return { ...wanted, lastUpdateTime: now, lastTransitionTime: since ?? now };
}

function conditions(
  deployment: ApiObject,
  newest: ApiObject,
  facts: { available: number; isDone: boolean },
  now: string,
): JsonObject[] {
  const isAvailable = facts.available >= Math.floor(asNumber(at(deployment, "spec", "replicas"), 1) * 0.75);
  const available = isAvailable
    ? {
        type: "Available",
        status: "True",
        reason: "MinimumReplicasAvailable",
        message: "Deployment has minimum availability.",
      }
    : {
        type: "Available",
        status: "False",
        reason: "MinimumReplicasUnavailable",
        message: "Deployment does not have minimum availability.",
      };
  const name = newest.metadata.name;
  const progressing = facts.isDone
    ? { reason: "NewReplicaSetAvailable", message: `ReplicaSet "${name}" has successfully progressed.` }
    : { reason: "ReplicaSetUpdated", message: `ReplicaSet "${name}" is progressing.` };
  return [
    condition(deployment, available, now),
    condition(deployment, { type: "Progressing", status: "True", ...progressing }, now),
  ];
}

function nonZero(counts: Readonly<Record<string, number>>): JsonObject {
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== 0));
}

/** `now` RFC 3339. */
function deploymentStatus(
  deployment: ApiObject,
  newest: ApiObject,
  others: readonly ApiObject[],
  now: string,
): JsonObject {
  const all = [newest, ...others];
  const wanted = asNumber(at(deployment, "spec", "replicas"), 1);
  const available = count(all, "availableReplicas");
  const updated = count([newest], "replicas");
  const isDone = updated === wanted && count(others, "replicas") === 0 && available >= wanted;
  return {
    observedGeneration: deployment.metadata.generation,
    ...nonZero({
      replicas: count(all, "replicas"),
      updatedReplicas: updated,
      readyReplicas: count(all, "readyReplicas"),
      availableReplicas: available,
      unavailableReplicas: Math.max(0, wanted - available),
    }),
    conditions: conditions(deployment, newest, { available, isDone }, now),
  };
}

// The ReplicaSet controller: keeps the wanted number of pods.

const REPLICA_SET_CALLER = component("replicaset-controller");

/** Pods without a node go first, then those not ready, then the youngest. */
function inDeletionOrder(pods: readonly ApiObject[]): readonly ApiObject[] {
  const rank = (pod: ApiObject): number => {
    if (textAt(pod, "spec", "nodeName") === "") return 0;
    return isReady(pod) ? 2 : 1;
  };
  return pods.toSorted((left, right) => {
    const older = (left.metadata.creationTimestamp ?? "") < (right.metadata.creationTimestamp ?? "") ? 1 : -1;
    return rank(left) - rank(right) || older;
  });
}

function statusOf(set: ApiObject, pods: readonly ApiObject[]): Record<string, unknown> {
  const ready = pods.filter(isReady).length;
  const counts = ready === 0 ? {} : { readyReplicas: ready, availableReplicas: ready };
  const labelled = pods.length === 0 ? {} : { fullyLabeledReplicas: pods.length };
  return { replicas: pods.length, ...labelled, ...counts, observedGeneration: set.metadata.generation };
}

export function runReplicaSetController(api: Api, ownership: Ownership): Controller {
  const keysOf = (change: Change): readonly string[] => {
    if (change.collection === REPLICA_SET.collection) return [change.key];
    if (change.collection !== POD.collection) return [];
    const owner = controllerOf(change.object);
    return owner?.kind === "ReplicaSet" ? [`${change.object.metadata.namespace}/${owner.name}`] : [];
  };
  return runController(api, {
    keysOf,
    async reconcile(key) {
      const set = api.store.get(REPLICA_SET.collection, key);
      if (set === undefined) return;
      const pods = controlledBy(api.store, ownership, set, POD.collection).filter(isActive);
      await writeStatus(api, { caller: REPLICA_SET_CALLER, kind: REPLICA_SET }, set, statusOf(set, pods));
      if (set.metadata.deletionTimestamp !== undefined) return;
      const missing = asNumber(at(set, "spec", "replicas"), 1) - pods.length;
      const generateName = `${set.metadata.name}-`;
      for (let made = 0; made < missing; made += 1) await createPod(api, REPLICA_SET_CALLER, set, { generateName });
      for (const pod of inDeletionOrder(pods).slice(0, Math.max(0, -missing)))
        await deletePod(api, REPLICA_SET_CALLER, pod);
    },
  });
}
