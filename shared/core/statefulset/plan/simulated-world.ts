/**
 * A simulated cluster for passes over a set: its nodes start every pod after the same time, and a deleted pod
 * disappears at once.
 */
import type { ControllerRevision, KubernetesObject, OwnerReference, Pod } from "../../../api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION, POD_READY_CONDITION } from "../../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, StorageClass } from "../../../api/stateful-set.ts";
import { addSeconds } from "../../../go/seconds-between.ts";
import { containerFailure } from "../../pod/container-failure.ts";
import { conditionOf, setCondition } from "../../pod/is-ready.ts";
import { running, stopped } from "../../rollout/plan/simulated-kubelet.ts";
import { isFinished, isTerminating, withOpenGate } from "../pods/pod-phase.ts";
import { reconcileSet, type SetObservation, type SetOutcome } from "../reconcile.ts";
import type { Reply, Request } from "../step.ts";

export class SimulatedWorld {
  readonly #seen: SetObservation;
  readonly #surroundings: SetSurroundings;
  readonly #readyAfterSeconds: number;
  #set: StatefulSet;
  readonly #pods: Map<string, Pod>;
  readonly #claims: Map<string, PersistentVolumeClaim>;
  readonly #revisions: Map<string, ControllerRevision>;
  /** times by name of a pod at which its node has made it ready, or has removed it */
  readonly #due = new Map<string, number>();
  #created = 0;
  #hasPassed = false;
  atSeconds = 0;

  constructor(seen: SetObservation, surroundings: SetSurroundings, readyAfterSeconds: number) {
    this.#seen = seen;
    this.#surroundings = surroundings;
    this.#readyAfterSeconds = readyAfterSeconds;
    this.#set = seen.set;
    this.#pods = new Map(seen.pods.map((pod) => [nameOf(pod), pod]));
    this.#claims = new Map(surroundings.claims.map((claim) => [nameOf(claim), claim]));
    this.#revisions = new Map(seen.revisions.map((revision) => [nameOf(revision), revision]));
    for (const pod of seen.pods) if (isComing(pod)) this.#due.set(nameOf(pod), readyAfterSeconds);
  }

  /** The observation for the next pass. The first pass has written to all reserved pods, or has freed them. */
  observe(): SetObservation {
    const { gates, reserved = new Set<string>() } = this.#seen;
    const [pods, revisions] = [[...this.#pods.values()], [...this.#revisions.values()]];
    const seen = { set: this.#set, pods, revisions, gates, now: this.#now() };
    return this.#hasPassed ? seen : { ...seen, reserved };
  }

  surroundings(): SetSurroundings {
    return { ...this.#surroundings, claims: [...this.#claims.values()] };
  }

  /** Carries out writes; true if anything has changed. */
  carryOut(writes: readonly Request[]): boolean {
    this.#hasPassed = true;
    const changes = writes.filter(({ kind }) => kind !== "RecordEvent");
    for (const write of changes) this.#write(write);
    return this.#openGates() || changes.length > 0;
  }

  /** Advances to the next event, or to the end of the pass's wait (0: no wait). False: nothing more will happen. */
  advance(waitSeconds: number): boolean {
    const waits = waitSeconds > 0 ? [this.atSeconds + waitSeconds] : [];
    const next = Math.min(...this.#due.values(), ...waits);
    if (!Number.isFinite(next)) return false;
    this.atSeconds = next;
    for (const [name, at] of this.#due) if (at <= next) this.#finish(name);
    return true;
  }

  #now(): string {
    return addSeconds(this.#seen.now, Math.floor(this.atSeconds)) ?? this.#seen.now;
  }

  #write(request: Request): void {
    switch (request.kind) {
      case "CreatePod":
        this.#start(request.pod);
        break;
      case "DeletePod":
        this.#delete(request.pod);
        break;
      case "UpdatePod":
        this.#update(request);
        break;
      case "UpdatePodStatus":
        this.#report(request.after);
        break;
      case "AdoptPod":
        this.#own(this.#pods, request.pod, (before) => [request.owner, ...before]);
        break;
      case "ReleasePod":
        this.#own(this.#pods, request.pod, (all) => all.filter(({ uid }) => uid !== request.ownerUid));
        break;
      default:
        this.#record(request);
    }
  }

  #record(request: Request): void {
    switch (request.kind) {
      case "CreateRevision":
        this.#revisions.set(nameOf(request.revision), this.#stored(request.revision));
        break;
      case "RenumberRevision":
        this.#revisions.set(nameOf(request.revision), { ...request.revision, revision: request.number });
        break;
      case "DeleteRevision":
        this.#revisions.delete(nameOf(request.revision));
        break;
      case "AdoptRevision":
        this.#own(this.#revisions, request.revision, (before) => [request.owner, ...before]);
        break;
      case "CreateClaim":
        this.#claims.set(nameOf(request.claim), provided(this.#stored(request.claim)));
        break;
      case "UpdateClaim":
        this.#claims.set(nameOf(request.after), provided(request.after));
        break;
      case "UpdateStatus":
        this.#set = { ...this.#set, status: request.status };
    }
  }

  #stored<T extends KubernetesObject>(object: T): T {
    this.#created++;
    const metadata = { ...object.metadata, uid: `simulated-${this.#created}`, creationTimestamp: this.#now() };
    return { ...object, metadata };
  }

  #own<T extends KubernetesObject>(
    objects: Map<string, T>,
    { metadata }: T,
    change: (before: readonly OwnerReference[]) => readonly OwnerReference[],
  ): void {
    const object = objects.get(metadata?.name ?? "");
    if (!object) return;
    const ownerReferences = change(object.metadata?.ownerReferences ?? []);
    objects.set(nameOf(object), { ...object, metadata: { ...object.metadata, ownerReferences } });
  }

  #start(pod: Pod): void {
    const containerStatuses = pod.spec.containers.map(({ name }) => stopped({ name }));
    const conditions = [{ type: "Ready", status: "False" }];
    const spec = { ...pod.spec, nodeName: "simulated" };
    this.#pods.set(nameOf(pod), {
      ...this.#stored(pod),
      spec,
      status: { phase: "Pending", conditions, containerStatuses },
    });
    this.#due.set(nameOf(pod), this.atSeconds + this.#readyAfterSeconds);
  }

  /** Deletes the pod with its own claims. Only their owners remove finalizers. */
  #delete({ metadata }: Pod): void {
    const pod = this.#pods.get(metadata?.name ?? "");
    if (!pod) return;
    this.#due.delete(nameOf(pod));
    if ((pod.metadata?.finalizers ?? []).length > 0) {
      this.#pods.set(nameOf(pod), { ...pod, metadata: { ...pod.metadata, deletionTimestamp: this.#now() } });
      return;
    }
    this.#pods.delete(nameOf(pod));
    for (const [name, claim] of this.#claims)
      if (claim.metadata?.ownerReferences?.some(({ uid }) => uid === pod.metadata?.uid)) this.#claims.delete(name);
  }

  #report({ metadata, status = {} }: Pod): void {
    const pod = this.#pods.get(metadata?.name ?? "");
    if (pod) this.#pods.set(nameOf(pod), { ...pod, status });
  }

  #update({ before, after }: { readonly before: Pod; readonly after: Pod }): void {
    const pod = this.#pods.get(nameOf(before));
    if (!pod) return;
    const next: Pod = { ...pod, metadata: { ...after.metadata, name: nameOf(pod) }, spec: after.spec };
    const isChanged = next.spec.containers.some((container) => imageOf(pod, container.name) !== container.image);
    this.#pods.set(nameOf(pod), isChanged ? withReadiness(withChanged(pod, next), this.#now()) : next);
    if (isChanged) this.#due.set(nameOf(pod), this.atSeconds + this.#readyAfterSeconds);
  }

  #finish(name: string): void {
    this.#due.delete(name);
    const pod = this.#pods.get(name);
    if (!pod) return;
    if (isTerminating(pod)) this.#pods.delete(name);
    else this.#pods.set(name, withReadiness(started(pod, this.#now()), this.#now()));
  }

  /** Opens gates as a pass does, and reports as a node does. True if one was closed. */
  #openGates(): boolean {
    let isOpened = false;
    for (const [name, pod] of this.#pods) {
      const opened = isOwn(pod, this.#set) ? withOpenGate(pod, this.#now()) : pod;
      isOpened ||= opened !== pod;
      this.#pods.set(name, this.#due.has(name) ? opened : withReadiness(opened, this.#now()));
    }
    return isOpened;
  }
}

function isOwn({ metadata }: Pod, set: StatefulSet): boolean {
  return metadata?.ownerReferences?.some(({ uid }) => uid === set.metadata?.uid) === true;
}

/** The claim with its requested size, granted at once. */
function provided(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { requests } = claim.spec?.resources ?? {};
  return requests ? { ...claim, status: { ...claim.status, capacity: requests } } : claim;
}

// A node's effect on a pod of a set: when its containers stop, run and are ready.

/** Gates that a pass opens. Others open their gates once the containers are ready. */
const OUR_GATES: ReadonlySet<string> = new Set([IN_PLACE_READY_CONDITION, POD_READY_CONDITION]);

/** True while the pod's node still works on it, so that it will be ready or gone. */
function isComing(pod: Pod): boolean {
  if (isTerminating(pod)) return (pod.metadata?.finalizers ?? []).length === 0;
  const isUnschedulable = !pod.spec.nodeName && conditionOf(pod, "PodScheduled")?.status === "False";
  const isReady = conditionOf(pod, "Ready")?.status === "True";
  return !isReady && !isFinished(pod) && !isUnschedulable && containerFailure(pod) === undefined;
}

function imageOf({ spec }: Pod, container: string): string | undefined {
  return spec.containers.find(({ name }) => name === container)?.image;
}

/** Containers with another image are restarted. */
function withChanged(before: Pod, after: Pod): Pod {
  const containerStatuses = after.spec.containers.map(({ name, image = "" }) => {
    const known = before.status?.containerStatuses?.find((status) => status.name === name);
    const status = known ?? { name, ready: true, image };
    return imageOf(before, name) === image ? status : stopped(status);
  });
  return { ...after, status: { ...after.status, containerStatuses } };
}

function started(pod: Pod, now: string): Pod {
  const statuses = new Map((pod.status?.containerStatuses ?? []).map((status) => [status.name, status]));
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }) => {
    const status = statuses.get(name) ?? { name };
    return status.ready === true && status.image === image ? status : running(status, image);
  });
  const others = (pod.spec.readinessGates ?? []).filter(({ conditionType }) => !OUR_GATES.has(conditionType));
  const runs: Pod = { ...pod, status: { ...pod.status, phase: "Running", containerStatuses } };
  return others.reduce(
    (open, { conditionType: type }) => setCondition(open, { type, status: "True", lastTransitionTime: now }),
    runs,
  );
}

/** A pod without container statuses stays unchanged. */
function withReadiness(pod: Pod, now: string): Pod {
  const statuses = pod.status?.containerStatuses ?? [];
  if (statuses.length === 0) return pod;
  const areReady = statuses.every(({ ready }) => ready === true);
  const areOpen = (pod.spec.readinessGates ?? []).every(
    ({ conditionType }) => conditionOf(pod, conditionType)?.status === "True",
  );
  const withContainers = setCondition(pod, condition("ContainersReady", areReady, now));
  return setCondition(withContainers, condition("Ready", areReady && areOpen, now));
}

function condition(type: string, isTrue: boolean, lastTransitionTime: string) {
  return { type, status: isTrue ? "True" : "False", lastTransitionTime };
}

// The writes of a pass over a set if everything succeeds: the real pass, on a simulated cluster.

/** The objects that a pass may look up while it runs. */
export interface SetSurroundings {
  /** claims of the set's pods; a claim that is missing here does not exist */
  readonly claims: readonly PersistentVolumeClaim[];
  readonly storageClasses?: readonly StorageClass[];
}

export interface SetPlan {
  /** every write, in order, and the events that would be recorded */
  readonly writes: readonly Request[];
  readonly outcome: SetOutcome;
}

export function planSet(seen: SetObservation, surroundings: SetSurroundings): SetPlan {
  const imagined = new Imagined(seen, surroundings);
  const steps = reconcileSet(seen);
  for (let step = steps.next(); ; step = steps.next(imagined.answer(step.value))) {
    if (step.done) return { writes: imagined.writes, outcome: step.value };
  }
}

type Named = Extract<Request, { readonly name: string }>;

class Imagined {
  readonly writes: Request[] = [];
  readonly #seen: SetObservation;
  readonly #storageClasses: readonly StorageClass[] | undefined;
  readonly #pods: Map<string, KubernetesObject>;
  readonly #claims: Map<string, KubernetesObject>;

  constructor(seen: SetObservation, { claims, storageClasses }: SetSurroundings) {
    this.#seen = seen;
    this.#storageClasses = storageClasses;
    this.#pods = new Map(seen.pods.map((pod) => [nameOf(pod), pod]));
    this.#claims = new Map(claims.map((claim) => [nameOf(claim), claim]));
  }

  answer(request: Request): Reply {
    switch (request.kind) {
      case "GetSet":
        return { kind: "ok", object: this.#seen.set };
      case "GetPod":
      case "GetClaim":
      case "GetRevision":
      case "GetStorageClass":
        return found(this.#find(request), request.name);
      default:
        this.writes.push(request);
        return this.#carryOut(request);
    }
  }

  #find({ kind, name }: Named): unknown {
    if (kind === "GetPod") return this.#pods.get(name);
    if (kind === "GetClaim") return this.#claims.get(name);
    if (kind === "GetRevision") return this.#seen.revisions.find((revision) => nameOf(revision) === name);
    // An unknown value counts as correct.
    if (this.#storageClasses === undefined) return { metadata: { name }, allowVolumeExpansion: true };
    return this.#storageClasses.find((one) => nameOf(one) === name);
  }

  #carryOut(request: Exclude<Request, { readonly kind: "GetSet" } | Named>): Reply {
    switch (request.kind) {
      case "CreateRevision":
        return this.#create(request.revision, this.#seen.revisions.map(nameOf));
      case "RenumberRevision":
        return { kind: "ok", object: { ...request.revision, revision: request.number } };
      case "AdoptRevision":
        return { kind: "ok", object: request.revision };
      case "AdoptPod":
        return { kind: "ok", object: request.pod };
      case "CreatePod":
        return this.#create(request.pod, [...this.#pods.keys()]);
      case "UpdatePod":
      case "UpdatePodStatus":
        this.#pods.set(nameOf(request.after), request.after);
        return { kind: "ok", object: request.after };
      case "CreateClaim":
        this.#claims.set(nameOf(request.claim), request.claim);
        return { kind: "ok", object: request.claim };
      case "UpdateClaim":
        this.#claims.set(nameOf(request.after), request.after);
        return { kind: "ok", object: request.after };
      default:
        return { kind: "ok" };
    }
  }

  #create(object: KubernetesObject, taken: readonly string[]): Reply {
    const name = nameOf(object);
    if (taken.includes(name)) return { kind: "failed", reason: "AlreadyExists", message: `${name} already exists` };
    return { kind: "ok", object };
  }
}

function found(object: unknown, name: string): Reply {
  return object === undefined
    ? { kind: "failed", reason: "NotFound", message: `${name} not found` }
    : { kind: "ok", object };
}

function nameOf({ metadata }: KubernetesObject): string {
  return metadata?.name ?? "";
}
