/** Controllers of pods: they create a pod again after a pass evicted it, or after its node was lost. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { PODS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import type { Kubelet } from "./kubelet.ts";
import { withReady } from "./objects.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Users } from "./users.ts";

export interface OwnersOptions {
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly kubelet: Kubelet;
  readonly users: Users;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  /** true: the webhook always answers; absent: sometimes it does not */
  readonly isWebhookUp?: boolean;
  readonly areSuccessorsLate?: boolean;
}

const WRITER = "node-controller";
/** Milliseconds until a lost node is back or given up. Then its pods are too. */
const LOST_MS = 40_000;
/** Milliseconds until a deleted pod is gone, and until it exists again. */
const GONE_MS = [10, 3_000, 30_000] as const;
const BACK_MS = [1, 2_000] as const;
const LATE_BACK_MS = [2_000, 60_000, 300_000] as const;
/** Share of new pods for which the webhook does not answer. */
const AWAY_RATE = 0.1;

export class Owners {
  readonly #options: OwnersOptions;
  readonly #lost: Pod[] = [];
  #isCalm = false;
  #renamed = 0;
  #coming = 0;

  constructor(options: OwnersOptions) {
    this.#options = options;
  }

  /** Makes the webhook answer always, and brings lost nodes back. */
  calm(): void {
    this.#isCalm = true;
    this.#findAll(this.#lost.splice(0));
  }

  /** Returns how many pods their owners will create again. */
  get coming(): number {
    return this.#coming;
  }

  see({ resource, verb, object, isRemoved, userAgent }: Write): void {
    if (resource !== "pods" || verb !== "delete" || isRemoved || !userAgent.startsWith("pass")) return;
    const { scheduler, users, chance, counts, areSuccessorsLate } = this.#options;
    const backMs = areSuccessorsLate ? LATE_BACK_MS : BACK_MS;
    countFault(counts, "pod evicted");
    scheduler.after(chance.between(1, chance.pick(GONE_MS)), () => {
      if (!users.removePod(object as unknown as Pod)) return;
      this.#coming++;
      scheduler.after(chance.between(1, chance.pick(backMs)), () => {
        this.#coming--;
        this.#recreate(object as unknown as Pod);
      });
    });
  }

  /**
   * Makes a node's pods not ready. Later the node comes back, or its pods are deleted. Returns false if there are no
   * pods.
   */
  loseNode(): boolean {
    const { server, chance, scheduler, kubelet } = this.#options;
    const alive = server.all<Pod>(PODS).filter(({ metadata }) => !metadata?.deletionTimestamp);
    const lost = alive.filter(() => chance.isLucky(0.4));
    for (const pod of lost) {
      kubelet.lose(pod);
      this.#lost.push(pod);
      const conditions = withReady(pod, false, scheduler.nowMs);
      server.put(WRITER, PODS, { ...pod, status: { ...pod.status, conditions } } as Pod);
    }
    const isBack = chance.isLucky(0.4);
    scheduler.after(chance.between(1, LOST_MS), () => (isBack ? this.#findAll(lost) : this.#deleteAll(lost)));
    return lost.length > 0;
  }

  #findAll(pods: readonly Pod[]): void {
    for (const pod of pods) this.#options.kubelet.find(pod);
  }

  /** Deletes pods whose kubelet cannot report their end: they stay until somebody forces the deletion. */
  #deleteAll(pods: readonly Pod[]): void {
    const { users, scheduler, chance, counts } = this.#options;
    countFault(counts, "pods of a lost node recreated");
    for (const pod of pods) {
      users.markPod(pod);
      scheduler.after(chance.between(1, LOST_MS), () => {
        if (users.removePod(pod)) scheduler.after(chance.pick(BACK_MS), () => this.#recreate(pod));
      });
    }
  }

  /** Only pods of StatefulSets keep their names. */
  #nextName(name: string): string {
    return /^(cast|job)-/.test(name) ? `${name.replace(/-.*/, "")}-${1_000 + this.#renamed++}` : name;
  }

  #recreate({ metadata }: Pod): void {
    const { users, chance, isWebhookUp = false } = this.#options;
    const isAway = !(this.#isCalm || isWebhookUp) && chance.isLucky(AWAY_RATE);
    users.createPod(metadata?.namespace ?? "", this.#nextName(metadata?.name ?? ""), () => !isAway);
  }
}
