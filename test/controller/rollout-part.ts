/**
 * A SidecarSet on a bare cluster, for tests of one part of its rollout. Pods stay unchanged, and time passes only in
 * sleep().
 */
import type { OwnerReference, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { Eviction } from "../simulation/api-server.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, type Refuse } from "./bare-cluster.ts";
import { contextOn, running } from "./bare-rollout.ts";
import { injectedPod, NAMESPACE, sidecarSet } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

export const SET = "proxy";
export const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

/** The creation time of the SidecarSet, before all pods. */
const SET_MADE = "2026-01-01T00:00:00Z";
const POD_MADE = "2026-01-01T01:00:00Z";
const SET_WRITTEN = "2026-01-01T02:00:00Z";

/** Returns a pod with sidecars of this version. */
export function podOf(name: string, version = 1): Pod {
  const { metadata, ...pod } = injectedPod(SET, name, version);
  return running({ ...pod, metadata: { ...metadata, uid: `uid-${name}`, creationTimestamp: POD_MADE } });
}

/** Returns a pod on a node that was created without its sidecars. */
export function missedPod(name: string, controller?: OwnerReference): Pod {
  const made = { ...keyOf(name), uid: `uid-${name}`, creationTimestamp: POD_MADE, labels: { app: SET } };
  const spec = { nodeName: "node", containers: [{ name: "main", image: "nginx:1" }] };
  return running(newPod({ ...made, ...(controller ? { ownerReferences: [controller] } : {}) }, spec));
}

export function replicaSet(name: string): OwnerReference {
  return { apiVersion: "apps/v1", kind: "ReplicaSet", name, uid: name, controller: true };
}

export interface Asked extends UpdateStrategy {
  /** version of the image */
  readonly version?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Returns a SidecarSet of generation 2 that was written after all pods were created. Its status shows no generation.
 */
export function setOf({ version = 2, annotations, ...updateStrategy }: Asked = {}): SidecarSet {
  const { metadata, ...set } = sidecarSet(SET, version, updateStrategy);
  const managedFields = [{ time: SET_WRITTEN, fieldsV1: { "f:spec": {} } }];
  const made = { uid: "uid-set", generation: 2, creationTimestamp: SET_MADE, managedFields };
  return { ...set, metadata: { ...metadata, ...made, annotations: { ...metadata?.annotations, ...annotations } } };
}

export function rolloutPart(refuse: Refuse = () => undefined) {
  const stepped = steppedClock();
  const { server, calls, cluster: bare } = bareCluster(stepped, refuse);
  const evictions: Eviction[] = [];
  const create: Cluster["create"] = (resource, object, options) => {
    if (options?.subresource === "eviction") evictions.push(object);
    return bare.create(resource, object, options);
  };
  const cluster: Cluster = { ...bare, create };
  const context = contextOn(cluster, stepped.clock);
  const put = (...objects: readonly (Pod | SidecarSet)[]) => {
    for (const object of objects) server.put("test", object.kind === "Pod" ? PODS : SIDECARSETS, object);
  };
  const look = async (): Promise<Snapshot> => {
    const snapshot = await observe(context, SET);
    if (!snapshot) throw new Error("there is no SidecarSet");
    return snapshot;
  };
  const readSet = () => server.peek<SidecarSet>(SIDECARSETS, { name: SET });
  const readPod = (name: string) => server.peek<Pod>(PODS, keyOf(name));
  return { ...stepped, server, calls, evictions, cluster, context, put, look, readSet, readPod };
}
