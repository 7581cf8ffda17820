/** Those who write the SidecarSet and the pods, at the worst of times. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { countFault, type Fault, type FaultCounts } from "./faults.ts";
import { injectedPod, POD_NAMESPACES, type Release, SET, sidecarSetOf, withReady } from "./objects.ts";
import type { Scheduler } from "./scheduler.ts";

export interface UsersOptions {
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  readonly isHot: boolean;
  readonly pods: number;
}

const WRITER = "user";

export class Users {
  readonly #options: UsersOptions;
  readonly #stuck: Pod[] = [];
  #newest: number;
  #uids = 0;
  release: Release;

  constructor(options: UsersOptions, release: Release) {
    this.#options = options;
    this.#newest = release.version;
    this.release = release;
  }

  /** Writes the release as it is said to be. */
  apply(change: Partial<Omit<Release, "strategy">> & { readonly strategy?: Release["strategy"] }): void {
    const { server, isHot } = this.#options;
    this.release = { ...this.release, ...change, strategy: { ...this.release.strategy, ...change.strategy } };
    const stored = server.peek<SidecarSet>(SIDECARSETS, { name: SET });
    const next = sidecarSetOf(this.release, isHot);
    const { generation = 0, ...kept } = stored?.metadata ?? { uid: "set-1", creationTimestamp: "2026-01-01T00:00:00Z" };
    const isSame = stored && JSON.stringify(stored.spec) === JSON.stringify(next.spec);
    const metadata = { ...kept, ...next.metadata, generation: isSame ? generation : generation + 1 };
    server.put(WRITER, SIDECARSETS, {
      ...next,
      metadata,
      ...(stored?.status ? { status: stored.status } : {}),
    } as SidecarSet);
  }

  /** A new image, that nobody has had yet. */
  releaseNext(): void {
    this.apply({ version: ++this.#newest });
  }

  createPod(namespace: string, name: string): Pod {
    const place = { namespace, name, uid: `pod-${++this.#uids}` };
    const pod = injectedPod(place, this.release, this.#options.isHot);
    this.#options.server.put(WRITER, PODS, pod);
    return pod;
  }

  /** Everything of the faults of users and pods; nothing when there is no pod for it. */
  strike(fault: Fault): void {
    const act = this.#acts[fault];
    if (act?.() !== false) countFault(this.#options.counts, fault);
  }

  /** What hung is gone now. */
  mend(): void {
    for (const pod of this.#stuck.splice(0)) this.#remove(pod);
  }

  readonly #acts: Partial<Record<Fault, () => unknown>> = {
    "spec changed": () => this.releaseNext(),
    "spec rolled back": () => {
      if (this.release.version === 1) return false;
      this.apply({ version: this.release.version - 1 });
      return true;
    },
    paused: () => this.apply({ strategy: { paused: !this.release.strategy.paused } }),
    "partition raised": () => {
      const { chance, pods } = this.#options;
      const { partition = 0 } = this.release.strategy;
      const isLowered = Number(partition) > 0 && chance.isLucky(0.4);
      this.apply({ strategy: { partition: isLowered ? 0 : chance.between(1, pods) } });
    },
    "budget changed": () => this.apply({ strategy: { maxUnavailable: this.#options.chance.between(1, 3) } }),
    "selector changed": () => this.#changeSelector(),
    "order changed": () => {
      const tier = this.#options.chance.pick(["blue", "green", "red"]);
      const weightPriority = [{ weight: 1, matchSelector: { matchLabels: { tier } } }];
      this.#withPod((pod) => this.#label(pod, tier));
      this.apply({ strategy: { priorityStrategy: { weightPriority } } });
    },
    "pod created": () => this.createPod(this.#options.chance.pick(POD_NAMESPACES), `more-${this.#uids}`),
    "pod deleted": () => this.#withPod((pod) => this.#delete(pod, () => undefined)),
    "pod recreated under its name": () =>
      this.#withPod((pod) => {
        const { namespace = "", name = "" } = pod.metadata ?? {};
        this.#delete(pod, () => this.createPod(namespace, name));
      }),
    "pod stuck terminating": () =>
      this.#withPod((pod) => {
        this.#stuck.push(this.#mark(pod));
      }),
    "readiness flap": () => this.#withPod((pod) => this.#flap(pod)),
    "status touched": () => this.#withPod((pod) => this.#touch(pod)),
  };

  #changeSelector(): void {
    const { chance } = this.#options;
    const tier = chance.pick(["blue", "green"]);
    if (chance.isLucky(0.5)) this.#withPod((pod) => this.#label(pod, tier));
    else this.apply({ strategy: { selector: { matchLabels: { tier } } } });
  }

  #withPod(act: (pod: Pod) => void): boolean {
    const { server, chance } = this.#options;
    const alive = server.all<Pod>(PODS).filter(({ metadata }) => !metadata?.deletionTimestamp);
    if (alive.length === 0) return false;
    act(chance.pick(alive));
    return true;
  }

  #label(pod: Pod, tier: string): void {
    const labels = { ...pod.metadata?.labels, tier };
    this.#options.server.put(WRITER, PODS, { ...pod, metadata: { ...pod.metadata, labels } } as Pod);
  }

  #touch(pod: Pod): void {
    const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "Touched");
    const message = String(this.#options.scheduler.nowMs);
    const conditions = [...others, { type: "Touched", status: "True", message }];
    this.#options.server.put(WRITER, PODS, { ...pod, status: { ...pod.status, conditions } } as Pod);
  }

  /** Not ready for a moment, without a restart. */
  #flap(pod: Pod): void {
    const { scheduler, chance, server } = this.#options;
    const { namespace = "", name = "", uid } = pod.metadata ?? {};
    const write = (one: Pod, isReady: boolean) =>
      server.put(WRITER, PODS, { ...one, status: { ...one.status, conditions: withReady(one, isReady) } } as Pod);
    write(pod, false);
    scheduler.after(chance.between(100, 20_000), () => {
      const now = server.peek<Pod>(PODS, { namespace, name });
      const areReady = now?.status?.containerStatuses?.every(({ ready }) => ready) === true;
      if (now?.metadata?.uid === uid && now && areReady) write(now, true);
    });
  }

  #mark(pod: Pod): Pod {
    const deletionTimestamp = new Date(this.#options.scheduler.nowMs).toISOString();
    const marked = { ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 } } as Pod;
    this.#options.server.put(WRITER, PODS, marked);
    return marked;
  }

  #delete(pod: Pod, then: () => void): void {
    const { scheduler, chance } = this.#options;
    const marked = this.#mark(pod);
    scheduler.after(chance.between(10, 15_000), () => {
      if (this.#remove(marked)) then();
    });
  }

  #remove({ metadata }: Pod): boolean {
    const { namespace = "", name = "", uid } = metadata ?? {};
    const now = this.#options.server.peek<Pod>(PODS, { namespace, name });
    if (!now || now.metadata?.uid !== uid) return false;
    this.#options.server.remove(WRITER, PODS, now);
    return true;
  }
}
