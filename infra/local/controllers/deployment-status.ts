/** A Deployment's status from its ReplicaSets. */
import { asNumber, at, type JsonObject, objectsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";

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
export function deploymentStatus(
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
