/**
 * Stores objects in etcd exactly as another installation left them, past every webhook. No client of an API server
 * could choose their uid, generation, creation time and API version.
 */
import { randomUUID } from "node:crypto";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { ask } from "./control-plane.ts";

/** Kind → its folder below /registry. */
const PLACES: Readonly<Record<string, string>> = {
  Pod: "pods",
  Namespace: "namespaces",
  ConfigMap: "configmaps",
  ControllerRevision: "controllerrevisions",
  SidecarSet: "apps.kruise.io/sidecarsets",
  ContainerRecreateRequest: "apps.kruise.io/containerrecreaterequests",
};

/** The most operations that etcd accepts in one transaction. */
const TRANSACTION_LIMIT = 128;

const encode = (text: string) => Buffer.from(text).toString("base64");

type Operation = { readonly requestPut: object } | { readonly requestDeleteRange: object };

/** @throws for a kind without a folder here */
function keyOf({ kind = "", metadata }: KubernetesObject): string {
  const place = PLACES[kind];
  if (place === undefined) throw new Error(`objects of kind ${kind} are not loaded here`);
  return ["/registry", place, metadata?.namespace, metadata?.name].filter((part) => part !== undefined).join("/");
}

async function commit(etcdUrl: string, operations: readonly Operation[]): Promise<void> {
  for (let start = 0; start < operations.length; start += TRANSACTION_LIMIT) {
    const success = operations.slice(start, start + TRANSACTION_LIMIT);
    const { code, text } = await ask(`${etcdUrl}/v3/kv/txn`, "POST", JSON.stringify({ success }));
    if (code !== 200) throw new Error(`etcd answers ${code}: ${text}`);
  }
}

/** Stores all objects at once. They must have `apiVersion` and `kind`; a resourceVersion is not stored. */
export function storeObjects(etcdUrl: string, objects: readonly KubernetesObject[]): Promise<void> {
  const operations = objects.map((object) => {
    const { resourceVersion: _, ...metadata } = object.metadata ?? {};
    // The API server ignores an object without a uid.
    const value = encode(JSON.stringify({ ...object, metadata: { uid: randomUUID(), ...metadata } }));
    return { requestPut: { key: encode(keyOf(object)), value } };
  });
  return commit(etcdUrl, operations);
}

/** Removes the objects at once, even if they have finalizers. */
export function removeStored(etcdUrl: string, objects: readonly KubernetesObject[]): Promise<void> {
  return commit(
    etcdUrl,
    objects.map((object) => ({ requestDeleteRange: { key: encode(keyOf(object)) } })),
  );
}
