/** What a kubelet asks of the API server, answered by this process's own store. */

import { POD } from "../kinds/built-in-kinds.ts";
import { type Api, type Caller, internalCall } from "../storage/api.ts";
import { deleteObject } from "../storage/delete.ts";
import { textAt } from "../storage/json.ts";
import { type ApiObject, keyOf, storageKey } from "../storage/object.ts";
import { isStatus } from "../storage/status-error.ts";
import { changeObject } from "../storage/update.ts";
import { configProblem } from "./container-config.ts";
import type { PodApi } from "./pod-worker.ts";

function kubeletOf(pod: ApiObject): Caller {
  const username = `system:node:${textAt(pod, "spec", "nodeName")}`;
  return { userAgent: "kubelet", user: { username, groups: ["system:nodes", "system:authenticated"] } };
}

export function storedPods(api: Api): PodApi {
  return {
    async writeStatus(pod, next) {
      const key = keyOf(pod);
      if (api.store.get(POD.collection, storageKey(key))?.metadata.uid !== pod.metadata.uid) return;
      const transform = (current: ApiObject): ApiObject => ({ ...current, status: next(current) });
      try {
        await changeObject(api, internalCall(kubeletOf(pod), POD, key, "status"), { verb: "patch", transform });
      } catch (error) {
        if (!isStatus(error, 404)) throw error;
      }
    },
    async remove(pod) {
      const preconditions = { uid: pod.metadata.uid };
      try {
        const call = internalCall(kubeletOf(pod), POD, keyOf(pod));
        await deleteObject(api, call, { gracePeriodSeconds: 0, preconditions });
      } catch (error) {
        if (!isStatus(error, 404) && !isStatus(error, 409)) throw error;
      }
    },
    configProblem: (namespace, container) =>
      configProblem((source, key) => api.store.get(`/${source}s`, key), namespace, container),
  };
}
