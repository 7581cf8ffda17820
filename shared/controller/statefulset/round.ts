/** One round of a pass over a set: foresee the removals, reserve them, fence unwanted reservations, and act. */
import type { Pod } from "../../api/kubernetes.ts";
import { FENCE_ANNOTATION } from "../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, StatefulSetStatus } from "../../api/stateful-set.ts";
import {
  isGenerationObservable,
  isSameLedger,
  type Ledger,
  MAX_OF_SET,
  type PodState,
  type Reservation,
  reconcileLedger,
  type Subject,
  withReservations,
} from "../../core/ledger.ts";
import { planSet, type SetPlan } from "../../core/statefulset/plan/simulated-world.ts";
import { waitsForPass, withOpenGate } from "../../core/statefulset/pods/pod-phase.ts";
import { reconcileSet, type SetObservation, type SetOutcome } from "../../core/statefulset/reconcile.ts";
import { isClaimState, takenAway } from "../../core/statefulset/replicas.ts";
import type { Reply, Request } from "../../core/statefulset/step.ts";
import { ifThere, isKubeError } from "../../kube/error.ts";
import { PODS, STATEFUL_SETS } from "../../kube/port.ts";
import { swapLedger } from "../rollout/ledger-store.ts";
import { answer, OutdatedSnapshot } from "./act.ts";
import {
  keyOf,
  observationOf,
  type SetContext,
  type SetSnapshot,
  seeReserved,
  setSubject,
  stateResource,
} from "./observe.ts";

// The reservations of a round in the ledger of a set, and the fences of unwanted ones.

/** Lists each object once, in its listed state. */
export function wantedStates({ writes }: SetPlan): readonly PodState[] {
  const states = new Map<string, PodState>();
  for (const state of writes.map(takenAway)) if (state && !states.has(state.uid)) states.set(state.uid, state);
  return [...states.values()];
}

async function store({ cluster, key }: SetContext, snapshot: SetSnapshot, ledger: Ledger): Promise<void> {
  if (isSameLedger(snapshot.stored.ledger, ledger)) return;
  const place = { namespace: key.namespace, owner: snapshot.set, kind: "statefulset" } as const;
  const stored = await swapLedger(cluster, place, snapshot.stored, ledger);
  if (!stored) throw new OutdatedSnapshot("another pass has written the ledger");
  snapshot.stored = stored;
}

/** Changes only the object's resourceVersion, so that a late write fails. */
export async function fence({ cluster, tally }: SetContext, reservation: Reservation): Promise<void> {
  const { uid, resourceVersion } = reservation;
  const own = isClaimState(reservation) ? uid.slice(uid.indexOf(":") + 1) : uid;
  const metadata = { uid: own, resourceVersion, annotations: { [FENCE_ANNOTATION]: resourceVersion } };
  const patch = { type: "merge", body: { metadata } } as const;
  try {
    await cluster.patch(stateResource(reservation), keyOf(reservation), patch, { answer: "metadata" });
    tally.fenced++;
  } catch (error) {
    // Another write has changed it, or the outcome is open: the next snapshot shows it.
    if (!isKubeError(error, 404, 409, 422) && !(isKubeError(error) && !error.isOutcomeKnown)) throw error;
  }
}

export interface SetRound {
  readonly snapshot: SetSnapshot;
  readonly seen: SetObservation;
  readonly plan: SetPlan;
  readonly outcome: SetOutcome;
  /** number of successful writes, without the status unless it completes an update */
  readonly written: number;
  /** pods after those writes */
  readonly touched: readonly Pod[];
  /** status of the set as stored now */
  readonly status: StatefulSetStatus | undefined;
  /** number of valid reservations */
  readonly reserved: number;
}

/** Milliseconds for which a read set is trusted before a pod is created for it: a create has no precondition. */
const TRUST_MS = 1_000;
const MAX_ATTEMPTS = 3;

/** @throws OutdatedSnapshot when an object has changed, and KubeError for trouble. */
export async function setRound(context: SetContext, snapshot: SetSnapshot): Promise<SetRound> {
  context.tally.rounds++;
  const subject = setSubject(snapshot.set);
  const reconciled = reconcileLedger(snapshot.stored.ledger, await seeReserved(context, snapshot), subject);
  if (!reconciled) throw new OutdatedSnapshot("another pass has seen a newer generation of the set");
  const reserved = new Set(reconciled.kept.map(({ uid }) => uid));
  const seen = observationOf(context, snapshot, reserved);
  const plan = planSet(seen, snapshot);
  const { ledger, granted, fenced } = withReservations(reconciled.kept, wantedStates(plan), subject, {
    limit: MAX_OF_SET,
  });
  await store(context, snapshot, ledger);
  for (const reservation of fenced) await fence(context, reservation);
  const round = new Round(context, snapshot, { subject, granted, isFencing: fenced.length > 0 });
  const outcome = await round.run(seen);
  const { touched, status } = round;
  // With the update revision as the current one, the history may be shorter.
  const isCompleted = status?.currentRevision !== snapshot.set.status?.currentRevision;
  const written = round.written + fenced.length + Number(isCompleted);
  const { length } = snapshot.stored.ledger.reservations;
  return { snapshot, seen, plan, outcome, written, touched, status, reserved: length };
}

interface Permits {
  readonly subject: Subject;
  /** uids, as the ledger has them */
  readonly granted: ReadonlySet<string>;
  readonly isFencing: boolean;
}

/** Answers a pass step by step. */
class Round {
  readonly #context: SetContext;
  readonly #look: SetSnapshot;
  readonly #permits: Permits;
  /** by name: as listed, and as written since; undefined for a missing one */
  readonly #claims: Map<string, PersistentVolumeClaim | undefined>;
  #setReadAtMs: number;
  readonly touched: Pod[] = [];
  written = 0;
  status: StatefulSetStatus | undefined;

  constructor(context: SetContext, snapshot: SetSnapshot, permits: Permits) {
    this.#context = context;
    this.#look = snapshot;
    this.status = snapshot.set.status;
    this.#permits = permits;
    this.#claims = new Map(snapshot.claims.map((claim) => [claim.metadata?.name ?? "", claim]));
    this.#setReadAtMs = snapshot.setReadAtMs;
  }

  async run(seen: SetObservation): Promise<SetOutcome> {
    const steps = reconcileSet(seen);
    for (let step = steps.next(); ; step = steps.next(await this.#answer(step.value))) {
      if (!step.done) continue;
      await this.#openGates(seen);
      return step.value;
    }
  }

  /** Opens readiness gates. The next round sees a pod that has changed meanwhile. */
  async #openGates({ set, now }: SetObservation): Promise<void> {
    const isOwn = ({ metadata }: Pod) => metadata?.ownerReferences?.some(({ uid }) => uid === set.metadata?.uid);
    for (const before of this.#look.pods.filter(isOwn)) {
      const after = withOpenGate(before, now);
      const isTouched = this.touched.some(({ metadata }) => metadata?.uid === before.metadata?.uid);
      if (after === before || isTouched) continue;
      const request = { kind: "UpdatePodStatus", before, after } as const;
      const reply = await answer(this.#context, this.#look, request);
      if (reply.kind === "ok") this.#note(request, reply.object);
    }
  }

  async #answer(request: Request): Promise<Reply> {
    if (request.kind === "GetClaim") return await this.#findClaim(request);
    if (request.kind === "UpdateStatus") return await this.#writeStatus(request.status);
    const reply = await this.#carryOut(request);
    if (request.kind === "GetPod" && reply.kind === "ok") this.#requireKnown(reply.object as Pod);
    if (reply.kind === "ok") this.#note(request, reply.object);
    return reply;
  }

  /**
   * After this pass's first write to a pod its node reports at once, before the second write: that alone is no reason
   * to start again.
   */
  async #carryOut(request: Request): Promise<Reply> {
    for (let attempt = 1, asked = request; ; attempt++) {
      try {
        await this.#permit(asked);
        return await answer(this.#context, this.#look, asked);
      } catch (error) {
        const again =
          error instanceof OutdatedSnapshot && attempt < MAX_ATTEMPTS ? await this.#asReported(asked) : undefined;
        if (!again) throw error;
        asked = again;
      }
    }
  }

  /** The second write to a pod, in the state that it is in now, if its status is all that has changed. */
  async #asReported(request: Request): Promise<Request | undefined> {
    if (request.kind !== "UpdatePod") return undefined;
    const { before, after } = request;
    const { uid } = before.metadata ?? {};
    if (!this.touched.some(({ metadata }) => metadata?.uid === uid)) return undefined;
    const key = { namespace: before.metadata?.namespace ?? "", name: before.metadata?.name ?? "" };
    const now = await ifThere(this.#context.cluster.get<Pod>(PODS, key));
    // Another pass may have reopened the gate that this pass's first write closed.
    if (!now || !isSameButStatus(now, before) || waitsForPass(now) !== waitsForPass(before)) return undefined;
    const { resourceVersion = "" } = now.metadata ?? {};
    return { kind: "UpdatePod", before: { ...before, metadata: { ...before.metadata, resourceVersion } }, after };
  }

  async #findClaim(request: Extract<Request, { readonly name: string }>): Promise<Reply> {
    const { name } = request;
    const known = this.#claims.get(name);
    if (known) return { kind: "ok", object: known };
    if (this.#claims.has(name)) return { kind: "failed", reason: "NotFound", message: `claim ${name} not found` };
    const reply = await answer(this.#context, this.#look, request);
    this.#claims.set(name, reply.kind === "ok" ? (reply.object as PersistentVolumeClaim) : undefined);
    return reply;
  }

  /** The generation is shown once nothing that was decided before it can land any more. */
  async #writeStatus(status: StatefulSetStatus): Promise<Reply> {
    const { set, stored } = this.#look;
    const isObservable = isGenerationObservable(stored.ledger, this.#permits.subject);
    const { observedGeneration: _, ...counts } = status;
    const before = set.status?.observedGeneration;
    const shown = isObservable
      ? status
      : { ...counts, ...(before === undefined ? {} : { observedGeneration: before }) };
    if (JSON.stringify(shown) === JSON.stringify(set.status)) return { kind: "ok" };
    const reply = await answer(this.#context, this.#look, { kind: "UpdateStatus", status: shown });
    if (reply.kind === "ok") this.status = shown;
    return reply;
  }

  async #permit(request: Request): Promise<void> {
    if (request.kind === "CreatePod") return await this.#checkSet();
    const state = takenAway(request);
    if (!state) return;
    const { reservations } = this.#look.stored.ledger;
    const own = reservations.find(({ uid }) => uid === state.uid);
    if (own && own.resourceVersion === state.resourceVersion && this.#permits.granted.has(state.uid)) return;
    if (!this.#permits.granted.has(state.uid) || this.#permits.isFencing)
      throw new OutdatedSnapshot(`${state.name} is to be written to, and is not reserved`);
    await this.#reserveAgain(state);
  }

  /** Our own first write to it has moved its resourceVersion. */
  async #reserveAgain(state: PodState): Promise<void> {
    const { subject } = this.#permits;
    const others = this.#look.stored.ledger.reservations.filter(({ uid }) => uid !== state.uid);
    const reservation: Reservation = { ...state, generation: subject.generation, revision: subject.revision };
    const { uid, generation } = subject;
    await store(this.#context, this.#look, { uid, generation, reservations: [...others, reservation] });
  }

  /** Fails if the pod differs from its observed state, or from this pass's last write. */
  #requireKnown({ metadata }: Pod): void {
    const known = [...this.#look.pods, ...this.touched].findLast((pod) => pod.metadata?.uid === metadata?.uid);
    if (known?.metadata?.resourceVersion !== metadata?.resourceVersion)
      throw new OutdatedSnapshot(`pod ${metadata?.name} has changed`);
  }

  async #checkSet(): Promise<void> {
    const { cluster, clock, key } = this.#context;
    if (clock.now() - this.#setReadAtMs < TRUST_MS) return;
    const askedAtMs = clock.now();
    const now = await ifThere(cluster.get<StatefulSet>(STATEFUL_SETS, key));
    const { uid, generation, deletionTimestamp } = this.#look.set.metadata ?? {};
    const isSame =
      now?.metadata?.uid === uid &&
      now?.metadata?.generation === generation &&
      now?.metadata?.deletionTimestamp === deletionTimestamp;
    if (!isSame) throw new OutdatedSnapshot("the set has changed");
    this.#setReadAtMs = askedAtMs;
  }

  #note(request: Request, object: unknown): void {
    if (request.kind.startsWith("Get") || request.kind === "RecordEvent") return;
    this.written++;
    if (request.kind === "CreateClaim" || request.kind === "UpdateClaim") {
      const claim = object as PersistentVolumeClaim;
      this.#claims.set(claim.metadata?.name ?? "", claim);
    }
    if (request.kind === "DeletePod") this.touched.push(deleted(request.pod));
    if (request.kind === "CreatePod" || request.kind === "UpdatePod" || request.kind === "UpdatePodStatus")
      this.touched.push(object as Pod);
  }
}

function isSameButStatus(a: Pod, b: Pod): boolean {
  const comparable = ({ metadata, spec }: Pod) => {
    const { uid, labels, annotations, finalizers, ownerReferences, deletionTimestamp } = metadata ?? {};
    return JSON.stringify([uid, labels, annotations, finalizers, ownerReferences, deletionTimestamp, spec]);
  };
  return comparable(a) === comparable(b);
}

/** Only the time of its deletion is unknown. */
function deleted(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "now" } };
}
