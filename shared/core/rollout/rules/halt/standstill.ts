/** When passes stop all writes to pods: too many updated pods fail, or an annotation cannot be read. */
import type { ControllerRevision, Pod } from "../../../../api/kubernetes.ts";
import {
  HALT_ON_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  UNDONE_ANNOTATION,
} from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import { countOf, each, type Sequence } from "../../../../go/sequence.ts";
import { containerFailure } from "../../../pod/container-failure.ts";
import { hasOtherImage, ownContainers } from "../../../pod/failing-pods.ts";
import { readyCondition, updateTimeOf, wasReadyAt } from "../../../pod/is-ready.ts";
import { type PodState, recordedHash } from "../../../pod/pod-state.ts";
import { replacesNotUpgradable } from "../../../pod/replaced.ts";
import type { Undone } from "../../../pod/steering/annotations.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { hasValuesInPlace, withValuesInPlace } from "../../../pod/values-in-place.ts";
import { sidecarSetHashWithoutImage } from "../../../sidecarset/hash/sidecarset-hash.ts";
import { compareRevisions } from "../../../sidecarset/revision/compare-revisions.ts";
import { type RecordedSpec, recordedFields } from "../../../sidecarset/revision/recorded-revision.ts";
import { restoreRevision } from "../../../sidecarset/revision/restore-revision.ts";
import { isControlledBy } from "../../../sidecarset/revision/wanted-revision.ts";
import {
  currentHash,
  isHalted,
  isWayBack,
  outcomeFacts,
  type RevisionOutcome,
  revisionOutcome,
  wayBack,
  whyGivenUp,
} from "../../history/history.ts";
import { askedHolds } from "../../hold.ts";
import type { BudgetUse } from "../../select/budget.ts";
import { failedCheck, type KnownCheck } from "../checks/check-records.ts";
import { lastSpecWrite } from "../missed/selection.ts";
import { sumOf } from "../replacement/missing-pods.ts";
import { forgetsEnds, wasFinished } from "./undone.ts";

export interface Standstill {
  readonly hold: "halted" | "unreadable";
  /** the reason, in one sentence */
  readonly halt: string;
  /** true: a metric check caused the halt */
  readonly isByMetrics?: true;
  /** true: there is a revision that an undo would return to */
  readonly hasWayBack?: boolean;
  /** the undo, if the pass restores an earlier release */
  readonly undo?: Undo;
}

export interface StandstillFacts {
  /** true: all pods are updated */
  readonly areAllUpdated: boolean;
  /** name of the newest revision */
  readonly latestRevision: string | undefined;
  readonly pods: Sequence<PodState>;
  readonly revisions: readonly ControllerRevision[];
  /** current metric checks with their results */
  readonly checks: readonly KnownCheck[];
  /** the present time, RFC3339 */
  readonly now: string;
}

/** The halt; undefined: the rollout continues. A rollout that a user stopped is not undone. */
export function standstillOf(sidecarSet: SidecarSet, facts: StandstillFacts): Standstill | undefined {
  const { haltOn, problems } = steeringOf(sidecarSet);
  const unreadable = problems.find(({ isStopping }) => isStopping);
  if (unreadable) return { hold: "unreadable", halt: unreadable.text };
  const failed = failedCheck(facts.checks);
  if ((haltOn === undefined && !failed) || isOver(sidecarSet, facts)) return undefined;
  const failing = haltOf(sidecarSet, testimonyOf(sidecarSet, facts.pods));
  const why = failing ?? failed?.halt;
  if (why === undefined) return undefined;
  const cause = failing === undefined ? ({ isByMetrics: true } as const) : {};
  const hasWayBack = wayBack(outcomeFacts(sidecarSet, facts.revisions, facts.pods)) !== undefined;
  const still = { hold: "halted", hasWayBack, ...cause } as const;
  const isUndoing = failed?.isUndoing === true;
  const undo = undoNow(sidecarSet, { ...facts, halt: why, isUndoing });
  if (typeof undo === "object") return { ...still, halt: why, undo };
  const halt = `${why}: fix the image${hasWayBack ? ", or go back" : ""}`;
  return { ...still, halt: undo === undefined ? halt : `${halt}; ${undo}` };
}

/** The undo, or a sentence that says why there is none now. */
function undoNow(sidecarSet: SidecarSet, facts: UndoFacts): ReturnType<typeof planUndo> {
  const undo = planUndo(sidecarSet, facts);
  return typeof undo === "object" && askedHolds(sidecarSet).length > 0
    ? "it is undone once the strategy lets it go on"
    : undo;
}

/**
 * True if the rollout has ended: nothing is left to stop, and failing pods worked once. Without a record it counts as
 * ended.
 */
function isOver(sidecarSet: SidecarSet, { areAllUpdated, latestRevision }: StandstillFacts): boolean {
  if (!areAllUpdated) return false;
  // While a strategy stops the rollout, the status does not record that it finished, but it keeps a halt.
  if (askedHolds(sidecarSet).length > 0 && !isHalted(sidecarSet)) return true;
  return forgetsEnds(sidecarSet) || wasFinished(sidecarSet, latestRevision);
}

// Tells whether a halted SidecarSet is put back to an earlier release, and to which revision.

/** The patch that restores an earlier release, if the SidecarSet has not changed since it was read. */
interface Undo {
  /** number of the revision */
  readonly revision: number;
  readonly spec: RecordedSpec;
  readonly annotations: Readonly<Record<string, string>>;
  readonly message: string;
}

interface UndoFacts {
  /** the reason why the rollout was stopped */
  readonly halt: string;
  /** true: a metric check asks for the undo, with any annotation; absent: no check does */
  readonly isUndoing?: boolean;
  readonly revisions: readonly ControllerRevision[];
  readonly pods: Sequence<PodState>;
  /** the present time, RFC3339 */
  readonly now: string;
}

const REMEMBERED = 5;

/** The undo, or a sentence that says why there is none; undefined: nobody asked for one. */
export function planUndo(sidecarSet: SidecarSet, facts: UndoFacts): Undo | string | undefined {
  const { undoesOnHalt, undone } = steeringOf(sidecarSet);
  if (!(undoesOnHalt || facts.isUndoing)) return undefined;
  if (undone === undefined) return `it is not undone, since the annotation ${UNDONE_ANNOTATION} cannot be read`;
  const from = currentHash(sidecarSet);
  if (undone.some((one) => one.from === from)) return "it was undone before and is here again, so it is left as it is";
  if (undone.some((one) => one.to === from)) return "it is what another release was undone to, so it is left as it is";
  const others = candidatesOf(sidecarSet, facts.revisions).filter(({ to }) => to !== from);
  const working = workingHashes(sidecarSet, facts.pods);
  const outcomes = outcomesOf(sidecarSet, others, working);
  const candidates = others.filter((_, index) => isWayBack(outcomes[index] ?? "unknown"));
  const best = candidates.find(({ to }) => working.has(to)) ?? candidates[0];
  if (!best) return notUndone(others, outcomes);
  return undoTo(best, { undone, from, isProven: working.has(best.to), ...facts });
}

/** The outcome of each revision. Unready pods with a release do not count, because their authors could fake it. */
function outcomesOf(
  sidecarSet: SidecarSet,
  others: readonly Candidate[],
  working: ReadonlySet<string>,
): readonly RevisionOutcome[] {
  const revisions = others.map(({ revision }) => revision);
  const facts = { sidecarSet, revisions, runningPods: () => 0 };
  return others.map(
    ({ revision, to }) =>
      whyGivenUp(sidecarSet, to) ?? revisionOutcome(revision, { ...facts, readyPods: () => (working.has(to) ? 1 : 0) }),
  );
}

function notUndone(others: readonly Candidate[], outcomes: readonly RevisionOutcome[]): string {
  if (others.length === 0) return "it is not undone, since no other revision is kept";
  const why = others.map(({ revision }, index) => `${revision.revision} (${outcomes[index]})`).join(", ");
  return `it is not undone, since no revision is kept that may have worked: ${why}`;
}

interface Candidate {
  readonly revision: ControllerRevision;
  readonly to: string;
  readonly withoutImage: string;
}

/** Revisions that an undo may return to, newest first. */
function candidatesOf(sidecarSet: SidecarSet, revisions: readonly ControllerRevision[]): readonly Candidate[] {
  const own = revisions.filter((one) => isControlledBy(one, sidecarSet)).toSorted((a, b) => compareRevisions(b, a));
  return own.flatMap((revision) => {
    const restored = restoreRevision(sidecarSet, revision);
    if (restored.kind === "DecodeError") return [];
    const { annotations = {} } = restored.value.metadata ?? {};
    const [to = "", recorded = ""] = [annotations[HASH_ANNOTATION], annotations[HASH_WITHOUT_IMAGE_ANNOTATION]];
    // An undo keeps the current annotation, which may be newer than the revision.
    const { spec } = withValuesInPlace({ ...sidecarSet, spec: restored.value.spec });
    const isSameForm = hasValuesInPlace(restored.value) === hasValuesInPlace(sidecarSet);
    return [{ revision, to, withoutImage: isSameForm ? recorded : sidecarSetHashWithoutImage(spec) }];
  });
}

/**
 * Hashes of releases with ready pods. If pods of several namespaces match, two namespaces must agree: a pod's author
 * writes its records, and must not choose the release of others.
 */
function workingHashes({ metadata }: SidecarSet, pods: Sequence<PodState>): ReadonlySet<string> {
  const all = new Set<string>();
  const byHash = new Map<string, Set<string>>();
  each(pods, ({ pod, isReady, isConsistent }) => {
    const { namespace = "", annotations } = pod.metadata ?? {};
    all.add(namespace);
    const hash = isReady && isConsistent ? recordedHash(annotations?.[HASH_ANNOTATION], metadata?.name ?? "") : "";
    if (hash !== "") byHash.set(hash, (byHash.get(hash) ?? new Set()).add(namespace));
  });
  const needed = Math.min(2, all.size);
  return new Set([...byHash].filter(([, namespaces]) => namespaces.size >= needed).map(([hash]) => hash));
}

interface Before {
  readonly undone: readonly Undone[];
  /** hash of the release that the undo removes */
  readonly from: string;
  /** true: pods are ready with the release that the undo restores */
  readonly isProven: boolean;
}

function undoTo(
  { revision: stored, to, withoutImage }: Candidate,
  { undone, from, isProven, now, halt }: UndoFacts & Before,
): Undo {
  const { revision } = stored;
  const unproven = isProven ? "" : ", with which no pod is ready now";
  const message = `put back to revision ${revision}${unproven}, since ${halt}`;
  const record: Undone = { from, to, at: now, message };
  const annotations = {
    [UNDONE_ANNOTATION]: JSON.stringify([...undone, record].slice(-REMEMBERED)),
    // The webhook would set the same hashes, but the API server may not call it.
    [HASH_ANNOTATION]: to,
    [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage,
  };
  return { revision, spec: recordedFields(stored), annotations, message };
}

// The halt of a rollout, if a limit is set and too many of the pods that it took down fail.

/**
 * The reason for the halt, in one sentence; undefined: none. The halt ends when fewer pods fail, a new release arrives
 * that none of them has, or the annotation goes. When pods of several namespaces match, each namespace counts for at
 * most half: the right to create pods in one must not stop the others.
 */
export function haltOf(sidecarSet: SidecarSet, { witnesses, upgraded, namespaces }: Testimony): string | undefined {
  const { haltOn: limit } = steeringOf(sidecarSet);
  if (limit === undefined) return undefined;
  const allowed = limit.isPercent ? (limit.amount * upgraded) / 100 : limit.amount;
  const needed = Math.max(Math.floor(allowed) + 1, namespaces > 1 ? 2 : 1);
  const share = namespaces > 1 ? Math.ceil(needed / 2) : needed;
  const count =
    limit.withinSeconds === undefined ? counted(witnesses, share) : mostWithin(witnesses, limit.withinSeconds, share);
  return count >= needed
    ? `${witnesses.length} of ${upgraded} updated pods fail, and ${HALT_ON_ANNOTATION} is ${limit.text}`
    : undefined;
}

/**
 * Returns why a rollout continues although more pods fail than `halt-on` allows; undefined: it stops, or fewer fail.
 */
export function haltIsShort(sidecarSet: SidecarSet, states: Sequence<PodState>): string | undefined {
  const { haltOn: limit } = steeringOf(sidecarSet);
  const testimony = testimonyOf(sidecarSet, states);
  const { witnesses, upgraded, namespaces } = testimony;
  if (limit === undefined || haltOf(sidecarSet, testimony) !== undefined) return undefined;
  if (witnesses.length <= (limit.isPercent ? (limit.amount * upgraded) / 100 : limit.amount)) return undefined;
  const why = shortfall(new Set(witnesses.map(({ namespace }) => namespace)).size, namespaces, limit.withinSeconds);
  return `${HALT_ON_ANNOTATION} is ${limit.text} and does not stop the rollout yet: ${why}`;
}

/** The reason by namespaces. `failing`: number of namespaces with failing pods, among `namespaces`. */
function shortfall(failing: number, namespaces: number, withinSeconds: number | undefined): string {
  const apart = "the failing pods were not updated close enough together";
  if (namespaces === 1) return apart;
  const inOne = `the pods are in ${namespaces} namespaces, and those of one alone do not stop it`;
  if (failing === 1) return inOne;
  const half = `each of ${namespaces} namespaces counts for at most half of them`;
  return withinSeconds === undefined ? half : `${half}, or ${apart}`;
}

const EPOCH = "1970-01-01T00:00:00Z";

/** The number of failing pods, with at most `share` of each namespace. */
function counted(witnesses: readonly Witness[], share: number): number {
  const byNamespace = Map.groupBy(witnesses, ({ namespace }) => namespace);
  return [...byNamespace.values()].reduce((sum, { length }) => sum + Math.min(length, share), 0);
}

/** The largest number of pods updated within `seconds` of each other, with at most `share` of each namespace. */
function mostWithin(witnesses: readonly Witness[], seconds: number, share: number): number {
  const timed = witnesses
    .map(({ namespace, updatedAt }) => ({ namespace, time: secondsBetween(EPOCH, updatedAt) ?? 0 }))
    .sort((a, b) => a.time - b.time);
  const inSpan = new Map<string, number>();
  let [most, sum, first] = [0, 0, 0];
  const move = (namespace: string, by: 1 | -1) => {
    const before = inSpan.get(namespace) ?? 0;
    inSpan.set(namespace, before + by);
    sum += Math.min(before + by, share) - Math.min(before, share);
  };
  for (const { namespace, time } of timed) {
    move(namespace, 1);
    for (let oldest = timed[first]; oldest && time - oldest.time > seconds; oldest = timed[++first])
      move(oldest.namespace, -1);
    most = Math.max(most, sum);
  }
  return most;
}

// The number of further pods that may get an unproven release, for a rollout with a limit for failures.

/** Limit of pods that are being updated at once; it is higher if more than this number may fail. */
const MOST_ON_THEIR_WAY = 100;

/**
 * The remaining room. Every unready pod with the release may still fail, and so may each reserved or evicted one. A pod
 * leaves the count only after a pass saw it recover, so no batch follows an unseen one, with any budget. A pod that was
 * not ready before the update does not count.
 */
export function haltRoom(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  { rules: { replacement } }: Pick<BudgetUse, "rules">,
): number {
  const { haltOn } = steeringOf(sidecarSet);
  if (haltOn === undefined) return Number.POSITIVE_INFINITY;
  const threshold = haltOn.isPercent ? 0 : haltOn.amount;
  const isOnItsWay = (state: PodState) =>
    state.isReservedNow === true || (state.isUpdated && !isBack(state) && mayTestify(state, sidecarSet));
  return Math.max(
    0,
    Math.max(MOST_ON_THEIR_WAY, threshold + 1) - countOf(pods, isOnItsWay) - sumOf(replacement?.missing),
  );
}

function isBack({ isConsistent, isReady }: PodState): boolean {
  return isConsistent && isReady;
}

/** The failing pods that count against a rollout: it took them down, and the SidecarSet's container fails. */
interface Witness {
  readonly namespace: string;
  /** time at which the pod got the latest sidecars, RFC3339 */
  readonly updatedAt: string;
}

interface Testimony {
  readonly witnesses: readonly Witness[];
  /** number of pods that the rollout updated; pods created with the latest sidecars count only if replaced */
  readonly upgraded: number;
  /** number of namespaces of the matched pods */
  readonly namespaces: number;
}

export function testimonyOf(sidecarSet: SidecarSet, states: Sequence<PodState>): Testimony {
  const names = ownContainers(sidecarSet);
  const namespaces = new Set<string>();
  const witnesses: Witness[] = [];
  let upgraded = 0;
  each(states, (state) => {
    const { namespace = "" } = state.pod.metadata ?? {};
    namespaces.add(namespace);
    const given = state.isUpdated ? givenTo(state.pod, sidecarSet) : undefined;
    if (given === undefined) return;
    upgraded++;
    if (given.wasReady && fails(state, sidecarSet, names)) witnesses.push({ namespace, updatedAt: given.at });
  });
  return { witnesses, upgraded, namespaces: namespaces.size };
}

function fails({ pod, isReady, isConsistent }: PodState, sidecarSet: SidecarSet, names: ReadonlySet<string>): boolean {
  const failure = isReady && isConsistent ? undefined : containerFailure(pod, names);
  return failure !== undefined && !hasOtherImage(pod, sidecarSet, failure.container);
}

/** The time at which the pod got the latest sidecars, by update or replacement, and whether it was ready then. */
function givenTo(pod: Pod, sidecarSet: SidecarSet): { readonly at: string; readonly wasReady: boolean } | undefined {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt !== undefined) return { at: updatedAt, wasReady: wasReadyAt(pod, updatedAt) };
  const createdAt = creationTimeOf(pod, sidecarSet);
  return createdAt === undefined ? undefined : { at: createdAt, wasReady: true };
}

/** The creation time of a pod that replaces an evicted one: if pods are replaced, any pod newer than the change. */
function creationTimeOf({ metadata }: Pod, sidecarSet: SidecarSet): string | undefined {
  if (!replacesNotUpgradable(sidecarSet)) return undefined;
  const created = metadata?.creationTimestamp ?? "";
  return created > (lastSpecWrite(sidecarSet.metadata) ?? "~") ? created : undefined;
}

/** True if a later failure of the pod counts: it was ready when it got the release, or is ready now. */
function mayTestify({ pod }: PodState, sidecarSet: SidecarSet): boolean {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt === undefined) return creationTimeOf(pod, sidecarSet) !== undefined;
  return readyCondition(pod)?.status === "True" || wasReadyAt(pod, updatedAt);
}
