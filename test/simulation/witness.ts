/** Looks at every write as it lands, and says which promise it breaks. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { type Ledger, ledgerName } from "../../shared/core/upgrade/ledger.ts";
import type { Write } from "./api-server.ts";
import type { SetPlan } from "./objects.ts";
import { changeOf, conditionChange } from "./pod-change.ts";
import { SetWitness } from "./set-witness.ts";

/** Others than pods that passes may write to. */
const OWN_RESOURCES: ReadonlySet<string> = new Set(["controllerrevisions", "leases", "events"]);

const TOLD: ReadonlySet<string> = new Set(["leases", "events"]);

export interface WitnessOptions {
  readonly sets: readonly SetPlan[];
  /** gate StrictMaxUnavailable */
  readonly isStrict: boolean;
  /** all pods there are */
  readonly pods: () => readonly Pod[];
  readonly report: (violation: string) => void;
}

export class Witness {
  readonly #options: WitnessOptions;
  readonly #sets: ReadonlyMap<string, SetWitness>;
  readonly #ledgers: ReadonlyMap<string, SetWitness>;
  /** pod writes of passes that were looked at */
  upgrades = 0;
  fences = 0;
  flips = 0;
  /** all writes */
  writes = 0;
  /** of passes, but for Leases, and Events, which every pass records of pods that cannot be upgraded */
  passWrites = 0;

  constructor(options: WitnessOptions) {
    const { sets, isStrict, pods } = options;
    this.#options = options;
    const report = (write: Write, why: string) => this.#report(write, why);
    this.#sets = new Map(sets.map((set) => [set.name, new SetWitness({ set, isStrict, pods, report })]));
    this.#ledgers = new Map([...this.#sets].map(([name, set]) => [ledgerName(name), set]));
  }

  ledgerOf(set: string): Ledger {
    return this.#setOf(set).ledger;
  }

  /** A pass may reckon with the pods that there are from now on; which come before its first write it may not have seen. */
  passStarts(): void {
    for (const set of this.#sets.values()) set.countFewest(true);
  }

  see(write: Write): void {
    this.writes++;
    const isPass = write.userAgent.startsWith("pass");
    if (isPass && !TOLD.has(write.resource)) this.passWrites++;
    for (const set of this.#sets.values()) set.countFewest(isPass);
    if (write.resource === "sidecarsets" && isPass) this.#setOf(write.name).seeStatus(write);
    else if (write.resource === "sidecarsets") this.#setOf(write.name).seeSpec(write);
    else if (write.resource === "pods") this.#seePod(write, isPass);
    else if (write.resource === "configmaps") this.#seeMap(write, isPass);
    else if (isPass && !OWN_RESOURCES.has(write.resource)) this.#report(write, "is none of a pass's business");
  }

  #setOf(name: string): SetWitness {
    const set = this.#sets.get(name);
    if (!set) throw new Error(`there is no SidecarSet ${name} in this world`);
    return set;
  }

  #seeMap(write: Write, isPass: boolean): void {
    const set = this.#ledgers.get(write.name);
    if (set) set.seeLedger(write);
    else if (isPass) this.#report(write, "is a ConfigMap that is no ledger");
  }

  #seePod(write: Write, isPass: boolean): void {
    const next = write.object as unknown as Pod;
    const previous = write.previous as unknown as Pod | undefined;
    if (isPass) this.#judge(write, previous, next);
    for (const set of this.#sets.values()) set.seePod(previous, next, write.isRemoved);
  }

  #judge(write: Write, previous: Pod | undefined, next: Pod): void {
    if (!previous || write.isRemoved || write.verb !== "patch")
      return void this.#report(write, "is more than a patch of a pod that is there");
    if (write.subresource !== "status") return void this.#judgePatch(write, previous, next);
    const problem = conditionChange(previous, next);
    if (problem) this.#report(write, problem);
  }

  #judgePatch(write: Write, previous: Pod, next: Pod): void {
    if (previous.metadata?.deletionTimestamp) this.#report(write, "is a pod that is being deleted");
    const change = changeOf(previous, next, this.#options.sets);
    if (change.kind === "wrong") return void this.#report(write, change.problem);
    const sets = change.kind === "fence" ? [...this.#sets.values()] : [this.#setOf(change.set)];
    const holder = sets.find((set) => set.reservationOf(previous));
    const reservation = holder?.reservationOf(previous);
    if (!holder || !reservation)
      return void this.#report(write, `has no reservation at ${previous.metadata?.resourceVersion}`);
    if (change.kind === "fence") this.fences++;
    if (change.kind === "flip") this.flips++;
    if (change.kind === "upgrade") {
      this.upgrades++;
      holder.judgeUpgrade(write, { previous, next, reservation });
    }
    holder.judgeSlots(write, { previous, next, reservation });
  }

  #report({ userAgent, verb, resource, subresource, name }: Write, why: string): void {
    const target = `${resource}${subresource ? `/${subresource}` : ""} ${name}`;
    this.#options.report(`${userAgent}: ${verb} ${target} ${why}`);
  }
}
