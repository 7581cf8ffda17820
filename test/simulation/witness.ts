/** Looks at every write as it lands, and says which promise it breaks. */
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import {
  EMPTY_LEDGER,
  isGenerationObservable,
  type Ledger,
  ledgerName,
  parseLedger,
  type Reservation,
} from "../../shared/core/upgrade/ledger.ts";
import type { Write } from "./api-server.ts";
import { hashOfPod, isPodReady, isWorking, SET } from "./objects.ts";
import { budgetOf, type Grant, partitionNow, permissionsOf } from "./permission.ts";
import { changeOf, conditionChange, hotViolation, imageViolation } from "./pod-change.ts";

/** Others than pods that passes may write to. */
const OWN_RESOURCES: ReadonlySet<string> = new Set(["controllerrevisions", "leases", "events"]);

interface Taken {
  readonly hash: string;
  readonly limit: number;
}

export interface WitnessOptions {
  readonly isHot: boolean;
  /** all pods there are */
  readonly pods: () => readonly Pod[];
  readonly report: (violation: string) => void;
}

export class Witness {
  readonly #options: WitnessOptions;
  /** by generation */
  readonly #specs = new Map<number, SidecarSet>();
  /** uid → pods that were ready when a pass upgraded them, and have not worked since */
  readonly #taken = new Map<string, Taken>();
  #ledger: Ledger = EMPTY_LEDGER;
  #observed = 0;
  #mostPods = 0;
  /** since a pass wrote for the first time: what a share of the pods may have been reckoned with */
  #fewestPods = Number.POSITIVE_INFINITY;
  /** pods that went: what is left for the partition when they are counted too */
  #gone = 0;
  /** pod writes of passes that were looked at */
  upgrades = 0;
  fences = 0;
  flips = 0;
  /** all writes */
  writes = 0;

  constructor(options: WitnessOptions) {
    this.#options = options;
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  see(write: Write): void {
    this.writes++;
    const isPass = write.userAgent.startsWith("pass");
    this.#countFewest(isPass);
    if (write.resource === "sidecarsets") this.#seeSet(write, isPass);
    else if (write.resource === "pods") this.#seePod(write, isPass);
    else if (write.resource === "configmaps") this.#seeMap(write, isPass);
    else if (isPass && !OWN_RESOURCES.has(write.resource)) this.#report(write, "is none of a pass's business");
  }

  #seeSet(write: Write, isPass: boolean): void {
    const { object, previous, subresource } = write;
    const next = object as unknown as SidecarSet;
    const generation = next.metadata?.generation ?? 0;
    if (!isPass) {
      this.#specs.set(generation, next);
      return;
    }
    const before = previous as unknown as SidecarSet | undefined;
    if (subresource !== "status" || JSON.stringify(next.spec) !== JSON.stringify(before?.spec))
      this.#report(write, "changes more than the status");
    const observed = next.status?.observedGeneration ?? 0;
    if (observed < this.#observed) this.#report(write, `takes observedGeneration back from ${this.#observed}`);
    if (observed > generation) this.#report(write, `shows generation ${observed}, which there is not`);
    const subject = { uid: next.metadata?.uid ?? "", generation: observed, revision: "" };
    if (observed > this.#observed && !isGenerationObservable(this.#ledger, subject))
      this.#report(write, `shows generation ${observed} while others are in the ledger`);
    this.#observed = Math.max(this.#observed, observed);
  }

  #seeMap(write: Write, isPass: boolean): void {
    if (write.name !== ledgerName(SET)) {
      if (isPass) this.#report(write, "is a ConfigMap that is no ledger");
      return;
    }
    const ledger = parseLedger((write.object as unknown as ConfigMap).data);
    if (!ledger) {
      this.#report(write, "is a ledger that nobody can read");
      return;
    }
    if (ledger.generation < this.#ledger.generation) this.#report(write, "takes the ledger's generation back");
    this.#ledger = ledger;
  }

  #seePod(write: Write, isPass: boolean): void {
    const next = write.object as unknown as Pod;
    const previous = write.previous as unknown as Pod | undefined;
    this.#mostPods = Math.max(this.#mostPods, this.#options.pods().length);
    if (isPass) this.#judge(write, previous, next);
    const isGone = write.isRemoved || Boolean(next.metadata?.deletionTimestamp);
    if (isGone && !previous?.metadata?.deletionTimestamp) this.#gone++;
    if (isGone || isWorking(next)) this.#taken.delete(next.metadata?.uid ?? "");
  }

  #countFewest(isPass: boolean): void {
    if (isPass || Number.isFinite(this.#fewestPods))
      this.#fewestPods = Math.min(this.#fewestPods, this.#options.pods().length);
  }

  #judge(write: Write, previous: Pod | undefined, next: Pod): void {
    if (!previous || write.isRemoved || write.verb !== "patch")
      this.#report(write, "is more than a patch of a pod that is there");
    else if (write.subresource === "status") this.#reportIf(write, conditionChange(previous, next));
    else this.#judgePatch(write, previous, next);
  }

  #judgePatch(write: Write, previous: Pod, next: Pod): void {
    const { uid, resourceVersion } = previous.metadata ?? {};
    const reservation = this.#ledger.reservations.find((one) => one.uid === uid);
    if (!reservation || reservation.resourceVersion !== resourceVersion) {
      this.#report(write, `has no reservation at ${resourceVersion}`);
      return;
    }
    if (previous.metadata?.deletionTimestamp) this.#report(write, "is a pod that is being deleted");
    const change = changeOf(previous, next, this.#options.isHot);
    if (typeof change === "object") this.#report(write, change.problem);
    if (change === "fence") this.fences++;
    if (change === "flip") this.flips++;
    if (change === "upgrade") this.#judgeUpgrade(write, { previous, next, reservation });
    if (this.#options.isHot) this.#reportIf(write, hotViolation(previous, next));
  }

  #judgeUpgrade(write: Write, { previous, next, reservation }: Upgrade): void {
    this.upgrades++;
    const hash = hashOfPod(next);
    const grants = permissionsOf(this.#specs, {
      hash,
      pod: previous,
      from: Math.max(reservation.generation, this.#observed),
    });
    if (typeof grants === "string") {
      this.#report(write, grants);
      return;
    }
    this.#reportIf(write, imageViolation(next, hash, this.#options.isHot));
    this.#judgePartition(write, grants, next);
    // One that was down costs nothing, also when it was taken down for a release that is over.
    if (!isPodReady(previous)) this.#taken.delete(next.metadata?.uid ?? "");
    else this.#judgeBudget(write, grants, next);
  }

  #judgeBudget(write: Write, grants: readonly Grant[], next: Pod): void {
    const hash = hashOfPod(next);
    const limit = Math.max(...grants.map(({ strategy }) => budgetOf(strategy, this.#mostPods)));
    this.#taken.set(next.metadata?.uid ?? "", { hash, limit });
    const same = [...this.#taken.values()].filter((taken) => taken.hash === hash);
    const most = Math.max(...same.map((taken) => taken.limit));
    if (same.length > most) this.#report(write, `is one of ${same.length} pods taken down at once, ${most} allowed`);
  }

  #judgePartition(write: Write, grants: readonly Grant[], next: Pod): void {
    const hash = hashOfPod(next);
    const matched = this.#options.pods().filter(({ metadata }) => !metadata?.deletionTimestamp);
    const uid = next.metadata?.uid;
    // The store still has the pod as it was, when this is asked within the write.
    const old = matched.filter((pod) => pod.metadata?.uid !== uid && hashOfPod(pod) !== hash).length;
    // Pods that were made since the reservation raise what a share comes to.
    const total = Math.min(matched.length, this.#fewestPods);
    const kept = Math.min(...grants.map(({ strategy }) => partitionNow(strategy, total)));
    if (old < kept - this.#gone) this.#report(write, `leaves ${old} old pods, the partition keeps ${kept}`);
  }

  #reportIf(write: Write, why: string | undefined): void {
    if (why) this.#report(write, why);
  }

  #report({ userAgent, verb, resource, subresource, name }: Write, why: string): void {
    const target = `${resource}${subresource ? `/${subresource}` : ""} ${name}`;
    this.#options.report(`${userAgent}: ${verb} ${target} ${why}`);
  }
}

interface Upgrade {
  readonly previous: Pod;
  readonly next: Pod;
  readonly reservation: Reservation;
}
