/** The users of the SidecarSet and of the pods, who act at the worst moments. */
import type { Namespace, Pod } from "../../shared/api/kubernetes.ts";
import { ledgerName } from "../../shared/core/ledger.ts";
import { CONFIG_MAPS, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { withTraffic } from "./drain-witness.ts";
import { countFault, type Fault, type FaultCounts } from "./faults.ts";
import {
  injectedPod,
  isSpared,
  isTenantPod,
  KRUISE_NAMESPACE,
  type Owned,
  type Release,
  type SetPlan,
  timeOf,
  variedLabels,
  withReady,
} from "./objects.ts";
import { onNode } from "./pulls.ts";
import { Releases, type ReleasesOptions } from "./releases.ts";
import { namespacesOf, type Scenario } from "./scenario.ts";
import type { Scheduler } from "./scheduler.ts";
import {
  anyCheckedWaves,
  anyChecks,
  anyNamespaceLabels,
  anySelector,
  anyShares,
  anyWaves,
  bothChecks,
} from "./wide-worlds.ts";

export interface UsersOptions {
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  readonly sets: readonly SetPlan[];
  readonly seed: number;
  readonly pods: number;
  readonly reshapeRate: number;
  readonly namespaces?: Scenario["namespaces"] | undefined;
  readonly areLabelsVaried?: boolean;
  readonly areAgesKnown?: boolean;
  readonly workloads?: Scenario["workloads"];
  readonly pulls?: Scenario["pulls"];
  readonly admit?: ReleasesOptions["admit"];
}

const WRITER = "user";
/** Values of the annotation. The last one allows only updates in place. */
const RESTARTS: readonly Pick<Release, "replaced">[] = [
  { replaced: "NotUpgradable, Restart" },
  { replaced: "NotUpgradable, Restart=2" },
  { replaced: undefined },
];

const MISSED_RESTARTS: readonly Pick<Release, "replaced">[] = [
  { replaced: "Missed, Restart" },
  { replaced: "NotUpgradable, Missed, Restart=2" },
  { replaced: "NotUpgradable, Restart" },
  { replaced: undefined },
];

export class Users {
  readonly #options: UsersOptions;
  readonly #stuck: Pod[] = [];
  #uids = 0;
  readonly releases: Releases;

  constructor(options: UsersOptions, first: Release) {
    this.#options = options;
    this.releases = new Releases({ ...options, first, nowMs: () => options.scheduler.nowMs });
  }

  /** Creates a pod with the containers of all SidecarSets, or of some SidecarSets. */
  createPod(namespace: string, name: string, isWanted: (set: string) => boolean = () => true, own?: Owned): Pod {
    const injections = this.releases.injections.filter((injection) => isWanted(injection.name));
    const { areAgesKnown, scheduler } = this.#options;
    const age = areAgesKnown ? { creationTimestamp: timeOf(scheduler.nowMs) } : {};
    const place = { namespace, name, uid: `pod-${++this.#uids}`, ...age };
    const labels = this.#options.areLabelsVaried ? variedLabels(this.#uids) : undefined;
    const pod = withTraffic(injectedPod(place, injections, labels, own), this.releases.first.drain, this.#uids);
    const { pulls, server } = this.#options;
    const placed = pulls ? onNode(pod, pulls.nodes, this.#uids) : pod;
    server.put(WRITER, PODS, placed);
    return placed;
  }

  /** Causes a fault by users or of pods. Does nothing if no pod fits. */
  strike(fault: Fault): void {
    const act = this.#acts[fault];
    if (act?.() !== false) countFault(this.#options.counts, fault);
  }

  /** Removes pods whose deletion hangs, and restores deleted objects. */
  fix(): void {
    for (const pod of this.#stuck.splice(0)) this.removePod(pod);
    this.releases.createAll();
    for (const { name } of this.releases.sets) this.releases.goOn(name);
  }

  readonly #acts: Partial<Record<Fault, () => unknown>> = {
    "spec changed": () => this.releases.releaseNext(this.#anySet()),
    "spec rolled back": () => this.releases.rollBack(this.#anySet()),
    paused: () => this.#pause(this.#anySet()),
    "partition raised": () => this.#changePartition(this.#anySet()),
    "budget changed": () =>
      this.releases.apply(this.#anySet(), { strategy: { maxUnavailable: this.#options.chance.between(1, 3) } }),
    "selector changed": () => this.#changeSelector(this.#anySet()),
    "order changed": () => this.#changeOrder(this.#anySet()),
    "SidecarSet deleted and recreated": () => this.#makeAnew(this.#anySet()),
    "pod created": () =>
      this.createPod(this.#options.chance.pick(namespacesOf(this.#options)).name, `more-${this.#uids}`),
    "pod made without sidecars": () => this.#makeBare(),
    "shares changed": () => this.releases.apply(this.#anySet(), { strategy: anyShares(this.#options.chance) }),
    "selection changed": () => this.releases.apply(this.#anySet(), { selector: anySelector(this.#options.chance) }),
    "namespace relabelled": () => this.#labelNamespace(),
    "injection held": () => this.#holdInjection(this.#anySet()),
    "waves changed": () => this.#changeWaves(this.#anySet()),
    "restarts changed": () => this.#changeRestarts(this.#anySet()),
    "checks changed": () => this.#changeChecks(this.#anySet()),
    "ledger deleted by hand": () => this.#deleteLedger(this.#anySet()),
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

  /** Creates pods that lack sidecars by mistake. Most of these pods have an owner. */
  #makeBare(): void {
    const { chance } = this.#options;
    const kind = chance.pick(["bare", "bare", "bare", "bare", "guarded", "stray", "spared"]);
    const isOfJob = kind === "bare" && this.#options.workloads?.includes("job") === true;
    const name = `${isOfJob ? "job" : kind}-${this.#uids}`;
    this.createPod(chance.pick(namespacesOf(this.#options)).name, name, () => false);
  }

  #anySet(): string {
    return this.#options.chance.pick(this.releases.sets).name;
  }

  /** Forbids injection, or allows it again. */
  #holdInjection(set: string): void {
    const isHeld = this.releases.of(set).injection !== undefined;
    this.releases.apply(set, { injection: isHeld ? undefined : this.#options.chance.pick(["paused", "pinned"]) });
  }

  #pause(set: string): void {
    const { paused = false, type } = this.releases.of(set).strategy;
    if (type === "NotUpdate" || this.#options.chance.isLucky(0.3))
      this.releases.apply(set, { strategy: { type: type === "NotUpdate" ? "RollingUpdate" : "NotUpdate" } });
    else this.releases.apply(set, { strategy: { paused: !paused } });
  }

  #changePartition(set: string): void {
    const { chance, pods } = this.#options;
    const { partition = 0 } = this.releases.of(set).strategy;
    const isLowered = Number(partition) > 0 && chance.isLucky(0.4);
    this.releases.apply(set, { strategy: { partition: isLowered ? 0 : chance.between(1, pods) } });
  }

  #changeSelector(set: string): void {
    const { chance } = this.#options;
    const tier = chance.pick(["blue", "green"]);
    const kind = chance.pick(["pod", "pod", "update", "update", "all"]);
    if (kind === "pod") this.#withPod((pod) => this.#label(pod, tier));
    else if (kind === "update") this.releases.apply(set, { strategy: { selector: { matchLabels: { tier } } } });
    else this.releases.apply(set, { tier: this.releases.of(set).tier === undefined ? tier : undefined });
  }

  /** Changes a priority, or the labels that the update order names. */
  #changeOrder(set: string): void {
    const { chance } = this.#options;
    const tier = chance.pick(["blue", "green", "red"]);
    this.#withPod((pod) => this.#label(pod, tier));
    const weightPriority = [{ weight: 1, matchSelector: { matchLabels: { tier } } }];
    if (chance.isLucky(0.5)) this.releases.apply(set, { strategy: { priorityStrategy: { weightPriority } } });
  }

  #changeRestarts(set: string): void {
    const { chance } = this.#options;
    const isOfMissed = this.releases.first.replaced?.includes("Missed") === true;
    this.releases.apply(set, chance.pick(isOfMissed ? MISSED_RESTARTS : RESTARTS));
  }

  #changeWaves(set: string): void {
    const { chance, seed } = this.#options;
    const { checks } = this.releases.of(set);
    this.releases.apply(set, { waves: checks ? anyCheckedWaves(chance, seed) : anyWaves(chance, seed) });
  }

  /** The waves name both checks. */
  #changeChecks(set: string): void {
    const { chance } = this.#options;
    const { waves } = this.releases.of(set);
    this.releases.apply(set, { checks: waves ? bothChecks(chance) : anyChecks(chance) });
  }

  #makeAnew(set: string): boolean {
    const { scheduler, chance } = this.#options;
    if (!this.releases.remove(set)) return false;
    scheduler.after(chance.pick([10, 1_000, 20_000]), () => {
      if (chance.isLucky(0.3)) this.releases.releaseNext(set);
      this.releases.createAll();
    });
    return true;
  }

  #withPod(act: (pod: Pod) => void): boolean {
    const { server, chance } = this.#options;
    const alive = server.all<Pod>(PODS).filter((pod) => !(pod.metadata?.deletionTimestamp || isTenantPod(pod)));
    if (alive.length === 0) return false;
    act(chance.pick(alive));
    return true;
  }

  #label(pod: Pod, tier: string): void {
    const labels = { ...pod.metadata?.labels, tier };
    this.#options.server.put(WRITER, PODS, { ...pod, metadata: { ...pod.metadata, labels } } as Pod);
  }

  #labelNamespace(): void {
    const { server, chance } = this.#options;
    const { name } = chance.pick(namespacesOf(this.#options));
    const { metadata } = server.peek<Namespace>(NAMESPACES, { name }) ?? {};
    const labels = anyNamespaceLabels(chance);
    server.put(WRITER, NAMESPACES, { metadata: { ...metadata, labels } } as Namespace);
  }

  #deleteLedger(set: string): boolean {
    const { server } = this.#options;
    const key = { namespace: KRUISE_NAMESPACE, name: ledgerName(set) };
    if (!server.peek(CONFIG_MAPS, key)) return false;
    void server.delete(WRITER, CONFIG_MAPS, key, {});
    return true;
  }

  #touch(pod: Pod): void {
    const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "Touched");
    const message = String(this.#options.scheduler.nowMs);
    const conditions = [...others, { type: "Touched", status: "True", message }];
    this.#options.server.put(WRITER, PODS, { ...pod, status: { ...pod.status, conditions } } as Pod);
  }

  /** Makes a pod not ready for a moment, without a restart. */
  #flap(pod: Pod): void {
    const { scheduler, chance, server } = this.#options;
    const { namespace = "", name = "", uid } = pod.metadata ?? {};
    const write = (one: Pod, isReady: boolean) =>
      server.put(WRITER, PODS, {
        ...one,
        status: { ...one.status, conditions: withReady(one, isReady, scheduler.nowMs) },
      } as Pod);
    write(pod, false);
    scheduler.after(chance.between(100, 20_000), () => {
      const now = server.peek<Pod>(PODS, { namespace, name });
      const areReady = now?.status?.containerStatuses?.every(({ ready }) => ready) === true;
      if (now?.metadata?.uid === uid && now && areReady) write(now, true);
    });
  }

  /** Deletes the pod. Its controller, if there is one, creates another with the same name and labels. */
  renew(pod: Pod): void {
    const { namespace = "", name = "", labels = {}, ownerReferences = [] } = pod.metadata ?? {};
    const owner = ownerReferences.find(({ controller }) => controller === true);
    this.#delete(pod, () => {
      if (owner) this.createPod(namespace, name, () => !isSpared(name), { owner, labels });
    });
  }

  #mark(pod: Pod): Pod {
    const deletionTimestamp = new Date(this.#options.scheduler.nowMs).toISOString();
    const marked = { ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 } } as Pod;
    this.#options.server.put(WRITER, PODS, marked);
    return marked;
  }

  /** Marks the pod as being deleted, which passes must notice. Does nothing if the pod is gone or already marked. */
  markPod({ metadata }: Pod): void {
    const { namespace = "", name = "", uid } = metadata ?? {};
    const now = this.#options.server.peek<Pod>(PODS, { namespace, name });
    if (now?.metadata?.uid === uid && now && !now.metadata?.deletionTimestamp) this.#mark(now);
  }

  #delete(pod: Pod, then: () => void): void {
    const { scheduler, chance } = this.#options;
    const marked = this.#mark(pod);
    scheduler.after(chance.between(10, 15_000), () => {
      if (this.removePod(marked)) then();
    });
  }

  /** Removes the pod; returns false if it is already gone. */
  removePod({ metadata }: Pod): boolean {
    const { namespace = "", name = "", uid } = metadata ?? {};
    const now = this.#options.server.peek<Pod>(PODS, { namespace, name });
    if (!now || now.metadata?.uid !== uid) return false;
    this.#options.server.remove(WRITER, PODS, now);
    return true;
  }
}
