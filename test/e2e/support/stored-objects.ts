/**
 * Objects exactly as another installation left them in etcd, past every webhook. Their uid, generation, creation time
 * and API version are ones that no client of an API server can choose.
 */
import { randomUUID } from "node:crypto";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { ask } from "./control-plane.ts";

/** The folders of kinds below /registry. */
const PLACES: Readonly<Record<string, string>> = {
  Pod: "pods",
  Namespace: "namespaces",
  ConfigMap: "configmaps",
  ControllerRevision: "controllerrevisions",
  SidecarSet: "apps.kruise.io/sidecarsets",
  ContainerRecreateRequest: "apps.kruise.io/containerrecreaterequests",
};

/** The most operations that etcd takes at once. */
const TRANSACTION_LIMIT = 128;

const encode = (text: string) => Buffer.from(text).toString("base64");

type Operation = { readonly requestPut: object } | { readonly requestDeleteRange: object };

/** @throws for a kind that has no place here */
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

/** Stores all of them at once; `apiVersion` and `kind` are needed, a resourceVersion is not stored. */
export function storeObjects(etcdUrl: string, objects: readonly KubernetesObject[]): Promise<void> {
  const operations = objects.map((object) => {
    const { resourceVersion: _, ...metadata } = object.metadata ?? {};
    // An object without a uid does not count as existing.
    const value = encode(JSON.stringify({ ...object, metadata: { uid: randomUUID(), ...metadata } }));
    return { requestPut: { key: encode(keyOf(object)), value } };
  });
  return commit(etcdUrl, operations);
}

/** Removes them at once, finalizers or not. */
export function removeStored(etcdUrl: string, objects: readonly KubernetesObject[]): Promise<void> {
  return commit(
    etcdUrl,
    objects.map((object) => ({ requestDeleteRange: { key: encode(keyOf(object)) } })),
  );
}
