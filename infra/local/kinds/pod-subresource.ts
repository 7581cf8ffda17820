/** pods/binding, pods/eviction and pods/ephemeralcontainers. */
import { type Answer, type ApiRequest, parsedBody } from "../http/http-message.ts";
import type { Api, Call } from "../storage/api.ts";
import {
  type ApiObject,
  asObject,
  at,
  childOf,
  copyOf,
  isEqual,
  type JsonObject,
  objectsIn,
  storageKey,
  textAt,
  timestamp,
} from "../storage/json.ts";
import { conflict, type FieldError, forbidden, forbiddenField, invalid, notFound } from "../storage/status-error.ts";
import { commit, deleteObject } from "../storage/write.ts";
import { qualityOfService } from "./pod-strategy.ts";
import { integerOf, milliOf, NO_QUANTITY, readQuantity, sumOf } from "./quantity.ts";
import { NODE } from "./registry.ts";

function scheduled(pod: ApiObject, nodeName: string, now: string): ApiObject {
  const next = structuredClone(pod);
  childOf(next, "spec")["nodeName"] = nodeName;
  const status = childOf(next, "status");
  const others = objectsIn(status["conditions"]).filter((condition) => condition["type"] !== "PodScheduled");
  const condition = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: now };
  status["conditions"] = [...others, condition];
  return next;
}

/** Binds a pod to a node, once. Throws 404 or 409. */
export function bind(api: Api, call: Call, nodeName: string): void {
  const pod = api.store.get(call.kind.collection, storageKey(call));
  if (pod === undefined) throw notFound(call.kind, call.name);
  const bound = textAt(pod, "spec", "nodeName");
  if (bound !== "") throw conflict(call.kind, call.name, `pod ${call.name} is already assigned to node "${bound}"`);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(call.kind, call.name, `pod ${call.name} is being deleted, cannot be assigned to a host`);
  }
  if (!call.dryRun) commit(api, call, "update", scheduled(pod, nodeName, timestamp(api.clock.now())));
}

const CREATED = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

export async function bindPod(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  bind(api, call, textAt(parsedBody(request), "target", "name"));
  return { code: 201, body: CREATED };
}

export async function evictPod(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const options = asObject(at(parsedBody(request), "deleteOptions"));
  await deleteObject(api, { ...call, subresource: "" }, options);
  return { code: 201, body: CREATED };
}

const FIELD = "ephemeralContainers";

/** The current pod with the wanted ephemeral containers. */
export function debuggedOnly(wanted: ApiObject, current: ApiObject): ApiObject {
  const spec = { ...asObject(current["spec"]), [FIELD]: asObject(wanted["spec"])[FIELD] ?? [] };
  return structuredClone({ ...current, spec });
}

export function debugErrors(next: ApiObject, current: ApiObject): readonly FieldError[] {
  const now = objectsIn(asObject(next["spec"])[FIELD]);
  const isKept = objectsIn(asObject(current["spec"])[FIELD]).every((one) => now.some((other) => isEqual(one, other)));
  return isKept ? [] : [forbiddenField(`spec.${FIELD}`, "existing ephemeral containers may not be removed or changed")];
}

// pods/resize: changes cpu and memory of a pod that may be running, and nothing else.

const LISTS = ["containers", "initContainers"] as const;
const BOUNDS = ["requests", "limits"] as const;
const RESIZED = ["resources", "resizePolicy"] as const;

function namesIn(spec: JsonObject, list: string): readonly unknown[] {
  return objectsIn(spec[list]).map(({ name }) => name);
}

/** The present pod with the wanted resources. If its containers differ, the wanted spec is unchanged. */
export function resizedOnly(wanted: ApiObject, current: ApiObject): ApiObject {
  const { labels, annotations, finalizers, ownerReferences, ...metadata } = wanted.metadata;
  const kept = Object.fromEntries(
    (["labels", "annotations", "finalizers", "ownerReferences"] as const).flatMap((field) =>
      current.metadata[field] === undefined ? [] : [[field, current.metadata[field]]],
    ),
  );
  const [spec, before] = [asObject(wanted["spec"]), asObject(current["spec"])];
  const isSame = LISTS.every((list) => isEqual(namesIn(spec, list), namesIn(before, list)));
  return structuredClone({
    ...current,
    metadata: { ...metadata, ...kept },
    spec: isSame ? withResources(before, spec) : spec,
  });
}

function withResources(before: JsonObject, wanted: JsonObject): JsonObject {
  const spec = copyOf(before);
  for (const list of LISTS) {
    if (spec[list] !== undefined)
      spec[list] = objectsIn(spec[list]).map((container, index) => {
        const { resources: _resources, resizePolicy: _resizePolicy, ...rest } = container;
        const given = RESIZED.map((field) => [field, at(wanted, list, index, field)]);
        return { ...rest, ...Object.fromEntries(given.filter(([, value]) => value !== undefined)) };
      });
  }
  return spec;
}

/** Errors of a write to pods/resize. */
export function resizeErrors(next: JsonObject, previous: JsonObject): readonly FieldError[] {
  const others = LISTS.flatMap((list) => otherContainers(next, previous, list));
  if (others.length > 0) return others;
  const why = "Pod QOS Class may not change as a result of resizing";
  const quality = qualityOfService(next);
  return [
    ...(quality === qualityOfService(previous) ? [] : [invalid("spec", quality, why)]),
    ...LISTS.flatMap((list) => listErrors(next, previous, list)),
  ];
}

function otherContainers(next: JsonObject, previous: JsonObject, list: string): readonly FieldError[] {
  const [now, before] = [namesIn(next, list), namesIn(previous, list)];
  if (isEqual(now, before)) return [];
  if (now.length !== before.length)
    return [forbiddenField(`spec.${list}`, `${list} may not be added or removed on resize`)];
  const index = now.findIndex((name, place) => name !== before[place]);
  return [forbiddenField(`spec.${list}[${index}].name`, `${list} may not be renamed or reordered on resize`)];
}

function listErrors(next: JsonObject, previous: JsonObject, list: string): readonly FieldError[] {
  const containers = objectsIn(next[list]);
  return objectsIn(previous[list]).flatMap((before, index) => {
    const now = asObject(containers[index]);
    const removed = BOUNDS.filter((bound) =>
      Object.keys(asObject(at(before, "resources", bound))).some(
        (name) => at(now, "resources", bound, name) === undefined,
      ),
    ).map((bound) =>
      forbiddenField(`spec.${list}[${index}].resources.${bound}`, `resource ${bound} cannot be removed`),
    );
    return [...removed, ...(isEqual(fixedPart(now), fixedPart(before)) ? [] : [fixedError(list, index)])];
  });
}

function fixedError(list: string, index: number): FieldError {
  return list === "containers"
    ? forbiddenField("spec", "only cpu and memory resources are mutable")
    : forbiddenField(
        `spec.${list}[${index}]`,
        "only cpu and memory resources for init or sidecar containers are mutable",
      );
}

/** The fields of a container's resources and resize policy that cannot change. */
function fixedPart({ resources, resizePolicy }: JsonObject): unknown {
  const others = BOUNDS.map((bound) => {
    const { cpu: _cpu, memory: _memory, ...rest } = asObject(asObject(resources)[bound]);
    return rest;
  });
  return [others, resizePolicy];
}

/** Refuses requests that are larger than the whole node. @throws StatusError 403 */
export function checkRoom(api: Api, call: Call, { spec }: ApiObject): void {
  const nodeName = textAt({ spec }, "spec", "nodeName");
  const node = api.store.get(NODE.collection, `/${nodeName}`);
  if (node === undefined) return;
  const lacking = Object.entries({ cpu: milliOf, memory: integerOf }).flatMap(([resource, count]) => {
    const allocatable = quantityAt(node, "status", "allocatable", resource);
    const requested = requestOf(asObject(spec), resource);
    if (requested.nano <= allocatable.nano) return [];
    return [`${resource}, requested: ${count(requested)}, allocatable: ${count(allocatable)}`];
  });
  if (lacking.length === 0) return;
  throw forbidden(call.kind, call.name, `node didn't have enough allocatable resources: ${lacking.join("; ")}`);
}

/** The sum of requests of all containers that run at the same time. */
function requestOf(spec: JsonObject, resource: string) {
  const sidecars = objectsIn(spec["initContainers"]).filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...objectsIn(spec["containers"]), ...sidecars]
    .map((container) => quantityAt(container, "resources", "requests", resource))
    .reduce(sumOf);
}

function quantityAt(value: unknown, ...path: readonly string[]) {
  return readQuantity(at(value, ...path)) ?? NO_QUANTITY;
}
