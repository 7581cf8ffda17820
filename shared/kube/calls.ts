/** From a call of the Cluster port to one HTTP request: paths, queries and bodies as Kubernetes' API has them. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { KubeError } from "./error.ts";
import type { CreateOptions, DeleteOptions, ListOptions, ObjectKey, Patch, PatchOptions, Resource } from "./port.ts";
import type { OutgoingRequest, RequestRecord } from "./transport.ts";

const PATCH_TYPES: Readonly<Record<Patch["type"], string>> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

const METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

export interface Call extends Omit<OutgoingRequest, "timeoutMs"> {
  readonly verb: RequestRecord["verb"];
  readonly resource: string;
  /** of a list */
  readonly keep?: ListOptions["keep"];
}

export function createCall(resource: Resource, object: KubernetesObject, options: CreateOptions): Call {
  const subresource = options.subresource ? `/${options.subresource}` : "";
  const place = { ...namespaceOf(object), ...(options.subresource ? { name: object.metadata?.name ?? "" } : {}) };
  return {
    verb: "CREATE",
    resource: resource.plural + subresource,
    method: "POST",
    path: pathOf(resource, place) + subresource + queryOf(dryRunQuery(options)),
    body: asGoWrites(JSON.stringify(object)),
  };
}

/**
 * Means the same: these stand within texts alone. A ControllerRevision's data is kept by the byte, and an API server
 * that rewrites it (to take an owner away, for one) must find it written as Go does, or refuses as immutable.
 */
function asGoWrites(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function patchCall(resource: Resource, key: ObjectKey, patch: Patch, options: PatchOptions): Call {
  const subresource = options.subresource ? `/${options.subresource}` : "";
  return {
    verb: "PATCH",
    resource: resource.plural + subresource,
    method: "PATCH",
    path: pathOf(resource, key) + subresource + queryOf(dryRunQuery(options)),
    contentType: PATCH_TYPES[patch.type],
    body: JSON.stringify(patch.type === "json" ? patch.operations : patch.body),
    ...(options.answer === "metadata" ? { accept: METADATA_ONLY } : {}),
  };
}

export function pathOf(
  resource: Resource,
  { namespace, name }: { readonly namespace?: string; readonly name?: string },
) {
  const { group, version, plural, namespaced } = resource;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${segmentOf(namespace)}` : "";
  return `${root}${scope}/${plural}${name === undefined ? "" : `/${segmentOf(name)}`}`;
}

/** With one of these for a name, a call would be about something else, such as all objects of its kind. */
function segmentOf(name: string): string {
  if (name === "" || name === "." || name === "..")
    throw new KubeError(`there is no object named ${JSON.stringify(name)}`, { code: 404, reason: "NotFound" });
  return encodeURIComponent(name);
}

function namespaceOf(object: KubernetesObject): { readonly namespace?: string } {
  const namespace = object.metadata?.namespace;
  return namespace === undefined ? {} : { namespace };
}

type Query = Readonly<Record<string, string | undefined>>;

export function queryOf(query: Query): string {
  const present = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return present.length === 0 ? "" : `?${new URLSearchParams(present)}`;
}

export function listQuery(options: ListOptions): Query {
  return {
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit?.toString(),
    continue: options.continue,
    resourceVersion: options.resourceVersion,
    resourceVersionMatch: options.resourceVersionMatch,
  };
}

function dryRunQuery({ dryRun }: { readonly dryRun?: boolean }): Query {
  return { dryRun: dryRun ? "All" : undefined };
}

/** With a body, the API server takes every option from there and none from the query. */
export function deleteBody({ uid, resourceVersion, dryRun }: DeleteOptions): object {
  const preconditions = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  return {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    ...(dryRun ? { dryRun: ["All"] } : {}),
  };
}
