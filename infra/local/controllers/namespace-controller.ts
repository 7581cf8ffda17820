/** Fills a new namespace, and empties one that is being deleted. */

import { CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT } from "../kinds/built-in-kinds.ts";
import type { Kind } from "../kinds/kind.ts";
import { type Api, component, internalCall } from "../storage/api.ts";
import { createObject } from "../storage/create.ts";
import { deleteObject } from "../storage/delete.ts";
import { type ApiObject, keyOf, storageKey } from "../storage/object.ts";
import { isStatus } from "../storage/status-error.ts";
import type { Change } from "../storage/store.ts";
import { commitRemoval } from "../storage/write.ts";
import { type Controller, runController } from "./work-queue.ts";

const CALLER = component("namespace-controller");

/** `caCertificate` as every namespace's kube-root-ca.crt shows it, PEM. */
async function fill(api: Api, namespace: string, caCertificate: string): Promise<void> {
  const wanted: readonly (readonly [Kind, Record<string, unknown> & { metadata: { name: string } }])[] = [
    [SERVICE_ACCOUNT, { metadata: { name: "default" } }],
    [CONFIG_MAP, { metadata: { name: "kube-root-ca.crt" }, data: { "ca.crt": caCertificate } }],
  ];
  for (const [kind, body] of wanted) {
    const key = { namespace, name: body.metadata.name };
    if (api.store.get(kind.collection, storageKey(key)) === undefined) {
      await createObject(api, internalCall(CALLER, kind, key), body);
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
    await deleteObject(api, internalCall(CALLER, kind, keyOf(object)), {});
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
    commitRemoval(api, internalCall(CALLER, NAMESPACE, keyOf(current)), "delete", current);
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
