/** The kubelets restart containers that have a new image. Sometimes the restart goes wrong, or never happens. */
import type { ContainerStatus, Pod, PodCondition } from "../../shared/api/kubernetes.ts";
import { PODS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import { isUnproven, PROVEN } from "./bystanders.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import {
  containerIdOf,
  imageIDOf,
  isFinished,
  isPodReady,
  isRunning,
  isSidecarOf,
  isWorking,
  TENANT_IMAGE,
  timeOf,
  VALUES_SET,
  withReady,
} from "./objects.ts";
import type { Scheduler } from "./scheduler.ts";

export type Behaviour = "good" | "crash loop" | "image pull error" | "silent kubelet" | "same imageID";

export interface KubeletOptions {
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  /** longest time in milliseconds until a change is noticed */
  readonly noticeMs: number;
  /** longest time in milliseconds until a restarted container is ready */
  readonly readyMs: number;
  /** share of images that fail on a given pod */
  readonly badRate: number;
  readonly behaviours: readonly Behaviour[];
  /** called shortly before the pod's next status is stored; absent: no call */
  readonly tell?: ((pod: Pod) => void) | undefined;
  /** called with the values that a container starts with; absent: no call */
  readonly started?: ((pod: Pod, containerID: string) => void) | undefined;
}

const WRITER = "kubelet";
const FIRST_START_MS = 1_000;
/** Milliseconds between the admission of a status and its storage. */
const ADMISSION_MS = 150;
/** Times are in whole seconds: a crash in the second of a write looks like the restart that the write causes. */
const SECOND_MS = 1_000;

export class Kubelet {
  readonly #options: KubeletOptions;
  /** "uid image" → the behaviour of that image on that pod */
  readonly #behaviours = new Map<string, Behaviour>();
  /** uids of pods that a planned event will change */
  readonly #busy = new Set<string>();
  /** uids of pods whose node was lost */
  readonly #lost = new Set<string>();
  /** images that cannot be pulled, even after a repair */
  readonly #unpullable = new Set<string>();
  #isHealed = false;

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  /** Makes this image impossible to pull on every node. */
  refuseImage(image: string): void {
    this.#unpullable.add(image);
  }

  see({ resource, object, isRemoved, userAgent }: Write): void {
    if (resource !== "pods" || isRemoved || userAgent.endsWith(WRITER)) return;
    this.#plan(object as unknown as Pod);
  }

  /** Stops running the pod; its status stays unchanged. */
  lose({ metadata }: Pod): void {
    this.#lost.add(metadata?.uid ?? "");
  }

  /** Brings the pod's node back. */
  find(pod: Pod): void {
    this.#lost.delete(pod.metadata?.uid ?? "");
    const now = this.#current(pod.metadata);
    if (now) this.#plan(now);
  }

  /** Ends all faults, and repairs broken containers. */
  heal(): void {
    this.#isHealed = true;
    for (const pod of this.#options.server.all<Pod>(PODS)) this.#plan(pod);
  }

  #plan(pod: Pod): void {
    const { scheduler, chance, noticeMs } = this.#options;
    const uid = pod.metadata?.uid ?? "";
    if (this.#busy.has(uid) || this.#lost.has(uid) || pod.metadata?.deletionTimestamp || isAtRest(pod)) return;
    this.#busy.add(uid);
    scheduler.after(chance.between(1, noticeMs), () => this.#notice(pod));
  }

  /** Stops containers with an old image. The ones that can run start a little later. */
  #notice({ metadata }: Pod): void {
    const { scheduler, chance, readyMs, tell } = this.#options;
    const pod = this.#current(metadata);
    if (!pod) return void this.#busy.delete(metadata?.uid ?? "");
    const isStuck = pod.spec.containers.some(({ image = "" }) => this.#behaviour(pod, image) === "silent kubelet");
    if (isStuck) {
      this.#busy.delete(metadata?.uid ?? "");
      return;
    }
    this.#write(pod, (status, image) => this.#stopped(pod, status, image));
    // A first start takes one second, as in all worlds.
    const firstMs = pod.status?.startTime === undefined ? FIRST_START_MS : 0;
    const ms = firstMs + chance.between(1, readyMs);
    if (tell) scheduler.after(ms - ADMISSION_MS, () => tell(pod));
    scheduler.after(ms, () => this.#finish(pod));
  }

  #finish({ metadata }: Pod): void {
    this.#busy.delete(metadata?.uid ?? "");
    const pod = this.#current(metadata);
    if (!pod) return;
    this.#write(pod, (status, image) => {
      if (isLate(status, image)) return { ...status, ready: true };
      const behaviour = this.#behaviour(pod, image);
      if (behaviour === "crash loop" || behaviour === "image pull error") return this.#stopped(pod, status, image);
      const { name, restartCount = 0, imageID = imageIDOf(image) } = status;
      const isNew = status.image !== image && behaviour !== "same imageID";
      const next = { name, image, imageID: isNew ? imageIDOf(image) : imageID, ready: true };
      return { ...next, restartCount: restartCount + 1, ...this.#started(pod, name, restartCount + 1) };
    });
    // Meanwhile the pod may have got another image, or a repair.
    const after = this.#current(metadata);
    if (after && !this.#isHopeless(after)) this.#plan(after);
  }

  /** Reports the values that a container reads at its start. */
  #started(
    pod: Pod,
    container: string,
    restarts: number,
    startMs = this.#options.scheduler.nowMs,
  ): Pick<ContainerStatus, "containerID" | "state"> {
    if (!isSidecarOf(VALUES_SET, { name: container })) return {};
    const containerID = containerIdOf(pod, container, restarts);
    this.#options.started?.(pod, containerID);
    return { containerID, state: { running: { startedAt: timeOf(startMs) } } };
  }

  /**
   * Ends the container and starts it again at once, with the spec that its kubelet knows. The status is stored a little
   * later. Returns false if nothing runs.
   */
  crash(pod: Pod): boolean {
    const { scheduler, chance } = this.#options;
    const uid = pod.metadata?.uid ?? "";
    const status = pod.status?.containerStatuses?.find((one) => isSidecarOf(VALUES_SET, one));
    const spec = pod.spec.containers.find(({ name }) => name === status?.name);
    if (!status?.ready || status.image !== spec?.image || this.#busy.has(uid) || this.#lost.has(uid)) return false;
    this.#busy.add(uid);
    const restartCount = (status.restartCount ?? 0) + 1;
    const next = {
      ...status,
      ready: chance.isLucky(0.5),
      restartCount,
      ...this.#started(pod, status.name, restartCount, scheduler.nowMs - SECOND_MS),
    };
    scheduler.after(chance.between(1, 1_500), () => {
      this.#busy.delete(uid);
      const now = this.#current(pod.metadata);
      if (!now) return;
      const containerStatuses = (now.status?.containerStatuses ?? []).map((one) =>
        one.name === next.name ? next : one,
      );
      const conditions = withReady(now, next.ready && isPodReady(now), scheduler.nowMs);
      const crashed = { ...now.status, containerStatuses, conditions };
      this.#options.server.put(WRITER, PODS, { ...now, status: crashed } as Pod);
      this.#plan(this.#current(pod.metadata) ?? now);
    });
    return true;
  }

  #stopped(pod: Pod, status: ContainerStatus, image: string): ContainerStatus {
    if (isLate(status, image)) return status;
    switch (this.#behaviour(pod, image)) {
      case "crash loop":
        return { ...status, image, imageID: imageIDOf(image), ready: false, state: waiting("CrashLoopBackOff") };
      case "image pull error":
        return { ...status, ready: false, state: waiting("ImagePullBackOff") };
      default:
        return { ...status, ready: false, state: waiting("ContainerCreating") };
    }
  }

  #isHopeless({ metadata, spec }: Pod): boolean {
    return spec.containers.some(({ image = "" }) => {
      if (image === TENANT_IMAGE || this.#unpullable.has(image)) return true;
      const behaviour = this.#behaviours.get(`${metadata?.uid} ${image}`);
      return !this.#isHealed && (behaviour === "crash loop" || behaviour === "image pull error");
    });
  }

  #behaviour({ metadata }: Pod, image: string): Behaviour {
    const { chance, badRate, behaviours, counts } = this.#options;
    const key = `${metadata?.uid} ${image}`;
    const known = this.#behaviours.get(key);
    if (image === TENANT_IMAGE) return "crash loop";
    if (this.#unpullable.has(image)) return "image pull error";
    if (this.#isHealed) return known === "same imageID" ? known : "good";
    if (known) return known;
    const isBad = !image.includes("/main:") && behaviours.length > 0 && chance.isLucky(badRate);
    const behaviour = isBad ? chance.pick(behaviours) : "good";
    if (behaviour !== "good") countFault(counts, behaviour);
    this.#behaviours.set(key, behaviour);
    return behaviour;
  }

  #current(metadata: Pod["metadata"]): Pod | undefined {
    const { namespace = "", name = "", uid } = metadata ?? {};
    const pod = this.#options.server.peek<Pod>(PODS, { namespace, name });
    const isRun = pod?.metadata?.uid === uid && !this.#lost.has(uid ?? "") && pod !== undefined && !isFinished(pod);
    return isRun && !pod?.metadata?.deletionTimestamp ? pod : undefined;
  }

  /** `next` gets each container that is not ready, or does not run its image. */
  #write(pod: Pod, next: (status: ContainerStatus, image: string) => ContainerStatus): void {
    const before = pod.status?.containerStatuses ?? [];
    const containerStatuses = pod.spec.containers.map(({ name, image = "" }): ContainerStatus => {
      const status = before.find((one) => one.name === name) ?? { name, image: "", imageID: "", ready: false };
      return status.ready && status.image === image ? status : next(status, image);
    });
    const areReady = containerStatuses.every(({ ready }) => ready);
    const conditions = withReady(pod, areReady && !isUnproven(pod), this.#options.scheduler.nowMs);
    const status = {
      ...pod.status,
      phase: "Running",
      startTime: pod.status?.startTime ?? timeOf(this.#options.scheduler.nowMs),
      containerStatuses,
      conditions: areReady && isUnproven(pod) ? conditions.map(unprovenReady) : conditions,
    };
    this.#options.server.put(WRITER, PODS, { ...pod, status } as Pod);
  }
}

/** True for a pod that works, has finished, or waits until somebody opens its gate. */
function isAtRest(pod: Pod): boolean {
  const isWaiting = pod.spec.schedulingGates !== undefined || (isUnproven(pod) && isRunning(pod));
  return isWaiting || isWorking(pod) || isFinished(pod);
}

function unprovenReady(condition: PodCondition): PodCondition {
  if (condition.type !== "Ready") return condition;
  const message = `corresponding condition of pod readiness gate "${PROVEN}" does not exist.`;
  return { ...condition, reason: "ReadinessGatesNotReady", message };
}

/** True while the container runs its image and its probe has not succeeded yet. */
function isLate({ state, image: runs }: ContainerStatus, image: string): boolean {
  return state?.running !== undefined && runs === image;
}

function waiting(reason: string): NonNullable<ContainerStatus["state"]> {
  return { waiting: { reason } };
}
