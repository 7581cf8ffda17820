/** Remembers one SidecarSet, its ledger and the pods that were taken down for it, and judges what is written for it. */
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import {
  EMPTY_LEDGER,
  isGenerationObservable,
  type Ledger,
  parseLedger,
  type Reservation,
} from "../../shared/core/upgrade/ledger.ts";
import type { Write } from "./api-server.ts";
import { hashOfPod, isPodReady, isWorking, type SetPlan } from "./objects.ts";
import { ordinalViolation } from "./ordinals.ts";
import { OwnerWitness } from "./owner-witness.ts";
import { budgetOf, type Grant, partitionNow, permissionsOf, type Spec, selects } from "./permission.ts";
import { hotViolation, imageViolation } from "./pod-change.ts";

interface Taken {
  readonly hash: string;
  readonly limit: number;
  /** the pod with all labels that it has had since */
  readonly seen: readonly Pod[];
}

export interface SetWitnessOptions {
  readonly set: SetPlan;
  /** gate StrictMaxUnavailable */
  readonly isStrict: boolean;
  /** all pods there are */
  readonly pods: () => readonly Pod[];
  readonly report: (write: Write, why: string) => void;
}

/** A pod before and after a pass's write, and what reserved it. */
export interface Patched {
  readonly previous: Pod;
  readonly next: Pod;
  readonly reservation: Reservation;
}

export class SetWitness {
  readonly #options: SetWitnessOptions;
  #uid = "";
  #specs: Spec[] = [];
  /** of SidecarSets that had the name before, as far as a write under them was still allowed when they went */
  #former: readonly Spec[] = [];
  /** uid → pods that were ready when a pass upgraded them, and have not worked since */
  readonly #taken = new Map<string, Taken>();
  /** uids of pods that were written to since there is the newest spec */
  readonly #touched = new Set<string>();
  readonly #owners: OwnerWitness;
  #ledger: Ledger = EMPTY_LEDGER;
  #observed = 0;
  #mostPods = 0;
  /** since a pass started for the first time: what a share of the pods may have been reckoned with */
  #fewestPods = Number.POSITIVE_INFINITY;
  /** pods that went: what is left for the partition when they are counted too */
  #gone = 0;
  /** pods with other labels than before: they may be counted or not */
  #relabelled = 0;

  constructor(options: SetWitnessOptions) {
    this.#options = options;
    this.#owners = new OwnerWitness(options.set.perOwner);
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  reservationOf({ metadata }: Pod): Reservation | undefined {
    const { uid, resourceVersion } = metadata ?? {};
    return this.#ledger.reservations.find((one) => one.uid === uid && one.resourceVersion === resourceVersion);
  }

  seeSpec({ object, isRemoved }: Write): void {
    const sidecarSet = object as unknown as SidecarSet;
    const { uid = "", generation = 0 } = sidecarSet.metadata ?? {};
    if (isRemoved) return;
    if (uid !== this.#uid) {
      this.#former = [...this.#former, ...this.#specs.filter((spec) => spec.generation >= this.#observed)];
      this.#specs = [];
      this.#uid = uid;
      this.#observed = 0;
    }
    if (!this.#specs.some((spec) => spec.generation === generation)) this.#touched.clear();
    this.#specs = [...this.#specs.filter((spec) => spec.generation !== generation), { generation, sidecarSet }];
  }

  seeStatus(write: Write): void {
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
  }

  seeLedger(write: Write): void {
    const { object, isRemoved } = write;
    const ledger = isRemoved ? EMPTY_LEDGER : parseLedger((object as unknown as ConfigMap).data);
    if (!ledger) return void this.#options.report(write, "is a ledger that nobody can read");
    if (isRemoved && this.#ledger.reservations.length > 0) this.#options.report(write, "takes reservations away");
    if (ledger.uid === this.#ledger.uid && ledger.generation < this.#ledger.generation)
      this.#options.report(write, "takes the ledger's generation back");
    this.#ledger = ledger;
  }

  /** Whoever wrote it. */
  seePod(previous: Pod | undefined, next: Pod, isRemoved: boolean): void {
    this.#mostPods = Math.max(this.#mostPods, this.#options.pods().length);
    this.#owners.count(this.#options.pods());
    const isGone = isRemoved || Boolean(next.metadata?.deletionTimestamp);
    if (isGone && !previous?.metadata?.deletionTimestamp) this.#gone++;
    if (previous) this.#seeLabels(previous, next);
    const uid = next.metadata?.uid ?? "";
    this.#touched.add(uid);
    if (!isGone && !isWorking(next)) return;
    this.#taken.delete(uid);
    this.#owners.forget(next);
  }

  #seeLabels({ metadata }: Pod, next: Pod): void {
    if (JSON.stringify(metadata?.labels) === JSON.stringify(next.metadata?.labels)) return;
    this.#relabelled++;
    const uid = next.metadata?.uid ?? "";
    const taken = this.#taken.get(uid);
    if (taken) this.#taken.set(uid, { ...taken, seen: [...taken.seen, next] });
    this.#owners.relabel(next);
  }

  countFewest(isPass: boolean): void {
    if (isPass || Number.isFinite(this.#fewestPods))
      this.#fewestPods = Math.min(this.#fewestPods, this.#options.pods().length);
  }

  judgeUpgrade(write: Write, { previous, next, reservation }: Patched): void {
    const { set, isStrict } = this.#options;
    const hash = hashOfPod(next, set.name);
    const grants = permissionsOf(this.#allowed(reservation), { hash, pod: previous });
    if (typeof grants === "string") return void this.#options.report(write, grants);
    this.#reportIf(write, imageViolation(next, hash, set));
    this.#judgePartition(write, grants, next);
    if (isPodReady(previous)) {
      this.#judgeBudget(write, grants, next);
      this.#judgeOwners(write, grants, next);
      if (set.isOrdinal) this.#judgeOrdinals(write, grants, { previous, next, reservation });
    }
    // One that was down costs nothing, also when it was taken down for a release that is over.
    else if (!isStrict) this.#taken.delete(next.metadata?.uid ?? "");
  }

  #judgeOrdinals(write: Write, grants: readonly Grant[], { next, reservation }: Patched): void {
    const newest = this.#specs.at(-1);
    const isNewest = this.#ledger.uid === this.#uid && reservation.generation === newest?.generation;
    const sidecarSet = isNewest ? newest?.sidecarSet : undefined;
    const scene = { pods: this.#options.pods(), sidecarSet, touched: this.#touched };
    const hash = hashOfPod(next, this.#options.set.name);
    this.#reportIfAll(write, grants, (grant) =>
      ordinalViolation(next, hash, { ...scene, taken: this.#takenOf(grant) }),
    );
  }

  judgeSlots(write: Write, { previous, next }: Patched): void {
    if (this.#options.set.isHot) this.#reportIf(write, hotViolation(previous, next, this.#options.set.name));
  }

  /** Under which specs a write may land: none older than the reservation, nor than what the status has shown. */
  #allowed({ generation }: Reservation): readonly Spec[] {
    const isFormer = this.#ledger.uid !== this.#uid || generation === 0;
    const from = Math.max(isFormer ? 0 : generation, this.#observed);
    const current = this.#specs.filter((spec) => spec.generation >= from);
    return isFormer && this.#observed === 0 ? [...this.#former, ...current] : current;
  }

  #judgeBudget(write: Write, grants: readonly Grant[], next: Pod): void {
    const hash = hashOfPod(next, this.#options.set.name);
    const limit = Math.max(...grants.map(({ sidecarSet }) => budgetOf(sidecarSet, this.#mostPods)));
    this.#taken.set(next.metadata?.uid ?? "", { hash, limit, seen: [next] });
    this.#reportIfAll(write, grants, (grant) => {
      const taken = [...this.#takenOf(grant).values()].filter((one) => this.#options.isStrict || one.hash === hash);
      const most = Math.max(...taken.map((one) => one.limit));
      return taken.length > most ? `is one of ${taken.length} pods taken down at once, ${most} allowed` : undefined;
    });
  }

  #judgeOwners(write: Write, grants: readonly Grant[], next: Pod): void {
    this.#owners.take(next);
    this.#reportIfAll(write, grants, ({ sidecarSet }) =>
      this.#owners.problemOf(next, (pod) => selects(sidecarSet, pod)),
    );
  }

  /**
   * Of those that were taken down, what a pass under this spec counts. maxUnavailable is, as in OpenKruise, about the pods
   * that the SidecarSet selects: who gives one that is down other labels, or narrows the selector, says that it is none of
   * them. One that was let go may come back while it is down, and a pass that had looked before did not count it.
   */
  #takenOf({ sidecarSet }: Grant): ReadonlyMap<string, Taken> {
    return new Map([...this.#taken].filter(([, { seen }]) => seen.every((pod) => selects(sidecarSet, pod))));
  }

  #judgePartition(write: Write, grants: readonly Grant[], next: Pod): void {
    this.#reportIfAll(write, grants, (grant) => this.#partitionProblem(grant, next));
  }

  #partitionProblem({ sidecarSet }: Grant, next: Pod): string | undefined {
    const { name } = this.#options.set;
    const hash = hashOfPod(next, name);
    const matched = this.#options.pods().filter((pod) => !pod.metadata?.deletionTimestamp && selects(sidecarSet, pod));
    const uid = next.metadata?.uid;
    // The store still has the pod as it was, when this is asked within the write.
    const old = matched.filter((pod) => pod.metadata?.uid !== uid && hashOfPod(pod, name) !== hash).length;
    // Pods that came since the reservation raise what a share comes to.
    const total = Math.max(0, Math.min(matched.length, this.#fewestPods) - this.#relabelled);
    const kept = partitionNow(sidecarSet, total);
    const left = old + this.#gone + this.#relabelled;
    return left < kept ? `leaves ${old} old pods, the partition keeps ${kept}` : undefined;
  }

  /** What is right under one of the specs that allow the write is right. */
  #reportIfAll(write: Write, grants: readonly Grant[], problemOf: (grant: Grant) => string | undefined): void {
    const problems = grants.map(problemOf);
    if (problems.every((problem) => problem !== undefined)) this.#reportIf(write, problems[0]);
  }

  #reportIf(write: Write, why: string | undefined): void {
    if (why) this.#options.report(write, why);
  }
}
