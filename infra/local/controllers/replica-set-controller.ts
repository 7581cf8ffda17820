/** ReplicaSets: as many pods as wanted. */

import { POD, REPLICA_SET } from "../kinds/built-in-kinds.ts";
import { type Api, component } from "../storage/api.ts";
import { asNumber, at, textAt } from "../storage/json.ts";
import { type ApiObject, controllerOf } from "../storage/object.ts";
import type { Change } from "../storage/store.ts";
import { controlledBy, type Ownership } from "./ownership.ts";
import { type Controller, runController } from "./work-queue.ts";
import { createPod, deletePod, isActive, isReady, writeStatus } from "./workload-pods.ts";

const CALLER = component("replicaset-controller");

/** Which pods go first: those that lack a node, then those not ready, then the youngest. */
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
      await writeStatus(api, { caller: CALLER, kind: REPLICA_SET }, set, statusOf(set, pods));
      if (set.metadata.deletionTimestamp !== undefined) return;
      const missing = asNumber(at(set, "spec", "replicas"), 1) - pods.length;
      const generateName = `${set.metadata.name}-`;
      for (let made = 0; made < missing; made += 1) await createPod(api, CALLER, set, { generateName });
      for (const pod of inDeletionOrder(pods).slice(0, Math.max(0, -missing))) await deletePod(api, CALLER, pod);
    },
  });
}
