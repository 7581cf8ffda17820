/** A served kind in one version, with the facts for URLs, discovery and the verbs. */
import type { ApiObject, JsonObject } from "../storage/json.ts";

export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly jsonPath: string;
  readonly priority: number;
}

export interface CustomVersion {
  readonly schema: JsonObject;
  readonly columns: readonly PrinterColumn[];
  /** clientConfig of the conversion webhook; undefined: only apiVersion changes */
  readonly conversion: JsonObject | undefined;
  /** JSONPath of the selector's text in the status, if the definition has a scale subresource with a selector */
  readonly scaleSelector: string;
}

export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** True: spec and status have separate writes. */
  readonly hasStatus: boolean;
  readonly hasScale: boolean;
  /** True: metadata.generation counts changes of the spec. */
  readonly hasGeneration: boolean;
  /** The place in storage, "group/plural", which is the same for all versions. */
  readonly collection: string;
  /** apiVersion in which the kind's objects are stored */
  readonly storedAs: string;
  /** Set for kinds of a CustomResourceDefinition. */
  readonly custom?: CustomVersion;
}

export function apiVersionOf(kind: { readonly group: string; readonly version: string }): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** The object with apiVersion and kind in front, in the order in which the API server prints them. */
export function typed(kind: Kind, object: ApiObject): ApiObject {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...rest };
}
