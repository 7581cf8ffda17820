/** Creates SidecarSets, injected pods and their histories on the embedded cluster. */

import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { parse } from "yaml";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import type { Clock } from "../../shared/controller/loop/clock.ts";
import { withSpecImages } from "../../shared/core/pod/image-alias.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { type Cluster, NAMESPACES, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { startInProcessCluster } from "../support/in-process-cluster.ts";
import { injectedBy, newPod } from "../support/objects.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";

export const KRUISE_NAMESPACE = "kruise-system";
export const NAMESPACE = "shop";

/** The image and the hash both name the version. The hash without image never changes. */
export const imageOf = (version: number) => `registry.example/proxy:${version}`;
const hashOf = (version: number) => `hash${version}`;

/** Returns a pod as the webhook stores it: a main container and an injected proxy of `version`. */
export function injectedPod(set: string, name: string, version = 1): Pod {
  return newPod(
    {
      name,
      namespace: NAMESPACE,
      labels: { app: set },
      annotations: injectedBy(set, { hash: hashOf(version), withoutImage: "hash0", sidecars: ["proxy"] }),
    },
    {
      containers: [
        { name: "main", image: "registry.example/main:1" },
        { name: "proxy", image: imageOf(version) },
      ],
    },
  );
}

export function sidecarSet(name: string, version: number, updateStrategy: UpdateStrategy): SidecarSet {
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: {
      name,
      annotations: { [HASH_ANNOTATION]: hashOf(version), [HASH_WITHOUT_IMAGE_ANNOTATION]: "hash0" },
    },
    spec: {
      selector: { matchLabels: { app: name } },
      containers: [{ name: "proxy", image: imageOf(version) }],
      updateStrategy: { type: "RollingUpdate", ...updateStrategy },
    },
  };
}

/** Applies a new version as a user does; the webhook changes the hash with the image. */
export async function release(
  cluster: Cluster,
  name: string,
  version: number,
  { image = imageOf(version), ...updateStrategy }: UpdateStrategy & { readonly image?: string } = {},
) {
  const { metadata, spec } = sidecarSet(name, version, updateStrategy);
  const { annotations } = metadata ?? {};
  const body = {
    metadata: { annotations },
    spec: { containers: [{ name: "proxy", image }], updateStrategy: spec.updateStrategy },
  };
  await cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
}

export const readSet = (cluster: Cluster, name: string) => cluster.get<SidecarSet>(SIDECARSETS, { name });

export async function readPods(cluster: Cluster, set: string): Promise<readonly Pod[]> {
  return (await cluster.list<Pod>(PODS, { namespace: NAMESPACE, labelSelector: `app=${set}` })).items;
}

export function versionsOf(pods: readonly Pod[]): readonly string[] {
  return pods.map(({ spec }) => spec.containers[1]?.image?.split(":")[1] ?? "none");
}

export const isReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") === true;

/** Returns a clock of real time that runs faster: a wait of a second takes milliseconds. */
export function fastClock(factor: number): Clock {
  const [begin, beginEpochMs] = [performance.now(), Date.now()];
  const passedMs = () => (performance.now() - begin) * factor;
  return {
    now: passedMs,
    epochMs: () => beginEpochMs + passedMs(),
    sleep: (ms, signal) => setTimeout(ms / factor, undefined, signal ? { signal } : {}).catch(() => undefined),
    random: Math.random,
  };
}

export interface TestCluster {
  readonly cluster: Cluster;
  /** every write since the start */
  readonly history: LocalCluster["history"];
  /** forgets old versions, so that page tokens expire */
  readonly compact: () => void;
  readonly close: () => Promise<void>;
}

export interface HttpsCluster extends TestCluster {
  /** the kubeconfig as YAML */
  readonly kubeconfig: string;
}

const FAST = { startDelayMs: 5, readyDelayMs: 5 };

/**
 * An API server with the CRD, both namespaces and fast kubelets, without a network. There is no webhook, so the
 * fixtures have the form that webhooks store. Time is virtual for the whole file until the cluster is closed.
 */
export async function startTestCluster(): Promise<TestCluster> {
  startVirtualTime();
  const { cluster, history, compact, close } = await startInProcessCluster(FAST);
  await furnish(cluster);
  return {
    cluster,
    history,
    compact,
    async close() {
      await close();
      stopVirtualTime();
    },
  };
}

/** Starts the same cluster over HTTPS and in real time, for tests that need a kubeconfig. */
export async function startHttpsCluster(): Promise<HttpsCluster> {
  const local = await startLocalCluster(FAST);
  const cluster = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
  });
  await furnish(cluster);
  const { history, compact, close } = local;
  return { cluster, history, compact, close, kubeconfig: local.kubeconfig() };
}

export async function furnish(cluster: Cluster): Promise<void> {
  const definition = parse(await readFile(new URL("../../infra/crd/sidecarsets.yaml", import.meta.url), "utf8"));
  delete definition.spec.conversion;
  await cluster.create(DEFINITIONS, definition);
  for (const name of [KRUISE_NAMESPACE, NAMESPACE]) await cluster.create(NAMESPACES, { metadata: { name } });
}

const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};

/** True if every container runs the image of its spec. */
export function isRunning(pod: Pod): boolean {
  const { spec, status } = withSpecImages(pod);
  const isStarted = status?.containerStatuses?.length === spec.containers.length;
  return isStarted && (status?.containerStatuses ?? []).every(({ image }, i) => image === spec.containers[i]?.image);
}

/** Creates a SidecarSet at version 1 and its pods, and waits until they are ready. */
export async function deploy(cluster: Cluster, name: string, count: number, updateStrategy: UpdateStrategy) {
  await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet(name, 1, updateStrategy));
  await Promise.all(
    Array.from({ length: count }, (_, index) => cluster.create<Pod>(PODS, injectedPod(name, `${name}-${index}`))),
  );
  await allReady(cluster, name);
}

export async function allReady(cluster: Cluster, set: string): Promise<void> {
  await eventually(async () => {
    if (!(await readPods(cluster, set)).every(isReady)) throw new Error(`not all pods of ${set} are ready`);
  });
}

/** Repeats an attempt until it succeeds, for ten minutes of the clock at most. On a test cluster these are virtual. */
export async function eventually<T>(attempt: () => T | Promise<T>): Promise<T> {
  const until = performance.now() + 600_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > until) throw error;
    }
    await setTimeout(5);
  }
}
