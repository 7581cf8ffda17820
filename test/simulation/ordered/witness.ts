/** Judges every write of a pass when it arrives: order, budget, reservations, claims, and the observed generation. */
import type { ConfigMap, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import {
  EMPTY_LEDGER,
  isGenerationObservable,
  type Ledger,
  parseLedger,
  type Reservation,
} from "../../../shared/core/ledger.ts";
import type { Write } from "../api-server.ts";
import { creationProblems, type Sight, staleness } from "./creation.ts";
import {
  budgetOf,
  conditionIn,
  desiredOrdinals,
  imageIn,
  isOrdered,
  isServing,
  ordinalOf,
  startOf,
} from "./objects.ts";

export interface WitnessOptions {
  readonly pods: () => readonly Pod[];
  readonly claims: () => readonly PersistentVolumeClaim[];
  readonly nowMs: () => number;
  readonly report: (what: string) => void;
}

/** A serving pod that a pass removed, until its ordinal serves again. */
interface Taken {
  readonly generation: number;
  readonly limit: number;
}

export class SetWitness {
  readonly #options: WitnessOptions;
  readonly #specs = new Map<number, StatefulSetSpec>();
  readonly #sights = new Map<string, Sight>();
  readonly #taken = new Map<number, Taken>();
  #generation = 0;
  #observed = 0;
  ledger: Ledger = EMPTY_LEDGER;
  writes = 0;
  created = 0;
  taken = 0;
  fences = 0;

  constructor(options: WitnessOptions) {
    this.#options = options;
  }

  /** Records objects that a pass has read. */
  given(pass: string, sight: Partial<Sight>): void {
    this.#sights.set(pass, { pods: [], ...this.#sights.get(pass), ...sight });
  }

  /** Records a call that a pass is about to send. */
  sending(pass: string, call: string, name: string): void {
    const sight = this.#sights.get(pass) ?? { pods: [] };
    const old = call === "CREATE pods" ? staleness(sight, this.#options.nowMs()) : undefined;
    if (old) this.#options.report(`${pass}: ${call} ${name} ${old}`);
    const isTwice = sight.pods.some(({ metadata }) => metadata?.name === name && metadata.deletionTimestamp);
    if (call === "DELETE pods" && isTwice) this.#options.report(`${pass}: ${call} ${name} is on its way out already`);
  }

  see(write: Write): void {
    const isPass = write.userAgent.startsWith("pass-");
    if (isPass && write.resource !== "leases" && write.resource !== "events") this.writes++;
    if (write.resource === "statefulsets") this.#seeSet(write);
    else if (write.resource === "configmaps") this.#seeLedger(write);
    else if (write.resource === "persistentvolumeclaims") this.#seeClaim(write, isPass);
    else if (write.resource === "pods") this.#seePod(write, isPass);
  }

  #seeSet(write: Write): void {
    const { spec, metadata, status } = write.object as unknown as StatefulSet;
    this.#generation = metadata?.generation ?? 0;
    this.#specs.set(this.#generation, spec);
    const observed = status?.observedGeneration ?? 0;
    if (observed < this.#observed) this.#report(write, "takes observedGeneration back");
    const subject = { uid: metadata?.uid ?? "", generation: observed, revision: "" };
    if (observed > this.#observed && !isGenerationObservable(this.ledger, subject))
      this.#report(write, `shows generation ${observed} while others are in the ledger`);
    this.#observed = observed;
    const range = new Set(desiredOrdinals(spec));
    for (const ordinal of this.#taken.keys()) if (!range.has(ordinal)) this.#taken.delete(ordinal);
  }

  #seeLedger(write: Write): void {
    const ledger = parseLedger((write.object as unknown as ConfigMap).data);
    if (!ledger) {
      this.#report(write, "is a ledger that nobody can read");
      return;
    }
    if (ledger.generation < this.ledger.generation) this.#report(write, "takes the ledger's generation back");
    this.ledger = ledger;
  }

  #seeClaim(write: Write, isPass: boolean): void {
    if (!isPass) {
      if (write.isRemoved && !this.#mayGo(write)) this.#report(write, "is of a pod that was to stay, or to leave it");
      return;
    }
    if (write.isRemoved || write.object.metadata.deletionTimestamp) this.#report(write, "deletes a claim");
    const gainsPod = podOwners(write.object) > podOwners(write.previous);
    if (!gainsPod) return;
    const reservation = this.#reservationOf(`claim:${write.previous?.metadata.uid}`, write);
    if (!reservation) return;
    const specs = this.#specsFrom(reservation.generation);
    if (specs.every((spec) => desiredOrdinals(spec).includes(ordinalOf(write.object))))
      this.#report(write, "gives the claim of a pod that stays to the pod");
  }

  /** True if a spec demanded fewer pods, and the deletion of claims with removed pods. */
  #mayGo({ object }: Write): boolean {
    return this.#specsFrom(0).some(
      (spec) =>
        spec.persistentVolumeClaimRetentionPolicy?.whenScaled === "Delete" &&
        !desiredOrdinals(spec).includes(ordinalOf(object)),
    );
  }

  #seePod(write: Write, isPass: boolean): void {
    const next = write.object as unknown as Pod;
    const previous = write.previous as unknown as Pod | undefined;
    if (isPass) this.#judge(write, previous, next);
    if (!write.isRemoved && isServing(next)) this.#taken.delete(ordinalOf(next));
  }

  #judge(write: Write, previous: Pod | undefined, next: Pod): void {
    if (!previous) {
      this.#judgeCreate(write, next);
      return;
    }
    const isGoing = Boolean(previous.metadata?.deletionTimestamp);
    const isDeleted = !isGoing && (write.isRemoved || Boolean(next.metadata?.deletionTimestamp));
    const isChanged = imageIn(next) !== imageIn(previous) || revisionIn(next) !== revisionIn(previous);
    const isDown = isServing(previous) && !isServing(next);
    if (isDown && !isDeleted && !isChanged && this.#isNewest(previous)) this.#report(write, "updates it once more");
    if (isDeleted || isChanged || isDown) this.#judgeTaking(write, previous, isDeleted);
    else if (write.object.metadata.annotations?.["sidecarset.kruise.io/fence"]) this.fences++;
  }

  /** True if the pod is newest under every spec that the pass may have used. */
  #isNewest(pod: Pod): boolean {
    const specs = this.#specsFrom(this.#observed);
    return specs.every(({ template }) => template?.spec?.containers[0]?.image === imageIn(pod));
  }

  /** One ordinal never has two pods. An ordered set creates a pod only if the pass saw all lower pods serve. */
  #judgeCreate(write: Write, next: Pod): void {
    this.created++;
    const ordinal = ordinalOf(next);
    const same = this.#options
      .pods()
      .filter((pod) => ordinalOf(pod) === ordinal && pod.metadata?.uid !== next.metadata?.uid);
    if (same.length > 0) this.#report(write, `is the second pod of ordinal ${ordinal}`);
    const sight = this.#sights.get(write.userAgent) ?? { pods: [] };
    for (const problem of creationProblems(ordinal, sight, this.#options.nowMs())) this.#report(write, problem);
    if (sight.set && isOrdered(sight.set)) this.#judgeLower(write, sight.set, ordinal);
  }

  #judgeLower(write: Write, { metadata, spec }: StatefulSet, ordinal: number): void {
    for (const lower of desiredOrdinals(spec).filter((one) => one < ordinal)) {
      const taken = this.#taken.get(lower);
      if (taken && taken.generation === (metadata?.generation ?? 0) && this.#generation === taken.generation)
        this.#report(write, `comes while a pass has taken ordinal ${lower} away`);
    }
  }

  #judgeTaking(write: Write, previous: Pod, isDeleted: boolean): void {
    const { uid = "", deletionTimestamp } = previous.metadata ?? {};
    const reservation = this.#reservationOf(uid, write);
    if (!reservation) return;
    if (deletionTimestamp) this.#report(write, "takes away what is on its way out");
    this.taken++;
    const ordinal = ordinalOf(previous);
    const specs = this.#specsFrom(reservation.generation);
    const leaving = specs.filter((spec) => !desiredOrdinals(spec).includes(ordinal));
    if (leaving.length > 0) {
      // If some specs still want the pod, the write may be a reserved update.
      if (leaving.length === specs.length) this.#judgeScaleDown(write, leaving, ordinal);
      return;
    }
    if (isDeleted) this.#judgeClaims(write, previous);
    // A pod counts as down until it has been ready for long enough.
    if (isServing(previous) && specs.every((spec) => this.#isAvailable(spec, previous)))
      this.#judgeUpdate(write, specs, previous);
  }

  /** Returns the specs from that generation on. A pass may write to a kept claim under any newer spec. */
  #specsFrom(generation: number): readonly StatefulSetSpec[] {
    return [...this.#specs].filter(([one]) => one >= generation).map(([, spec]) => spec);
  }

  #isAvailable({ updateStrategy }: StatefulSetSpec, pod: Pod): boolean {
    const since = Date.parse(conditionIn(pod, "Ready")?.lastTransitionTime ?? "");
    const seconds = updateStrategy?.rollingUpdate?.minReadySeconds ?? 0;
    return seconds === 0 || this.#options.nowMs() - since >= 1000 * (seconds + 1);
  }

  #judgeUpdate(write: Write, specs: readonly StatefulSetSpec[], previous: Pod): void {
    const ordinal = ordinalOf(previous);
    const isSpecified = previous.metadata?.labels?.["apps.kruise.io/specified-delete"] !== undefined;
    const permits = (spec: StatefulSetSpec) => {
      const { paused, partition = 0 } = spec.updateStrategy?.rollingUpdate ?? {};
      return !paused && (isSpecified || ordinal - startOf(spec) >= partition);
    };
    if (!specs.some(permits)) this.#report(write, "is an update that is paused, or that the partition forbids");
    this.#taken.set(ordinal, { generation: this.#generation, limit: Math.max(...specs.map(budgetOf)) });
    const limit = Math.max(...[...this.#taken.values()].map((one) => one.limit));
    if (this.#taken.size > limit)
      this.#report(write, `is one of ${this.#taken.size} pods taken away at once, ${limit} allowed`);
  }

  /** An ordered set removes pods from the highest ordinal down, one after the other. */
  #judgeScaleDown(write: Write, specs: readonly StatefulSetSpec[], ordinal: number): void {
    const isKept = (spec: StatefulSetSpec) => {
      const range = desiredOrdinals(spec);
      const above = this.#options.pods().filter((pod) => ordinalOf(pod) > ordinal && !range.includes(ordinalOf(pod)));
      return spec.podManagementPolicy === "Parallel" || above.length === 0;
    };
    if (!specs.some(isKept)) this.#report(write, "goes before one of a higher ordinal");
  }

  /** Judges the removal of a pod whose claim would be lost with it. */
  #judgeClaims(write: Write, { metadata }: Pod): void {
    const lost = this.#options
      .claims()
      .filter((claim) => claim.metadata?.ownerReferences?.some(({ uid }) => uid === metadata?.uid));
    if (lost.length > 0) this.#report(write, `loses the claim ${lost[0]?.metadata?.name}`);
  }

  /**
   * Returns the reservation for exactly the written state, unless the status has already called its generation
   * finished.
   */
  #reservationOf(uid: string, write: Write): Reservation | undefined {
    const version = write.previous?.metadata.resourceVersion;
    const reservation = this.ledger.reservations.find((one) => one.uid === uid && one.resourceVersion === version);
    if (!reservation) this.#report(write, `has no reservation at ${version}`);
    else if (reservation.generation < this.#observed)
      this.#report(write, `is of generation ${reservation.generation}, ${this.#observed} was said to be observed`);
    return reservation;
  }

  #report({ userAgent, verb, resource, subresource, name }: Write, why: string): void {
    this.#options.report(`${userAgent}: ${verb} ${resource}${subresource ? `/${subresource}` : ""} ${name} ${why}`);
  }
}

function revisionIn({ metadata }: Pod): string {
  return metadata?.labels?.["controller-revision-hash"] ?? "";
}

function podOwners(object: Write["previous"]): number {
  return (object?.metadata.ownerReferences ?? []).filter(({ kind }) => kind === "Pod").length;
}
