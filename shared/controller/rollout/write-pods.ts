/** Writes a batch to its pods: patches reserved pods, and fences unwanted ones. */
import type { ObjectMeta, Pod } from "../../api/kubernetes.ts";
import type { LedgerPlan, PodState, Reservation } from "../../core/ledger.ts";
import { isSteeredAlike } from "../../core/pod/steering/steered.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { drainNow } from "../../core/rollout/rules/drain/drain.ts";
import type { EvictPod } from "../../core/rollout/rules/replacement/plan-replacement.ts";
import { inTurns } from "../../go/sequence.ts";
import { ConcurrencyLimit, mapLimited, mapWithin } from "../loop/concurrency-limit.ts";
import { act, type NotDone, type Outcome } from "./act.ts";
import { isForgotten } from "./count-disruptions.ts";
import { forgetKept, noteKept, serverTimestamp } from "./departures.ts";
import { fencePod } from "./fence-pod.ts";
import { type Context, readPod, readSame, type Snapshot, WRITES_AT_ONCE } from "./observe.ts";
import { evictionMessage, isKept, isPatched, type PatchPod, patchedPod } from "./pod-patch.ts";
import { backOff, isBusy, waitMsOf } from "./pod-trouble.ts";
import { isDue, noteRefused, sayRefusal } from "./refusals.ts";
import {
  isRefusedState,
  isUnanswered,
  noteAcceptedPod,
  noteCarried,
  noteRefusedPod,
  noteSent,
  noteUnsent,
  noteVague,
} from "./refused-pods.ts";
import { NamespaceTurns, noteAccepted, noteBusy, SLOW_MS } from "./refused-writes.ts";
import { noteProblem } from "./report.ts";
import { setCondition } from "./write-condition.ts";
import { BatchStatus } from "./write-status.ts";

/** limits of rollouts, over their batches */
const limits = new WeakMap<Context, ConcurrencyLimit>();

export interface Written {
  /** uids of the pods that have their patch now */
  readonly done: ReadonlySet<string>;
  /** reasons of refused patches by uid, if they are known */
  readonly refused: ReadonlyMap<string, string>;
  /** uids of pods and workloads whose eviction or restart was refused */
  readonly notEvicted: ReadonlySet<string>;
  /** pods of a slow namespace were left, and their places are free again; absent: none */
  readonly isLeft?: boolean;
  /** true: the SidecarSet changed before the end, and the remaining pods are still reserved */
  readonly isOutdated: boolean;
}

/** Writes a batch. @throws KubeError only if the API server can no longer be asked for the outcome of a write */
export async function writePods(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
  plan: LedgerPlan,
): Promise<Written> {
  const writes = decision.actions.filter((action) => action.kind === "PatchPod" || action.kind === "EvictPod");
  const conditions = decision.actions.filter((action) => action.kind === "PatchPodCondition");
  const conditionOf = new Map(conditions.map((condition) => [condition.pod.uid, condition]));
  const isWrite = new Set(writes.map(({ pod }) => pod.uid));
  const mine = writes.filter((write) => plan.granted.has(write.pod.uid));
  const granted = inTurns(mine, ({ pod }) => pod.namespace);
  if (granted.length > 0) context.tally.batches++;
  const fenced = plan.fenced.filter((reservation) => !reservation.workload && isDue(context, reservation));
  await mapLimited(fenced, WRITES_AT_ONCE, (reservation) => fence(context, snapshot, reservation));
  const done = new Set<string>();
  const refused = new Map<string, string>();
  const notEvicted = new Set<string>();
  const limit = limits.get(context) ?? new ConcurrencyLimit(WRITES_AT_ONCE, context.clock, context.endsAtMs);
  limits.set(context, limit);
  const spec = new SpecCheck(context, snapshot);
  const status = new BatchStatus(context, snapshot);
  const postponed = new Set<string>();
  let busy: string | undefined;
  const evict = async (eviction: EvictPod) => {
    const outcome = await act(eviction, { ...context, sidecarSet: snapshot.sidecarSet });
    // One retry for each pod, because a longer refusal must not delay the others.
    if (isBusy(outcome) && !isKept(outcome) && !postponed.has(eviction.pod.uid)) {
      postponed.add(eviction.pod.uid);
      return waitMsOf(outcome);
    }
    const became = await becameOf(context, snapshot, eviction, outcome);
    if (became !== "unknown") (became === "evicted" ? done : notEvicted).add(eviction.pod.uid);
    return undefined;
  };
  const patchPod = async (patch: PatchPod) => {
    if (isForgotten(patch, serverTimestamp(context))) return undefined;
    const beganAtMs = context.clock.now();
    const outcome = await sendPatch(context, snapshot, patch);
    const isSlow = context.clock.now() - beganAtMs > SLOW_MS;
    if (isBusy(outcome)) {
      const { namespace, name } = patch.pod;
      busy = `the API server is too busy to change pods (429), such as ${namespace}/${name}: ${outcome.error.message}`;
      return waitMsOf(outcome);
    }
    if (await isPatchedBy(context, snapshot, { patch, isSlow }, outcome)) {
      done.add(patch.pod.uid);
      await setCondition(context, snapshot, conditionOf.get(patch.pod.uid));
    } else if (outcome.kind !== "done" && isRefusedState(context, patch.pod) && patch.purpose !== "putBack")
      // A restore is tried again a second later, because nothing else takes its place at once.
      refused.set(patch.pod.uid, outcome.error.message);
    return undefined;
  };
  const turns = new NamespaceTurns(context);
  let isLeft = false;
  const leave = async ({ kind, pod }: BatchWrite) => {
    isLeft = true;
    if (kind === "EvictPod") notEvicted.add(pod.uid);
    else noteUnsent(context, pod);
    return undefined;
  };
  const write = (one: BatchWrite) => {
    if (turns.isLeft(one.pod)) return leave(one);
    return one.kind === "EvictPod" ? evict(one) : patchPod(one);
  };
  const isOver = () => {
    status.refresh();
    return spec.check();
  };
  try {
    await mapWithin(granted, limit, write, { isOver, ...turns.checks(({ pod }) => pod) });
  } finally {
    await status.end();
  }
  // A single 429 is no trouble. It is trouble if no patch of the batch succeeds.
  if (busy && done.size === 0) noteBusy(context, busy);
  const others = spec.isOutdated ? [] : conditions.filter(({ pod }) => !isWrite.has(pod.uid));
  await mapLimited(others, WRITES_AT_ONCE, (condition) => setCondition(context, snapshot, condition));
  return { done, refused, notEvicted, ...(isLeft ? { isLeft } : {}), isOutdated: spec.isOutdated };
}

type BatchWrite = EvictPod | PatchPod;

/** Sends a patch. Until its answer it may arrive late. */
async function sendPatch(context: Context, { sidecarSet }: Snapshot, patch: PatchPod): Promise<Outcome> {
  if (patch.purpose === "drain") await context.beforeDrain?.();
  const answered = noteSent(context, patch.pod);
  const sent = act(drainNow(patch, sidecarSet, serverTimestamp(context)), { ...context, sidecarSet });
  return sent.then((outcome) => {
    if (outcome.kind !== "unknown") answered();
    return outcome;
  });
}

/** True if the pod has the patch. */
async function isPatchedBy(
  context: Context,
  snapshot: Snapshot,
  { patch, isSlow }: { readonly patch: PatchPod; readonly isSlow: boolean },
  outcome: Outcome,
): Promise<boolean> {
  const isDone =
    outcome.kind === "done" || (await learn(context, snapshot, { state: patch.pod, patch, isSlow }, outcome));
  if (!isDone) return false;
  noteWrite(snapshot, patch.pod, outcome.kind === "done" ? outcome.object?.metadata : undefined, patch);
  noteCarried(context, snapshot, patch);
  // A pod's labels say nothing about its images.
  if (patch.purpose !== "drain" && patch.purpose !== "putBack") {
    noteAccepted(context);
    noteAcceptedPod(context, patch.pod);
  }
  if (patch.purpose === "upgrade") context.tally.upgraded++;
  if (patch.purpose === "flip") context.tally.flipped++;
  return true;
}

/** "evicted": the pod is terminating or gone. "refused": no eviction of this pass can happen any more. */
type Became = "evicted" | "refused" | "unknown";

async function becameOf(context: Context, snapshot: Snapshot, write: EvictPod, outcome: Outcome): Promise<Became> {
  const { pod } = write;
  if (outcome.kind === "gone" && (await isStillThere(context, snapshot, pod))) {
    noteKept(context, write);
    noteProblem(context, pod, evictionMessage(outcome));
    return "refused";
  }
  if (outcome.kind === "done" || outcome.kind === "gone") {
    // Later states of the pod do not matter: the ledger waits for its successor.
    snapshot.observed.view.remove(pod.uid, null);
    if (outcome.kind === "done") context.tally.replaced = (context.tally.replaced ?? 0) + 1;
    forgetKept(context, write);
    return "evicted";
  }
  if (outcome.kind === "refused") {
    noteKept(context, write);
    noteProblem(context, pod, evictionMessage(outcome));
    if (outcome.error.code === 0) throw outcome.error;
    return "refused";
  }
  return await becameOfUnclear(context, snapshot, write, outcome);
}

/** True if the pod still exists, because a webhook may answer 404 too. */
async function isStillThere(context: Context, snapshot: Snapshot, state: PodState): Promise<boolean> {
  const pod = await readPod(context, snapshot, state);
  return pod !== undefined && !pod.metadata?.deletionTimestamp;
}

/** The outcome, from the present state of the pod. */
async function becameOfUnclear(
  context: Context,
  snapshot: Snapshot,
  write: EvictPod,
  outcome: NotDone,
): Promise<Became> {
  const { pod } = write;
  const now = await readPod(context, snapshot, pod);
  if (now === undefined || now.metadata?.deletionTimestamp) return "evicted";
  const isUntouched = now.metadata?.resourceVersion === pod.resourceVersion;
  if (outcome.kind === "unknown" || isUntouched) noteKept(context, write);
  // Policies also answer 409 and 422: an unchanged pod had no other writer.
  if (outcome.kind === "conflict" && isUntouched) {
    noteProblem(context, pod, evictionMessage(outcome));
    return "refused";
  }
  if (outcome.error.code === 500) noteProblem(context, pod, evictionMessage(outcome));
  context.tally.conflicts++;
  return "unknown";
}

async function fence(context: Context, snapshot: Snapshot, reservation: Reservation): Promise<void> {
  const pod = snapshot.observed.view.get(reservation.uid) ?? (await readPod(context, snapshot, reservation));
  if (!pod) return;
  const outcome = await fencePod(context.cluster, reservation, isUnanswered(context, reservation));
  if (outcome.kind !== "done") return void (await learn(context, snapshot, { state: reservation }, outcome));
  noteWrite(snapshot, reservation, outcome.object?.metadata, { images: [] });
  context.tally.fenced++;
}

function noteWrite(
  snapshot: Snapshot,
  { uid }: PodState,
  metadata: ObjectMeta | undefined,
  patch: Pick<PatchPod, "images" | "resources">,
) {
  const { view } = snapshot.observed;
  const pod = view.get(uid);
  if (metadata) view.see(pod ? patchedPod(pod, metadata, patch) : { metadata, spec: { containers: [] } });
}

/** Number of vague answers in a row after which the pod itself counts as the cause. */
const MOST_VAGUE = 3;
/** Number of conflicts in a row with other writers of a pod after which other pods go first. */
const MOST_CONFLICTS = 5;

/**
 * True when the refusal concerns the pod. Policies and webhooks also answer 404, 409 and 422; one that cannot be called
 * gives 500, a slow one a timeout. A single 409 or 5xx usually concerns the API server, and skipping the pod would cost
 * a fence, a second write. A slow answer takes half a pass, so a pass never sees three. A pod that refused an earlier
 * pass needs no three either.
 */
function isAboutThePod(
  context: Context,
  snapshot: Snapshot,
  { state, isSlow }: TriedWrite,
  { kind, error }: NotDone,
): boolean {
  if (isSlow || isTimeout(error) || snapshot.stored.ledger.refused?.some(({ uid }) => uid === state.uid)) return true;
  if (error.code === 409 || kind === "unknown") return noteVague(context, state) >= MOST_VAGUE;
  return true;
}

function isTimeout({ code, reason }: NotDone["error"]): boolean {
  return code === 0 && reason === "Timeout";
}

/** Skips the pod after a refused patch. A refused fence is tried again. */
function noteRefusal(
  context: Context,
  snapshot: Snapshot,
  { state, patch, isSlow = false }: TriedWrite,
  { kind, error }: NotDone,
): void {
  // Nothing was sent, so the error says nothing about the pod.
  const { code, message } = error;
  if (code === 0 && kind !== "unknown") return;
  if (patch) {
    noteRefusedPod(context, snapshot, state, {
      message,
      isCertain: kind !== "unknown",
      isSlow: isSlow || isTimeout(error),
    });
    sayRefusal(context, state, message);
  } else noteRefused(context, state, message);
}

/** True if the pod should be skipped: it is unchanged, so no other writer caused the refusal. */
function isToPassOver(
  context: Context,
  snapshot: Snapshot,
  tried: TriedWrite,
  { outcome, pod }: { readonly outcome: NotDone; readonly pod: Pod | undefined },
): boolean {
  const { state, patch, isSlow } = tried;
  if (pod?.metadata?.resourceVersion === state.resourceVersion) return isAboutThePod(context, snapshot, tried, outcome);
  if (!pod || !patch || outcome.kind !== "conflict" || isPatched(pod, patch)) return false;
  // The pass has no time for five such tries. The place is free, and other namespaces go first.
  if (isSlow) noteUnsent(context, state);
  return noteVague(context, state) >= MOST_CONFLICTS;
}

interface TriedWrite {
  readonly state: PodState;
  readonly patch?: PatchPod | undefined;
  /** true: the answer took more than five seconds */
  readonly isSlow?: boolean;
}

/** Reads the pod after an unclear write. True if it has `patch`. */
async function learn(context: Context, snapshot: Snapshot, tried: TriedWrite, outcome: NotDone): Promise<boolean> {
  const { state, patch } = tried;
  switch (outcome.kind) {
    case "refused":
      if (!isBusy(outcome)) noteRefusal(context, snapshot, tried, outcome);
      await backOff(context, state, outcome);
      return false;
    case "gone":
    case "conflict":
    case "unknown": {
      if (outcome.kind !== "gone") context.tally.conflicts++;
      const pod = await readPod(context, snapshot, state);
      if (isToPassOver(context, snapshot, tried, { outcome, pod })) {
        noteRefusal(context, snapshot, tried, outcome);
        noteProblem(context, state, outcome.error.message);
      }
      return pod !== undefined && patch !== undefined && isPatched(pod, patch);
    }
    default:
      return outcome satisfies never;
  }
}

// Checks whether a SidecarSet has changed while a batch of its pods is written.

/** Milliseconds between checks. A batch may take many seconds, and a user who sees a bad image stops it earlier. */
const EVERY_MS = 2_000;

/** The check of one batch's spec, from its beginning. */
export class SpecCheck {
  readonly #context: Context;
  readonly #look: Snapshot;
  #readAtMs: number;
  #isReading = false;
  #isOutdated = false;

  constructor(context: Context, snapshot: Snapshot) {
    this.#context = context;
    this.#look = snapshot;
    this.#readAtMs = context.clock.now();
  }

  /** True if the SidecarSet was seen with a change. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /** Returns the last result, and reads the SidecarSet in the background when due. A failed read means nothing. */
  check(): boolean {
    const isTime = this.#context.clock.now() - this.#readAtMs >= EVERY_MS;
    if (isTime && !this.#isReading && !this.#isOutdated) this.#read().catch(() => undefined);
    return this.#isOutdated;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const before = this.#look.sidecarSet;
    try {
      const same = await readSame(this.#context, this.#look);
      this.#isOutdated = same === undefined || !isSteeredAlike(same, before);
    } finally {
      this.#readAtMs = this.#context.clock.now();
      this.#isReading = false;
    }
  }
}
