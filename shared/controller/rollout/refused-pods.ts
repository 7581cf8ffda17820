/** A pass's own reservations and refused writes. They show which pods it skips, and which reservations it may free. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Action, ResourceChange } from "../../core/actions.ts";
import type { Ledger, LedgerPlan, PodState, Reservation, Subject } from "../../core/ledger.ts";
import { podStateOf } from "../../core/pod/pod-state.ts";
import {
  DRAINED_AGAIN,
  isOfTakenBack,
  keptRefusals,
  NONE_PASSED_OVER,
  passedOver,
  type RefusedPod,
  refusalText,
  TAKEN_BACK,
  waitSecondsAfter,
} from "../../core/refused-pods.ts";
import { currentHash } from "../../core/rollout/history/history.ts";
import { hasResources } from "../../core/rollout/rules/resize/resize.ts";
import type { Refused } from "../../core/rollout/select/reserved.ts";
import { secondText } from "../../time-text.ts";
import type { Clock } from "../loop/clock.ts";
import type { PodView } from "../pod-store/pod-view.ts";
import { type ServerClock, serverTimestamp } from "./departures.ts";
import { hasAcceptedWrites } from "./refused-writes.ts";

/** A key: the same object for a whole rollout in one pass. */
type Rollout = object;

interface Known {
  /** states that this pass has reserved */
  own: ReadonlySet<string>;
  /** states with a refused patch of this pass, and states with a sent but unanswered one */
  readonly refused: Set<string>;
  readonly unanswered: Set<string>;
  /** reserved states with a refused fence */
  readonly unfenced: Set<string>;
  /** numbers of answers that leave the outcome open, or ask to come again, by uid */
  readonly vague: Map<string, number>;
  /** refusals in this pass with the end of the wait on its own clock, by uid; undefined: a write was accepted */
  readonly news: Map<string, { readonly pod: RefusedPod; readonly notBeforeMs: number } | undefined>;
  /** writes of this pass by uid of the pod, until they are reverted */
  readonly carried: Map<string, Carried>;
  /** generation of the SidecarSet at the refusals */
  generation: string;
}

/** A write that was accepted, while the SidecarSet stays the same. */
interface Carried {
  readonly hash: string;
  readonly as: "updated" | "drained" | "served" | "resized";
  /** the written resources; absent: no resize */
  readonly resources?: readonly ResourceChange[] | undefined;
  /** version of the pod when it was seen last */
  readonly version: string | null | undefined;
  /** number of earlier reverts */
  readonly times: number;
}

const knownOf = new WeakMap<Rollout, Known>();

function known(rollout: Rollout): Known {
  const found = knownOf.get(rollout);
  if (found) return found;
  const made: Known = {
    own: new Set(),
    refused: new Set(),
    unanswered: new Set(),
    unfenced: new Set(),
    vague: new Map(),
    news: new Map(),
    carried: new Map(),
    generation: "",
  };
  knownOf.set(rollout, made);
  return made;
}

const stateKey = ({ uid, resourceVersion }: PodState) => `${uid} ${resourceVersion}`;
const generationKey = ({ uid, generation }: Pick<Subject, "uid" | "generation">) => `${uid} ${generation}`;

export function isOwnReservation(rollout: Rollout, reservation: Reservation): boolean {
  return known(rollout).own.has(stateKey(reservation));
}

/** True if this pass reserved the pod and the API server refused every patch for that: no write can come late. */
export function isCertainlyRefused(rollout: Rollout, reservation: Reservation): boolean {
  const { own, refused, unanswered } = known(rollout);
  const key = stateKey(reservation);
  return own.has(key) && refused.has(key) && !unanswered.has(key);
}

/** True if a patch of this pass for this state was refused. */
export function isRefusedState(rollout: Rollout, state: PodState): boolean {
  return known(rollout).refused.has(stateKey(state));
}

/** True if a patch of this pass for this state had no answer. */
export function isUnanswered(rollout: Rollout, state: PodState): boolean {
  return known(rollout).unanswered.has(stateKey(state));
}

export function noteUnfenced(rollout: Rollout, state: PodState): void {
  known(rollout).unfenced.add(stateKey(state));
}

/** The uids of reserved pods whose fence was refused in this pass. */
export function unfencedOf(rollout: Rollout, kept: readonly PodState[]): ReadonlySet<string> {
  const { unfenced } = known(rollout);
  return new Set(kept.filter((state) => unfenced.has(stateKey(state))).map(({ uid }) => uid));
}

/** Forgets freed reservations: another pass may reserve the pods. */
export function forgetReserved(rollout: Rollout, freed: Iterable<Reservation>): void {
  const all = known(rollout);
  const keys = new Set([...freed].map(stateKey));
  all.own = new Set([...all.own].filter((key) => !keys.has(key)));
}

/** Records reservations after each ledger write, and forgets freed ones: another pass may reserve those pods. */
export function rememberReserved(rollout: Rollout, kept: readonly Reservation[], { ledger }: LedgerPlan): void {
  const all = known(rollout);
  const before = new Set(kept.map(stateKey));
  const keys = ledger.reservations.map(stateKey);
  all.own = new Set(keys.filter((key) => !before.has(key) || all.own.has(key)));
  for (const states of [all.refused, all.unanswered])
    for (const key of states) if (!before.has(key) || !all.own.has(key)) states.delete(key);
}

/** Records a patch before it is sent. Until its answer the patch may arrive late. */
export function noteSent(rollout: Rollout, state: PodState): () => void {
  const { unanswered } = known(rollout);
  const key = stateKey(state);
  if (unanswered.has(key)) return () => undefined;
  unanswered.add(key);
  return () => void unanswered.delete(key);
}

/** Records that this pass sends nothing to a reserved pod, whose place is free again. */
export function noteUnsent(rollout: Rollout, state: PodState): void {
  known(rollout).refused.add(stateKey(state));
}

/** Counts the answers in a row that do not say whether this pod is the cause, such as 500. */
export function noteVague(rollout: Rollout, { uid }: PodState): number {
  const { vague } = known(rollout);
  const times = (vague.get(uid) ?? 0) + 1;
  vague.set(uid, times);
  return times;
}

interface Seen {
  readonly stored: { readonly ledger: Ledger };
}

interface SeenPods extends Seen {
  readonly sidecarSet: SidecarSet;
  readonly observed: { readonly view: Pick<PodView, "get" | "versionOf"> };
}

/** Number of refusals that a slow one adds: it took half a pass, so the pod is skipped for a minute at least. */
const SLOW_TIMES = 6;

interface RefusalFacts {
  readonly message: string;
  readonly isCertain: boolean;
  readonly isSlow: boolean;
  /** number of earlier refusals; absent: the known number */
  readonly timesBefore?: number;
}

function lastOf(rollout: Rollout, { ledger }: Seen["stored"], uid: string): RefusedPod | undefined {
  const { news } = known(rollout);
  return news.has(uid) ? news.get(uid)?.pod : ledger.refused?.find((one) => one.uid === uid);
}

/** Skips the pod for a while. `isCertain`: the write did not happen. `message`: the API server's words. */
export function noteRefusedPod(
  context: Rollout & ServerClock & { readonly clock: Clock },
  { stored }: Seen,
  state: PodState,
  { message, isCertain, isSlow, timesBefore }: RefusalFacts,
): void {
  const { news, refused } = known(context);
  const { namespace, name, uid } = state;
  if (isCertain) refused.add(stateKey(state));
  const times = (timesBefore ?? lastOf(context, stored, uid)?.times ?? 0) + 1;
  const waitMs = 1_000 * waitSecondsAfter(isSlow ? times + SLOW_TIMES : times);
  const until = secondText(Date.parse(serverTimestamp(context)) + waitMs);
  const pod = { namespace, name, uid, times, until, message: refusalText(message) };
  news.set(uid, { pod, notBeforeMs: context.clock.now() + waitMs });
}

export function noteAcceptedPod(rollout: Rollout, { uid }: PodState): void {
  const { news, vague } = known(rollout);
  news.set(uid, undefined);
  vague.delete(uid);
}

type CarriedWrite = Pick<Extract<Action, { kind: "PatchPod" }>, "pod" | "purpose" | "annotations" | "resources">;

const CARRIED_AS: { readonly [Purpose in CarriedWrite["purpose"]]?: Carried["as"] } = {
  drain: "drained",
  putBack: "served",
  resize: "resized",
};

/** Records a write before `noteAcceptedPod`, when the view shows the written pod. */
export function noteCarried(rollout: Rollout, snapshot: SeenPods, write: CarriedWrite) {
  const { pod: before, purpose, annotations, resources } = write;
  const { sidecarSet, stored, observed } = snapshot;
  const { uid, resourceVersion } = before;
  const as = CARRIED_AS[purpose] ?? "updated";
  const pod = observed.view.get(uid);
  if (pod === undefined) return;
  const isBack = isTakenBack(pod, sidecarSet, { as, resources });
  // Some updates take several writes. After any other, a webhook may have reverted the write before it was stored.
  if (isBack && as === "updated" && annotations[HASH_ANNOTATION] === undefined) return;
  const last = lastOf(rollout, stored, uid);
  const times = last && isOfTakenBack(last) ? last.times : 0;
  const version = isBack ? resourceVersion : observed.view.versionOf(uid);
  known(rollout).carried.set(uid, { hash: currentHash(sidecarSet), as, resources, version, times });
}

/**
 * Skips pods whose owners revert this pass's writes. They would be next again at once, or keep their place in the
 * budget, and the others would wait for ever.
 */
export function noteTakenBack(context: Rollout & ServerClock & { readonly clock: Clock }, snapshot: SeenPods): void {
  const { sidecarSet, observed } = snapshot;
  const { carried } = known(context);
  for (const [uid, one] of carried) {
    const pod = one.hash === currentHash(sidecarSet) ? observed.view.get(uid) : undefined;
    const version = observed.view.versionOf(uid);
    if (pod === undefined || isOfAnother(context, snapshot, uid)) carried.delete(uid);
    else if (version !== one.version) noteChanged(context, snapshot, { pod, one: { ...one, version } });
  }
}

/** True if another pass has reserved the pod, and so may have written it. */
function isOfAnother(rollout: Rollout, { stored }: Seen, uid: string): boolean {
  return stored.ledger.reservations.some((one) => one.uid === uid && !isOwnReservation(rollout, one));
}

interface CarriedNow {
  readonly pod: Pod;
  readonly one: Carried;
}

function noteChanged(
  context: Rollout & ServerClock & { readonly clock: Clock },
  snapshot: SeenPods,
  { pod, one }: CarriedNow,
): void {
  const { carried } = known(context);
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = pod.metadata ?? {};
  if (!isTakenBack(pod, snapshot.sidecarSet, one)) return void carried.set(uid, one);
  carried.delete(uid);
  const message = one.as === "served" ? DRAINED_AGAIN : TAKEN_BACK;
  const told = { message, isCertain: false, isSlow: false, timesBefore: one.times };
  noteRefusedPod(context, snapshot, { namespace, name, uid, resourceVersion }, told);
}

function isTakenBack(pod: Pod, sidecarSet: SidecarSet, { as, resources }: Pick<Carried, "as" | "resources">): boolean {
  if (as === "resized") return !hasResources(pod, resources ?? []);
  const { isUpdated, drain } = podStateOf(pod, sidecarSet, undefined);
  if (as === "served") return drain !== undefined;
  return !isUpdated && (as === "updated" || drain === undefined);
}

/** Pods to which writes were refused, by this pass and earlier ones. After a change of the SidecarSet all are tried. */
export function refusedNow(
  context: Rollout & ServerClock,
  { stored }: Seen,
  subject: Subject,
): Refused & { readonly pods: readonly RefusedPod[] } {
  const all = known(context);
  if (all.generation !== generationKey(subject)) {
    all.generation = generationKey(subject);
    all.news.clear();
  }
  const { ledger } = stored;
  const before = generationKey(ledger) === generationKey(subject) ? (ledger.refused ?? []) : [];
  const others = before.filter(({ uid }) => !all.news.has(uid));
  const pods = [...others, ...[...all.news.values()].flatMap((one) => one?.pod ?? [])];
  if (pods.length === 0) return { pods, named: pods, passedOver: NONE_PASSED_OVER };
  const [now, nowMs] = [serverTimestamp(context), context.clock.now()];
  const isDue = ({ uid, until }: RefusedPod) => {
    const own = all.news.get(uid);
    return own ? own.notBeforeMs <= nowMs : until <= now;
  };
  const named = hasAcceptedWrites(context) ? pods.filter((pod) => !isDue(pod)) : pods;
  return { pods, named, passedOver: passedOver(pods, isDue) };
}

/** Adds the refusals. `isThere`: returns true for a pod of the SidecarSet. */
export function withRefusals(
  plan: LedgerPlan,
  { pods }: { readonly pods: readonly RefusedPod[] },
  isThere: (uid: string) => boolean,
): LedgerPlan {
  const refused = keptRefusals(pods.filter(({ uid }) => isThere(uid)));
  return refused.length === 0 ? plan : { ...plan, ledger: { ...plan.ledger, refused } };
}
