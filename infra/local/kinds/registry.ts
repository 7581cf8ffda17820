/** The kinds that are served now: built-in ones, and kinds of the CustomResourceDefinitions in the store. */

import { asList, asObject, asText, at, type JsonObject, objectsIn, textAt, textsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import type { Store } from "../storage/store.ts";
import { BUILT_IN_KINDS, CUSTOM_RESOURCE_DEFINITION } from "./built-in-kinds.ts";
import { apiVersionOf, type CustomVersion, type Kind, type PrinterColumn } from "./kind.ts";

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

// The kinds that a CustomResourceDefinition makes: one per served version.

function column(item: JsonObject): PrinterColumn {
  return {
    name: asText(item["name"]),
    type: asText(item["type"]),
    format: asText(item["format"]),
    description: asText(item["description"]),
    jsonPath: asText(item["jsonPath"]),
    priority: Number(item["priority"] ?? 0),
  };
}

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  format: "",
  description: "",
  jsonPath: ".metadata.creationTimestamp",
  priority: 0,
};

function customVersion(crd: ApiObject, version: JsonObject): CustomVersion {
  const columns = objectsIn(version["additionalPrinterColumns"]).map(column);
  const isWebhook = textAt(crd, "spec", "conversion", "strategy") === "Webhook";
  return {
    schema: asObject(at(version, "schema", "openAPIV3Schema")),
    columns: columns.length === 0 ? [AGE] : columns,
    conversion: isWebhook ? asObject(at(crd, "spec", "conversion", "webhook", "clientConfig")) : undefined,
    scaleSelector: textAt(version, "subresources", "scale", "labelSelectorPath"),
  };
}

/** Every version, served or not: an unserved one may still be the stored one. */
export function kindsOf(crd: ApiObject): readonly (Kind & { readonly isServed: boolean })[] {
  const group = textAt(crd, "spec", "group");
  const names = asObject(at(crd, "spec", "names"));
  const versions = objectsIn(at(crd, "spec", "versions"));
  const stored = versions.find((version) => version["storage"] === true);
  return versions.map((version) => ({
    group,
    version: asText(version["name"]),
    kind: asText(names["kind"]),
    plural: asText(names["plural"]),
    singular: asText(names["singular"]),
    shortNames: textsIn(names["shortNames"]),
    categories: textsIn(names["categories"]),
    namespaced: textAt(crd, "spec", "scope") === "Namespaced",
    hasStatus: at(version, "subresources", "status") !== undefined,
    hasScale: at(version, "subresources", "scale") !== undefined,
    hasGeneration: true,
    collection: `${group}/${asText(names["plural"])}`,
    storedAs: `${group}/${asText(stored?.["name"])}`,
    custom: customVersion(crd, version),
    isServed: version["served"] === true,
  }));
}

/** True once the API server serves the kind of this CRD. */
function isEstablished(crd: ApiObject): boolean {
  return asList(at(crd, "status", "conditions")).some(
    (condition) => at(condition, "type") === "Established" && at(condition, "status") === "True",
  );
}
