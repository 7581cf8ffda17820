/** From a write of the Cluster port to one HTTP request: the paths, queries and bodies of Kubernetes' API. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { type Call, pathOf, queryOf } from "./calls.ts";
import type { CreateOptions, DeleteOptions, ObjectKey, Patch, PatchOptions, Resource } from "./port.ts";

const PATCH_TYPES: Readonly<Record<Patch["type"], string>> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

/** API servers with `drop` (KEP-5958, Kubernetes 1.38 with its gate) omit two thirds of the answer. */
const METADATA_ONLY =
  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,application/json";

export function createCall(resource: Resource, object: KubernetesObject, options: CreateOptions): Call {
  const subresource = suffixOf(options);
  const place = { ...namespaceOf(object), ...(options.subresource ? { name: object.metadata?.name ?? "" } : {}) };
  return {
    verb: "CREATE",
    resource: resource.plural + subresource,
    method: "POST",
    namespace: object.metadata?.namespace,
    path: pathOf(resource, place) + subresource + queryOf(dryRunQuery(options)),
    body: asGoWrites(JSON.stringify(object)),
    ...acceptOf(options),
  };
}

/**
 * Escapes characters like Go, without changing the meaning, because they appear only inside texts. The bytes of a
 * ControllerRevision's data matter. An API server that rewrites it (for example to remove an owner) refuses a different
 * spelling as a change.
 */
function asGoWrites(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function patchCall(resource: Resource, key: ObjectKey, patch: Patch, options: PatchOptions): Call {
  const subresource = suffixOf(options);
  return {
    verb: "PATCH",
    resource: resource.plural + subresource,
    method: "PATCH",
    namespace: key.namespace,
    path: pathOf(resource, key) + subresource + queryOf(dryRunQuery(options)),
    contentType: PATCH_TYPES[patch.type],
    body: JSON.stringify(patch.type === "json" ? patch.operations : patch.body),
    ...acceptOf(options),
  };
}

function acceptOf({ answer }: CreateOptions | PatchOptions): { readonly accept?: string } {
  return answer === "metadata" ? { accept: METADATA_ONLY } : {};
}

function suffixOf({ subresource }: CreateOptions | PatchOptions): string {
  return subresource ? `/${subresource}` : "";
}

function namespaceOf(object: KubernetesObject): { readonly namespace?: string } {
  const namespace = object.metadata?.namespace;
  return namespace === undefined ? {} : { namespace };
}

function dryRunQuery({ dryRun }: { readonly dryRun?: boolean }): Readonly<Record<string, string | undefined>> {
  return { dryRun: dryRun ? "All" : undefined };
}

/** If there is a body, the API server reads every option from it and none from the query. */
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
