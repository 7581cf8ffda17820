/** A stored object and its metadata, as JSON. Stored objects are never changed: a writer copies first. */
import type { JsonObject } from "./json.ts";

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface Metadata {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  [field: string]: unknown;
}

export interface ApiObject extends JsonObject {
  apiVersion?: string;
  kind?: string;
  metadata: Metadata;
}

export interface Key {
  readonly namespace: string;
  readonly name: string;
}

/** The order of these keys is the order of etcd's, hence of lists. */
export function storageKey(key: Key): string {
  return `${key.namespace}/${key.name}`;
}

export function keyOf(object: ApiObject): Key {
  return { namespace: object.metadata.namespace ?? "", name: object.metadata.name ?? "" };
}

export function controllerOf(object: ApiObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true);
}

/** metav1.Time: UTC with whole seconds. */
export function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
