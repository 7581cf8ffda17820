/** A SidecarSet and its pods in a cluster without kubelets: the test sets the pods' states. */
import type { ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { type Clock, timestamp } from "../../shared/controller/loop/clock.ts";
import type { Context } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { bareCluster, type Refuse } from "./bare-cluster.ts";
import { injectedPod, KRUISE_NAMESPACE, NAMESPACE, sidecarSet } from "./fixture.ts";
import { type SteppedClock, steppedClock } from "./stepped-clock.ts";

/** Returns the pod with running containers that have the images of its spec, ready or not. */
export function running(pod: Pod, isReady = true): Pod {
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }): ContainerStatus => {
    const imageID = `${image.split(":")[0]}@sha256:${image.split(":")[1]}`;
    return { name, image, imageID, containerID: `cri://${name}/${image}`, ready: isReady, restartCount: 0 };
  });
  const status = isReady ? "True" : "False";
  const conditions = ["ContainersReady", "Ready"].map((type) => ({ type, status }));
  return { ...pod, status: { phase: "Running", conditions, containerStatuses } };
}

/** Returns the context of a pass without an end. */
export function contextOn(cluster: Cluster, clock: Clock): Context {
  return {
    cluster,
    clock,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    tally: newTally(),
    recorded: new Set(),
    endsAtMs: Number.POSITIVE_INFINITY,
  };
}

export function bareRollout(name: string, refuse?: Refuse, stepped: SteppedClock = steppedClock()) {
  const bare = bareCluster(stepped, refuse);
  const { server } = bare;
  const context = contextOn(bare.cluster, stepped.clock);
  const readSet = () => server.peek<SidecarSet>(SIDECARSETS, { name }) as SidecarSet;
  const keyOf = (index: number) => ({ namespace: NAMESPACE, name: `${name}-${index}` });
  const readPod = (index: number) => server.peek<Pod>(PODS, keyOf(index)) as Pod;
  /** Stores this version as the next generation. */
  const release = (version: number, updateStrategy: UpdateStrategy = {}) => {
    const { metadata, ...set } = sidecarSet(name, version, updateStrategy);
    const { uid = `uid-${name}`, generation = 0 } = server.peek(SIDECARSETS, { name })?.metadata ?? {};
    const { status } = server.peek<SidecarSet>(SIDECARSETS, { name }) ?? {};
    const creationTimestamp = timestamp(stepped.clock);
    const next = { creationTimestamp, ...metadata, uid, generation: generation + 1 };
    server.put("test", SIDECARSETS, { ...set, metadata: next, ...(status ? { status } : {}) });
  };
  /** Creates the SidecarSet at version 1, with pods that run it. */
  const deploy = (count: number, updateStrategy: UpdateStrategy = {}) => {
    release(1, updateStrategy);
    for (let index = 0; index < count; index++) {
      const { metadata, ...pod } = injectedPod(name, keyOf(index).name);
      server.put("test", PODS, running({ ...pod, metadata: { ...metadata, uid: `uid-${keyOf(index).name}` } }));
    }
  };
  /** Reports the pod's present spec as the kubelet does. */
  const settle = (index: number, isReady = true) => server.put("kubelet", PODS, running(readPod(index), isReady));
  const versions = () =>
    server
      .all<Pod>(PODS)
      .map(({ spec }) => spec.containers[1]?.image?.split(":")[1])
      .join(" ");
  return { ...stepped, ...bare, context, release, deploy, settle, readSet, readPod, keyOf, versions };
}
