/** Nodes of a real API server whose kubelet is the embedded cluster's stand-in. */

import { configProblem, nodeObject } from "../../../infra/local/kubelet/kubelet.ts";
import { imageBehaviour, type KubeletSettings } from "../../../infra/local/kubelet/kubelet-settings.ts";
import { type PodApi, PodWorker } from "../../../infra/local/kubelet/pod-worker.ts";
import { systemClock } from "../../../infra/local/storage/api.ts";
import {
  type ApiObject,
  asText,
  type JsonObject,
  keyOf,
  objectsIn,
  textAt,
  timestamp,
} from "../../../infra/local/storage/json.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, PODS, type Resource } from "../../../shared/kube/port.ts";
import { type RawTarget, sendRaw } from "../../contract/raw.ts";
import { follow } from "./follow.ts";

export interface Kubelet {
  close(): Promise<void>;
}

const NODES: Resource = { group: "", version: "v1", plural: "nodes", namespaced: false };
const SECRETS: Resource = { group: "", version: "v1", plural: "secrets", namespaced: true };
const OUR_NODE = /^node-\d+$/;
const PASSING = ["PodResizePending", "PodResizeInProgress"];
const OURS: ReadonlySet<string> = new Set([
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  ...PASSING,
]);

/** Leaves out other writers' conditions, because conditions merge by type. A removed reason must be named. */
function ownStatus(pod: ApiObject, status: JsonObject): JsonObject {
  const conditions = objectsIn(status["conditions"])
    .filter((one) => OURS.has(asText(one["type"])))
    .map((one) => ({ reason: null, message: null, ...one, observedGeneration: pod.metadata.generation }));
  // These conditions are always sent, because the latest write may not have come back yet.
  const over = PASSING.filter((type) => !conditions.some((one) => asText(Object(one).type) === type));
  const removals = over.map((type) => ({ type, $patch: "delete" }));
  return { ...status, conditions: [...conditions, ...removals], observedGeneration: pod.metadata.generation };
}

class Kubelets implements Kubelet {
  readonly #cluster: Cluster;
  readonly #target: RawTarget;
  readonly #settings: KubeletSettings;
  readonly #end = new AbortController();
  readonly #workers = new Map<string, PodWorker>();
  readonly #pods = new Map<string, ApiObject>();
  /** ConfigMaps and Secrets by key */
  readonly #sources = new Map<string, ApiObject>();
  readonly #watching: Promise<unknown>;
  #placed = 0;

  constructor(cluster: Cluster, target: RawTarget, settings: KubeletSettings) {
    this.#cluster = cluster;
    this.#target = target;
    this.#settings = settings;
    const { signal } = this.#end;
    this.#watching = Promise.all([
      follow({ cluster, signal, resource: PODS, see: (pod, isGone) => this.#seePod(pod, isGone) }),
      ...Object.entries({ configmap: CONFIG_MAPS, secret: SECRETS }).map(([source, resource]) =>
        follow({ cluster, signal, resource, see: (object, isGone) => this.#seeSource(source, object, isGone) }),
      ),
    ]);
  }

  async close(): Promise<void> {
    this.#end.abort();
    for (const worker of this.#workers.values()) worker.stop();
    this.#settings.clock.close();
    await this.#watching;
  }

  #seeSource(source: string, object: ApiObject, isGone: boolean): void {
    const { namespace, name } = keyOf(object);
    if (isGone) this.#sources.delete(`${source} ${namespace}/${name}`);
    else this.#sources.set(`${source} ${namespace}/${name}`, object);
    for (const [uid, pod] of this.#pods) if (pod.metadata.namespace === namespace) this.#workers.get(uid)?.sync(pod);
  }

  #seePod(pod: ApiObject, isGone: boolean): void {
    const uid = pod.metadata.uid ?? "";
    if (!OUR_NODE.test(textAt(pod, "spec", "nodeName"))) return;
    if (isGone) {
      this.#workers.get(uid)?.stop();
      this.#workers.delete(uid);
      this.#pods.delete(uid);
      return;
    }
    this.#pods.set(uid, pod);
    this.#workerOf(uid, pod).sync(pod);
  }

  #workerOf(uid: string, pod: ApiObject): PodWorker {
    const known = this.#workers.get(uid);
    if (known !== undefined) return known;
    this.#placed += 1;
    const node = Number(/(\d+)$/.exec(textAt(pod, "spec", "nodeName"))?.[1] ?? 1);
    const podIP = `10.244.${Math.floor(this.#placed / 250) % 250}.${(this.#placed % 250) + 1}`;
    const worker = new PodWorker(this.#api(), this.#settings, pod, { podIP, hostIP: `10.0.0.${node}` });
    this.#workers.set(uid, worker);
    return worker;
  }

  #api(): PodApi {
    return {
      writeStatus: async (pod, next) => {
        const current = this.#pods.get(pod.metadata.uid ?? "");
        if (current === undefined) return;
        const body = { metadata: { uid: pod.metadata.uid }, status: ownStatus(current, next(current)) };
        try {
          await this.#cluster.patch(PODS, keyOf(pod), { type: "strategic", body }, { subresource: "status" });
        } catch (error) {
          if (!isKubeError(error, 404)) throw error;
        }
      },
      remove: async (pod) => {
        const { namespace, name } = keyOf(pod);
        const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
        const body = { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } };
        const { code, text } = await sendRaw(this.#target, { method: "DELETE", path, body });
        if (![200, 202, 404, 409].includes(code)) throw new Error(text);
      },
      configProblem: (namespace, container) =>
        configProblem((source, key) => this.#sources.get(`${source} ${key}`), namespace, container),
    };
  }
}

/** Adds a node and removes its taint, which the node lifecycle controller would remove. */
async function addNode(cluster: Cluster, index: number): Promise<void> {
  const { status, ...node } = nodeObject(index, timestamp(Date.now()));
  const key = { name: `node-${index}` };
  await cluster.create(NODES, node);
  await cluster.patch(NODES, key, { type: "merge", body: { status } }, { subresource: "status" });
  await cluster.patch(NODES, key, { type: "merge", body: { spec: { taints: null } } });
}

/** Resolves when pods can be scheduled. */
export async function startKubelet(target: RawTarget, nodes = 3): Promise<Kubelet> {
  const cluster = connectCluster({
    server: target.url,
    certificateAuthority: target.caCertificate,
    token: async () => target.token,
    userAgent: "kubelet",
  });
  for (let index = 1; index <= nodes; index += 1) await addNode(cluster, index);
  const settings = { clock: systemClock(), startDelayMs: 50, readyDelayMs: 50, terminationDelayMs: 50, imageBehaviour };
  return new Kubelets(cluster, target, settings);
}
