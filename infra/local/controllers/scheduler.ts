/** Gives every pod that has none a node, one after the other. */

import { bind } from "../kinds/pod-subresource.ts";
import { NODE, POD } from "../kinds/registry.ts";
import { type Api, component, internalCall } from "../storage/api.ts";
import { type ApiObject, at, keyOf, textAt } from "../storage/json.ts";
import type { Change } from "../storage/store.ts";
import { type Controller, runController } from "./work-queue.ts";

const CALLER = component("kube-scheduler");

function isWaiting(pod: ApiObject): boolean {
  const isOurs = textAt(pod, "spec", "schedulerName") === "default-scheduler";
  const isGated = at(pod, "spec", "schedulingGates", 0) !== undefined;
  return isOurs && !isGated && textAt(pod, "spec", "nodeName") === "" && pod.metadata.deletionTimestamp === undefined;
}

export function runScheduler(api: Api): Controller {
  let turn = 0;
  const keysOf = (change: Change): readonly string[] => {
    return change.collection === POD.collection && change.type !== "DELETED" && isWaiting(change.object)
      ? [change.key]
      : [];
  };
  return runController(api, {
    keysOf,
    async reconcile(key) {
      const pod = api.store.get(POD.collection, key);
      const nodes = api.store.list(NODE.collection).filter((node) => at(node, "spec", "unschedulable") !== true);
      const node = nodes[turn % nodes.length];
      if (pod === undefined || node === undefined || !isWaiting(pod)) return;
      turn += 1;
      bind(api, internalCall(CALLER, POD, keyOf(pod), "binding"), node.metadata.name ?? "");
    },
  });
}
