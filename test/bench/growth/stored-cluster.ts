/**
 * A Cluster that answers from memory, in constant time for each object. So only the pass' computing and the objects
 * that it reads grow. It understands only the calls of a pass at rest.
 */
import jsonPatch from "fast-json-patch";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import type { Cluster, ListOptions, ObjectKey, Patch, Resource } from "../../../shared/kube/port.ts";

export interface StoredCluster extends Cluster {
  /** number of calls and of objects since the start */
  readonly counts: { calls: number; objects: number };
}

type Kind = Map<string, KubernetesObject>;

const keyOf = ({ namespace = "", name }: Partial<ObjectKey>) => `${namespace}/${name}`;

export function storedCluster(objects: Readonly<Record<string, readonly KubernetesObject[]>>): StoredCluster {
  const counts = { calls: 0, objects: 0 };
  let version = 1_000;
  const kinds = new Map<string, Kind>();
  const kindOf = ({ plural }: Pick<Resource, "plural">): Kind => {
    const kind = kinds.get(plural) ?? new Map();
    kinds.set(plural, kind);
    return kind;
  };
  const store = (resource: Pick<Resource, "plural">, object: KubernetesObject) => {
    const metadata = { uid: `uid-${version}`, ...object.metadata, resourceVersion: String(++version) };
    const stored = { ...object, metadata };
    kindOf(resource).set(keyOf(metadata as ObjectKey), stored);
    return stored;
  };
  for (const [plural, all] of Object.entries(objects)) for (const object of all) store({ plural }, object);
  /** selector of one label → the objects with this label, like an API server's index */
  const indexes = new Map<string, Map<string, readonly KubernetesObject[]>>();
  const selected = (resource: Resource, { namespace, labelSelector, fieldSelector }: ListOptions) => {
    // There are no pods that are pending or have finished.
    if (fieldSelector !== undefined) return [];
    const all = [...kindOf(resource).values()];
    if (labelSelector === undefined) return all;
    const index = indexes.get(resource.plural) ?? byLabel(all);
    indexes.set(resource.plural, index);
    const found = index.get(labelSelector) ?? [];
    return found.filter(({ metadata }) => namespace === undefined || metadata?.namespace === namespace);
  };
  const called = <T>(answer: () => unknown): Promise<T> => {
    counts.calls++;
    return new Promise((resolve) => resolve(answer() as T));
  };
  return {
    counts,
    get: (resource, key) =>
      called(() => {
        const object = kindOf(resource).get(keyOf(key));
        if (!object)
          throw new KubeError(`there is no ${resource.plural} ${key.name}`, { code: 404, reason: "NotFound" });
        counts.objects++;
        return object;
      }),
    list: (resource, options = {}) =>
      called(() => {
        const all = selected(resource, options);
        const from = Number(options.continue ?? 0);
        const end = from + (options.limit ?? all.length);
        const items = all.slice(from, end);
        counts.objects += items.length;
        const more = end < all.length ? { continue: String(end) } : {};
        const metadata = { resourceVersion: String(version), ...more };
        return options.keep ? { metadata, items: [], kept: items.map(options.keep) } : { metadata, items };
      }),
    create: (resource, object) => called(() => store(resource, object)),
    patch: (resource, key, patch) =>
      called(() => store(resource, patched(kindOf(resource).get(keyOf(key)) ?? { metadata: { ...key } }, patch))),
    delete: (resource, key) => called(() => void kindOf(resource).delete(keyOf(key))),
    watch: () => {
      throw new KubeError("nothing is watched here", { code: 403, reason: "Forbidden" });
    },
  };
}

function byLabel(objects: readonly KubernetesObject[]): Map<string, readonly KubernetesObject[]> {
  const index = new Map<string, KubernetesObject[]>();
  for (const object of objects)
    for (const [label, value] of Object.entries(object.metadata?.labels ?? {})) {
      const text = `${label} in (${value})`;
      const those = index.get(text) ?? [];
      if (those.length === 0) index.set(text, those);
      those.push(object);
    }
  return index;
}

function patched(object: KubernetesObject, patch: Patch): KubernetesObject {
  if (patch.type !== "json") return merged(object, patch.body) as KubernetesObject;
  const operations = patch.operations.filter(({ op }) => op !== "test") as jsonPatch.Operation[];
  return jsonPatch.applyPatch(object, operations, false, false).newDocument;
}

function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = { ...(target as object) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}
