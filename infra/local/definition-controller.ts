/** With a CustomResourceDefinition go the objects that it defined. */
import { type Api, component, internalCall } from "./api.ts";
import { CUSTOM_RESOURCE_DEFINITION } from "./built-in-kinds.ts";
import { kindsOf } from "./custom-version.ts";
import { keyOf } from "./object.ts";
import type { Change } from "./store.ts";
import type { Controller } from "./work-queue.ts";
import { commitRemoval } from "./write.ts";

const CALLER = component("apiextensions-apiserver");

export function runDefinitionController(api: Api): Controller {
  const unsubscribe = api.store.subscribe((change: Change) => {
    if (change.collection !== CUSTOM_RESOURCE_DEFINITION.collection || change.type !== "DELETED") return;
    const [kind] = kindsOf(change.object);
    if (kind === undefined) return;
    for (const object of api.store.list(kind.collection)) {
      commitRemoval(api, internalCall(CALLER, kind, keyOf(object)), "delete", object);
    }
  });
  return { close: async () => unsubscribe() };
}
