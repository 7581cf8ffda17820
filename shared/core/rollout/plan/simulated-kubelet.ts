/** The effect of a node on a pod with changed images: the pod goes down, and recovers if it can. */
import type { Container, ContainerStatus, Pod, PodCondition } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Action, ImageChange } from "../../actions.ts";
import { containerFailure } from "../../pod/container-failure.ts";
import { isActive } from "../../pod/is-matched.ts";
import { nativeSidecars } from "../../pod/native-sidecars.ts";
import { otherDrains } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { valuesRecord } from "../../pod/values-record.ts";
import { putBack } from "../rules/drain/drain.ts";

type PodPatch = Extract<Action, { kind: "PatchPod" }>;

/** The pod right after the patch. Its changed containers restart, so it is not ready. */
export function patched(pod: Pod, { images, annotations, labels, resources = [] }: PodPatch): Pod {
  const changed = (list: ImageChange["list"]) =>
    new Map(images.filter((image) => image.list === list).map((image) => [image.container, image.to]));
  const [to, toInit] = [changed(undefined), changed("initContainers")];
  const given = new Map(resources.map((change) => [change.container, change.resources]));
  const withResources = (container: Container): Container => {
    const wanted = given.get(container.name);
    return wanted === undefined ? container : { ...container, resources: wanted };
  };
  const { initContainers } = pod.spec;
  const next: Pod = {
    ...pod,
    metadata: {
      ...pod.metadata,
      annotations: { ...pod.metadata?.annotations, ...annotations },
      ...(labels ? { labels: { ...pod.metadata?.labels, ...labels } } : {}),
    },
    spec: {
      ...pod.spec,
      ...(initContainers ? { initContainers: initContainers.map(withImages(toInit)) } : {}),
      containers: pod.spec.containers.map(withImages(to)).map(withResources),
    },
  };
  if (images.length === 0 || !pod.status) return next;
  const stop = (names: ReadonlyMap<string, string>) => (status: ContainerStatus) =>
    names.has(status.name) ? stopped(status) : status;
  return withStatuses(next, stop(to), stop(toInit));
}

function withImages(to: ReadonlyMap<string, string>): (container: Container) => Container {
  return (container) => {
    const image = to.get(container.name);
    return image === undefined ? container : { ...container, image };
  };
}

/** True for a pod that will become `started`: its node still works on it, or another SidecarSet drains it. */
export function isStarting({ pod, isConsistent, resize, isDrainedElsewhere }: PodState): boolean {
  if (!pod.spec.nodeName || !isActive(pod) || containerFailure(pod) !== undefined || resize?.hindrance !== undefined)
    return false;
  const isUnready = (pod.status?.containerStatuses ?? []).some(({ ready }) => ready !== true);
  return isDrainedElsewhere || isUnready || resize?.step === "wait" || (!isConsistent && resize?.step !== "resize");
}

/** The pod after its containers run the images and resources of its spec. */
export function started(pod: Pod, sidecarSet: SidecarSet): Pod {
  const natives = new Set(nativeSidecars(sidecarSet).map(({ name }) => name));
  const sidecars = sidecarContainerNames(sidecarSet);
  const isToRestart = restartsOf(pod, sidecarSet);
  const start = (containers: readonly Container[], isWatched: (name: string) => boolean) => {
    const byName = new Map(containers.map((container) => [container.name, container]));
    return (status: ContainerStatus) => {
      const { image = status.image ?? "", resources } = byName.get(status.name) ?? {};
      const isOther = isWatched(status.name) && status.image !== image;
      const next = status.ready !== true || isOther || isToRestart(status) ? running(status, image) : status;
      return resources === undefined ? next : { ...next, resources };
    };
  };
  const { name = "" } = sidecarSet.metadata ?? {};
  const others = otherDrains(pod, name);
  const startNative = start(pod.spec.initContainers ?? [], () => true);
  return withStatuses(
    others.length > 0 ? patched(pod, putBack(pod, others)) : pod,
    start(pod.spec.containers, (name) => sidecars.has(name)),
    (status) => (natives.has(status.name) ? startNative(status) : status),
  );
}

/** Selects containers that did not change after a pass ordered their restart. */
function restartsOf(pod: Pod, { metadata }: SidecarSet): (status: ContainerStatus) => boolean {
  const before = valuesRecord(pod, metadata?.name ?? "")?.before;
  return ({ name, containerID }) => containerID !== undefined && before?.[name]?.id === containerID;
}

export function stopped({
  name,
  image = "",
  imageID = "",
  restartCount = 0,
  containerID,
}: ContainerStatus): ContainerStatus {
  const state = { waiting: { reason: "ContainerCreating" } };
  return { name, ready: false, image, imageID, restartCount, state, ...(containerID ? { containerID } : {}) };
}

/** The status of a container with a new imageID, which shows the new image to a rollout. */
export function running(
  { name, imageID, restartCount = 0, containerID }: ContainerStatus,
  image: string,
): ContainerStatus {
  const digest = image.includes("@") ? image : `${image}@simulated`;
  const next = `simulated://${digest}`;
  const another = containerID === undefined ? {} : { containerID: `${containerID}+` };
  const id = next === imageID ? `${next}+` : next;
  return { name, ready: true, image, imageID: id, restartCount: restartCount + 1, ...another };
}

type Change = (status: ContainerStatus) => ContainerStatus;

function withStatuses(pod: Pod, change: Change, changeInit: Change): Pod {
  const { status, spec } = pod;
  const containerStatuses = (status?.containerStatuses ?? []).map(change);
  const initContainerStatuses = status?.initContainerStatuses?.map(changeInit);
  const alwaysRun = new Set(spec.initContainers?.flatMap((one) => (one.restartPolicy === "Always" ? [one.name] : [])));
  const natives = (initContainerStatuses ?? []).filter(({ name }) => alwaysRun.has(name));
  const isReady = [...containerStatuses, ...natives].every(({ ready }) => ready === true);
  const conditions = (status?.conditions ?? []).map((condition) =>
    condition.type === "Ready" ? readyOf(condition, isReady) : condition,
  );
  const inits = initContainerStatuses ? { initContainerStatuses } : {};
  return { ...pod, status: { ...status, conditions, containerStatuses, ...inits } };
}

function readyOf(condition: PodCondition, isReady: boolean): PodCondition {
  return { ...condition, status: isReady ? "True" : "False" };
}
