/** One pod on its node: runs its containers in order and reports what they do, until the pod is gone. */
import { type Api, type Caller, internalCall } from "./api.ts";
import { POD } from "./built-in-kinds.ts";
import { configProblem } from "./container-config.ts";
import { ContainerRun, type Role } from "./container-run.ts";
import { deleteObject } from "./delete.ts";
import { asText, at, type JsonObject, objectsIn, textAt } from "./json.ts";
import type { KubeletSettings } from "./kubelet-settings.ts";
import { type ApiObject, keyOf, storageKey, timestamp } from "./object.ts";
import { podStatus } from "./pod-status.ts";
import { isStatus } from "./status-error.ts";
import { changeObject } from "./update.ts";

export interface Placement {
  readonly podIP: string;
  readonly hostIP: string;
}

const RETRY_MS = 20;

export class PodWorker {
  readonly uid: string;
  readonly #api: Api;
  readonly #settings: KubeletSettings;
  readonly #placement: Placement;
  readonly #caller: Caller;
  readonly #startTime: string;
  readonly #runs = new Map<string, ContainerRun>();
  #pod: ApiObject;
  #isDirty = false;
  #isEnding = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(api: Api, settings: KubeletSettings, pod: ApiObject, placement: Placement) {
    const node = textAt(pod, "spec", "nodeName");
    this.uid = pod.metadata.uid ?? "";
    this.#api = api;
    this.#settings = settings;
    this.#pod = pod;
    this.#placement = placement;
    this.#startTime = timestamp(api.clock.now());
    this.#caller = {
      userAgent: "kubelet",
      user: { username: `system:node:${node}`, groups: ["system:nodes", "system:authenticated"] },
    };
  }

  /** Looks at the pod as it is now. */
  sync(pod: ApiObject): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp !== undefined) this.#end(pod);
    if (!this.#isEnding) this.#progress();
    // Readiness gates are conditions that others write.
    if (objectsIn(at(pod, "spec", "readinessGates")).length > 0) this.#report();
  }

  stop(): void {
    for (const run of this.#runs.values()) run.stop();
  }

  /** Resolves when no write is under way. */
  settled(): Promise<void> {
    return this.#writing;
  }

  /** Init containers one after the other, then all containers at once. */
  #progress(): void {
    const inits = objectsIn(at(this.#pod, "spec", "initContainers"));
    const containers = objectsIn(at(this.#pod, "spec", "containers"));
    for (const container of [...inits, ...containers]) this.#runOf(container);
    for (const container of inits) {
      const run = this.#runOf(container);
      run.sync(container);
      if (!run.isPassed && !(run.role === "sidecar" && run.hasRun)) return;
    }
    for (const container of containers) this.#runOf(container).sync(container);
  }

  #roleOf(container: JsonObject): Role {
    const isInit = objectsIn(at(this.#pod, "spec", "initContainers")).some((one) => one["name"] === container["name"]);
    if (!isInit) return "container";
    return container["restartPolicy"] === "Always" ? "sidecar" : "init";
  }

  #runOf(container: JsonObject): ContainerRun {
    const name = asText(container["name"]);
    const known = this.#runs.get(name);
    if (known !== undefined) return known;
    const run = new ContainerRun(container, this.#roleOf(container), {
      settings: this.#settings,
      configProblem: (one) => configProblem(this.#api, this.#pod.metadata.namespace ?? "", one),
      changed: () => this.#changed(),
    });
    this.#runs.set(name, run);
    return run;
  }

  #changed(): void {
    this.#report();
    setImmediate(() => {
      if (!this.#isEnding) this.#progress();
    });
  }

  /** Writes of one pod follow each other; what changes meanwhile goes into the next. */
  #report(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    this.#isDirty = false;
    const key = keyOf(this.#pod);
    if (this.#api.store.get(POD.collection, storageKey(key))?.metadata.uid !== this.uid) return;
    const runs = [...this.#runs.values()];
    const transform = (current: ApiObject): ApiObject => {
      const parts = {
        init: runs.filter((run) => run.role !== "container"),
        containers: runs.filter((run) => run.role === "container"),
        startTime: this.#startTime,
        ...this.#placement,
      };
      return { ...current, status: podStatus(current, parts, timestamp(this.#api.clock.now())) };
    };
    const call = internalCall(this.#caller, POD, key, "status");
    try {
      await changeObject(this.#api, call, { verb: "patch", transform });
    } catch (error) {
      if (!isStatus(error, 404)) this.#api.clock.after(RETRY_MS, () => this.#report());
    }
  }

  #end(pod: ApiObject): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.stop();
    const grace = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
    const remove = (): void => {
      this.#writing = this.#writing.then(() => this.#remove());
    };
    this.#api.clock.after(Math.min(grace, this.#settings.terminationDelayMs), remove);
  }

  async #remove(): Promise<void> {
    const call = internalCall(this.#caller, POD, keyOf(this.#pod));
    try {
      await deleteObject(this.#api, call, { gracePeriodSeconds: 0, preconditions: { uid: this.uid } });
    } catch (error) {
      if (isStatus(error, 404) || isStatus(error, 409)) return;
      this.#api.clock.after(RETRY_MS, () => {
        this.#writing = this.#writing.then(() => this.#remove());
      });
    }
  }
}
