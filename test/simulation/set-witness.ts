/** Remembers one SidecarSet, its ledger, and the pods that passes took down for it. Judges the writes for it. */
import { isDeepStrictEqual } from "node:util";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import {
  EMPTY_LEDGER,
  isGenerationObservable,
  type Ledger,
  parseLedger,
  type Reservation,
} from "../../shared/core/ledger.ts";
import type { Write } from "./api-server.ts";
import { DownWitness } from "./down-witness.ts";
import { evictionProblem, isMeant } from "./evictions.ts";
import { MatchedWitness } from "./matched-witness.ts";
import type { NamespaceWitness } from "./namespace-witness.ts";
import { hashOfPod, isFinished, isInjected, isPodReady, isWorking, type SetPlan } from "./objects.ts";
import { ordinalViolation } from "./ordinals.ts";
import { OwnerWitness } from "./owner-witness.ts";
import { budgetOf, type Grant, partitionNow, permissionsOf, type Spec, selects } from "./permission.ts";
import { drainOf, hotViolation, imageViolation } from "./pod-change.ts";
import { type Changes, PodChanges } from "./pod-changes.ts";
import { isReplacing, MissingWitness, placeOf } from "./replacements.ts";
import { statusContradictions } from "./set-conditions.ts";
import { isOfFailedPass } from "./status-words.ts";
import { TENANT_NAMESPACE } from "./tenant.ts";

interface Taken {
  readonly hash: string;
  readonly limit: number;
  readonly at: number;
  /** the pod, with all labels that it has had since it was taken down */
  readonly seen: readonly Pod[];
}

export interface SetWitnessOptions {
  readonly set: SetPlan;
  /** value of the feature gate StrictMaxUnavailable */
  readonly isStrict: boolean;
  /** all existing pods */
  readonly pods: () => readonly Pod[];
  readonly namespaces: NamespaceWitness;
  readonly nowMs: () => number;
  /** number of writes so far, which is this judge's time */
  readonly clock: () => number;
  readonly report: (write: Write, why: string) => void;
}

/** A pod before and after a pass's write, and its reservation. */
export interface Patched {
  readonly previous: Pod;
  readonly next: Pod;
  readonly reservation: Reservation;
}

export class SetWitness {
  readonly #options: SetWitnessOptions;
  #uid = "";
  /** time of the last write of the SidecarSet */
  #specAt = 0;
  #specs: Spec[] = [];
  /** specs of deleted SidecarSets of the same name under which writes were still allowed */
  #former: readonly Spec[] = [];
  /** uid → a pod that was ready when a pass upgraded it, and has not worked since */
  readonly #taken = new Map<string, Taken>();
  /** uids of pods that were written to after the newest spec was stored */
  readonly #touched = new Set<string>();
  readonly #owners: OwnerWitness;
  readonly #down: DownWitness;
  readonly #missing: MissingWitness;
  readonly #selected: MatchedWitness;
  #ledger: Ledger = EMPTY_LEDGER;
  #observed = 0;
  readonly #changes: PodChanges;
  /** "uid version" → start of the pass that reserved the pod; this pass has seen everything older */
  #since: ReadonlyMap<string, number> = new Map();
  /** state of a reserved pod → the pass that reserved it */
  #by: ReadonlyMap<string, string> = new Map();
  /** "uid version" → names of the clients that released the pod's reservation */
  readonly #freed = new Map<string, Set<string>>();
  /** the pods that matched last; one write needs them several times */
  #lastMatched:
    | (Pick<Spec, "sidecarSet"> & Readonly<Record<"pods" | "matched", readonly Pod[]>> & { readonly time: number })
    | undefined;

  constructor(options: SetWitnessOptions) {
    this.#options = options;
    this.#owners = new OwnerWitness(options.set.perOwner);
    this.#missing = new MissingWitness(options.nowMs);
    this.#changes = new PodChanges(options.clock);
    this.#down = new DownWitness(options.set.name, options.clock);
    this.#selected = new MatchedWitness(options.clock);
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  reservationOf({ metadata }: Pick<Pod, "metadata">): Reservation | undefined {
    const { uid, resourceVersion } = metadata ?? {};
    return this.#ledger.reservations.find((one) => one.uid === uid && one.resourceVersion === resourceVersion);
  }

  /**
   * True for a fence on an unchanged pod without a reservation. Then another pass released an eviction that was never
   * sent, or was refused. This pass had read the ledger before that.
   */
  isLateFence({ userAgent }: Write, pod: Pod): boolean {
    const { uid = "", resourceVersion = "" } = pod.metadata ?? {};
    const freed = this.#freed.get(stateOf({ uid, resourceVersion })) ?? [];
    const isEvictable =
      !isInjected(pod, this.#options.set.name) || (this.newest !== undefined && isReplacing(this.newest));
    return isEvictable && [...freed].some((by) => by !== userAgent);
  }

  seeSpec({ object, isRemoved }: Write): void {
    const sidecarSet = object as unknown as SidecarSet;
    const { uid = "", generation = 0 } = sidecarSet.metadata ?? {};
    if (isRemoved) return;
    if (uid !== this.#uid) {
      this.#former = [...this.#former, ...this.#specs.filter((spec) => spec.generation >= this.#observed)];
      this.#specs = [];
      this.#missing.clear();
      this.#uid = uid;
      this.#observed = 0;
    }
    if (!this.#specs.some((spec) => spec.generation === generation)) this.#touched.clear();
    this.#specAt = this.#options.clock();
    const others = this.#specs.filter((spec) => spec.generation !== generation);
    this.#specs = [...others, { generation, sidecarSet, selectsSinceMs: this.#selectsSinceMs(sidecarSet) }];
    this.#countSelected();
  }

  /** Returns the SidecarSet as last written; undefined: there is none. */
  get newest(): SidecarSet | undefined {
    return this.#specs.at(-1)?.sidecarSet;
  }

  /** Returns the given pods that every pass since then has counted; none if the SidecarSet was written since. */
  selectedSince(time: number, pods: readonly Pod[]): readonly Pod[] {
    const { namespaces } = this.#options;
    if (this.#specAt > time) return [];
    return pods.filter((pod) =>
      this.#specs.every(
        ({ sidecarSet }) => !pod.metadata?.deletionTimestamp && selects(sidecarSet, pod, namespaces.ever(time)),
      ),
    );
  }

  /** True if the newest spec existed when the pass began, and the status counts by this spec. */
  isAboutNewest({ metadata, status }: SidecarSet, began: number): boolean {
    const { generation, uid } = metadata ?? {};
    return uid === this.#uid && generation === status?.observedGeneration && this.#specAt <= began;
  }

  /**
   * Returns a sentence if a pass that saw the newest spec shows an older generation, and nothing is reserved for an
   * older one. The very first status names the ledger, and shows no generation.
   */
  lateGenerationProblem(
    { metadata, status }: SidecarSet,
    before: SidecarSet | undefined,
    began: number,
  ): string | undefined {
    const newest = this.#specs.at(-1);
    const isFirst = !before?.status?.ledgerNamespace;
    const isSeen = metadata?.uid === this.#uid && this.#specAt <= began && !isFirst && !isOfFailedPass(status);
    if (!newest || !isSeen || this.#ledger.uid !== this.#uid || this.#ledger.generation !== newest.generation)
      return undefined;
    if (this.#ledger.reservations.some(({ generation }) => generation !== newest.generation)) return undefined;
    const shown = status?.observedGeneration ?? 0;
    return shown < newest.generation ? `shows generation ${shown}, and obeys ${newest.generation}` : undefined;
  }

  /** True if no pod came, went or was relabelled since, and the SidecarSet selects `count` pods. */
  hasSameSince(began: number, count: number): boolean {
    const { came, gone, relabelled } = this.#changes.since(began);
    const { newest } = this;
    return (
      came + gone + relabelled === 0 && newest !== undefined && this.#matched({ sidecarSet: newest }).length === count
    );
  }

  /** `began`: start of the pass that writes the status. */
  seeStatus(write: Write, began = 0): void {
    const next = write.object as unknown as SidecarSet;
    const before = write.previous as unknown as SidecarSet | undefined;
    const report = (why: string) => this.#options.report(write, why);
    if (write.subresource !== "status" || JSON.stringify(next.spec) !== JSON.stringify(before?.spec))
      report("changes more than the status");
    const observed = next.status?.observedGeneration ?? 0;
    if (observed < this.#observed) report(`takes observedGeneration back from ${this.#observed}`);
    if (observed > (next.metadata?.generation ?? 0)) report(`shows generation ${observed}, which there is not`);
    const subject = { uid: next.metadata?.uid ?? "", generation: observed, revision: "" };
    if (observed > this.#observed && !isGenerationObservable(this.#ledger, subject))
      report(`shows generation ${observed} while others are in the ledger`);
    this.#observed = Math.max(this.#observed, observed);
    for (const why of statusContradictions(next.status, before?.status)) report(why);
    this.#reportIf(write, this.#countProblem(next, before, began));
  }

  /** Judges counts by the newest spec. A status of an older spec has counts by that spec. */
  #countProblem({ metadata, status }: SidecarSet, before: SidecarSet | undefined, began: number): string | undefined {
    if (isOfFailedPass(status))
      return isDeepStrictEqual(countsOf(status), countsOf(before?.status))
        ? undefined
        : "is the status of a pass that saw nothing, and has other counts";
    const { generation, uid } = metadata ?? {};
    if (uid !== this.#uid || generation !== status?.observedGeneration) return undefined;
    return this.#selected.problemOf(status?.matchedPods ?? 0, began, this.#changes.since(began));
  }

  /** `began`: start of the pass that writes the ledger. */
  seeLedger(write: Write, began = 0): void {
    // A pass deletes the ledger unchanged, together with the write that releases its last reservation.
    const { object, isRemoved, previous = object } = write;
    const ledger = parseLedger(((isRemoved ? previous : object) as unknown as ConfigMap).data);
    if (!ledger) return void this.#options.report(write, "is a ledger that nobody can read");
    if (isRemoved && ledger.reservations.length > 0) this.#options.report(write, "takes reservations away");
    // Any pass may create a deleted ledger again, but may not write to pods for that.
    const isNew = write.previous === undefined;
    if (!isNew && ledger.uid === this.#ledger.uid && ledger.generation < this.#ledger.generation)
      this.#options.report(write, "takes the ledger's generation back");
    this.#noteFreed(write, ledger);
    this.#ledger = ledger;
    this.#missing.reserve(ledger.departed ?? []);
    this.#reportIf(write, this.#forgottenProblem(isRemoved));
    const since = ledger.reservations.map((one) => [stateOf(one), this.#since.get(stateOf(one)) ?? began] as const);
    this.#since = new Map(since);
    const by = ledger.reservations.map((one) => [stateOf(one), this.#by.get(stateOf(one)) ?? write.userAgent] as const);
    this.#by = new Map(by);
  }

  /** Skips ledgers that are deleted, or that belong to another SidecarSet. */
  #forgottenProblem(isRemoved: boolean): string | undefined {
    if (isRemoved || this.#ledger.uid !== this.#uid) return undefined;
    return this.#missing.forgottenProblem(this.#options.pods(), this.#ledger.departed ?? []);
  }

  #noteFreed({ userAgent }: Write, { reservations }: Ledger): void {
    const kept = new Set(reservations.map(stateOf));
    for (const state of this.#ledger.reservations.map(stateOf).filter((one) => !kept.has(one)))
      this.#freed.set(state, (this.#freed.get(state) ?? new Set()).add(userAgent));
  }

  /** Returns the first time of the present selection, because a later pass does not know of changes in between. */
  #selectsSinceMs({ metadata, spec }: SidecarSet): number {
    const facts = ({ selector, namespaceSelector }: SidecarSet["spec"]) =>
      JSON.stringify([selector, namespaceSelector]);
    const same = this.#specs.find(({ sidecarSet }) => facts(sidecarSet.spec) === facts(spec));
    const isNew = metadata?.generation === 1;
    return same?.selectsSinceMs ?? (isNew ? Date.parse(metadata?.creationTimestamp ?? "") : this.#options.nowMs());
  }

  #countSelected(): void {
    const { newest } = this;
    if (newest) this.#selected.count(this.#matched({ sidecarSet: newest }).length);
  }

  /** Records that the labels of a namespace changed. */
  seeNamespace(name: string): void {
    this.#countSelected();
    const pods = this.#options.pods().filter(({ metadata }) => metadata?.namespace === name);
    this.#changes.add("relabelled", pods.length);
  }

  /** Records every write of a pod, by any writer. */
  seePod(previous: Pod | undefined, next: Pod, isRemoved: boolean): void {
    this.#owners.count(this.#options.pods);
    const isGone = isRemoved || isLeaving(next);
    if (isGone && !isLeaving(previous)) this.#changes.add("gone");
    if (previous) this.#seeLabels(previous, next);
    else {
      this.#changes.add("came");
      this.#missing.come(next);
    }
    if (isGone || !previous || hasOtherLabels(previous, next)) this.#countSelected();
    const uid = next.metadata?.uid ?? "";
    this.#touched.add(uid);
    this.#down.see(previous, next, isRemoved);
    this.#missing.see(next, isGone);
    if (!isGone && !isUp(next, this.#options.set.name)) return;
    this.#taken.delete(uid);
    this.#owners.forget(next);
  }

  #seeLabels(previous: Pod, next: Pod): void {
    if (!hasOtherLabels(previous, next)) return;
    this.#changes.add("relabelled");
    const uid = next.metadata?.uid ?? "";
    const taken = this.#taken.get(uid);
    if (taken) this.#taken.set(uid, { ...taken, seen: [...taken.seen, next] });
    this.#owners.relabel(next);
  }

  /** A drain takes the pod down as an upgrade does. The pod keeps its release. */
  judgeDrain(write: Write, { previous, next, reservation }: Patched, release: string): void {
    const since = this.#since.get(stateOf(reservation)) ?? 0;
    const isIn = this.#options.namespaces.since(since);
    const grants = permissionsOf(this.#allowed(reservation), { hash: release, pod: previous, isIn });
    if (typeof grants === "string") return void this.#options.report(write, grants);
    if (!isPodReady(previous)) return void this.#options.report(write, "is drained, and takes no traffic");
    this.#judgeBudget(write, grants, { pod: next, hash: release }, since);
    this.#judgeOwners(write, grants, next);
  }

  /** Records that the pod was drained and not updated. If it does not work, its release is not the cause. */
  seePutBack(pod: Pod): void {
    const { name } = this.#options.set;
    const uid = pod.metadata?.uid ?? "";
    const isOld = hashOfPod(pod, name) !== this.#taken.get(uid)?.hash;
    if (isOld && drainOf(pod, name) === undefined) this.#taken.delete(uid);
  }

  judgeUpgrade(write: Write, { previous, next, reservation }: Patched): void {
    const { set, isStrict } = this.#options;
    const hash = hashOfPod(next, set.name);
    const since = this.#since.get(stateOf(reservation)) ?? 0;
    const isIn = this.#options.namespaces.since(since);
    const grants = permissionsOf(this.#allowed(reservation), { hash, pod: previous, isIn });
    if (typeof grants === "string") return void this.#options.report(write, grants);
    this.#reportIf(write, imageViolation(next, hash, set));
    const changes = this.#changes.since(since);
    this.#reportIfAll(write, grants, (grant) => this.#partitionProblem(grant, next, changes));
    if (isPodReady(previous)) {
      if (isRecordOnly(previous, next)) return;
      this.#judgeBudget(write, grants, { pod: next, hash }, since);
      this.#judgeOwners(write, grants, next);
      if (set.isOrdinal) this.#judgeOrdinals(write, grants, { previous, next, reservation });
    }
    // A pod that was already down costs nothing, even if an older release took it down.
    else if (!isStrict) {
      this.#taken.delete(next.metadata?.uid ?? "");
      this.#missing.forget(next);
    }
  }

  /** Only the pass that reserved an eviction may send it. */
  isReservedBy(pod: Pod, pass: string): boolean {
    const reservation = this.reservationOf(pod);
    return reservation !== undefined && this.#by.get(stateOf(reservation)) === pass;
  }

  /** True if another pod must replace the evicted one, which had the sidecars. */
  isAwaiting(pod: Pod): boolean {
    const isIn = ({ uid }: { readonly uid: string }) => uid === pod.metadata?.uid;
    return !isInjected(pod, this.#options.set.name) || this.#ledger.departed?.some(isIn) === true;
  }

  judgeEviction(write: Write, pod: Pod, reservation: Reservation): void {
    const since = this.#since.get(stateOf(reservation)) ?? 0;
    const specs = this.#allowed(reservation);
    const problemOf = (spec: Spec) => evictionProblemOf(spec, pod);
    const grants = specs.filter((spec) => problemOf(spec) === undefined);
    const [first] = specs;
    if (grants.length === 0) this.#options.report(write, (first && problemOf(first)) ?? "is allowed by no generation");
    const isReplacement = isInjected(pod, this.#options.set.name);
    if (!this.isAwaiting(pod)) this.#options.report(write, "is evicted, and the ledger waits for no other");
    if (grants.length === 0 || !isPodReady(pod)) return;
    if (isReplacement) return void this.#judgeReplacement(write, grants, pod, since);
    this.#down.evict(pod);
    this.#reportIfAll(write, grants, (grant) => {
      const { gone, relabelled } = this.#changes.since(since);
      const meant = this.#meant(grant);
      const limit = budgetOf(grant.sidecarSet, meant.length + gone + relabelled);
      const down = meant.filter((one) => this.#isDownFor(grant, one, since)).map(({ metadata }) => metadata?.name);
      return down.length > limit ? `is one of ${down.length} pods down at once (${down}), ${limit} allowed` : undefined;
    });
  }

  /** Replacements follow the same order and the same budget as upgrades in place. */
  #judgeReplacement(write: Write, grants: readonly Grant[], pod: Pod, since: number): void {
    const uid = pod.metadata?.uid ?? "";
    this.#missing.evict(pod);
    // The pod is missing from now on, even if something else took it down before.
    this.#taken.delete(uid);
    const { came, gone, relabelled } = this.#changes.since(since);
    this.#reportIfAll(write, grants, (grant) => {
      const hash = grant.sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
      const missing = this.#missingOf(grant);
      const matched = this.#matched(grant).filter(({ metadata }) => metadata?.uid !== pod.metadata?.uid);
      const limit = budgetOf(grant.sidecarSet, matched.length + missing.length + gone + relabelled);
      const taken = [...this.#takenOf(grant)].filter(([, one]) => this.#options.isStrict || one.hash === hash);
      const beside = this.#downBeside(grant, hash, since).map(placeOf);
      const down = [...taken.map(([uid]) => uid), ...new Set([...beside, ...missing])];
      if (down.length > limit) return `is one of ${down.length} pods down at once (${down}), ${limit} allowed`;
      const old = matched.filter((one) => hashOfPod(one, this.#options.set.name) !== hash).length;
      const kept = partitionNow(grant.sidecarSet, Math.max(0, matched.length - came - relabelled));
      return old + gone + relabelled < kept ? `leaves ${old} old pods, the partition keeps ${kept}` : undefined;
    });
  }

  #missingOf({ sidecarSet }: Grant): readonly string[] {
    const { pods, set } = this.#options;
    return this.#missing.places(pods(), set.name, sidecarSet.metadata?.annotations?.[HASH_ANNOTATION]);
  }

  /** True if the pod was evicted, was not ready before the pass looked, or is not ready again after a write. */
  #isDownFor({ sidecarSet }: Grant, pod: Pod, since: number): boolean {
    const hash = sidecarSet.metadata?.annotations?.[HASH_ANNOTATION];
    const isTaken = this.#takenOf({ sidecarSet }).get(pod.metadata?.uid ?? "")?.hash === hash;
    return isTaken || this.#down.isDown(pod, since);
  }

  #meant({ sidecarSet }: Grant): readonly Pod[] {
    return this.#options.pods().filter((pod) => isMeant(sidecarSet, pod));
  }

  #judgeOrdinals(write: Write, grants: readonly Grant[], { next, reservation }: Patched): void {
    const newest = this.#specs.at(-1);
    const isNewest = this.#ledger.uid === this.#uid && reservation.generation === newest?.generation;
    const sidecarSet = isNewest ? newest?.sidecarSet : undefined;
    const isIn = this.#options.namespaces.now;
    // A pod that refused its write is skipped, and the next ordinal follows.
    const refused = (this.#ledger.refused ?? []).map(({ uid }) => uid);
    const touched = new Set([...this.#touched, ...refused]);
    const scene = { pods: this.#options.pods(), sidecarSet, touched, isIn };
    const hash = hashOfPod(next, this.#options.set.name);
    this.#reportIfAll(write, grants, (grant) =>
      ordinalViolation(next, hash, { ...scene, taken: this.#takenOf(grant) }),
    );
  }

  judgeSlots(write: Write, { previous, next }: Patched): void {
    if (this.#options.set.isHot) this.#reportIf(write, hotViolation(previous, next, this.#options.set.name));
  }

  /** Returns the time since which the SidecarSet has its present selection. A pass may round it to the second. */
  selectsSinceMs({ metadata }: SidecarSet): number {
    const isIt = ({ sidecarSet }: Spec) =>
      sidecarSet.metadata?.uid === metadata?.uid && sidecarSet.metadata?.generation === metadata?.generation;
    return [...this.#former, ...this.#specs].find(isIt)?.selectsSinceMs ?? 0;
  }

  /** Returns the start of the reserving pass, in writes. */
  sinceOf(reservation: Reservation): number {
    return this.#since.get(stateOf(reservation)) ?? 0;
  }

  /** Returns "uid generation" of the specs under which the reserved write may arrive. */
  generationsOf(reservation: Reservation): ReadonlySet<string> {
    const of = ({ generation, sidecarSet }: Spec) => `${sidecarSet.metadata?.uid} ${generation}`;
    return new Set(this.#allowed(reservation).map(of));
  }

  changesSince(time: number): Changes {
    return this.#changes.since(time);
  }

  /** Returns the pods that a pass counts as down if it looked at that time. */
  downFor(sidecarSet: SidecarSet, time: number): readonly Pod[] {
    const hash = sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
    const taken = [...this.#takenOf({ sidecarSet })].filter(([, one]) => this.#options.isStrict || one.hash === hash);
    const uids = new Set(taken.map(([uid]) => uid));
    const beside = new Set(this.#downBeside({ sidecarSet }, hash, time));
    return this.#matched({ sidecarSet }).filter((pod) => beside.has(pod) || uids.has(pod.metadata?.uid ?? ""));
  }

  /** Returns the specs that allow the write: none older than the reservation, or than the generation in the status. */
  #allowed({ generation }: Reservation): readonly Spec[] {
    const isFormer = this.#ledger.uid !== this.#uid || generation === 0;
    const from = Math.max(isFormer ? 0 : generation, this.#observed);
    const current = this.#specs.filter((spec) => spec.generation >= from);
    return isFormer && this.#observed === 0 ? [...this.#former, ...current] : current;
  }

  #judgeBudget(
    write: Write,
    grants: readonly Grant[],
    { pod: next, hash }: { readonly pod: Pod; readonly hash: string },
    since: number,
  ): void {
    const { gone, relabelled } = this.#changes.since(since);
    const mostOf = (grant: Grant) => this.#matched(grant).length + this.#missingOf(grant).length + gone + relabelled;
    const limits = grants.map((grant) => budgetOf(grant.sidecarSet, mostOf(grant)));
    const limit = Math.max(...limits);
    this.#taken.set(next.metadata?.uid ?? "", { hash, limit, seen: [next], at: this.#options.clock() });
    this.#reportIfAll(write, grants, (grant) => {
      const taken = [...this.#takenOf(grant).values()].filter((one) => this.#options.isStrict || one.hash === hash);
      const most = Math.max(limit, ...taken.map((one) => one.limit));
      const beside = new Set([...this.#downBeside(grant, hash, since).map(placeOf), ...this.#missingOf(grant)]);
      const others = beside.size + this.#down.countEvicted(() => this.#meant(grant));
      const down = taken.length + others;
      return down > most ? `is one of ${down} pods taken down at once, ${most} allowed` : undefined;
    });
  }

  /** Returns pods that were down before the pass looked, for any reason. Pods that never worked may be ignored. */
  #downBeside(grant: Grant, hash: string, since: number): readonly Pod[] {
    const { isStrict, set } = this.#options;
    if (set.isAmongTenants) return [];
    const isDown = (pod: Pod) => (isStrict ? this.#down.isDown(pod, since) : this.#down.isDownWith(pod, hash, since));
    return this.#matched(grant).filter((pod) => !this.#taken.has(pod.metadata?.uid ?? "") && isDown(pod));
  }

  #judgeOwners(write: Write, grants: readonly Grant[], next: Pod): void {
    this.#owners.take(next);
    this.#reportIfAll(write, grants, ({ sidecarSet }) =>
      this.#owners.problemOf(next, (pod) => selects(sidecarSet, pod, this.#options.namespaces.now)),
    );
  }

  /**
   * Returns the pods that passes took down and that a pass under this spec counts. As in OpenKruise, maxUnavailable
   * covers the pods that the SidecarSet selects. A user who relabels a down pod, or narrows the selector, excludes it.
   * An excluded pod may be selected again while it is down. A pass that looked before did not count it. The same
   * applies if a tenant forges the records of its own pod.
   */
  #takenOf({ sidecarSet }: Grant): ReadonlyMap<string, Taken> {
    const { namespaces, pods, set } = this.#options;
    const isForged = (uid: string, { seen, hash }: Taken) => {
      if (seen[0]?.metadata?.namespace !== TENANT_NAMESPACE) return false;
      const now = pods().find(({ metadata }) => metadata?.uid === uid);
      return now !== undefined && hashOfPod(now, set.name) !== hash;
    };
    const isCounted = (uid: string, taken: Taken) =>
      taken.seen.every((pod) => selects(sidecarSet, pod, namespaces.ever(taken.at))) && !isForged(uid, taken);
    return new Map([...this.#taken].filter(([uid, taken]) => isCounted(uid, taken)));
  }

  /** Returns the pods that a pass sees now. */
  #matched({ sidecarSet }: Grant): readonly Pod[] {
    const { namespaces, clock } = this.#options;
    const [pods, time] = [this.#options.pods(), clock()];
    const last = this.#lastMatched;
    if (last?.pods === pods && last.time === time && last.sidecarSet === sidecarSet) return last.matched;
    const matched = pods.filter((pod) => !pod.metadata?.deletionTimestamp && selects(sidecarSet, pod, namespaces.now));
    this.#lastMatched = { pods, time, sidecarSet, matched };
    return matched;
  }

  #partitionProblem(grant: Grant, next: Pod, { came, gone, relabelled }: Changes): string | undefined {
    const { name } = this.#options.set;
    const hash = hashOfPod(next, name);
    const matched = this.#matched(grant);
    const uid = next.metadata?.uid;
    // During the write the store still has the earlier pod.
    const old = matched.filter((pod) => pod.metadata?.uid !== uid && hashOfPod(pod, name) !== hash).length;
    // Pods that came after the pass looked increase a percentage.
    const kept = partitionNow(grant.sidecarSet, Math.max(0, matched.length - came - relabelled));
    const left = old + gone + relabelled;
    return left < kept ? `leaves ${old} old pods, the partition keeps ${kept}` : undefined;
  }

  /** Reports a write only if every spec that allows it has a problem with it. */
  #reportIfAll(write: Write, grants: readonly Grant[], problemOf: (grant: Grant) => string | undefined): void {
    const problems = grants.map(problemOf);
    if (problems.every((problem) => problem !== undefined)) this.#reportIf(write, problems[0]);
  }

  #reportIf(write: Write, why: string | undefined): void {
    if (why) this.#options.report(write, why);
  }
}

function stateOf({ uid, resourceVersion }: Pick<Reservation, "uid" | "resourceVersion">): string {
  return `${uid} ${resourceVersion}`;
}

/** True if the pod is being deleted or has finished: no SidecarSet counts it. */
function isLeaving(pod: Pod | undefined): boolean {
  return pod !== undefined && (Boolean(pod.metadata?.deletionTimestamp) || isFinished(pod));
}

/** True if the pod works, and the SidecarSet does not drain it. */
function isUp(pod: Pod, set: string): boolean {
  return isWorking(pod) && drainOf(pod, set) === undefined;
}

function hasOtherLabels(previous: Pod, next: Pod): boolean {
  const others = ({ metadata }: Pod) => JSON.stringify({ ...metadata?.labels, [TRAFFIC_LABEL]: undefined });
  return others(previous) !== others(next);
}

function evictionProblemOf(spec: Spec, pod: Pod): string | undefined {
  const has = isInjected(pod, spec.sidecarSet.metadata?.name ?? "");
  return evictionProblem(spec.sidecarSet, pod) ?? (has ? undefined : ageProblem(spec, pod));
}

/** Returns a sentence if the pod is older than the selection. Nobody wanted such a pod to have sidecars. */
function ageProblem({ selectsSinceMs }: Spec, { metadata }: Pod): string | undefined {
  const createdMs = Date.parse(metadata?.creationTimestamp ?? "");
  return createdMs + 1_000 <= selectsSinceMs ? "is evicted, and was there before it was selected" : undefined;
}

function countsOf({ matchedPods = 0, updatedPods = 0, readyPods = 0 }: SidecarSet["status"] = {}) {
  return { matchedPods, updatedPods, readyPods };
}

/** True if a pass only repairs records that a tenant forged. Such a repair restarts nothing. */
function isRecordOnly(previous: Pod, next: Pod): boolean {
  return previous.metadata?.namespace === TENANT_NAMESPACE && isDeepStrictEqual(previous.spec, next.spec);
}
