/** The revision that each pod of a SidecarSet runs, and the pod's state. */
import { HASH_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { containerFailure, failureText } from "../../../shared/core/pod/container-failure.ts";
import { parseUpgradeRecords } from "../../../shared/core/pod/pod-records.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { replacesNotUpgradable, whyNotRecreated } from "../../../shared/core/pod/replaced.ts";
import { sidecarContainerNames } from "../../../shared/core/pod/sidecar-containers.ts";
import { classify } from "../../../shared/core/rollout/select/classify.ts";
import { downPods } from "../../../shared/core/rollout/select/down-pods.ts";
import { sceneOf } from "../../../shared/core/rollout/select/observed-states.ts";
import { compareUtf8 } from "../../../shared/go/json/go-json.ts";
import type { ReadSet } from "./read-set.ts";

export interface PodRow {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** name of the ControllerRevision; "" if no revision has the pod's hash */
  readonly revision: string;
  readonly isUpdated: boolean;
  readonly isReady: boolean;
  /** state of the pod, such as `ready`, `waiting for its turn`, `agent: ImagePullBackOff` */
  readonly state: string;
  /** images of the sidecar containers, by container name */
  readonly images: Readonly<Record<string, string>>;
}

/** One row for each pod that takes part in rollouts, by namespace and name. */
export function podRows({ sidecarSet, facts }: ReadSet): readonly PodRow[] {
  const names = new Map(
    facts.revisions.map((one) => [one.metadata?.annotations?.[HASH_ANNOTATION] ?? "", one.metadata?.name ?? ""]),
  );
  return [...sceneOf({ ...facts, sidecarSet }, facts).states]
    .map((state) => rowOf(state, sidecarSet, names))
    .toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name));
}

function rowOf(state: PodState, sidecarSet: SidecarSet, names: ReadonlyMap<string, string>): PodRow {
  const { pod, isUpdated, isConsistent, isReady } = state;
  const { namespace = "", name = "", annotations } = pod.metadata ?? {};
  const record = parseUpgradeRecords(annotations?.[HASH_ANNOTATION]).records[sidecarSet.metadata?.name ?? ""];
  const sidecars = sidecarContainerNames(sidecarSet);
  const images = pod.spec.containers.filter((one) => sidecars.has(one.name)).map((one) => [one.name, one.image ?? ""]);
  return {
    namespace,
    name,
    node: pod.spec.nodeName ?? "",
    revision: names.get(record?.hash ?? "") ?? record?.controllerRevision ?? "",
    isUpdated,
    isReady: isReady && isConsistent,
    state: stateText(state, sidecarSet),
    images: Object.fromEntries(images),
  };
}

function stateText(state: PodState, sidecarSet: SidecarSet): string {
  const failure = containerFailure(state.pod);
  // No count includes an updated pod among pods that are down if it was not ready before.
  const uncounted = state.isReady ? "ready" : "not ready, as before its update, and not counted";
  if (state.isUpdated) return downPods(sidecarSet, [state], 1)[0]?.why ?? uncounted;
  switch (classify(state, sidecarSet)) {
    case "notSelected":
      return "left out by updateStrategy.selector";
    case "notUpgradable":
      return notUpgradableText(state, sidecarSet);
    case "inFlight":
      return "previous update under way";
    default:
      if (state.drain) return `drained since ${state.drain.since}, updated next`;
      if (failure) return `${failureText(failure)}, waiting for its turn`;
      return state.isReady ? "waiting for its turn" : "not ready, waiting for its turn";
  }
}

function notUpgradableText({ pod, native }: PodState, sidecarSet: SidecarSet): string {
  const isReplaced = replacesNotUpgradable(sidecarSet) && whyNotRecreated(pod, sidecarSet) === undefined;
  return native?.hindrance ?? (isReplaced ? "waiting to be replaced" : "must be recreated");
}
