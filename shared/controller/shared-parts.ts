/** Pods of one template are alike but for their names: records of 150,000 of them fit into memory when they share what is equal. */
import type { ObjectMeta, Pod } from "../api/kubernetes.ts";

/** Beyond so many different values all are forgotten: then nothing is alike, or much has changed. */
const MAX_KNOWN = 200_000;

interface Known {
  readonly value: unknown;
  readonly id: number;
}

type Share = <T>(value: T) => T;

/** Records with parts that may belong to others as well: records are never changed. */
export function partSharing(): (pod: Pod) => Pod {
  const share = sharing();
  return (pod) => {
    const metadata = compact(pod.metadata ?? {}, share);
    const spec = share(pod.spec);
    return pod.status ? { metadata, spec, status: share(pod.status) } : { metadata, spec };
  };
}

/**
 * Written as one literal, an object takes a third of the memory that one takes which grew. Most pods have just these.
 * Names, uids and versions are nobody else's.
 */
function compact(metadata: ObjectMeta, share: Share): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels, annotations, ownerReferences, ...others } =
    metadata;
  if (Object.keys(others).length > 0) return metadata;
  if (!(name && namespace && uid && resourceVersion && creationTimestamp && labels && annotations)) return metadata;
  const plain: ObjectMeta = {
    name,
    namespace: share(namespace),
    uid,
    resourceVersion,
    creationTimestamp: share(creationTimestamp),
    labels: share(labels),
    annotations: share(annotations),
  };
  return ownerReferences === undefined ? plain : { ...plain, ownerReferences: share(ownerReferences) };
}

/** Gives the first value that was equal to the given one, down to each of its parts. */
function sharing(): Share {
  const plain = new Map<unknown, Known>();
  const composed = new Map<string, Known>();
  let last = 0;
  const remember = <K>(known: Map<K, Known>, key: K, value: unknown): Known => {
    const added = { value, id: ++last };
    known.set(key, added);
    return added;
  };
  const look = (value: unknown): Known => {
    if (typeof value !== "object" || value === null) return plain.get(value) ?? remember(plain, value, value);
    const parts: unknown[] = [];
    const names = Object.keys(value);
    // Keys may hold whatever separates them, so they are numbers here too.
    let key = Array.isArray(value) ? "[" : "{";
    for (const name of names) {
      const part = look((value as Record<string, unknown>)[name]);
      parts.push(part.value);
      key += `${look(name).id}:${part.id},`;
    }
    return composed.get(key) ?? remember(composed, key, madeLike(value, names, parts));
  };
  return <T>(value: T): T => {
    if (last > MAX_KNOWN) {
      plain.clear();
      composed.clear();
      last = 0;
    }
    return look(value).value as T;
  };
}

function madeLike(value: object, names: readonly string[], parts: readonly unknown[]): object {
  return Array.isArray(value) ? parts : Object.fromEntries(names.map((name, index) => [name, parts[index]]));
}
