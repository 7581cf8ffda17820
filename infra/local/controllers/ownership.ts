/** An index of owners by uid, kept up to date with the store. */
import { type ApiObject, controllerOf, keyOf, storageKey } from "../storage/json.ts";
import type { Change, Store } from "../storage/store.ts";

export interface Located {
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
