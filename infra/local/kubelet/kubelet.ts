/** The kubelets of all nodes, with one worker for every bound pod. */
import type { Controller } from "../controllers/work-queue.ts";
import { CONFIG_MAP, NODE, POD } from "../kinds/registry.ts";
import { type Api, type Caller, internalCall } from "../storage/api.ts";
import {
  type ApiObject,
  asObject,
  asText,
  at,
  isObject,
  type JsonObject,
  keyOf,
  objectsIn,
  storageKey,
  textAt,
} from "../storage/json.ts";
import { isStatus } from "../storage/status-error.ts";
import type { Change } from "../storage/store.ts";
import { changeObject } from "../storage/update.ts";
import { deleteObject } from "../storage/write.ts";
import type { KubeletSettings } from "./kubelet-settings.ts";
import { type PodApi, PodWorker } from "./pod-worker.ts";

/** The caller for a kubelet's requests to the API server, which is this process's own store. */
function kubeletOf(pod: ApiObject): Caller {
  const username = `system:node:${textAt(pod, "spec", "nodeName")}`;
  return { userAgent: "kubelet", user: { username, groups: ["system:nodes", "system:authenticated"] } };
}

function storedPods(api: Api): PodApi {
  return {
    async writeStatus(pod, next) {
      const key = keyOf(pod);
      if (api.store.get(POD.collection, storageKey(key))?.metadata.uid !== pod.metadata.uid) return;
      const transform = (current: ApiObject): ApiObject => ({ ...current, status: next(current) });
      try {
        await changeObject(api, internalCall(kubeletOf(pod), POD, key, "status"), { verb: "patch", transform });
      } catch (error) {
        if (!isStatus(error, 404)) throw error;
      }
    },
    async remove(pod) {
      const preconditions = { uid: pod.metadata.uid };
      try {
        const call = internalCall(kubeletOf(pod), POD, keyOf(pod));
        await deleteObject(api, call, { gracePeriodSeconds: 0, preconditions });
      } catch (error) {
        if (!isStatus(error, 404) && !isStatus(error, 409)) throw error;
      }
    },
    configProblem: (namespace, container) =>
      configProblem((source, key) => api.store.get(`/${source}s`, key), namespace, container),
  };
}

/** Checks that the ConfigMaps and Secrets in a container's environment exist. */
type Source = "configmap" | "secret";

/** Reads the object namespace/name. */
type ReadSource = (source: Source, key: string) => JsonObject | undefined;

/** The problem of a reference. `key` undefined: it refers to the whole object. */
function problem(read: ReadSource, namespace: string, source: Source, reference: JsonObject): string | undefined {
  if (reference["optional"] === true) return undefined;
  const name = asText(reference["name"]);
  const object = read(source, `${namespace}/${name}`);
  if (object === undefined) return `${source} "${name}" not found`;
  const key = reference["key"];
  const isMissing = typeof key === "string" && asObject(object["data"])[key] === undefined;
  const kind = source === "secret" ? "Secret" : "ConfigMap";
  return isMissing ? `couldn't find key ${key} in ${kind} ${namespace}/${name}` : undefined;
}

function references(container: JsonObject): readonly (readonly [Source, JsonObject])[] {
  const found: [Source, unknown][] = [];
  for (const variable of objectsIn(container["env"])) {
    found.push(
      ["configmap", at(variable, "valueFrom", "configMapKeyRef")],
      ["secret", at(variable, "valueFrom", "secretKeyRef")],
    );
  }
  for (const source of objectsIn(container["envFrom"])) {
    found.push(["configmap", source["configMapRef"]], ["secret", source["secretRef"]]);
  }
  return found.flatMap(([source, reference]) => (isObject(reference) ? [[source, reference] as const] : []));
}

/** The kubelet's message about a missing object; undefined: none is missing. */
export function configProblem(read: ReadSource, namespace: string, container: JsonObject): string | undefined {
  for (const [source, reference] of references(container)) {
    const found = problem(read, namespace, source, reference);
    if (found !== undefined) return found;
  }
  return undefined;
}

class Kubelet implements Controller {
  readonly #api: Api;
  readonly #settings: KubeletSettings;
  readonly #workers = new Map<string, PodWorker>();
  readonly #unsubscribe: () => void;
  #placed = 0;

  constructor(api: Api, settings: KubeletSettings) {
    this.#api = api;
    this.#settings = settings;
    this.#unsubscribe = api.store.subscribe((change) => this.#see(change));
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    for (const worker of this.#workers.values()) worker.stop();
    await Promise.allSettled([...this.#workers.values()].map((worker) => worker.settled()));
  }

  #see(change: Change): void {
    if (change.collection === CONFIG_MAP.collection || change.collection === "/secrets") this.#retry(change.object);
    if (change.collection !== POD.collection || textAt(change.object, "spec", "nodeName") === "") return;
    if (change.type === "DELETED") this.#forget(change.object);
    // A later turn is used, so that it is not part of the write that made the change.
    else setImmediate(() => this.#sync(change.key));
  }

  #forget(pod: ApiObject): void {
    this.#workers.get(pod.metadata.uid ?? "")?.stop();
    this.#workers.delete(pod.metadata.uid ?? "");
  }

  /** Tries again after a ConfigMap or Secret came or changed, because containers may wait for it. */
  #retry(source: ApiObject): void {
    const namespace = source.metadata.namespace;
    for (const pod of this.#api.store.list(POD.collection)) {
      const isNear = pod.metadata.namespace === namespace && this.#workers.has(pod.metadata.uid ?? "");
      if (isNear) setImmediate(() => this.#sync(`${namespace}/${pod.metadata.name}`));
    }
  }

  #sync(key: string): void {
    const pod = this.#api.store.get(POD.collection, key);
    if (pod !== undefined && this.#isOurs(pod)) this.#workerOf(pod).sync(pod);
  }

  /** True if a kubelet serves the pod. A pod of a missing node never runs; elsewhere the pod GC deletes it. */
  #isOurs({ spec, metadata }: ApiObject): boolean {
    const node = textAt({ spec }, "spec", "nodeName");
    return metadata.deletionTimestamp !== undefined || this.#api.store.get(NODE.collection, `/${node}`) !== undefined;
  }

  #workerOf(pod: ApiObject): PodWorker {
    const uid = pod.metadata.uid ?? "";
    const known = this.#workers.get(uid);
    if (known !== undefined) return known;
    this.#placed += 1;
    const node = Number(/(\d+)$/.exec(textAt(pod, "spec", "nodeName"))?.[1] ?? 1);
    const podIP = `10.244.${Math.floor(this.#placed / 250) % 250}.${(this.#placed % 250) + 1}`;
    const worker = new PodWorker(storedPods(this.#api), this.#settings, pod, { podIP, hostIP: `10.0.0.${node}` });
    this.#workers.set(uid, worker);
    return worker;
  }
}

export function runKubelet(api: Api, settings: KubeletSettings): Controller {
  return new Kubelet(api, settings);
}

// Nodes that are always ready and have room for every pod.

/** A Node. `index` counts from 1. */
export function nodeObject(index: number, now: string): JsonObject {
  const name = `node-${index}`;
  const resources = { cpu: "64", memory: "256Gi", pods: "1000", "ephemeral-storage": "1Ti" };
  const times = { lastHeartbeatTime: now, lastTransitionTime: now };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" },
    },
    spec: { podCIDR: `10.244.${index}.0/24` },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [
        { type: "Ready", status: "True", reason: "KubeletReady", message: "kubelet is posting ready status", ...times },
      ],
      addresses: [
        { type: "InternalIP", address: `10.0.0.${index}` },
        { type: "Hostname", address: name },
      ],
      nodeInfo: {
        kubeletVersion: "v1.32.0",
        containerRuntimeVersion: "containerd://2.0.0",
        operatingSystem: "linux",
        architecture: "amd64",
        osImage: "local",
        kernelVersion: "6.1.0",
        machineID: name,
        systemUUID: name,
        bootID: name,
        kubeProxyVersion: "v1.32.0",
      },
    },
  };
}
