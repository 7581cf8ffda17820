/** Why a pod with the newest sidecars is ready, or what it waits for. */
import type { Pod } from "../../../api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { commandText } from "../../pod/command-text.ts";
import { containerFailure, isStartedSoon, waitingReasonOf } from "../../pod/container-failure.ts";
import { failureWords, foreignHint, hasOtherImage, ownContainers } from "../../pod/failing-pods.ts";
import { isConsistent } from "../../pod/is-consistent.ts";
import { isHeldElsewhere, isPodUnscheduled, isRunningAndReady, notReadyText } from "../../pod/is-ready.ts";
import { patchPodMetadata } from "../../pod/patch-pod-metadata.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { sidecarContainerNames, sidecarOf } from "../../pod/sidecar-containers.ts";
import { unreadableState } from "../../pod/update-state.ts";
import { valuesRecord } from "../../pod/values-record.ts";
import { canFlip } from "../../rollout/upgrade/hot-slot.ts";
import { shareText } from "./budget-text.ts";
import { note, ok, type Step, stop, wait } from "./step.ts";

/** The step about an updated pod: it says whether the pod runs and is ready. */
export function traceUpdated(state: PodState, sidecarSet: SidecarSet, hasWayBack: () => boolean): Step {
  const { pod, isConsistent: isRunning, isReady } = state;
  if (isRunning && isReady) return traceMetadata(pod, sidecarSet);
  const waiting = traceFailure(pod, sidecarSet, hasWayBack) ?? traceStart(pod, sidecarSet);
  if (waiting) return waiting;
  const share = shareText(pod, sidecarSet);
  if (isPodUnscheduled(pod)) return heldElsewhere(pod, share);
  if (!isRunning && unreadableState(pod)) return traceUnreadable(pod);
  if (!isRunning) return wait("WaitingForImage", lateText(state, sidecarSet));
  if (isRunningAndReady(pod)) return wait("HotUpgradeUnderWay", hotText(pod, sidecarSet));
  if (isHeldElsewhere(pod)) return heldElsewhere(pod, share);
  const text = notReadyText(pod).replace("not ready", "not ready yet");
  return wait("PodNotReady", `the pod has the newest version and is ${text}; ${share}`);
}

function heldElsewhere(pod: Pod, share: string): Step {
  const text = `the pod has the newest version and is ${notReadyText(pod)}; ${share}`;
  return stop("PodNotReady", text, elsewhereHint(pod));
}

export function elsewhereHint({ metadata }: Pick<Pod, "metadata">): string {
  const { namespace, name } = metadata ?? {};
  const look = commandText`kubectl describe pod -n ${namespace} ${name}`;
  return `no pass places pods or opens gates of others; see what keeps it: ${look}`;
}

/** Running pods get changed metadata only with their next in-place update, because no hash covers it. */
function traceMetadata(pod: Pod, { spec }: SidecarSet): Step {
  const before = pod.metadata?.annotations ?? {};
  const patched = patchPodMetadata(before, spec.patchPodMetadata ?? []);
  const after = patched.kind === "refused" ? before : patched.annotations;
  const late = Object.keys(after).filter((key) => after[key] !== before[key]);
  if (late.length === 0) return ok("UpdatedAndReady", "the pod runs the newest version and is ready");
  return note(
    "UpdatedAndReady",
    `the pod has the newest images and is ready; it gets ${late.join(", ")} of patchPodMetadata with its next update in place, or when it is recreated`,
  );
}

function hotText(pod: Pod, sidecarSet: SidecarSet): string {
  if (canFlip(pod, sidecarSet)) return "hot upgrade: the new container works, the next pass empties the old one";
  return "hot upgrade: the new container starts beside the old one, which works until then";
}

/** The step about a failing container. The SidecarSet's own containers come first. */
function traceFailure(pod: Pod, sidecarSet: SidecarSet, hasWayBack: () => boolean): Step | undefined {
  const own = ownContainers(sidecarSet);
  const failure = containerFailure(pod, own) ?? containerFailure(pod);
  if (failure === undefined) return undefined;
  const { container, kind } = failure;
  const { namespace, name } = pod.metadata ?? {};
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const image = all.find(({ name }) => name === container)?.image ?? "";
  const text = failureWords(failure, { pod, isUpdated: true }, sidecarSet);
  const describe = commandText`kubectl describe pod -n ${namespace} ${name}`;
  if (kind === "pull") return stop("ImagePullError", `${text}: the image ${image} cannot be pulled`, pullAdvice());
  const logs = commandText`kubectl logs -n ${namespace} ${name} -c ${container} --previous`;
  return stop("ContainerFailing", text, kind === "crash" ? logs : describe);

  function pullAdvice(): string {
    if (!own.has(container)) return foreignHint(container, nameOf(sidecarSet));
    return hasOtherImage(pod, sidecarSet, container)
      ? describe
      : imageAdvice(nameOf(sidecarSet), sidecarOf(sidecarSet, container), hasWayBack());
  }
}

function imageAdvice(name: string, container: string, hasWayBack: boolean): string {
  const image = commandText`set an image that can: sidecarset set image ${name} ${container}=IMAGE`;
  return hasWayBack ? `${image}, or ${commandText`sidecarset undo ${name}`}` : image;
}

function traceStart(pod: Pod, sidecarSet: SidecarSet): Step | undefined {
  const ours = sidecarContainerNames(sidecarSet);
  const starting = (pod.status?.containerStatuses ?? []).filter((one) => one.ready !== true && isStartedSoon(one));
  const first = starting.find(({ name }) => ours.has(name)) ?? starting[0];
  return first && wait("WaitingForImage", `${first.name}: ${waitingReasonOf(first)}: its node is starting it`);
}

/** The step about a pod whose record cannot be read: it counts as unavailable until the record is removed. */
export function traceUnreadable(pod: Pod): Step {
  const { namespace, name } = pod.metadata ?? {};
  return stop(
    "RecordUnreadable",
    `${unreadableState(pod)}, so the pod counts as still being updated, and uses a share of maxUnavailable if it has the newest version`,
    commandText`kubectl annotate pod -n ${namespace} ${name} ${IN_PLACE_UPDATE_STATE_ANNOTATION}-`,
  );
}

function lateText(state: PodState, sidecarSet: SidecarSet): string {
  const late = lateContainer(state, sidecarSet);
  const isRestart = valuesRecord(state.pod, nameOf(sidecarSet))?.before[late] !== undefined;
  return isRestart
    ? `${late}: its node has not restarted it for its new values or image yet`
    : `${late}: its node has not started the new image yet`;
}

export function lateContainer({ pod, native }: PodState, sidecarSet: SidecarSet): string {
  const late = [...sidecarContainerNames(sidecarSet)].find(
    (name) => !isConsistent(pod, nameOf(sidecarSet), new Set([name])),
  );
  return late ?? (native?.isConsistent === false ? "a native sidecar" : "a container");
}

export function nameOf({ metadata }: SidecarSet): string {
  return metadata?.name ?? "";
}
