/** Sees every write as it arrives, and reports the promise that it breaks. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { PassMemory } from "../../shared/controller/pass.ts";
import { type Ledger, ledgerName } from "../../shared/core/ledger.ts";
import type { Write } from "./api-server.ts";
import { EventWitness } from "./event-witness.ts";
import { LeaseWitness } from "./lease-witness.ts";
import { NamespaceWitness } from "./namespace-witness.ts";
import type { SetPlan } from "./objects.ts";
import { type Change, changeOf, conditionChange } from "./pod-change.ts";
import { RevisionWitness } from "./revision-witness.ts";
import { type Patched, SetWitness } from "./set-witness.ts";
import { wordProblems } from "./status-words.ts";
import { sidecarSetNow } from "./work-of.ts";

const TOLD: ReadonlySet<string> = new Set(["leases", "events"]);

export interface WitnessOptions {
  readonly sets: readonly SetPlan[];
  /** value of the feature gate StrictMaxUnavailable */
  readonly isStrict: boolean;
  /** all existing pods */
  readonly pods: () => readonly Pod[];
  readonly nowMs: () => number;
  /** most milliseconds by which lists may be older than their pass */
  readonly lagMs: number;
  /** true if a write to a pod, or an eviction, was refused so far */
  readonly wasRefused: () => boolean;
  readonly report: (violation: string) => void;
}

export class Witness {
  readonly #options: WitnessOptions;
  readonly #sets: ReadonlyMap<string, SetWitness>;
  readonly #ledgers: ReadonlyMap<string, SetWitness>;
  readonly namespaces: NamespaceWitness;
  readonly #lease: LeaseWitness;
  readonly #events = new EventWitness();
  readonly #revisions = new RevisionWitness();
  /** uid → time of the pod's last write */
  readonly #podsWritten = new Map<string, number>();
  /** passes without obstacles that need the Lease */
  readonly #unhindered = new Set<string>();
  /** times with the number of writes until then, for lists that lag */
  readonly #writtenBy: { readonly atMs: number; readonly writes: number }[] = [];
  /** memory → start of a process' reads, which its next pass may continue */
  readonly #reading = new WeakMap<PassMemory, number>();
  /** pass → time when it began */
  readonly #began = new Map<string, number>();
  /** number of passes' writes to pods that were judged */
  upgrades = 0;
  fences = 0;
  flips = 0;
  evictions = 0;
  /** number of all writes */
  writes = 0;
  /**
   * number of passes' writes, without Leases and Events: every pass records Events about pods that cannot be upgraded
   */
  passWrites = 0;

  constructor(options: WitnessOptions) {
    const { sets, isStrict, pods, nowMs } = options;
    const clock = () => this.writes;
    this.#options = options;
    this.#lease = new LeaseWitness(options.nowMs);
    const namespaces = new NamespaceWitness(clock);
    this.namespaces = namespaces;
    const report = (write: Write, why: string) => this.#report(write, why);
    this.#sets = new Map(
      sets.map((set) => [set.name, new SetWitness({ set, isStrict, pods, report, namespaces, clock, nowMs })]),
    );
    this.#ledgers = new Map([...this.#sets].map(([name, set]) => [ledgerName(name), set]));
  }

  ledgerOf(set: string): Ledger {
    return this.#setOf(set).ledger;
  }

  get setNames(): readonly string[] {
    return [...this.#sets.keys()];
  }

  witnessOf(set: string): SetWitness {
    return this.#setOf(set);
  }

  /** Returns the start of a pass, in writes. The pass has seen everything older. */
  beganOf(pass: string): number {
    return this.#began.get(pass) ?? 0;
  }

  /**
   * Records the start of a pass, which has seen everything older when it writes. A pass may continue lists that the
   * process' earlier pass began. These show the earlier state.
   */
  passStarts(name: string, isUnhindered: boolean, memory: PassMemory): void {
    if (isUnhindered) this.#unhindered.add(name);
    const { nowMs, lagMs } = this.#options;
    const lagged = this.#writtenBy.findLast(({ atMs }) => atMs < nowMs() - lagMs)?.writes ?? 0;
    const now = lagMs === 0 ? this.writes : lagged;
    const began = memory.readings.size > 0 ? (this.#reading.get(memory) ?? now) : now;
    this.#reading.set(memory, began);
    this.#began.set(name, began);
  }

  see(write: Write): void {
    this.writes++;
    if (this.#options.lagMs > 0) this.#writtenBy.push({ atMs: this.#options.nowMs(), writes: this.writes });
    const isPass = write.userAgent.startsWith("pass");
    if (isPass && !TOLD.has(write.resource)) this.passWrites++;
    const look = this.#looks[write.resource];
    if (look) look(write, isPass);
    else if (isPass) this.#report(write, "is none of a pass's business");
  }

  /** Resource → the judge of writes to it. */
  readonly #looks: Readonly<Record<string, (write: Write, isPass: boolean) => void>> = {
    sidecarsets: (write, isPass) => {
      const set = this.#setOf(write.name);
      if (isPass) {
        this.#events.seeStatus(write);
        set.seeStatus(write, this.#began.get(write.userAgent));
        this.#judgeWords(write, set);
      } else set.seeSpec(write);
    },
    pods: (write, isPass) => this.#seePod(write, isPass),
    leases: (write) => this.#reportIf(write, this.#lease.problemOf(write)),
    // Another witness judges disruption budgets.
    poddisruptionbudgets: () => undefined,
    deployments: () => undefined,
    statefulsets: () => undefined,
    daemonsets: () => undefined,
    events: (write) => this.#reportIf(write, this.#events.problemOf(write)),
    configmaps: (write, isPass) => this.#seeMap(write, isPass),
    controllerrevisions: (write) => this.#seeRevision(write),
    namespaces: (write, isPass) => {
      if (isPass) this.#report(write, "is none of a pass's business");
      else this.#seeNamespace(write);
    },
  };

  /** Returns the pods that nobody has written to since. */
  #stillSince(began: number): readonly Pod[] {
    return this.#options.pods().filter(({ metadata }) => (this.#podsWritten.get(metadata?.uid ?? "") ?? 0) <= began);
  }

  #judgeWords(write: Write, set: SetWitness): void {
    const next = write.object as unknown as SidecarSet;
    const began = this.#began.get(write.userAgent) ?? 0;
    this.#reportIf(write, set.lateGenerationProblem(next, write.previous as unknown as SidecarSet | undefined, began));
    if (!set.isAboutNewest(next, began)) return;
    const steady = set.selectedSince(began, this.#stillSince(began));
    const isWhole = set.hasSameSince(began, steady.length);
    const recount = { steady, isWhole, wasRefused: this.#options.wasRefused() };
    for (const why of wordProblems(next, recount)) this.#report(write, why);
  }

  #seeRevision(write: Write): void {
    const began = this.#began.get(write.userAgent) ?? 0;
    const still = this.#stillSince(began);
    const uses = [...this.#sets.values()].flatMap((set) => {
      const { newest } = set;
      return newest ? [{ set: newest, pods: set.selectedSince(began, still) }] : [];
    });
    for (const why of this.#revisions.see(write, { began, now: this.writes, uses })) this.#report(write, why);
  }

  #seeNamespace({ name, object }: Write): void {
    this.namespaces.see(name, object.metadata.labels);
    for (const set of this.#sets.values()) set.seeNamespace(name);
  }

  #setOf(name: string): SetWitness {
    const set = this.#sets.get(name);
    if (!set) throw new Error(`there is no SidecarSet ${name} in this world`);
    return set;
  }

  #seeMap(write: Write, isPass: boolean): void {
    const set = this.#ledgers.get(write.name);
    if (set) set.seeLedger(write, this.#began.get(write.userAgent));
    else if (isPass) this.#report(write, "is a ConfigMap that is no ledger");
  }

  #seePod(write: Write, isPass: boolean): void {
    const next = write.object as unknown as Pod;
    const previous = write.previous as unknown as Pod | undefined;
    this.#podsWritten.set(next.metadata?.uid ?? "", this.writes);
    if (isPass) {
      this.#judge(write, previous, next);
      this.#events.seePod(write);
    }
    if (this.#unhindered.has(write.userAgent)) this.#reportIf(write, this.#lease.neglectOf(write.userAgent));
    for (const set of this.#sets.values()) set.seePod(previous, next, write.isRemoved);
  }

  #judge(write: Write, previous: Pod | undefined, next: Pod): void {
    if (previous && write.verb === "delete" && !write.isRemoved) return void this.#judgeEviction(write, previous);
    if (!previous || write.isRemoved || write.verb !== "patch")
      return void this.#report(write, "is more than a patch of a pod that is there");
    if (write.subresource !== "status") return void this.#judgePatch(write, previous, next);
    const problem = conditionChange(previous, next);
    if (problem) this.#report(write, problem);
  }

  #judgeEviction(write: Write, pod: Pod): void {
    if (pod.metadata?.deletionTimestamp) this.#report(write, "is a pod that is being deleted");
    // Another SidecarSet may have reserved the pod in the same state.
    const holder = this.#sets.get(sidecarSetNow() ?? "");
    const reservation = holder?.reservationOf(pod);
    if (!holder || !reservation)
      return void this.#report(write, `has no reservation at ${pod.metadata?.resourceVersion}`);
    if (!holder.isReservedBy(pod, write.userAgent))
      this.#report(write, "is evicted by another pass than the one that reserved it");
    this.evictions++;
    holder.judgeEviction(write, pod, reservation);
  }

  #judgePatch(write: Write, previous: Pod, next: Pod): void {
    if (previous.metadata?.deletionTimestamp) this.#report(write, "is a pod that is being deleted");
    const change = changeOf(previous, next, this.#options.sets);
    if (change.kind === "wrong") return void this.#report(write, change.problem);
    if (change.kind === "putBack") return void this.#seePutBack(next);
    const sets = "set" in change ? [this.#setOf(change.set)] : [...this.#sets.values()];
    const holder = sets.find((set) => set.reservationOf(previous));
    const reservation = holder?.reservationOf(previous);
    const isLateFence = change.kind === "fence" && !holder && sets.some((set) => set.isLateFence(write, previous));
    if (change.kind === "fence") this.fences++;
    if (isLateFence) return;
    if (!holder || !reservation)
      return void this.#report(write, `has no reservation at ${previous.metadata?.resourceVersion}`);
    this.#judgeChange(write, change, holder, { previous, next, reservation });
  }

  /**
   * Records a pod whose drain ends without a reservation, because its SidecarSet is deleted or no longer selects it.
   */
  #seePutBack(pod: Pod): void {
    for (const set of this.#sets.values()) set.seePutBack(pod);
  }

  #judgeChange(write: Write, change: Change, holder: SetWitness, patched: Patched): void {
    if (change.kind === "drain") return void holder.judgeDrain(write, patched, change.release);
    if (change.kind === "flip") this.flips++;
    if (change.kind === "upgrade") {
      this.upgrades++;
      holder.judgeUpgrade(write, patched);
    }
    holder.judgeSlots(write, patched);
  }

  #reportIf(write: Write, why: string | undefined): void {
    if (why !== undefined) this.#report(write, why);
  }

  #report({ userAgent, verb, resource, subresource, name }: Write, why: string): void {
    const target = `${resource}${subresource ? `/${subresource}` : ""} ${name}`;
    this.#options.report(`${userAgent}: ${verb} ${target} ${why}`);
  }
}
