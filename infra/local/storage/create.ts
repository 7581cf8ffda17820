/** POST of a new object. */
import { mutate } from "../admission/admission.ts";
import { convert } from "../admission/conversion.ts";
import type { AdmissionRequest } from "../admission/webhook-match.ts";
import { decodeObject } from "../http/decode.ts";
import { NAMESPACE } from "../kinds/built-in-kinds.ts";
import { generatedName, randomUid } from "../kinds/names.ts";
import { strategyOf } from "../kinds/strategy.ts";
import type { Api, Call } from "./api.ts";
import { copyOf, type JsonObject } from "./json.ts";
import { type ApiObject, keyOf, storageKey, timestamp } from "./object.ts";
import { alreadyExists, badRequest, forbidden, notFound, plainError } from "./status-error.ts";
import { admitted, commit, objectErrors, throwFieldErrors } from "./write.ts";

const CREATE_OPTIONS: JsonObject = { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" };

function place(call: Call, object: ApiObject): void {
  const { metadata } = object;
  if (!call.kind.namespaced) {
    delete metadata.namespace;
    return;
  }
  if (metadata.namespace !== undefined && metadata.namespace !== call.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  metadata.namespace = call.namespace;
}

/** The admission plugin NamespaceLifecycle. */
function checkNamespace(api: Api, call: Call): void {
  if (!call.kind.namespaced) return;
  const namespace = api.store.get(NAMESPACE.collection, `/${call.namespace}`);
  if (namespace === undefined) throw notFound(NAMESPACE, call.namespace);
  if (namespace.metadata.deletionTimestamp !== undefined) {
    const why = `unable to create new content in namespace ${call.namespace} because it is being terminated`;
    throw forbidden(call.kind, call.name, why);
  }
}

function fillSystemFields(api: Api, call: Call, object: ApiObject): void {
  const { metadata } = object;
  if ((metadata.name ?? "") === "" && (metadata.generateName ?? "") !== "") {
    metadata.name = generatedName(metadata.generateName ?? "", api.random);
  }
  metadata.uid = randomUid(api.random);
  metadata.creationTimestamp = timestamp(api.clock.now());
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.resourceVersion;
  if (call.kind.hasGeneration) metadata.generation = 1;
  else delete metadata.generation;
  if (call.kind.hasStatus && call.kind.custom !== undefined) delete object["status"];
  strategyOf(call.kind).prepareCreate(object);
}

function checkResourceVersion(object: ApiObject): void {
  const version = object.metadata.resourceVersion ?? "";
  if (version !== "" && version !== "0") throw plainError("resourceVersion should not be set on objects to be created");
}

/** Answers the stored object in the version of the call. */
export async function createObject(api: Api, call: Call, body: unknown): Promise<ApiObject> {
  const decoded = decodeObject(call, body);
  place(call, decoded);
  checkResourceVersion(decoded);
  const named: Call = { ...call, name: decoded.metadata.name ?? "" };
  checkNamespace(api, named);
  const options = call.dryRun ? { ...CREATE_OPTIONS, dryRun: ["All"] } : CREATE_OPTIONS;
  const request: AdmissionRequest = {
    call: named,
    operation: "CREATE",
    object: decoded,
    oldObject: undefined,
    options,
  };
  const object = copyOf((await mutate(api, request)) ?? decoded);
  fillSystemFields(api, named, object);
  throwFieldErrors(named, object, objectErrors(named, object));
  const final: Call = { ...named, name: object.metadata.name ?? "" };
  const stored = await admitted(api, { ...request, call: final }, object);
  if (api.store.get(call.kind.collection, storageKey(keyOf(stored))) !== undefined) {
    throw alreadyExists(call.kind, final.name);
  }
  checkNamespace(api, named);
  const written = call.dryRun ? stored : commit(api, call, "create", stored);
  const [answer] = await convert([written], call.kind);
  return answer ?? written;
}
