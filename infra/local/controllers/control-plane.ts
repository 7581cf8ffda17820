/** Everything that works on the store by itself: controllers, scheduler, kubelets. */

import { CUSTOM_RESOURCE_DEFINITION } from "../kinds/built-in-kinds.ts";
import { kindsOf } from "../kinds/custom-version.ts";
import { runKubelet } from "../kubelet/kubelet.ts";
import type { KubeletSettings } from "../kubelet/kubelet-settings.ts";
import { type Api, component, internalCall } from "../storage/api.ts";
import { keyOf } from "../storage/object.ts";
import type { Change } from "../storage/store.ts";
import { commitRemoval } from "../storage/write.ts";
import { runDeploymentController } from "./deployment-controller.ts";
import { runGarbageCollector } from "./garbage-collector.ts";
import { runNamespaceController } from "./namespace-controller.ts";
import { trackOwnership } from "./ownership.ts";
import { runReplicaSetController } from "./replica-set-controller.ts";
import { runScheduler } from "./scheduler.ts";
import { runStatefulSetController } from "./stateful-set-controller.ts";
import type { Controller } from "./work-queue.ts";

/** Begin before the first object is written. */
export function runControlPlane(api: Api, kubelet: KubeletSettings, caCertificate: string): Controller {
  const ownership = trackOwnership(api.store);
  const controllers: readonly Controller[] = [
    runNamespaceController(api, caCertificate),
    runDefinitionController(api),
    runScheduler(api),
    runKubelet(api, kubelet),
    runReplicaSetController(api, ownership),
    runDeploymentController(api, ownership),
    runStatefulSetController(api, ownership),
    runGarbageCollector(api, ownership),
  ];
  return {
    async close() {
      await Promise.all(controllers.map((controller) => controller.close()));
    },
  };
}

/** With a CustomResourceDefinition go the objects that it defined. */
const CALLER = component("apiextensions-apiserver");

function runDefinitionController(api: Api): Controller {
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
