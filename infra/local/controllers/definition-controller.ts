/** With a CustomResourceDefinition go the objects that it defined. */

import { CUSTOM_RESOURCE_DEFINITION } from "../kinds/built-in-kinds.ts";
import { kindsOf } from "../kinds/custom-version.ts";
import { type Api, component, internalCall } from "../storage/api.ts";
import { keyOf } from "../storage/object.ts";
import type { Change } from "../storage/store.ts";
import { commitRemoval } from "../storage/write.ts";
import type { Controller } from "./work-queue.ts";

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
