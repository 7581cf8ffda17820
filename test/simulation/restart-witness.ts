/**
 * Judges restarts of workloads by their pods and earlier restarts, and not by what passes or workloads report. It
 * checks how many run at once, how often, beside which writes, and whether anything forbade them.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  REPLACE_ANNOTATION,
  RESTARTED_AT_ANNOTATION,
  RESTARTED_FOR_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import type { Ledger, Reservation } from "../../shared/core/ledger.ts";
import type { Write } from "./api-server.ts";
import { isMissedByRestarts } from "./evictions.ts";
import { broughtBy, isRestartedInVain } from "./in-vain.ts";
import { hasLabels } from "./label-match.ts";
import { hashOfPod, isInjected } from "./objects.ts";
import { budgetOf, partitionNow, selects } from "./permission.ts";
import { isReplacing, isRestartingMissed, needsAnother, restartsAskedFor } from "./replacements.ts";
import type { Witness } from "./witness.ts";
import { keyOf, mostTakenDown, ownProblem, type WorkloadObject } from "./workload-objects.ts";
import type { Workloads } from "./workloads.ts";

export interface RestartWitnessOptions {
  readonly set: string;
  readonly workloads: Workloads;
  readonly witness: Witness;
  readonly pods: () => readonly Pod[];
  readonly violated: (what: string) => void;
}

/** A SidecarSet's spec between two writes of its users. */
interface Wish {
  readonly of: string;
  readonly text: string | undefined;
  readonly sidecarSet: SidecarSet;
}

/** The facts about one restart. */
interface Scene {
  readonly workload: WorkloadObject;
  readonly own: readonly Pod[];
  /** other workloads that are being restarted */
  readonly open: readonly WorkloadObject[];
  /** start of the pass that reserved the restart, in writes */
  readonly since: number;
}

const KINDS: ReadonlySet<string> = new Set(["deployments", "statefulsets", "daemonsets"]);

export class RestartWitness {
  readonly #options: RestartWitnessOptions;
  #wishes: readonly Wish[] = [];
  #uid = "";
  /** uids of workloads whose restart has begun and is not complete */
  readonly #open = new Set<string>();
  /** workload's uid → start of its last restart, in writes */
  readonly #began = new Map<string, number>();
  /** workload's uid → version of its last restart */
  readonly #last = new Map<string, string>();
  /** workload's uid → time of the last change of its pods or their labels, in writes */
  readonly #moved = new Map<string, number>();
  /** workload's uid → time of its last write, in writes */
  readonly #written = new Map<string, number>();
  /** time of the users' last write of the SidecarSet, in writes */
  #wishedAt = 0;
  /** pod's uid → time of its creation, in writes */
  readonly #came = new Map<string, number>();
  /** restarts after which a pod had its sidecars */
  readonly #gave = new Set<string>();
  /** "uid version" → passes that released the reservation */
  readonly #freed = new Map<string, Set<string>>();
  #ledger: Ledger | undefined;
  judged = 0;

  constructor(options: RestartWitnessOptions) {
    this.#options = options;
  }

  get set(): string {
    return this.#options.set;
  }

  /** Records a write after the other witness has seen it. */
  see(write: Write): void {
    const { resource, name, userAgent, isRemoved } = write;
    const isPass = userAgent.startsWith("pass");
    if (resource === "pods") this.#seePod(write, isPass);
    if (resource === "sidecarsets" && name === this.set && !isRemoved) this.#seeSet(write, isPass);
    if (KINDS.has(resource)) this.#seeWorkload(write, isPass);
    if (resource === "configmaps" && isPass && !isRemoved) this.#seeLedger(userAgent);
    for (const uid of this.#open) if (this.#isOver(uid)) this.#open.delete(uid);
  }

  #seeWorkload(write: Write, isPass: boolean): void {
    if (isPass) this.#judge(write);
    this.#written.set(write.object.metadata.uid ?? "", this.#options.witness.writes);
  }

  /** True if the workload's last restart was for this version. */
  wasRestartedFor(uid: string, hash: string): boolean {
    return this.#last.get(uid) === hash;
  }

  /** Returns the workloads whose restart began at that time or before, and is not complete. */
  openSince(time: number): readonly WorkloadObject[] {
    const uids = [...this.#open].filter((uid) => (this.#began.get(uid) ?? 0) <= time);
    return uids.flatMap((uid) => this.#options.workloads.find(uid) ?? []);
  }

  /**
   * Returns workloads that every spec since then would restart because pods lack sidecars. `selection`: the start of
   * the selection in the status.
   */
  owedSince(time: number, { selection }: SidecarSetStatus): readonly WorkloadObject[] {
    const { workloads, pods } = this.#options;
    const all = pods();
    const uids = new Set(all.flatMap((pod) => workloads.uidOf(pod) ?? []));
    const sinceMs = Date.parse(selection?.since ?? "");
    return [...uids]
      .filter((uid) => Math.max(this.#moved.get(uid) ?? 0, this.#written.get(uid) ?? 0, this.#wishedAt) < time)
      .flatMap((uid) => workloads.find(uid) ?? [])
      .filter((workload) => this.#wishes.every(({ sidecarSet }) => this.#isOwed(sidecarSet, workload, sinceMs)));
  }

  #isOwed(sidecarSet: SidecarSet, workload: WorkloadObject, sinceMs: number): boolean {
    const { pods, workloads } = this.#options;
    const own = workloads.podsOf(workload.metadata?.uid ?? "");
    const isBare = (pod: Pod) => isMissedByRestarts(sidecarSet, pod, sinceMs);
    const isOld = (pod: Pod) => isInjected(pod, this.set) && this.#hashOf(pod) !== hashIn(sidecarSet);
    const isVain = (pod: Pod) => isOld(pod) || isRestartedInVain(sidecarSet, pod, new Set());
    const isFree =
      sidecarSet.spec.injectionStrategy === undefined && ownProblem(workload) === undefined && isRolledOut(workload);
    const isDone = restartsIn(workload).get(this.set) === hashIn(sidecarSet);
    return isFree && !isDone && own.some(isBare) && !own.some(isOld) && !pods().some(isVain);
  }

  #isOver(uid: string): boolean {
    const workload = this.#options.workloads.find(uid);
    if (workload === undefined || this.#options.workloads.isThrough(workload)) return true;
    // An owner who writes a template without the restart's time has begun a rollout of its own.
    if (restartedAt(workload) === undefined) return true;
    // Its owner stopped the workload. Others may then restart, also after it continues.
    return ownProblem(workload) !== undefined;
  }

  #seeSet({ object }: Write, isPass: boolean): void {
    const sidecarSet = object as unknown as SidecarSet;
    const { uid = "", generation = 0, annotations } = sidecarSet.metadata ?? {};
    if (isPass) return void this.#forget(sidecarSet);
    // Nobody follows the restarts of a deleted SidecarSet of this name.
    if (uid !== this.#uid) this.#open.clear();
    this.#uid = uid;
    this.#wishedAt = this.#options.witness.writes;
    this.#wishes = [
      ...this.#wishes,
      { of: `${uid} ${generation}`, text: annotations?.[REPLACE_ANNOTATION], sidecarSet },
    ];
  }

  /** Forgets older specs after the status shows the one that passes obey. */
  #forget({ status }: SidecarSet): void {
    const text = status?.observedAnnotations?.[REPLACE_ANNOTATION];
    const at = this.#wishes.findIndex((wish) => wish.text === text);
    if (at > 0) this.#wishes = this.#wishes.slice(at);
  }

  #seePod({ object, previous, isRemoved, userAgent }: Write, isPass: boolean): void {
    const [next, before] = [object, previous].map((one) => one as unknown as Pod | undefined);
    const { witness, workloads } = this.#options;
    const uid = next && workloads.uidOf(next);
    if (uid !== undefined && (isRemoved || this.#factsOf(next) !== this.#factsOf(before)))
      this.#moved.set(uid, witness.writes);
    if (before === undefined && next) this.#seeNew(next);
    const isUpdated = isPass && before !== undefined && this.#hashOf(before) !== this.#hashOf(next);
    if (isUpdated && this.#open.size > 0)
      this.#report(userAgent, `updates ${next?.metadata?.name} while ${[...this.#open]} is being restarted`);
  }

  #seeNew(pod: Pod): void {
    this.#came.set(pod.metadata?.uid ?? "", this.#options.witness.writes);
    if (isInjected(pod, this.set)) this.#gave.add(broughtBy(pod));
  }

  #hashOf(pod: Pod | undefined): string | undefined {
    return pod && hashOfPod(pod, this.set);
  }

  /** Returns as text the facts about a pod that an earlier look may have missed. */
  #factsOf(pod: Pod | undefined): string {
    return JSON.stringify([this.#hashOf(pod), pod?.metadata?.labels, pod?.metadata?.deletionTimestamp]);
  }

  #seeLedger(pass: string): void {
    const next = this.#options.witness.ledgerOf(this.set);
    if (next === this.#ledger) return;
    this.#noteFreed(pass, next);
    this.#ledger = next;
    const workloads = next.reservations.filter(({ workload }) => workload !== undefined);
    if (workloads.length > 0 && workloads.length < next.reservations.length)
      this.#report(pass, "reserves pods beside workloads");
    if (next.uid === this.#uid) this.#judgeLookedAfter(pass, next, workloads);
  }

  #noteFreed(pass: string, next: Ledger): void {
    const kept = new Set(next.reservations.map(stateOf));
    const freed = (this.#ledger?.reservations ?? []).map(stateOf).filter((state) => !kept.has(state));
    for (const state of freed) this.#freed.set(state, (this.#freed.get(state) ?? new Set()).add(pass));
  }

  #judgeLookedAfter(pass: string, { restarted = [] }: Ledger, reserved: readonly Reservation[]): void {
    const told = new Set(restarted.map(({ uid }) => uid));
    const forgotten = [...this.#open].filter((uid) => !told.has(uid));
    if (forgotten.length > 0) this.#report(pass, `forgets that ${forgotten} is being restarted`);
    const unnamed = reserved.find((one) => !told.has(one.uid) && !this.#isGone(one));
    if (unnamed) this.#report(pass, `reserves ${unnamed.name}, and does not look after it`);
  }

  #isGone({ uid }: Reservation): boolean {
    return this.#options.workloads.find(uid) === undefined;
  }

  #judge(write: Write): void {
    const { userAgent, verb, subresource, isRemoved } = write;
    const next = write.object as unknown as WorkloadObject;
    const before = write.previous as unknown as WorkloadObject | undefined;
    if (!before || isRemoved || verb !== "patch" || subresource !== "")
      return void this.#reportOne(userAgent, next, "is more than a patch of a workload that is there");
    if (remains(before) !== remains(next))
      return void this.#reportOne(userAgent, next, "changes more than a restart does");
    const [was, is] = [restartsIn(before), restartsIn(next)];
    const changed = [...new Set([...was.keys(), ...is.keys()])].filter((key) => was.get(key) !== is.get(key));
    const isRestart = restartedAt(before) !== restartedAt(next);
    if (isRestart) this.#judgeRestart(userAgent, before, { changed, hash: is.get(this.set) ?? "" });
    else if (changed.length > 0) this.#reportOne(userAgent, next, `says ${changed} without a restart`);
    else this.#judgeFence(userAgent, before);
  }

  /** Every SidecarSet's witness sees all workloads. At least one witness must know this workload. */
  #judgeFence(pass: string, before: WorkloadObject): void {
    const { witness } = this.#options;
    const { uid = "", resourceVersion = "" } = before.metadata ?? {};
    const isOwn = witness.setNames.some((set) => witness.witnessOf(set).reservationOf(before));
    const isLate = [...(this.#freed.get(stateOf({ uid, resourceVersion })) ?? [])].some((by) => by !== pass);
    const isOnly = witness.setNames.length === 1;
    if (isOnly && !isOwn && !isLate) this.#reportOne(pass, before, `is fenced at ${resourceVersion}, and not reserved`);
  }

  #judgeRestart(
    pass: string,
    workload: WorkloadObject,
    { changed, hash }: { readonly changed: readonly string[]; readonly hash: string },
  ): void {
    const { uid = "", resourceVersion } = workload.metadata ?? {};
    const { witness, workloads } = this.#options;
    if (changed.length !== 1)
      return void this.#reportOne(pass, workload, `is restarted, and what it says of ${changed} changes`);
    if (changed[0] !== this.set) return;
    const own = witness.witnessOf(this.set);
    const reservation = own.reservationOf(workload);
    if (reservation?.workload !== workload.kind)
      return void this.#reportOne(pass, workload, `has no reservation at ${resourceVersion}`);
    this.judged++;
    const allowed = own.generationsOf(reservation);
    const wishes = this.#wishes.filter(
      ({ of, sidecarSet }) => allowed.has(of) && sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] === hash,
    );
    if (wishes.length === 0)
      this.#reportOne(pass, workload, `is restarted for ${hash}, which no generation that is still allowed has`);
    if (this.#last.get(uid) === hash) this.#reportOne(pass, workload, `is restarted twice for ${hash}`);
    const open = [...this.#open].filter((one) => one !== uid).flatMap((one) => workloads.find(one) ?? []);
    const scene = { workload, own: workloads.podsOf(uid), open, since: own.sinceOf(reservation) };
    const problems = wishes.map(({ sidecarSet }) => this.#problemOf(sidecarSet, scene));
    const [problem] = problems;
    if (problem !== undefined && problems.every((one) => one !== undefined)) this.#reportOne(pass, workload, problem);
    this.#last.set(uid, hash);
    this.#began.set(uid, witness.writes);
    this.#open.add(uid);
  }

  /** Judges by one spec. Returns a sentence if the workload may not be restarted. */
  #problemOf(sidecarSet: SidecarSet, scene: Scene): string | undefined {
    const { paused, type } = sidecarSet.spec.updateStrategy ?? {};
    const most = restartsAskedFor(sidecarSet);
    if (most === 0 || !(isReplacing(sidecarSet) || isRestartingMissed(sidecarSet)))
      return "is restarted, and nobody asked for that";
    if (paused || type === "NotUpdate") return "is restarted although the SidecarSet is paused";
    if (scene.open.length >= most)
      return `is one of ${scene.open.length + 1} that are restarted at once, ${most} allowed`;
    const own = ownProblem(scene.workload) ?? rolloutProblem(scene.workload);
    if (own !== undefined) return `is restarted, and ${own}`;
    return (
      this.#vainProblem(sidecarSet, scene) ??
      this.#podProblem(sidecarSet, scene) ??
      this.#budgetProblem(sidecarSet, scene)
    );
  }

  /** Allows for pods that came or went after the pass read them. */
  #podProblem(sidecarSet: SidecarSet, { workload, own, since, open }: Scene): string | undefined {
    const uid = workload.metadata?.uid ?? "";
    const { witness, workloads } = this.#options;
    if ((this.#moved.get(uid) ?? 0) > since) return undefined;
    const { selector = {} } = sidecarSet.spec.updateStrategy ?? {};
    const old = own.filter((pod) => this.#isOld(sidecarSet, pod, since));
    const isMeant = ({ metadata }: Pod) => hasLabels(metadata?.labels, selector);
    const isToFollow = (pod: Pod) => isMeant(pod) && (isReplacing(sidecarSet) || !needsAnother(pod, sidecarSet));
    const isMissed = own.some((pod) => this.#isMissed(sidecarSet, pod));
    if (!(isMissed || old.some((pod) => isToFollow(pod) && needsAnother(pod, sidecarSet))))
      return "is restarted, and no pod of it needs that";
    const left = old.find((pod) => !isToFollow(pod));
    if (left) return `is restarted, and ${left.metadata?.name} has to stay as it is`;
    // A partition does not hold back pods without sidecars.
    if (old.length === 0) return undefined;
    const matched = this.#matched(sidecarSet);
    const others = new Set([uid, ...open.map((one) => one.metadata?.uid)]);
    const rest = matched.filter(
      (pod) => hashOfPod(pod, this.set) !== hashIn(sidecarSet) && !others.has(workloads.uidOf(pod) ?? ""),
    ).length;
    const { came, gone, relabelled } = witness.witnessOf(this.set).changesSince(since);
    const kept = partitionNow(sidecarSet, Math.max(0, matched.length - came - relabelled));
    return rest + gone + relabelled < kept ? `leaves ${rest} old pods, the partition keeps ${kept}` : undefined;
  }

  /**
   * Returns a sentence if a restarted pod in the namespace lacked its sidecars before the pass looked, and still does.
   */
  #vainProblem(sidecarSet: SidecarSet, { workload, since }: Scene): string | undefined {
    const { namespace } = workload.metadata ?? {};
    const isSeen = ({ metadata }: Pod) =>
      metadata?.namespace === namespace && (this.#came.get(metadata?.uid ?? "") ?? 0) < since;
    const vain = this.#options.pods().find((pod) => isSeen(pod) && isRestartedInVain(sidecarSet, pod, this.#gave));
    return vain && `is restarted, and ${vain.metadata?.name} came back in vain`;
  }

  #budgetProblem(sidecarSet: SidecarSet, { workload, since, open }: Scene): string | undefined {
    const { witness, workloads } = this.#options;
    const own = witness.witnessOf(this.set);
    const { gone, relabelled } = own.changesSince(since);
    const restarted = new Set(open.map(({ metadata }) => metadata?.uid));
    const down = own.downFor(sidecarSet, since).filter((pod) => !restarted.has(workloads.uidOf(pod) ?? ""));
    if (open.length === 0 && down.length === 0) return undefined;
    const costs = [...open, workload].map((one) => mostTakenDown(one, workloads.wantedOf(one)));
    const sum = down.length + costs.reduce((total, cost) => total + cost, 0);
    const missed = this.#options.pods().filter((pod) => this.#isMissed(sidecarSet, pod)).length;
    const limit = budgetOf(sidecarSet, this.#matched(sidecarSet).length + missed + gone + relabelled);
    return sum > limit
      ? `is restarted, ${costs} pods go down with ${down.map(({ metadata }) => metadata?.name)}, ${limit} allowed`
      : undefined;
  }

  /** True for a pod created without its sidecars, if the annotation restarts workloads for that. */
  #isMissed(sidecarSet: SidecarSet, pod: Pod): boolean {
    const sinceMs = this.#options.witness.witnessOf(this.set).selectsSinceMs(sidecarSet);
    return isMissedByRestarts(sidecarSet, pod, sinceMs - 1_000);
  }

  #matched(sidecarSet: SidecarSet): readonly Pod[] {
    const { now } = this.#options.witness.namespaces;
    return this.#options.pods().filter((pod) => !pod.metadata?.deletionTimestamp && selects(sidecarSet, pod, now));
  }

  #isOld(sidecarSet: SidecarSet, pod: Pod, since: number): boolean {
    const isIn = this.#options.witness.namespaces.ever(since);
    const isThere = !pod.metadata?.deletionTimestamp && selects(sidecarSet, pod, isIn);
    return isThere && hashOfPod(pod, this.set) !== hashIn(sidecarSet);
  }

  #reportOne(pass: string, workload: WorkloadObject, what: string): void {
    this.#report(pass, `${keyOf(workload)} (${workload.metadata?.uid}) ${what}`);
  }

  #report(pass: string, what: string): void {
    this.#options.violated(`${pass}: ${this.set}: ${what}`);
  }
}

function stateOf({ uid, resourceVersion }: Pick<Reservation, "uid" | "resourceVersion">): string {
  return `${uid} ${resourceVersion}`;
}

function hashIn({ metadata }: SidecarSet): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

/**
 * Returns a sentence while the workload's rollout is not over: its controller has not seen the newest template, or pods
 * of an older template still run.
 */
function rolloutProblem({ metadata, status = {}, spec, kind }: WorkloadObject): string | undefined {
  if (Number(status["observedGeneration"] ?? 0) < (metadata?.generation ?? 0))
    return "has not been looked at since it changed";
  const isDaemon = kind === "DaemonSet";
  const updated = Number(status[isDaemon ? "updatedNumberScheduled" : "updatedReplicas"] ?? 0);
  const wanted = isDaemon ? Number(status["desiredNumberScheduled"] ?? 0) : (spec.replicas ?? 1);
  return updated < wanted ? "is being rolled out already" : undefined;
}

/** True if the workload's status also says so. */
function isRolledOut(workload: WorkloadObject): boolean {
  const { status = {}, kind } = workload;
  const isRest =
    kind === "Deployment"
      ? Number(status["replicas"] ?? 0) <= Number(status["updatedReplicas"] ?? 0)
      : kind === "DaemonSet" || status["currentRevision"] === status["updateRevision"];
  return isRest && rolloutProblem(workload) === undefined;
}

function restartedAt({ spec }: WorkloadObject): string | undefined {
  return spec.template.metadata?.annotations?.[RESTARTED_AT_ANNOTATION];
}

function restartsIn({ metadata }: WorkloadObject): ReadonlyMap<string, string> {
  const text = metadata?.annotations?.[RESTARTED_FOR_ANNOTATION] ?? "";
  return new Map(
    text
      .split(",")
      .filter(Boolean)
      .map((pair) => pair.split("=") as [string, string]),
  );
}

/** Returns as text the workload without the fields that a restart or a fence may change. */
function remains({ metadata, spec, ...rest }: WorkloadObject): string {
  const { resourceVersion: _, generation: __, annotations = {}, ...others } = metadata ?? {};
  const isOurs = new Set<string>([RESTARTED_FOR_ANNOTATION, FENCE_ANNOTATION]);
  const kept = Object.entries(annotations).filter(([key]) => !isOurs.has(key));
  const { annotations: own = {}, ...template } = spec.template.metadata ?? {};
  const others2 = Object.entries(own).filter(([key]) => key !== RESTARTED_AT_ANNOTATION);
  return JSON.stringify([rest, others, kept, { ...spec, template: [template, others2] }]);
}
