/** What a dry run would do, in words. */
import type { Action } from "../../core/actions.ts";
import { keyOfWorkload } from "../../core/pod/workload.ts";

/** One line for people. */
export function describeAction(action: Action): string {
  switch (action.kind) {
    case "CreateRevision":
      return `create ControllerRevision ${action.revision.metadata?.name}, revision ${action.revision.revision}`;
    case "RenumberRevision":
      return `make ControllerRevision ${action.name} the newest, revision ${action.revision}`;
    case "LabelRevision":
      return `label ControllerRevision ${action.name} with custom version ${action.customVersion}`;
    case "DeleteRevision":
      return `delete ControllerRevision ${action.name}`;
    case "PatchStatus":
      return `write the status of SidecarSet ${action.sidecarSet}: ${JSON.stringify(action.status)}`;
    case "PatchPod": {
      const images = action.images.map(({ container, from, to }) => `${container} ${from} → ${to}`);
      return `${action.purpose} pod ${action.pod.namespace}/${action.pod.name}: ${images.join(", ") || "annotations only"}`;
    }
    case "EvictPod":
      return `evict pod ${action.pod.namespace}/${action.pod.name}: its controller creates another, with the sidecars of now`;
    case "RestartWorkload":
      return `restart ${keyOfWorkload(action.workload)}: it recreates its pods as its own strategy says, with the sidecars of now`;
    case "PatchPodCondition": {
      const { type, status, reason } = action.condition;
      return `set condition ${type}=${status} (${reason}) of pod ${action.pod.namespace}/${action.pod.name}`;
    }
    case "RecordEvent":
      return `record event ${action.reason} about ${action.regarding.kind} ${action.regarding.name}: ${action.message}`;
    default:
      return action satisfies never;
  }
}
