/** Everything that works on the store by itself: controllers, scheduler, kubelets. */

import { runKubelet } from "../kubelet/kubelet.ts";
import type { KubeletSettings } from "../kubelet/kubelet-settings.ts";
import type { Api } from "../storage/api.ts";
import { runDefinitionController } from "./definition-controller.ts";
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
