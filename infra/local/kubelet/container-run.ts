/** A container on a node: pulled, started, ready, killed and restarted when its image changes. */
import { randomBytes } from "node:crypto";
import { milliOf, quantityText, readQuantity } from "../kinds/quantity.ts";
import { asObject, asText, at, isEqual, type JsonObject, objectsIn, timestamp } from "../storage/json.ts";
import { fullName, type ImageBehaviour, imageId, type KubeletSettings } from "./kubelet-settings.ts";

/** A node's refusal of new resources for a running container. The node has 64 cores, and others use half of them. */
interface ResizeProblem {
  readonly reason: "Infeasible" | "Deferred";
  readonly message: string;
}

const CAPACITY_MILLI = 64_000n;
const FREE_MILLI = 32_000n;

/** The problem of a resize; undefined: the node can do it. */
function resizeProblem(container: JsonObject): ResizeProblem | undefined {
  const quantity = readQuantity(at(container, "resources", "requests", "cpu"));
  if (quantity === undefined || milliOf(quantity) <= FREE_MILLI) return undefined;
  const requested = `cpu, requested: ${quantityText(quantity)}`;
  if (milliOf(quantity) > CAPACITY_MILLI)
    return { reason: "Infeasible", message: `Node didn't have enough capacity: ${requested}, capacity: 64` };
  return { reason: "Deferred", message: `Node didn't have enough resource: ${requested}, used: 32, capacity: 64` };
}

/** True if a changed resource asks for a restart. */
function restartsForResize(container: JsonObject, before: JsonObject): boolean {
  const now = asObject(container["resources"]);
  return objectsIn(container["resizePolicy"]).some(({ resourceName, restartPolicy }) => {
    const bounds = ["requests", "limits"].map((bound) => [bound, String(resourceName)] as const);
    return (
      restartPolicy === "RestartContainer" && bounds.some((path) => !isEqual(at(now, ...path), at(before, ...path)))
    );
  });
}

type State =
  | { readonly type: "waiting"; readonly reason: string; readonly message?: string }
  | { readonly type: "running"; readonly startedAt: string; readonly isReady: boolean }
  | { readonly type: "terminated"; readonly terminated: JsonObject };

export interface RunSurroundings {
  readonly settings: KubeletSettings;
  /** The reason why the container cannot be created now. */
  configProblem(container: JsonObject): string | undefined;
  /** Called after every change of state. */
  changed(): void;
  /** Called when a hook begins that never ends. The kubelet waits for it, and reports nothing about the pod. */
  hangs(): void;
}

/** The kinds of containers, which end differently: only an init container ends without a signal. */
export type Role = "container" | "sidecar" | "init" | "ephemeral";

export class ContainerRun {
  readonly name: string;
  readonly role: Role;
  readonly #around: RunSurroundings;
  #container: JsonObject;
  #state: State = { type: "waiting", reason: "PodInitializing" };
  #lastTerminated: JsonObject | undefined;
  #restartCount = -1;
  /** image of the container that was created last */
  #image: string;
  #imageId = "";
  #containerId = "";
  #wanted: string | undefined;
  #cancel: () => void = () => undefined;
  /** present resources of the container that was created last */
  #resources: JsonObject = {};
  /** the resources of the running resize */
  #resizedTo: unknown;
  #cancelResize: () => void = () => undefined;

  constructor(container: JsonObject, role: Role, around: RunSurroundings) {
    this.name = asText(container["name"]);
    this.role = role;
    this.#container = container;
    this.#image = asText(container["image"]);
    this.#around = around;
  }

  /** True when the next init container, or the pod's containers, may start. */
  get isPassed(): boolean {
    return this.role === "init" ? this.#state.type === "terminated" : this.#state.type === "running";
  }

  get isReady(): boolean {
    if (this.role === "init") return this.#state.type === "terminated";
    return this.#state.type === "running" && this.#state.isReady;
  }

  get hasRun(): boolean {
    return this.#restartCount >= 0;
  }

  /** Brings the container to its spec. Further calls without a change have no effect. */
  sync(container: JsonObject): void {
    this.#container = container;
    const image = asText(container["image"]);
    if (this.#isSettled(image)) {
      this.#resize();
      return;
    }
    this.#cancel();
    if (this.#behaviourOf(image) === "hook-never-ends") {
      if (this.#state.type === "waiting") this.#set({ type: "waiting", reason: "ContainerCreating" });
      this.#around.hangs();
      return;
    }
    if (this.#state.type === "running") this.#kill(this.#state.startedAt);
    this.#wanted = image;
    this.#start();
  }

  #isSettled(image: string): boolean {
    const state = this.#state;
    if (this.role === "init" && state.type === "terminated") return true;
    if (image !== this.#wanted) return false;
    const isBlocked = state.type === "waiting" && state.reason === "CreateContainerConfigError";
    return !isBlocked || this.#around.configProblem(this.#container) === state.message;
  }

  stop(): void {
    this.#cancel();
    this.#cancelResize();
  }

  /** True while the container runs with other resources than its spec has. */
  get isToBeResized(): boolean {
    return this.#state.type === "running" && !isEqual(asObject(this.#container["resources"]), this.#resources);
  }

  /** The reason why the container keeps its resources. */
  get resizeProblem(): ResizeProblem | undefined {
    return this.isToBeResized ? resizeProblem(this.#container) : undefined;
  }

  #resize(): void {
    const wanted = this.#container["resources"];
    if (!this.isToBeResized || isEqual(wanted, this.#resizedTo)) return;
    this.#cancelResize();
    this.#resizedTo = wanted;
    this.#around.changed();
    if (this.resizeProblem === undefined)
      this.#cancelResize = this.#around.settings.clock.after(this.#around.settings.startDelayMs, () => {
        const isRestarted = restartsForResize(this.#container, this.#resources);
        this.#resources = asObject(this.#container["resources"]);
        this.#resizedTo = undefined;
        if (isRestarted && this.#state.type === "running") {
          this.#kill(this.#state.startedAt);
          this.#start();
        } else this.#around.changed();
      });
  }

  /** Ends the container for good: the pod's phase is final. */
  end(): void {
    this.#cancel();
    if (this.#state.type === "terminated") return;
    const startedAt = this.#state.type === "running" ? this.#state.startedAt : this.#now();
    this.#set({ type: "terminated", terminated: this.#ended(startedAt, 143) });
  }

  status(): JsonObject {
    const isRunning = this.#state.type === "running";
    return {
      name: this.name,
      state: this.#stateObject(),
      lastState: this.#lastTerminated === undefined ? {} : { terminated: this.#lastTerminated },
      ready: this.isReady,
      restartCount: Math.max(0, this.#restartCount),
      image: this.hasRun ? fullName(this.#image) : this.#image,
      imageID: this.#imageId,
      ...(this.#containerId === "" ? {} : { containerID: this.#containerId }),
      started: isRunning,
      ...(this.hasRun ? { resources: this.#resources } : {}),
    };
  }

  #stateObject(): JsonObject {
    const state = this.#state;
    if (state.type === "running") return { running: { startedAt: state.startedAt } };
    if (state.type === "terminated") return { terminated: state.terminated };
    return { waiting: { reason: state.reason, ...(state.message === undefined ? {} : { message: state.message }) } };
  }

  #set(state: State): void {
    this.#state = state;
    this.#around.changed();
  }

  #after(delayMs: number, run: () => void): void {
    this.#cancel = this.#around.settings.clock.after(delayMs, run);
  }

  #now(): string {
    return timestamp(this.#around.settings.clock.now());
  }

  #start(): void {
    const { settings } = this.#around;
    const image = this.#wanted ?? "";
    const problem = this.#around.configProblem(this.#container);
    if (settings.imageBehaviour(image) === "unpullable")
      this.#after(settings.startDelayMs, () => this.#failPull(image));
    else if (problem !== undefined) {
      this.#set({ type: "waiting", reason: "CreateContainerConfigError", message: problem });
      return;
    } else this.#after(settings.startDelayMs, () => this.#run(image));
    if (this.#state.type === "waiting") this.#set({ type: "waiting", reason: "ContainerCreating" });
  }

  #failPull(image: string): void {
    const why = `failed to pull and unpack image "${image}": failed to resolve reference "${image}": not found`;
    this.#set({ type: "waiting", reason: "ErrImagePull", message: `rpc error: code = NotFound desc = ${why}` });
    this.#after(this.#around.settings.startDelayMs, () => {
      this.#set({
        type: "waiting",
        reason: "ImagePullBackOff",
        message: `Back-off pulling image "${image}": ErrImagePull: ${why}`,
      });
    });
  }

  #run(image: string): void {
    const { settings } = this.#around;
    const behaviour = this.#behaviourOf(image);
    this.#restartCount += 1;
    this.#image = image;
    this.#cancelResize();
    this.#resizedTo = undefined;
    this.#resources = asObject(this.#container["resources"]);
    this.#imageId = imageId(image);
    this.#containerId = `containerd://${randomBytes(32).toString("hex")}`;
    const startedAt = this.#now();
    if (behaviour === "hook-fails") {
      this.#failHook(startedAt);
      return;
    }
    this.#set({ type: "running", startedAt, isReady: false });
    if (this.role === "init" || behaviour === "completes")
      this.#after(settings.readyDelayMs, () => this.#complete(startedAt));
    else if (behaviour !== "never-ready") {
      this.#after(settings.readyDelayMs, () => this.#set({ type: "running", startedAt, isReady: true }));
    }
  }

  #behaviourOf(image: string): ImageBehaviour {
    const behaviour = this.#around.settings.imageBehaviour(image);
    const hasHook = at(this.#container, "lifecycle", "postStart") !== undefined;
    return behaviour.startsWith("hook-") && !hasHook ? "runs" : behaviour;
  }

  #failHook(startedAt: string): void {
    this.#lastTerminated = this.#ended(startedAt, 143);
    this.#set({ type: "waiting", reason: "PostStartHookError", message: "PostStartHook failed" });
    this.#after(this.#around.settings.startDelayMs, () => {
      const message = `back-off 10s restarting failed container=${this.name}`;
      this.#set({ type: "waiting", reason: "CrashLoopBackOff", message });
    });
  }

  #ended(startedAt: string, exitCode: number): JsonObject {
    const reason = exitCode === 0 ? "Completed" : "Error";
    return { exitCode, reason, startedAt, finishedAt: this.#now(), containerID: this.#containerId };
  }

  #complete(startedAt: string): void {
    this.#set({ type: "terminated", terminated: this.#ended(startedAt, 0) });
  }

  /**
   * Ends the container by SIGTERM, for another image. The status never shows the end: without a restart, the API server
   * would keep it.
   */
  #kill(startedAt: string): void {
    this.#lastTerminated = this.#ended(startedAt, 143);
    this.#set({ type: "waiting", reason: "ContainerCreating" });
  }
}
