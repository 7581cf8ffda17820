/** Decides whether nothing is done to pods for now: too many of the updated ones fail, or nobody can tell what is wanted. */
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
import { failureOf } from "../../../pod/container-failure.ts";
import { hasOtherImage, ownContainers } from "../../../pod/failing-pods.ts";
import { readyCondition } from "../../../pod/is-ready.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { recordedHash } from "../../../pod/recorded-hash.ts";
import { replacesNotUpgradable } from "../../../pod/replaced.ts";
import type { Undone } from "../../../pod/steering/annotations.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { hasValuesInPlace, withValuesInPlace } from "../../../pod/values-in-place.ts";
import { updateTimeOf, wasReadyAt } from "../../../pod/was-ready.ts";
import { sidecarSetHashWithoutImage } from "../../../sidecarset/hash/sidecarset-hash.ts";
import { compareRevisions } from "../../../sidecarset/revision/compare-revisions.ts";
import { isControlledBy } from "../../../sidecarset/revision/is-controlled-by.ts";
import { restoreRevision } from "../../../sidecarset/revision/restore-revision.ts";
import { type RecordedSpec, recordedFields } from "../../../sidecarset/revision/revision-data.ts";
import {
  currentHash,
  isHalted,
  isWayBack,
  outcomeFacts,
  type RevisionOutcome,
  revisionOutcome,
  wayBack,
  whyGivenUp,
} from "../../history/outcomes.ts";
import { askedHolds } from "../../hold.ts";
import type { BudgetUse } from "../../select/budget.ts";
import { failedCheck, type KnownCheck } from "../checks/check-records.ts";
import { lastSpecWrite } from "../missed/selection.ts";
import { sumOf } from "../replacement/missing-pods.ts";
import { forgetsEnds, wasFinished } from "./undone.ts";

export interface Standstill {
  readonly hold: "halted" | "unreadable";
  /** why, in one sentence */
  readonly halt: string;
  /** a check of metrics is why */
  readonly isByMetrics?: true;
  /** an undo would find a revision to go back to */
  readonly hasWayBack?: boolean;
  /** set when the SidecarSet is to be put back */
  readonly undo?: Undo;
}

export interface StandstillFacts {
  /** all of them are updated */
  readonly areAllUpdated: boolean;
  /** name of the newest revision */
  readonly latestRevision: string | undefined;
  readonly pods: Sequence<PodState>;
  readonly revisions: readonly ControllerRevision[];
  /** checks of metrics that are asked now, and what came of them */
  readonly checks: readonly KnownCheck[];
  /** RFC3339 */
  readonly now: string;
}

/** undefined: it goes on. A rollout that somebody stopped is not undone. */
export function standstillOf(sidecarSet: SidecarSet, facts: StandstillFacts): Standstill | undefined {
  const { haltOn, problems } = steeringOf(sidecarSet);
  const unreadable = problems.find(({ isStopping }) => isStopping);
  if (unreadable) return { hold: "unreadable", halt: unreadable.text };
  const failed = failedCheck(facts.checks);
  if ((haltOn === undefined && !failed) || isOver(sidecarSet, facts)) return undefined;
  const failing = haltOf(sidecarSet, testimonyOf(sidecarSet, facts.pods));
  const halt = failing ?? failed?.halt;
  if (halt === undefined) return undefined;
  const cause = failing === undefined ? ({ isByMetrics: true } as const) : {};
  const hasWayBack = wayBack(outcomeFacts(sidecarSet, facts.revisions, facts.pods)) !== undefined;
  const still = { hold: "halted", hasWayBack, ...cause } as const;
  const isUndoing = failed?.isUndoing === true;
  const undo = undoNow(sidecarSet, { ...facts, halt, isUndoing });
  if (typeof undo === "string") return { ...still, halt: `${halt}; ${undo}` };
  return { ...still, halt, ...(undo ? { undo } : {}) };
}

/** A sentence instead says why it is not undone now. */
function undoNow(sidecarSet: SidecarSet, facts: UndoFacts): ReturnType<typeof planUndo> {
  const undo = planUndo(sidecarSet, facts);
  return typeof undo === "object" && askedHolds(sidecarSet).length > 0
    ? "it is undone once the strategy lets it go on"
    : undo;
}

/** Nothing is left to be stopped, and what fails now did work. Where nobody remembers whether it did, it is taken to have. */
function isOver(sidecarSet: SidecarSet, { areAllUpdated, latestRevision }: StandstillFacts): boolean {
  if (!areAllUpdated) return false;
  // A status forgets the end of a rollout while its strategy stops it, and keeps a halt.
  if (askedHolds(sidecarSet).length > 0 && !isHalted(sidecarSet)) return true;
  return forgetsEnds(sidecarSet) || wasFinished(sidecarSet, latestRevision);
}

// Whether a SidecarSet whose rollout was stopped is put back to what worked before, and to which revision.

/** What puts the SidecarSet back, on condition that it is the one that was looked at. */
interface Undo {
  /** the revision's number */
  readonly revision: number;
  readonly spec: RecordedSpec;
  readonly annotations: Readonly<Record<string, string>>;
  readonly message: string;
}

interface UndoFacts {
  /** why the rollout was stopped */
  readonly halt: string;
  /** a check of metrics asks for it, whatever the annotation says; absent: none does */
  readonly isUndoing?: boolean;
  readonly revisions: readonly ControllerRevision[];
  readonly pods: Sequence<PodState>;
  /** RFC3339 */
  readonly now: string;
}

const REMEMBERED = 5;

/** A sentence instead says why it stays as it is; undefined: nobody asks for it. */
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

/** What became of each. Pods that run a release without being ready say nothing, because their authors could. */
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

/** Newest first. */
function candidatesOf(sidecarSet: SidecarSet, revisions: readonly ControllerRevision[]): readonly Candidate[] {
  const own = revisions.filter((one) => isControlledBy(one, sidecarSet)).toSorted((a, b) => compareRevisions(b, a));
  return own.flatMap((revision) => {
    const restored = restoreRevision(sidecarSet, revision);
    if (restored.kind === "DecodeError") return [];
    const { annotations = {} } = restored.value.metadata ?? {};
    const [to = "", recorded = ""] = [annotations[HASH_ANNOTATION], annotations[HASH_WITHOUT_IMAGE_ANNOTATION]];
    // Going back keeps the annotation that the SidecarSet has now, which may be younger than the revision.
    const { spec } = withValuesInPlace({ ...sidecarSet, spec: restored.value.spec });
    const isSameForm = hasValuesInPlace(restored.value) === hasValuesInPlace(sidecarSet);
    return [{ revision, to, withoutImage: isSameForm ? recorded : sidecarSetHashWithoutImage(spec) }];
  });
}

/**
 * Of releases with which pods are ready. Where pods of several namespaces match, two of them have to say so: the records
 * of a pod are what its author writes, who must not choose what others go back to.
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
  /** hash of the release that is taken back */
  readonly from: string;
  /** pods are ready with what it goes back to */
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
    // Those of the webhook are the same, but it may not be asked.
    [HASH_ANNOTATION]: to,
    [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage,
  };
  return { revision, spec: recordedFields(stored), annotations, message };
}

// Whether a rollout stops because too many of the pods that it took down fail, where somebody has said how many those are.

/**
 * Why it stops, in one sentence; undefined: it goes on. It goes on again when fewer fail, when the SidecarSet brings a
 * release that none of them has, and when the annotation goes. Where pods of
 * several namespaces match, no namespace counts for more than half of what stops it: the right to create pods in one of
 * them is no say over the others.
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
    ? `${witnesses.length} of ${upgraded} updated pods fail, and ${HALT_ON_ANNOTATION} is ${limit.text}: fix the image, or go back`
    : undefined;
}

const EPOCH = "1970-01-01T00:00:00Z";

/** No namespace counts more often than `share`. */
function counted(witnesses: readonly Witness[], share: number): number {
  const byNamespace = Map.groupBy(witnesses, ({ namespace }) => namespace);
  return [...byNamespace.values()].reduce((sum, { length }) => sum + Math.min(length, share), 0);
}

/** The most that were updated within that time of each other, each namespace counted `share` times at most. */
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

// Decides how many more pods may be given a release of which nobody knows yet whether it works, where it is to stop if it does not.

/** As many are on their way at once at most, or one more than may fail, if that is more. */
const MOST_ON_THEIR_WAY = 100;

/**
 * A pod that was given the release and is not ready with it yet may still fail; so may each that is reserved, or was
 * evicted and has no successor. A pod leaves this count only when it was seen to be back, so that no batch follows another
 * unseen, however large the budget is. A pod that was not ready before has no say, and holds up no other.
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

/** Decides which failing pods have a say about a rollout: those that it took down, by containers of the SidecarSet itself. */
interface Witness {
  readonly namespace: string;
  /** RFC3339: when it was given the latest sidecars */
  readonly updatedAt: string;
}

interface Testimony {
  readonly witnesses: readonly Witness[];
  /** how many pods the rollout has updated; pods created with the latest sidecars count only where pods are replaced */
  readonly upgraded: number;
  /** how many namespaces the matched pods are in */
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
  const failure = isReady && isConsistent ? undefined : failureOf(pod, names);
  return failure !== undefined && !hasOtherImage(pod, sidecarSet, failure.container);
}

/** When it was given the latest sidecars, by a pass or in the place of one that was evicted, and whether it was ready then. */
function givenTo(pod: Pod, sidecarSet: SidecarSet): { readonly at: string; readonly wasReady: boolean } | undefined {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt !== undefined) return { at: updatedAt, wasReady: wasReadyAt(pod, updatedAt) };
  const createdAt = creationTimeOf(pod, sidecarSet);
  return createdAt === undefined ? undefined : { at: createdAt, wasReady: true };
}

/** Where pods are replaced, a pod created since the change stands for one that was evicted. */
function creationTimeOf({ metadata }: Pod, sidecarSet: SidecarSet): string | undefined {
  if (!replacesNotUpgradable(sidecarSet)) return undefined;
  const created = metadata?.creationTimestamp ?? "";
  return created > (lastSpecWrite(sidecarSet.metadata) ?? "~") ? created : undefined;
}

/** Whether it may fail yet, as one that the rollout took down: it was ready when it was given the release, or is still. */
function mayTestify({ pod }: PodState, sidecarSet: SidecarSet): boolean {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt === undefined) return creationTimeOf(pod, sidecarSet) !== undefined;
  return readyCondition(pod)?.status === "True" || wasReadyAt(pod, updatedAt);
}
