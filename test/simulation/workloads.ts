/**
 * Controllers of workloads, and the users of these workloads. After a change of the template pods are recreated as the
 * strategy says.
 */
import type { KubernetesObject, Labels, OwnerReference, Pod } from "../../shared/api/kubernetes.ts";
import { PODS, REPLICA_SETS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { isPodReady, isSpared, runningStatus } from "./objects.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Users } from "./users.ts";
import {
  hashLabelOf,
  RESOURCES,
  strategyOf,
  templateHashOf,
  type WorkloadObject,
  type WorkloadPlan,
  workloadObject,
} from "./workload-objects.ts";
import { isSaidReady, nextStep, type Step } from "./workload-steps.ts";

export interface WorkloadsOptions {
  /** the workloads; empty: pods have owners by their names */
  readonly plans: readonly WorkloadPlan[];
  /** longest time in milliseconds until a controller looks again */
  readonly lagMs: number;
  /** times when new pods lack sidecars, in ms since the world began; absent: none */
  readonly outages?: readonly { readonly fromMs: number; readonly toMs: number }[] | undefined;
  readonly scheduler: Scheduler;
  readonly server: ApiServer;
  readonly users: Users;
  readonly chance: Chance;
}

const WRITER = "workload-controller";
const USER = "user";
/** Milliseconds until a deleted pod is gone. */
const GONE_MS = [10, 3_000, 15_000] as const;
const NAMESAKE = "abc";

export class Workloads {
  readonly #options: WorkloadsOptions;
  /** uid → plan of the workload */
  readonly #plans = new Map<string, WorkloadPlan>();
  /** uid → the templates that the workload has had, in order */
  readonly #templates = new Map<string, string[]>();
  /** Deployment's uid → the template of its pods at the pause */
  readonly #active = new Map<string, string>();
  /** uid of a pods' controller → uid of its workload */
  readonly #controllers = new Map<string, string>();
  readonly #goneForGood = new Set<WorkloadPlan>();
  readonly #woken = new Set<string>();
  #made = 0;
  #pods = 0;
  #isCalm = false;
  #isFurnishing = false;
  readonly #startMs: number;

  constructor(options: WorkloadsOptions) {
    this.#options = options;
    this.#startMs = options.scheduler.nowMs;
  }

  /** Returns the uid of the pod's workload; undefined: no workload of this world owns the pod. */
  uidOf({ metadata }: Pod): string | undefined {
    return this.#controllers.get(metadata?.ownerReferences?.find(({ controller }) => controller)?.uid ?? "");
  }

  all(): readonly WorkloadObject[] {
    const { server } = this.#options;
    return [...this.#plans].flatMap(([uid, { kind, namespace, name }]) => {
      const one = server.peek<WorkloadObject>(RESOURCES[kind], { namespace, name });
      return one?.metadata?.uid === uid ? [one] : [];
    });
  }

  /** Returns the workload; undefined: it is deleted. */
  find(uid: string): WorkloadObject | undefined {
    return this.all().find(({ metadata }) => metadata?.uid === uid);
  }

  /**
   * True if every wanted pod works and has the workload's template, and no other pod is left. Judges by the pods and
   * not by the status.
   */
  isThrough(workload: WorkloadObject): boolean {
    const { hash, pods } = this.#sceneOf(workload);
    const isGoing = ({ metadata }: Pod) => metadata?.deletionTimestamp !== undefined;
    // DaemonSets count pods that are being deleted and still ready.
    const isDaemon = workload.kind === "DaemonSet";
    const counted = isDaemon ? pods : pods.filter((pod) => !isGoing(pod));
    const isReady = (pod: Pod) => (isGoing(pod) ? isSaidReady(pod) : isPodReady(pod));
    const isFresh = (pod: Pod) => templateHashOf(workload.kind, pod) === hash && isReady(pod);
    return counted.length >= this.wantedOf(workload) && counted.every(isFresh);
  }

  wantedOf({ kind, metadata, spec }: WorkloadObject): number {
    return kind === "DaemonSet" ? (this.#plans.get(metadata?.uid ?? "")?.replicas ?? 0) : (spec.replicas ?? 1);
  }

  /** Returns the workload's pods, the oldest first. */
  podsOf(uid: string): readonly Pod[] {
    const own = this.#options.server.all<Pod>(PODS).filter((pod) => this.uidOf(pod) === uid);
    return own.toSorted((a, b) => serialOf(a) - serialOf(b));
  }

  /** Creates workloads with running pods after `ms`; 0: at once. */
  furnishIn(ms: number): void {
    if (ms > 0) this.#options.scheduler.after(ms, () => this.#furnish());
    else this.#furnish();
  }

  #furnish(): void {
    const { plans, server, scheduler } = this.#options;
    this.#isFurnishing = true;
    for (const plan of plans) this.#create(plan);
    for (let made = -1; made !== this.#pods; ) {
      made = this.#pods;
      this.#reconcileAll();
      for (const pod of server.all<Pod>(PODS).filter((one) => !isPodReady(one)))
        server.put("kubelet", PODS, { ...pod, status: runningStatus(pod, scheduler.nowMs) } as Pod);
    }
    this.#reconcileAll();
    this.#isFurnishing = false;
  }

  #reconcileAll(): void {
    for (const { metadata } of this.all()) this.#reconcile(metadata?.uid ?? "");
  }

  /** Ends everything that blocks the workloads. */
  calm(): void {
    this.#isCalm = true;
    for (const plan of this.#options.plans)
      if (!(this.#isThere(plan) || this.#goneForGood.has(plan))) this.#create(plan);
    for (const workload of this.all()) {
      const { paused: _, ...spec } = workload.spec;
      const { strategy } = this.#plans.get(workload.metadata?.uid ?? "") ?? { strategy: strategyOf(workload) };
      this.#write(workload, { ...spec, [workload.kind === "Deployment" ? "strategy" : "updateStrategy"]: strategy });
    }
  }

  see({ resource, object, userAgent, isRemoved }: Write): void {
    if (this.#plans.size === 0) return;
    if (resource === "pods") this.#wake(this.uidOf(object as unknown as Pod));
    else if (!isRemoved && userAgent !== WRITER) this.#wake(object.metadata.uid);
    // Evicted pods, and pods that others than their controller deleted, are removed here.
    if (resource === "pods" && userAgent.startsWith("pass") && object.metadata.deletionTimestamp && !isRemoved)
      this.#removeLater(object as unknown as Pod);
  }

  #wake(uid: string | undefined): void {
    if (uid === undefined || !this.#plans.has(uid) || this.#woken.has(uid)) return;
    this.#woken.add(uid);
    const { scheduler, chance, lagMs } = this.#options;
    scheduler.after(chance.between(1, this.#isCalm ? 50 : lagMs), () => {
      this.#woken.delete(uid);
      this.#reconcile(uid);
    });
  }

  #reconcile(uid: string): void {
    const workload = this.find(uid);
    if (!workload) return;
    const scene = this.#sceneOf(workload);
    if (!workload.spec.paused) this.#active.set(uid, scene.hash);
    const { create, remove, status } = nextStep(scene);
    for (const one of create) this.#createPod(workload, one);
    for (const pod of remove) {
      this.#options.users.markPod(pod);
      this.#removeLater(pod);
    }
    // The status says what the controller saw a moment ago.
    const now = this.find(uid);
    const isSame = JSON.stringify(now?.status) === JSON.stringify(status);
    if (now && !isSame) this.#options.server.put(WRITER, RESOURCES[now.kind], { ...now, status } as WorkloadObject);
    if (!isSame || create.length + remove.length > 0) this.#wake(uid);
    if (this.#plans.get(uid)?.isNamesake) this.#keepNamesake(workload);
  }

  #sceneOf(workload: WorkloadObject) {
    const { uid = "" } = workload.metadata ?? {};
    const hash = this.#hashOf(workload);
    const before = workload.kind === "Deployment" ? this.#active.get(uid) : workload.status?.["currentRevision"];
    const nodes = this.#plans.get(uid)?.replicas ?? 0;
    return { workload, pods: this.podsOf(uid), hash, former: String(before ?? hash), nodes };
  }

  /** Returns the template's hash; equal templates have equal hashes. */
  #hashOf({ metadata, spec }: WorkloadObject): string {
    const { uid = "" } = metadata ?? {};
    const known = this.#templates.get(uid) ?? [];
    const text = JSON.stringify(spec.template);
    if (!known.includes(text)) known.push(text);
    this.#templates.set(uid, known);
    return `r${known.indexOf(text)}`;
  }

  #createPod(workload: WorkloadObject, { hash, place = 0 }: Step["create"][number]): void {
    const { server, users } = this.#options;
    const { namespace = "", name: own = "", uid = "" } = workload.metadata ?? {};
    const names = {
      Deployment: `${own}-${hash}-${this.#pods}`,
      StatefulSet: `${own}-${place}`,
      DaemonSet: `${own}-${place}-${this.#pods}`,
    };
    const name = names[workload.kind];
    // A pod of an earlier workload with the same name still exists.
    if (server.peek(PODS, { namespace, name })) return;
    this.#pods++;
    const owner =
      workload.kind === "Deployment"
        ? this.#replicaSet(workload, hash)
        : { apiVersion: "apps/v1", kind: workload.kind, controller: true, name: own, uid };
    const labels = { [hashLabelOf(workload.kind)]: hash, own };
    users.createPod(namespace, name, this.#comesBare(uid) ? () => false : undefined, {
      owner,
      labels,
      annotations: this.#annotationsOf(uid, hash),
    });
  }

  #annotationsOf(uid: string, hash: string): Labels | undefined {
    const text = this.#templates.get(uid)?.[Number(hash.slice(1))];
    return text === undefined
      ? undefined
      : (JSON.parse(text) as WorkloadObject["spec"]["template"]).metadata?.annotations;
  }

  /** True if a new pod of the workload lacks sidecars now. */
  #comesBare(uid: string): boolean {
    const { name = "", bare } = this.#plans.get(uid) ?? {};
    const { outages = [], scheduler, chance } = this.#options;
    const sinceMs = scheduler.nowMs - this.#startMs;
    if (isSpared(name)) return true;
    if (!this.#isFurnishing)
      return !this.#isCalm && outages.some(({ fromMs, toMs }) => fromMs <= sinceMs && sinceMs < toMs);
    return bare === "all" || (bare === "some" && chance.isLucky(0.5));
  }

  /** Returns the ReplicaSet of this template as an owner. `isOwned` false: the ReplicaSet itself has no owner. */
  #replicaSet({ metadata }: WorkloadObject, hash: string, isOwned = true): OwnerReference {
    const { namespace = "", name: own = "", uid = "" } = metadata ?? {};
    const name = `${own}-${hash}`;
    const { server } = this.#options;
    const known = server.peek(REPLICA_SETS, { namespace, name });
    const owner = { apiVersion: "apps/v1", kind: "Deployment", controller: true, name: own, uid };
    const id = known?.metadata?.uid ?? `${uid}-${hash}`;
    const ownerReferences = isOwned ? { ownerReferences: [owner] } : {};
    const object = { kind: "ReplicaSet", metadata: { namespace, name, uid: id, ...ownerReferences } };
    if (!known) server.put(WRITER, REPLICA_SETS, object as KubernetesObject);
    this.#controllers.set(id, isOwned ? uid : `${uid} namesake`);
    return { apiVersion: "apps/v1", kind: "ReplicaSet", controller: true, name, uid: id };
  }

  /** Two pods of a ReplicaSet without an owner. */
  #keepNamesake(workload: WorkloadObject): void {
    const owner = this.#replicaSet(workload, NAMESAKE, false);
    const { namespace = "", name = "" } = workload.metadata ?? {};
    const labels = { [hashLabelOf("Deployment")]: NAMESAKE, own: name };
    const { users } = this.#options;
    for (const place of [0, 1]) {
      const key = { namespace, name: `${name}-${NAMESAKE}-${place}` };
      if (!this.#options.server.peek(PODS, key)) users.createPod(namespace, key.name, undefined, { owner, labels });
    }
  }

  #removeLater(pod: Pod): void {
    const { scheduler, chance, users } = this.#options;
    scheduler.after(chance.between(1, chance.pick(GONE_MS)), () => users.removePod(pod));
  }

  #isThere({ kind, namespace, name }: WorkloadPlan): boolean {
    return this.#options.server.peek(RESOURCES[kind], { namespace, name }) !== undefined;
  }

  #create(plan: WorkloadPlan): void {
    const uid = `${plan.namespace}-${plan.name}-${++this.#made}`;
    this.#plans.set(uid, plan);
    this.#controllers.set(uid, uid);
    this.#options.server.put(USER, RESOURCES[plan.kind], workloadObject(plan, uid));
  }

  /** Changes one workload as its user does; returns false if there are none. */
  change(): boolean {
    const { chance } = this.#options;
    const all = this.all().filter(({ metadata }) => !this.#plans.get(metadata?.uid ?? "")?.isNamesake);
    if (all.length === 0) return false;
    const workload = chance.pick(all);
    const { spec } = workload;
    const { replicas = 1 } = spec;
    const isDeployment = workload.kind === "Deployment";
    const template = { metadata: { ...spec.template.metadata, annotations: { rolled: String(++this.#made) } } };
    const changes: readonly (() => void)[] = [
      () =>
        this.#write(workload, {
          ...spec,
          ...(workload.kind === "DaemonSet" ? {} : { replicas: chance.between(0, replicas + 1) }),
        }),
      () => this.#write(workload, { ...spec, ...(isDeployment ? { paused: spec.paused !== true } : {}) }),
      () => this.#write(workload, { ...spec, ...(isDeployment ? {} : { updateStrategy: { type: "OnDelete" } }) }),
      () => this.#write(workload, { ...spec, template }),
      () => this.#recreate(workload),
    ];
    chance.pick(changes)();
    return true;
  }

  /** Counts the generation as an API server does. */
  #write(workload: WorkloadObject, spec: WorkloadObject["spec"]): void {
    if (JSON.stringify(workload.spec) === JSON.stringify(spec)) return;
    const { metadata = {}, kind } = workload;
    const next = { ...workload, metadata: { ...metadata, generation: (metadata.generation ?? 0) + 1 }, spec };
    this.#options.server.put(USER, RESOURCES[kind], next as WorkloadObject);
  }

  /** Deletes the workload with its pods. Sometimes a new one with the same name follows. */
  #recreate(workload: WorkloadObject): void {
    const { server, scheduler, users, chance } = this.#options;
    const { uid = "" } = workload.metadata ?? {};
    const plan = this.#plans.get(uid);
    server.remove(USER, RESOURCES[workload.kind], workload);
    for (const one of server.all(REPLICA_SETS))
      if (this.#controllers.get(one.metadata?.uid ?? "") === uid) server.remove(WRITER, REPLICA_SETS, one);
    for (const pod of this.podsOf(uid)) {
      users.markPod(pod);
      this.#removeLater(pod);
    }
    if (plan && chance.isLucky(0.4)) this.#goneForGood.add(plan);
    scheduler.after(chance.between(1_000, 20_000), () => {
      if (plan && !(this.#isThere(plan) || this.#goneForGood.has(plan))) this.#create(plan);
    });
  }
}

function serialOf({ metadata }: Pod): number {
  return Number(/\d+$/.exec(metadata?.uid ?? "")?.[0] ?? 0);
}
