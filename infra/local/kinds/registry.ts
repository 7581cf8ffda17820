/** Which kinds are served right now: the built-in ones, and those of the CustomResourceDefinitions in the store. */

import type { Store } from "../storage/store.ts";
import { BUILT_IN_KINDS, CUSTOM_RESOURCE_DEFINITION } from "./built-in-kinds.ts";
import { isEstablished, kindsOf } from "./custom-version.ts";
import { apiVersionOf, type Kind } from "./kind.ts";

export interface Registry {
  /** Kinds in discovery order. */
  served(): readonly Kind[];
  /** The kind of a URL. */
  find(group: string, version: string, plural: string): Kind | undefined;
  /** The kind of an object. */
  forObject(apiVersion: string, kind: string): Kind | undefined;
  /** The version in which the objects of this kind are stored. */
  stored(kind: Kind): Kind;
  /** All served versions of a collection, storage version first. */
  versions(collection: string): readonly Kind[];
}

export function createRegistry(store: Store): Registry {
  let custom: readonly Kind[] = [];
  let customServed: readonly Kind[] = [];
  const read = (): void => {
    const all = store.list(CUSTOM_RESOURCE_DEFINITION.collection).filter(isEstablished).flatMap(kindsOf);
    custom = all;
    customServed = all.filter((kind) => kind.isServed);
  };
  store.subscribe((change) => {
    if (change.collection === CUSTOM_RESOURCE_DEFINITION.collection) read();
  });
  const served = (): readonly Kind[] => [...BUILT_IN_KINDS, ...customServed];
  return {
    served,
    find: (group, version, plural) =>
      served().find((kind) => kind.plural === plural && kind.group === group && kind.version === version),
    forObject: (apiVersion, name) => served().find((kind) => kind.kind === name && apiVersionOf(kind) === apiVersion),
    stored: (kind) => {
      const versions = kind.custom === undefined ? BUILT_IN_KINDS : custom;
      const found = versions.find((other) => {
        return other.collection === kind.collection && apiVersionOf(other) === kind.storedAs;
      });
      return found ?? kind;
    },
    versions: (collection) => {
      const all = served().filter((kind) => kind.collection === collection);
      return all.toSorted((left, right) => {
        return Number(apiVersionOf(right) === right.storedAs) - Number(apiVersionOf(left) === left.storedAs);
      });
    },
  };
}
