/** Deletes objects without their owners, and finishes foreground and orphaning deletions. */
import type { Kind } from "../kinds/kind.ts";
import { CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT } from "../kinds/registry.ts";
import { type Api, component, internalCall } from "../storage/api.ts";
import { type ApiObject, controllerOf, keyOf, type OwnerReference, storageKey } from "../storage/json.ts";
import { isStatus } from "../storage/status-error.ts";
import type { Change, Store } from "../storage/store.ts";
import { changeObject, type Transform } from "../storage/update.ts";
import { commitRemoval, createObject, deleteObject } from "../storage/write.ts";
import { type Controller, runController } from "./work-queue.ts";

const CALLER = component("generic-garbage-collector");
const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

async function ignoreGone(run: Promise<unknown>): Promise<void> {
  try {
    await run;
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
  }
}

class GarbageCollector {
  readonly #api: Api;
  readonly #ownership: Ownership;

  constructor(api: Api, ownership: Ownership) {
    this.#api = api;
    this.#ownership = ownership;
  }

  async reconcile(place: Located): Promise<void> {
    const object = this.#api.store.get(place.collection, place.key);
    if (object === undefined) return;
    if (object.metadata.deletionTimestamp === undefined) await this.#collect(place, object);
    else await this.#finalize(place, object);
  }

  async #finalize(place: Located, object: ApiObject): Promise<void> {
    const finalizers = object.metadata.finalizers ?? [];
    if (finalizers.includes(ORPHAN)) await this.#orphan(place, object);
    if (finalizers.includes(FOREGROUND)) await this.#foreground(place, object);
  }

  async #collect(place: Located, object: ApiObject): Promise<void> {
    const owners = object.metadata.ownerReferences ?? [];
    const living = owners.filter((owner) => this.#ownership.exists(owner.uid));
    if (living.length === owners.length) return;
    if (living.length === 0) await ignoreGone(this.#delete(place, object));
    else await ignoreGone(this.#setOwners(place, object, living));
  }

  async #orphan(place: Located, owner: ApiObject): Promise<void> {
    for (const dependent of this.#ownership.dependents(owner.metadata.uid ?? "")) {
      const object = this.#api.store.get(dependent.collection, dependent.key);
      if (object === undefined) continue;
      const others = (object.metadata.ownerReferences ?? []).filter((one) => one.uid !== owner.metadata.uid);
      await ignoreGone(this.#setOwners(dependent, object, others));
    }
    await ignoreGone(this.#removeFinalizer(place, owner, ORPHAN));
  }

  async #foreground(place: Located, owner: ApiObject): Promise<void> {
    const dependents = this.#ownership.dependents(owner.metadata.uid ?? "");
    for (const dependent of dependents) {
      const object = this.#api.store.get(dependent.collection, dependent.key);
      if (object !== undefined && object.metadata.deletionTimestamp === undefined) {
        await ignoreGone(this.#delete(dependent, object));
      }
    }
    if (dependents.length === 0) await ignoreGone(this.#removeFinalizer(place, owner, FOREGROUND));
  }

  #kindOf(place: Located): ReturnType<typeof internalCall>["kind"] {
    const [kind] = this.#api.registry.versions(place.collection);
    if (kind === undefined) throw new Error(`${place.collection} is not served`);
    return kind;
  }

  #delete(place: Located, object: ApiObject): Promise<unknown> {
    const call = internalCall(CALLER, this.#kindOf(place), keyOf(object));
    return deleteObject(this.#api, call, {
      propagationPolicy: "Background",
      preconditions: { uid: object.metadata.uid },
    });
  }

  #change(place: Located, object: ApiObject, transform: Transform): Promise<unknown> {
    const call = internalCall(CALLER, this.#kindOf(place), keyOf(object));
    return changeObject(this.#api, call, { verb: "patch", transform });
  }

  #setOwners(place: Located, object: ApiObject, ownerReferences: OwnerReference[]): Promise<unknown> {
    return this.#change(place, object, (current) => {
      const metadata = { ...current.metadata, ownerReferences };
      if (ownerReferences.length === 0) delete (metadata as ApiObject["metadata"]).ownerReferences;
      return { ...current, metadata };
    });
  }

  #removeFinalizer(place: Located, object: ApiObject, name: string): Promise<unknown> {
    return this.#change(place, object, (current) => {
      const finalizers = (current.metadata.finalizers ?? []).filter((one) => one !== name);
      return { ...current, metadata: { ...current.metadata, finalizers } };
    });
  }
}

function keyOfPlace(place: Located): string {
  return `${place.collection} ${place.key}`;
}

function isRelevant(object: ApiObject): boolean {
  const { ownerReferences = [], finalizers = [], deletionTimestamp } = object.metadata;
  return ownerReferences.length > 0 || (deletionTimestamp !== undefined && finalizers.length > 0);
}

export function runGarbageCollector(api: Api, ownership: Ownership): Controller {
  const collector = new GarbageCollector(api, ownership);
  const keysOf = (change: Change): readonly string[] => {
    const own = change.type !== "DELETED" && isRelevant(change.object) ? [keyOfPlace(change)] : [];
    if (change.type !== "DELETED") return own;
    const orphaned = ownership.dependents(change.object.metadata.uid ?? "").map(keyOfPlace);
    const owners = (change.object.metadata.ownerReferences ?? []).map((owner) => `uid ${owner.uid}`);
    return [...orphaned, ...owners];
  };
  return runController(api, {
    keysOf,
    async reconcile(key) {
      const [collection = "", rest = ""] = key.split(" ");
      if (collection !== "uid") return collector.reconcile({ collection, key: rest });
      // A dependent is gone: its owner may wait for that in the foreground.
      const owner = findWaiting(api, rest);
      if (owner !== undefined) await collector.reconcile(owner);
    },
  });
}

function findWaiting(api: Api, uid: string): Located | undefined {
  for (const kind of api.registry.served()) {
    for (const object of api.store.list(kind.collection)) {
      if (object.metadata.uid === uid && object.metadata.finalizers?.includes(FOREGROUND)) {
        const { namespace, name } = keyOf(object);
        return { collection: kind.collection, key: `${namespace}/${name}` };
      }
    }
  }
  return undefined;
}

const NAMESPACE_CALLER = component("namespace-controller");

/** `caCertificate` as every namespace's kube-root-ca.crt shows it, PEM. */
async function fill(api: Api, namespace: string, caCertificate: string): Promise<void> {
  const wanted: readonly (readonly [Kind, Record<string, unknown> & { metadata: { name: string } }])[] = [
    [SERVICE_ACCOUNT, { metadata: { name: "default" } }],
    [CONFIG_MAP, { metadata: { name: "kube-root-ca.crt" }, data: { "ca.crt": caCertificate } }],
  ];
  for (const [kind, body] of wanted) {
    const key = { namespace, name: body.metadata.name };
    if (api.store.get(kind.collection, storageKey(key)) === undefined) {
      await createObject(api, internalCall(NAMESPACE_CALLER, kind, key), body);
    }
  }
}

function contents(api: Api, namespace: string): readonly (readonly [Kind, ApiObject])[] {
  const collections = new Map(
    api.registry
      .served()
      .filter((kind) => kind.namespaced)
      .map((kind) => [kind.collection, kind]),
  );
  return [...collections.values()].flatMap((kind) => {
    const objects = api.store.list(kind.collection).filter((object) => object.metadata.namespace === namespace);
    return objects.map((object) => [kind, object] as const);
  });
}

async function remove(api: Api, kind: Kind, object: ApiObject): Promise<void> {
  if (object.metadata.deletionTimestamp !== undefined) return;
  try {
    await deleteObject(api, internalCall(NAMESPACE_CALLER, kind, keyOf(object)), {});
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
  }
}

async function empty(api: Api, namespace: ApiObject): Promise<void> {
  const name = namespace.metadata.name ?? "";
  for (const [kind, object] of contents(api, name)) await remove(api, kind, object);
  const current = api.store.get(NAMESPACE.collection, storageKey(keyOf(namespace)));
  const isHeld = contents(api, name).length > 0 || (current?.metadata.finalizers ?? []).length > 0;
  if (current !== undefined && !isHeld) {
    commitRemoval(api, internalCall(NAMESPACE_CALLER, NAMESPACE, keyOf(current)), "delete", current);
  }
}

export function runNamespaceController(api: Api, caCertificate: string): Controller {
  const keysOf = (change: Change): readonly string[] => {
    if (change.collection === NAMESPACE.collection) return [change.object.metadata.name ?? ""];
    const isLess = change.type === "DELETED" || change.object.metadata.deletionTimestamp !== undefined;
    return isLess && change.object.metadata.namespace !== undefined ? [change.object.metadata.namespace] : [];
  };
  return runController(api, {
    keysOf,
    async reconcile(name) {
      const namespace = api.store.get(NAMESPACE.collection, `/${name}`);
      if (namespace === undefined) return;
      if (namespace.metadata.deletionTimestamp === undefined) await fill(api, name, caCertificate);
      else await empty(api, namespace);
    },
  });
}

interface Located {
  readonly collection: string;
  readonly key: string;
}

export interface Ownership {
  /** Objects that name this uid in their ownerReferences. */
  dependents(uid: string): readonly Located[];
  /** True while an object with this uid is stored. */
  exists(uid: string): boolean;
}

function idOf(place: Located): string {
  return `${place.collection} ${place.key}`;
}

class OwnershipIndex implements Ownership {
  readonly #uids = new Set<string>();
  readonly #dependents = new Map<string, Map<string, Located>>();

  dependents(uid: string): readonly Located[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  exists(uid: string): boolean {
    return this.#uids.has(uid);
  }

  see({ type, collection, key, object, previous }: Change): void {
    const uid = object.metadata.uid ?? "";
    if (type === "ADDED") this.#uids.add(uid);
    if (type === "DELETED") this.#uids.delete(uid);
    if (previous !== undefined) this.#unlink(previous, { collection, key });
    if (type !== "DELETED") this.#link(object, { collection, key });
  }

  #link(object: ApiObject, place: Located): void {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const known = this.#dependents.get(uid) ?? new Map<string, Located>();
      this.#dependents.set(uid, known.set(idOf(place), place));
    }
  }

  #unlink(object: ApiObject, place: Located): void {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const known = this.#dependents.get(uid);
      known?.delete(idOf(place));
      if (known?.size === 0) this.#dependents.delete(uid);
    }
  }
}

export function trackOwnership(store: Store): Ownership {
  const index = new OwnershipIndex();
  store.subscribe((change) => index.see(change));
  return index;
}

/** The objects of a collection that this one controls. */
export function controlledBy(
  store: Store,
  ownership: Ownership,
  owner: ApiObject,
  collection: string,
): readonly ApiObject[] {
  const uid = owner.metadata.uid ?? "";
  return ownership
    .dependents(uid)
    .filter((place) => place.collection === collection)
    .flatMap((place) => store.get(place.collection, place.key) ?? [])
    .filter((object) => controllerOf(object)?.uid === uid)
    .toSorted((left, right) => (storageKey(keyOf(left)) < storageKey(keyOf(right)) ? -1 : 1));
}
