/**
 * A faster PATCH: `patchObject` of the embedded cluster, which does not decode, default and validate a stored object
 * again. The contract suite tests it too.
 */

import { strategyOf } from "../../infra/local/kinds/strategy.ts";
import { applyJsonPatch } from "../../infra/local/patch/json-patch.ts";
import { applyMergePatch, applyStrategicPatch } from "../../infra/local/patch/patch.ts";
import type { Api, Call } from "../../infra/local/storage/api.ts";
import { type ApiObject, isEqual, isObject, storageKey } from "../../infra/local/storage/json.ts";
import {
  badRequest,
  conflict,
  type FieldError,
  forbiddenField,
  invalid,
  MODIFIED,
  notFound,
  unprocessable,
} from "../../infra/local/storage/status-error.ts";
import { commit, commitRemoval, throwFieldErrors } from "../../infra/local/storage/write.ts";
import type { Patch } from "../../shared/kube/port.ts";

/** Returns an error for each changed field that may not change. */
export type Refuse = (next: ApiObject, current: ApiObject) => readonly FieldError[];

/** Returns the stored object. Throws StatusError. */
export function patchStored(api: Api, call: Call, patch: Patch, refuse: Refuse = () => []): ApiObject {
  const current = api.store.get(call.kind.collection, storageKey(call));
  if (!current) throw notFound(call.kind, call.name);
  const wanted = applied(call, current, patch);
  if (!isObject(wanted) || !isObject(wanted["metadata"])) throw unprocessable();
  checkVersion(call, wanted as ApiObject, current);
  const next = settled(call, wanted as ApiObject, current);
  throwFieldErrors(call, next, [...fieldErrors(call, next, current), ...refuse(next, current)]);
  if (call.dryRun) return next;
  if (isDone(next)) return commitRemoval(api, call, "patch", next);
  return isEqual(next, current) ? current : commit(api, call, "patch", next);
}

function applied({ kind }: Call, current: ApiObject, patch: Patch): unknown {
  if (patch.type === "json") return applyJsonPatch(current, patch.operations);
  if (!isObject(patch.body)) throw badRequest("error decoding patch: json: cannot unmarshal into Go value of type map");
  if (patch.type === "merge") return applyMergePatch(current, patch.body);
  return applyStrategicPatch(current, patch.body, { group: kind.group, kind: kind.kind });
}

function checkVersion(call: Call, wanted: ApiObject, current: ApiObject): void {
  const version = wanted.metadata.resourceVersion ?? "";
  const isAsked = version !== "" && version !== "0";
  if (isAsked && version !== current.metadata.resourceVersion) throw conflict(call.kind, call.name, MODIFIED);
}

function settled({ kind, subresource }: Call, wanted: ApiObject, current: ApiObject): ApiObject {
  const isStatus = subresource === "status";
  const keepsMetadata = isStatus && kind.collection !== "/pods";
  const { uid = current.metadata.uid, creationTimestamp = current.metadata.creationTimestamp } = wanted.metadata;
  const metadata = { ...(keepsMetadata ? current.metadata : wanted.metadata), uid, creationTimestamp };
  const kept = { resourceVersion: current.metadata.resourceVersion, generation: current.metadata.generation };
  const next = { ...(isStatus ? current : wanted), metadata: { ...metadata, ...kept } } as ApiObject;
  const status = isStatus || !kind.hasStatus ? wanted["status"] : current["status"];
  if (status === undefined) delete next["status"];
  else next["status"] = status;
  if (metadata.ownerReferences?.length === 0) delete next.metadata.ownerReferences;
  if (current.metadata.generation === undefined) delete next.metadata.generation;
  else if (!isEqual(next["spec"], current["spec"])) next.metadata.generation = current.metadata.generation + 1;
  return next;
}

function fieldErrors(call: Call, next: ApiObject, current: ApiObject): readonly FieldError[] {
  const { validateUpdate, validateStatus } = strategyOf(call.kind);
  const fields = ["name", "namespace", "uid"] as const;
  const immutable = fields.flatMap((field) => {
    const value = next.metadata[field];
    return value === current.metadata[field] ? [] : [invalid(`metadata.${field}`, value, "field is immutable")];
  });
  return [
    ...immutable,
    ...finalizerErrors(next, current),
    ...(call.subresource === "" ? validateUpdate : validateStatus)(next, current),
  ];
}

function finalizerErrors({ metadata }: ApiObject, current: ApiObject): readonly FieldError[] {
  const before = current.metadata.finalizers ?? [];
  const isAdded = (metadata.finalizers ?? []).some((name) => !before.includes(name));
  if (!isAdded || current.metadata.deletionTimestamp === undefined) return [];
  return [forbiddenField("metadata.finalizers", "no new finalizers can be added if the object is being deleted")];
}

/** True if a deletion waited for finalizers and the patch removed the last one. */
function isDone({ metadata }: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length === 0;
}
