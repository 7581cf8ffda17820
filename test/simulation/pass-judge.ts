/** Judges one pass from outside: its calls, and its report at the end. */
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { isKubeError } from "../../shared/kube/error.ts";

/** The time for which a pass does not call a refused pod again, if the refusal names no time. */
const KEPT_MS = 2_000;
/** The longest wait that the client accepts from an API server. */
const MOST_WAIT_MS = 5_000;
const REFUSAL = /policy \S+ denied the request/;
/** The weight at which a refusal is certain. A 404, 409, 422 or 500 weighs one. */
const FOR_SURE = 6;
/** The number of calls of a pass with almost no work. */
const CALLS_OF_ALL = 60;
/** The number of additional calls for each pod. */
const CALLS_OF_A_POD = 12;
/**
 * The number of additional calls in each second for each followed SidecarSet. They include reads of two restarting
 * workloads; each further workload adds one.
 */
const CALLS_A_SECOND = 4;
const RESTARTS_IN_THESE = 2;
/**
 * The most calls for one refused pod: the patch, a read of the pod, and for the pod that gets its place a read of the
 * SidecarSet and a write of the ledger. A refused pod is retried with growing delays.
 */
const CALLS_OF_A_REFUSAL = 4;
const REFUSALS_OF_A_POD = 10;
/** The most calls after a lost swap of the ledger: the pass reads the ledger, the SidecarSet and its pods again. */
const CALLS_OF_A_LOST_SWAP = 3;

export interface PassFacts {
  readonly name: string;
  /** the SidecarSets of the pass that existed all the time */
  readonly sets: () => readonly string[];
  /** the present spec and annotations as one text */
  readonly wish: () => string;
  /** the greatest number of pods so far */
  readonly pods: () => number;
  /** uids of existing pods whose names begin with this text, such as "shop/web-" */
  readonly podsLike: (start: string) => ReadonlySet<string>;
  /** the number of workloads that may be restarted at once at the start */
  readonly restartsAtOnce: number;
  readonly pageSize: number;
  readonly nowMs: () => number;
  readonly violated: (what: string) => void;
}

function weightOf(refused: ReadonlyMap<string, number>): number {
  return [...refused.values()].reduce((sum, weight) => sum + weight, 0);
}

export class PassJudge {
  readonly #facts: PassFacts;
  /** "PATCH pods shop/web-1" → the time before which it may not be sent again */
  readonly #notBefore = new Map<string, number>();
  /** a policy's answer → the refused write → its weighted count */
  readonly #refusals = new Map<string, Map<string, number>>();
  /** refused reads → the specs of the SidecarSets when the pass last read them */
  readonly #wishes = new Map<string, string>();
  /** refused reads → a function that returns true if a pod of the read is deleted */
  readonly #goneOf = new Map<string, () => boolean>();
  #read = "";
  /** number of writes to pods that were answered with 422 */
  #refusedPods = 0;
  /** number of writes to the ledger before which another process wrote to it */
  #lostSwaps = 0;
  /** true after any call of the pass failed */
  hasFailed = false;

  constructor(facts: PassFacts) {
    this.#facts = facts;
  }

  sends(call: string, target: string): void {
    if (call.endsWith(" sidecarsets")) this.#read = this.#facts.wish();
    const leftMs = (this.#notBefore.get(`${call} ${target}`) ?? 0) - this.#facts.nowMs();
    if (leftMs > 0) this.#violated(`sends ${call} ${target} again, ${leftMs} ms before it may`);
  }

  /** Records that the pass got an error for a call. */
  hears(call: string, target: string, error: unknown): void {
    this.hasFailed = true;
    if (!isKubeError(error)) return;
    const { retryAfterSeconds, message } = error;
    if (retryAfterSeconds !== undefined)
      this.#notBefore.set(`${call} ${target}`, this.#facts.nowMs() + Math.min(MOST_WAIT_MS, 1_000 * retryAfterSeconds));
    // With several SidecarSets this is not judged, because the others' passes request evictions too.
    else if (error.code === 429 && call.endsWith("/eviction") && this.#facts.sets().length === 1)
      this.#notBefore.set(`${call} ${target}`, this.#facts.nowMs() + KEPT_MS);
    const refusal = REFUSAL.exec(message)?.[0];
    this.#notesTried(call, error.code);
    // A 404, 409 or 422 may also mean that somebody deleted or changed the object. After a 500 the write may have been
    // carried out.
    if (refusal && call.startsWith("GET ")) this.#notesUnread(refusal, target);
    if (!refusal) return;
    const refused = this.#refusals.get(refusal) ?? new Map<string, number>();
    const write = `${call} ${target}`;
    const weight = [404, 409, 422, 500].includes(error.code) ? 1 : FOR_SURE;
    this.#refusals.set(refusal, refused.set(write, (refused.get(write) ?? 0) + weight));
  }

  #notesTried(call: string, code: number): void {
    // A policy may choose either code.
    if (call === "PATCH pods" && [403, 422].includes(code)) this.#refusedPods++;
    if (/^(CREATE|PATCH) configmaps$/.test(call) && [409, 422].includes(code)) this.#losesSwap();
  }

  /** A pass that lost a swap decides anew, and perhaps without the reads that were refused before. */
  #losesSwap(): void {
    this.#lostSwaps++;
    for (const refusal of this.#wishes.keys()) this.#refusals.delete(refusal);
  }

  /**
   * Records that the pass got a success for a call. A fence in the status replaces a refused fence in an annotation.
   */
  hearsYes(call: string, target: string): void {
    if (call !== "PATCH pods/status") return;
    for (const refused of this.#refusals.values()) refused.delete(`PATCH pods ${target}`);
  }

  #notesUnread(refusal: string, target: string): void {
    this.#wishes.set(refusal, this.#read);
    const then = this.#facts.podsLike(`${target}-`);
    this.#goneOf.set(refusal, () => {
      const now = this.#facts.podsLike(`${target}-`);
      return [...then].some((uid) => !now.has(uid));
    });
  }

  /**
   * True if the refused read is no longer needed: its spec has changed or is reached, one of its pods is deleted, or
   * another workload restarts first.
   */
  #isOver(refusal: string, { sidecarSets }: PassReport): boolean {
    const wish = this.#wishes.get(refusal);
    const isTrue = sidecarSets.every(({ summary }) => summary?.hold === "finished");
    if (wish === undefined) return false;
    const isLater = sidecarSets.some(({ summary }) => summary?.rules.restarts?.underWay.length);
    return wish !== this.#facts.wish() || isTrue || isLater || this.#goneOf.get(refusal)?.() === true;
  }

  ends(report: PassReport): void {
    const { heldBy, failure, sidecarSets, notReached } = report;
    const text = JSON.stringify(report);
    // A SidecarSet that ended for another reason need not name the earlier refusal.
    const isEnded = sidecarSets.some(
      ({ stop, summary }) => stop === "failed" || stop === "gone" || (stop === "deadline" && !summary),
    );
    for (const [refusal, refused] of this.#refusals)
      if (weightOf(refused) >= FOR_SURE && !isEnded && !this.#isOver(refusal, report) && !text.includes(refusal))
        this.#violated(`does not tell of a refusal: ${refusal}`);
    for (const { name, stop, why } of sidecarSets)
      if (why.trim() === "") this.#violated(`does not say why it left ${name}: ${stop}`);
    const told = new Set([...sidecarSets.map(({ name }) => name), ...notReached]);
    const forgotten = this.#facts.sets().filter((name) => !told.has(name));
    if (heldBy === undefined && failure === undefined && forgotten.length > 0)
      this.#violated(`says nothing of ${forgotten}`);
    this.#judgeCalls(report);
  }

  #judgeCalls({ sidecarSets, calls, durationMs }: PassReport): void {
    // The pages of a list count as one read.
    const pages = Math.max(1, Math.ceil(this.#facts.pods() / this.#facts.pageSize));
    const counts = Object.entries(calls).map(([call, one]) => (call === "LIST pods" ? one / pages : one));
    const count = counts.reduce((sum, one) => sum + one, 0);
    const sets = Math.max(1, sidecarSets.length);
    const readsOfPulls = calls["CREATE pods"] ? 1 : 0;
    const aSecond = CALLS_A_SECOND + Math.max(0, this.#facts.restartsAtOnce - RESTARTS_IN_THESE) + readsOfPulls;
    const tries = Math.min(this.#refusedPods, REFUSALS_OF_A_POD * this.#facts.pods());
    const aPass = CALLS_OF_ALL + CALLS_OF_A_POD * this.#facts.pods() + (aSecond * durationMs) / 1_000;
    const most = sets * aPass + CALLS_OF_A_REFUSAL * tries + CALLS_OF_A_LOST_SWAP * this.#lostSwaps;
    if (count > most)
      this.#violated(`makes ${Math.round(count)} calls, ${Math.round(most)} allowed: ${JSON.stringify(calls)}`);
  }

  #violated(what: string): void {
    this.#facts.violated(`${this.#facts.name} ${what}`);
  }
}
