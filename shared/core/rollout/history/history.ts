/** The revisions of a SidecarSet: their outcomes, the target of a rollback, and which are recorded or deleted. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, GIVEN_UP_ANNOTATION, HASH_ANNOTATION, READY_AT_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import type { Action } from "../../actions.ts";
import { commandText } from "../../pod/command-text.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import { type PodState, recordedHash } from "../../pod/pod-state.ts";
import type { GivenUp } from "../../pod/steering/annotations.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { compareRevisions, isOwn, isSameRevision } from "../../sidecarset/revision/compare-revisions.ts";
import { newRevision, revisionName, revisionText } from "../../sidecarset/revision/recorded-revision.ts";
import { isControlledBy } from "../../sidecarset/revision/wanted-revision.ts";
import { undoneBefore } from "../rules/halt/undone.ts";

/** `unknown`: the revision is older than the first record of a revision that was ready. */
export type RevisionOutcome = GivenUp | "ready" | "rolling out" | "no pods" | "never ready" | "unknown";

export interface OutcomeFacts {
  readonly sidecarSet: SidecarSet;
  /** all revisions of this SidecarSet */
  readonly revisions: readonly ControllerRevision[];
  /** counts pods that are ready with a revision now */
  readonly readyPods: (revision: ControllerRevision) => number;
  /** counts pods that run a revision now */
  readonly runningPods: (revision: ControllerRevision) => number;
}

/** The outcome of a revision: the most severe word that applies. */
export function revisionOutcome(revision: ControllerRevision, facts: OutcomeFacts): RevisionOutcome {
  const { sidecarSet, revisions, readyPods, runningPods } = facts;
  const hash = revisionHash(revision);
  const isCurrent = hash === currentHash(sidecarSet);
  const givenUp = whyGivenUp(sidecarSet, hash);
  if (givenUp !== undefined) return givenUp;
  if (isCurrent && isHalted(sidecarSet)) return "halted";
  if (readyAt(revision) !== undefined) return "ready";
  if (isCurrent) return sidecarSet.status?.matchedPods === 0 ? "no pods" : "rolling out";
  if (readyPods(revision) > 0) return "ready";
  return runningPods(revision) > 0 || isRemembered(revision, revisions) ? "never ready" : "unknown";
}

/** True for a revision that worked, or that is not known to have failed. */
export function isWayBack(outcome: RevisionOutcome): boolean {
  return outcome === "ready" || outcome === "unknown";
}

/** The reason why a release was given up; undefined: it was not given up, or the annotation cannot be read. */
export function whyGivenUp(sidecarSet: SidecarSet, hash: string): GivenUp | undefined {
  const found = steeringOf(sidecarSet).givenUp.findLast((one) => one.hash === hash);
  return found?.outcome ?? (undoneBefore(sidecarSet, hash) === undefined ? undefined : "halted");
}

/** The annotation after the current release is given up for `target`, which counts as good again. */
export function giveUpCurrent(
  { sidecarSet, revisions }: Pick<OutcomeFacts, "sidecarSet" | "revisions">,
  target: ControllerRevision,
  { how, at }: { readonly how: "aborted" | "undone"; readonly at: string },
): Readonly<Record<string, string>> {
  const hash = currentHash(sidecarSet);
  const known = new Set(revisions.map(revisionHash));
  const others = steeringOf(sidecarSet).givenUp.filter(
    (one) => known.has(one.hash) && one.hash !== hash && one.hash !== revisionHash(target),
  );
  const own = hash === revisionHash(target) ? [] : [{ hash, outcome: isHalted(sidecarSet) ? "halted" : how, at }];
  return { [GIVEN_UP_ANNOTATION]: JSON.stringify([...others, ...own]) };
}

/** True when the last pass saw the current release halted. */
export function isHalted({ status }: SidecarSet): boolean {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  return blocked?.status === "True" && blocked.reason === "Halted";
}

/** True when passes recorded which revisions were ready at the time when this one was created. */
function isRemembered({ metadata }: ControllerRevision, revisions: readonly ControllerRevision[]): boolean {
  const created = metadata?.creationTimestamp ?? "";
  return revisions.some((one) => {
    const at = readyAt(one);
    return at !== undefined && at <= created;
  });
}

/** The time when a pass first saw a revision's rollout complete, RFC3339. */
export function readyAt({ metadata }: ControllerRevision): string | undefined {
  return metadata?.annotations?.[READY_AT_ANNOTATION];
}

function revisionHash({ metadata }: ControllerRevision): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

export function currentHash({ metadata }: SidecarSet): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

// Finds the revision that an undo returns to, from its pods.

/** `revisions`: revisions of all SidecarSets. The facts hold only this SidecarSet's, newest first. */
export function outcomeFacts(
  sidecarSet: SidecarSet,
  revisions: readonly ControllerRevision[],
  pods: Sequence<PodState>,
): OutcomeFacts {
  const running = new Map<string, number>();
  const ready = new Map<string, number>();
  const add = (counts: Map<string, number>, hash: string) => counts.set(hash, (counts.get(hash) ?? 0) + 1);
  each(pods, ({ pod, isReady, isConsistent }) => {
    const hash = recordedHash(pod.metadata?.annotations?.[HASH_ANNOTATION], sidecarSet.metadata?.name ?? "");
    add(running, hash);
    if (isReady && isConsistent) add(ready, hash);
  });
  const own = revisions.filter((one) => isControlledBy(one, sidecarSet)).toSorted((a, b) => compareRevisions(b, a));
  const count = (counts: ReadonlyMap<string, number>, revision: ControllerRevision) =>
    counts.get(hashOf(revision)) ?? 0;
  return {
    sidecarSet,
    revisions: own,
    runningPods: (revision) => count(running, revision),
    readyPods: (revision) => count(ready, revision),
  };
}

/** The newest revision that is not given up and not known to have failed. */
export function wayBack(facts: OutcomeFacts): ControllerRevision | undefined {
  const current = hashOf(facts.sidecarSet);
  return facts.revisions.find((one) => hashOf(one) !== current && isWayBack(revisionOutcome(one, facts)));
}

function hashOf({ metadata }: Pick<ControllerRevision, "metadata">): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

// The advice about a failing release. It names an undo only if there is a revision to return to.

/** `name`: name of the SidecarSet. `hasWayBack`: undefined when the revisions were not read. */
export function undoHint(name: string, hasWayBack: boolean | undefined): string {
  if (hasWayBack) return commandText`sidecarset undo ${name}, or set another image`;
  if (hasWayBack === undefined) return commandText`set another image; sidecarset history ${name} shows the revisions`;
  return "set another image: no revision is kept that undo would go back to";
}

// Finds the ControllerRevision of the current SidecarSet: the newest, an older one, or a new one.

export interface RevisionsSeen {
  readonly sidecarSet: SidecarSet;
  /** all revisions with the label, with any owner */
  readonly revisions: readonly ControllerRevision[];
  /** existing objects whose names a new revision needed */
  readonly taken: readonly ControllerRevision[];
}

export interface HistoryPlan {
  readonly actions: readonly Action[];
  readonly latest: { readonly name: string; readonly collisionCount: number };
}

/** The SidecarSet's current revision and the actions that record it. */
interface Registered {
  readonly actions: readonly Action[];
  readonly latest: ControllerRevision;
  /** revisions after the actions, oldest first; `latest` is one of them */
  readonly history: readonly ControllerRevision[];
  readonly collisionCount: number;
}

/** The history after this pass. Revisions that `matched` pods run are not deleted. */
export function planHistory(
  seen: RevisionsSeen,
  matched: Iterable<Pick<PodState, "pod">>,
  namespace: string,
): HistoryPlan {
  const { actions, latest, history, collisionCount } = register(seen, namespace);
  return {
    actions: [
      ...actions,
      ...labelCustomVersion(seen.sidecarSet, latest, namespace),
      ...truncateHistory(seen.sidecarSet, { history, latest, matched }, namespace),
    ],
    latest: { name: nameOf(latest), collisionCount },
  };
}

function register(seen: RevisionsSeen, namespace: string): Registered {
  const { sidecarSet } = seen;
  const collisionCount = sidecarSet.status?.collisionCount ?? 0;
  const history = seen.revisions.filter((revision) => isOwn(revision, sidecarSet)).sort(compareRevisions);
  const last = history.at(-1);
  const next = (last?.revision ?? 0) + 1;
  const candidate = newRevision(sidecarSet, { revision: next, collisionCount, namespace });
  const equal = history.findLast((revision) => isSameRevision(revision, candidate));
  if (equal === undefined) return create(seen, candidate, history, collisionCount);
  if (equal === last) return { actions: [], latest: equal, history, collisionCount };
  const latest = { ...equal, revision: next };
  return {
    actions: [{ kind: "RenumberRevision", name: nameOf(equal), namespace, revision: next }],
    latest,
    history: [...history.filter((revision) => revision !== equal), latest],
    collisionCount,
  };
}

/**
 * Creates the revision under the first free name, or finds the same revision under a taken name. Compat: a found
 * revision is neither labelled nor renumbered, and the hash label comes from the first name (reconcile,
 * revision-exists-unlabelled-same-data and revision-name-collision).
 */
function create(
  { sidecarSet, revisions, taken }: RevisionsSeen,
  candidate: ControllerRevision,
  history: readonly ControllerRevision[],
  collisionCount: number,
): Registered {
  const existing = new Map([...revisions, ...taken].map((revision) => [nameOf(revision), revision]));
  const text = revisionText(candidate.data);
  for (let count = collisionCount; ; count++) {
    const name = revisionName(sidecarSet.metadata?.name ?? "", text, count);
    const there = existing.get(name);
    if (there === undefined) {
      const latest = { ...candidate, metadata: { ...candidate.metadata, name } };
      const actions: readonly Action[] = [{ kind: "CreateRevision", revision: latest }];
      return { actions, latest, history: [...history, latest], collisionCount: count };
    }
    if (revisionText(there.data) === text) {
      return { actions: [], latest: there, history: [...history, there], collisionCount: count };
    }
  }
}

/** Moves custom version labels to the latest revision. A label that the spec no longer asks for stays. */
function labelCustomVersion({ spec }: SidecarSet, latest: ControllerRevision, namespace: string): readonly Action[] {
  const { customVersion } = spec;
  if (!customVersion || latest.metadata?.labels?.[CUSTOM_VERSION_LABEL] === customVersion) return [];
  return [{ kind: "LabelRevision", name: nameOf(latest), namespace, customVersion }];
}

function nameOf({ metadata }: ControllerRevision): string {
  return metadata?.name ?? "";
}

/** Finds the old ControllerRevisions that a pass deletes. A revision that is still referenced stays. */
const DEFAULT_LIMIT = 10;

interface History {
  /** revisions, oldest first */
  readonly history: readonly ControllerRevision[];
  readonly latest: ControllerRevision;
  readonly matched: Iterable<Pick<PodState, "pod">>;
}

/** Deletes the oldest revisions down to the limit. Revisions in use stay, even above the limit. */
function truncateHistory(sidecarSet: SidecarSet, seen: History, namespace: string): readonly Action[] {
  const limit = Math.max(1, sidecarSet.spec.revisionHistoryLimit ?? DEFAULT_LIMIT);
  const excess = seen.history.length - limit;
  if (excess <= 0) return [];
  const inUse = namesInUse(sidecarSet, seen);
  const unused = seen.history.filter(
    (revision) => revision !== seen.latest && !inUse.has(revision.metadata?.name ?? ""),
  );
  return unused.slice(0, excess).map(({ metadata }) => ({
    kind: "DeleteRevision",
    name: metadata?.name ?? "",
    namespace,
    ...(metadata?.uid === undefined ? {} : { uid: metadata.uid }),
    ...(metadata?.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
  }));
}

/** The revisions that a pod names, or that the injection strategy names by name or custom version. */
function namesInUse(sidecarSet: SidecarSet, { history, matched }: History): ReadonlySet<string> {
  const { revisionName, customVersion } = sidecarSet.spec.injectionStrategy?.revision ?? {};
  // An empty version means revisions without the label, as a missing key does in Go.
  const byVersion = history
    .filter(({ metadata }) => (metadata?.labels?.[CUSTOM_VERSION_LABEL] ?? "") === customVersion)
    .sort(compareRevisions)
    .at(-1);
  const sidecarSetName = sidecarSet.metadata?.name ?? "";
  const names = new Set<string>();
  for (const name of [revisionName, byVersion?.metadata?.name]) if (name) names.add(name);
  for (const { pod } of matched) {
    const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
    const name = records[sidecarSetName]?.controllerRevision;
    if (name) names.add(name);
  }
  return names;
}
