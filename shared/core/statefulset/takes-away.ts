/** Decides which writes of a pass take something away, so that they have to be reserved: a pod that serves, or its claims. */
import type { Pod } from "../../api/kubernetes.ts";
import type { PersistentVolumeClaim } from "../../api/stateful-set.ts";
import type { PodState } from "../ledger.ts";
import { whyNotCompleted } from "./in-place/update-completed.ts";
import { isHealthy, revisionOf } from "./pods/pod-phase.ts";
import type { Request } from "./step.ts";

const CLAIM = "claim:";

/**
 * The object that is to be reserved in the state that the write is conditional on: a pod that is deleted, updated in
 * place, or not healthy any more; a claim that goes with its pod from then on. Undefined for any other write.
 */
export function takenAway(request: Request): PodState | undefined {
  switch (request.kind) {
    case "DeletePod":
      return stateOf(request.pod);
    case "UpdatePod":
    case "UpdatePodStatus":
      return isChanged(request) || (isUp(request.before) && !isUp(request.after)) ? stateOf(request.before) : undefined;
    case "UpdateClaim":
      return podOwners(request.after) > podOwners(request.before) ? claimState(request.before) : undefined;
    default:
      return undefined;
  }
}

/** In a ledger the uid says that it is about a claim. */
export function claimState(claim: PersistentVolumeClaim): PodState {
  const state = stateOf(claim);
  return { ...state, uid: `${CLAIM}${state.uid}` };
}

export function isClaimState({ uid }: Pick<PodState, "uid">): boolean {
  return uid.startsWith(CLAIM);
}

/** Of the object itself. */
export function uidOf({ uid }: Pick<PodState, "uid">): string {
  return uid.startsWith(CLAIM) ? uid.slice(CLAIM.length) : uid;
}

function stateOf({ metadata }: Pick<Pod, "metadata">): PodState {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata ?? {};
  return { namespace, name, uid, resourceVersion };
}

function isChanged({ before, after }: { readonly before: Pod; readonly after: Pod }): boolean {
  const images = ({ spec }: Pod) => spec.containers.map(({ image }) => image).join("\n");
  return revisionOf(before) !== revisionOf(after) || images(before) !== images(after);
}

function isUp(pod: Pod): boolean {
  return isHealthy(pod) && whyNotCompleted(pod) === undefined;
}

function podOwners({ metadata }: PersistentVolumeClaim): number {
  return (metadata?.ownerReferences ?? []).filter(({ kind }) => kind === "Pod").length;
}
