/** The kubelets of the set's pods, and the garbage collector that removes claims with their owners. */
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import { CLAIMS, PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import type { ApiServer, Write } from "../api-server.ts";
import type { Chance } from "../chance.ts";
import type { Scheduler } from "../scheduler.ts";
import { conditionIn, imageIn, NAMESPACE, withCondition } from "./objects.ts";

export interface NodesOptions {
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly readyMs: number;
  readonly goneMs: number;
}

export class Nodes {
  readonly #options: NodesOptions;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  see({ resource, object, isRemoved }: Write): void {
    if (resource !== "pods") return;
    const pod = object as unknown as Pod;
    const { uid = "", name = "" } = pod.metadata ?? {};
    if (isRemoved) return void this.#later(200, () => this.#collect());
    if (pod.metadata?.deletionTimestamp) this.#later(this.#options.goneMs, () => this.#remove(name, uid));
    else if (!pod.spec.nodeName) this.#later(20, () => this.#bind(name, uid));
    else if (needsRun(pod)) this.#later(this.#options.readyMs, () => this.#run(name, uid));
    else if (isReadinessStale(pod)) this.#later(50, () => this.#report(name, uid));
  }

  #later(mostMs: number, run: () => void): void {
    const { scheduler, chance } = this.#options;
    scheduler.after(chance.between(1, Math.max(1, mostMs)), run);
  }

  /** Returns the pod if it still has this uid. */
  #pod(name: string, uid: string): Pod | undefined {
    const pod = this.#options.server.peek<Pod>(PODS, { namespace: NAMESPACE, name });
    return pod?.metadata?.uid === uid ? pod : undefined;
  }

  #put(pod: Pod): void {
    this.#options.server.put("kubelet", PODS, pod);
  }

  get #now(): string {
    return `${new Date(this.#options.scheduler.nowMs).toISOString().slice(0, 19)}Z`;
  }

  #bind(name: string, uid: string): void {
    const pod = this.#pod(name, uid);
    if (!pod || pod.spec.nodeName || pod.metadata?.deletionTimestamp) return;
    // A pod without its claim is not scheduled.
    if (this.#hasClaims(pod)) this.#put({ ...pod, spec: { ...pod.spec, nodeName: "node-1" } } as Pod);
    else this.#later(1_000, () => this.#bind(name, uid));
  }

  #hasClaims({ spec }: Pod): boolean {
    const volumes = (spec.volumes ?? []) as readonly {
      readonly persistentVolumeClaim?: { readonly claimName: string };
    }[];
    const names = volumes.flatMap(({ persistentVolumeClaim: claim }) => claim?.claimName ?? []);
    return names.every((name) => this.#options.server.peek(CLAIMS, { namespace: NAMESPACE, name }));
  }

  #run(name: string, uid: string): void {
    const pod = this.#pod(name, uid);
    if (!pod || !needsRun(pod) || pod.metadata?.deletionTimestamp) return;
    const image = imageIn(pod);
    const status: ContainerStatus = {
      name: "main",
      image,
      imageID: `id-of-${image}`,
      ready: true,
      restartCount: 0,
    };
    const started = { ...pod, status: { ...pod.status, phase: "Running", containerStatuses: [status] } };
    this.#put(withReadiness(started, this.#now));
  }

  #report(name: string, uid: string): void {
    const pod = this.#pod(name, uid);
    if (pod && isReadinessStale(pod)) this.#put(withReadiness(pod, this.#now));
  }

  #remove(name: string, uid: string): void {
    const pod = this.#pod(name, uid);
    if (pod) this.#options.server.remove("kubelet", PODS, pod);
  }

  /** Removes claims after all their owners are deleted. */
  #collect(): void {
    const { server } = this.#options;
    const alive = new Set([
      ...server.all<Pod>(PODS).map(({ metadata }) => metadata?.uid),
      ...server.all<StatefulSet>(STATEFUL_SETS).map(({ metadata }) => metadata?.uid),
    ]);
    for (const claim of server.all<PersistentVolumeClaim>(CLAIMS)) {
      const owners = claim.metadata?.ownerReferences ?? [];
      if (owners.length > 0 && owners.every(({ uid }) => !alive.has(uid))) server.remove("collector", CLAIMS, claim);
    }
  }
}

function needsRun(pod: Pod): boolean {
  if (pod.status?.phase === "Failed") return false;
  return pod.status?.phase !== "Running" || pod.status.containerStatuses?.[0]?.image !== imageIn(pod);
}

function shouldBeReady(pod: Pod): boolean {
  const hasGate = (pod.spec.readinessGates ?? []).length > 0;
  const [status] = pod.status?.containerStatuses ?? [];
  return status?.ready === true && (!hasGate || conditionIn(pod, "InPlaceUpdateReady")?.status === "True");
}

function isReadinessStale(pod: Pod): boolean {
  if (pod.status?.phase !== "Running") return false;
  return (conditionIn(pod, "Ready")?.status === "True") !== shouldBeReady(pod);
}

function withReadiness(pod: Pod, now: string): Pod {
  const ready = { ...pod, status: { ...pod.status, conditions: withCondition(pod, "ContainersReady", true, now) } };
  return { ...ready, status: { ...ready.status, conditions: withCondition(ready, "Ready", shouldBeReady(pod), now) } };
}
