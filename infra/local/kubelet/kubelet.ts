/** The kubelets of all nodes: one worker for every pod that is bound. */

import type { Controller } from "../controllers/work-queue.ts";
import { CONFIG_MAP, NODE, POD } from "../kinds/built-in-kinds.ts";
import type { Api } from "../storage/api.ts";
import { textAt } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import type { Change } from "../storage/store.ts";
import type { KubeletSettings } from "./kubelet-settings.ts";
import { PodWorker } from "./pod-worker.ts";
import { storedPods } from "./stored-pods.ts";

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
    // Not within the write that made the change.
    else setImmediate(() => this.#sync(change.key));
  }

  #forget(pod: ApiObject): void {
    this.#workers.get(pod.metadata.uid ?? "")?.stop();
    this.#workers.delete(pod.metadata.uid ?? "");
  }

  /** A ConfigMap or Secret came or changed: containers may be waiting for it. */
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

  /** Nobody runs what is bound to a node that does not exist; but it can be deleted, which is the pod GC's work elsewhere. */
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
