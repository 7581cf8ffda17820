/** The outcome of each revision of a SidecarSet, and the revision that a rollback goes to by default. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { GIVEN_UP_ANNOTATION, HASH_ANNOTATION, READY_AT_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import { commandText } from "../../pod/command-text.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { recordedHash } from "../../pod/recorded-hash.ts";
import type { GivenUp } from "../../pod/steering/annotations.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { compareRevisions, isControlledBy } from "../../sidecarset/revision/compare-revisions.ts";
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

/** The most severe word that fits. */
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

/** Why a release was given up. Undefined: nobody gave it up, or the annotation cannot be read. */
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

// The revision that an undo goes back to, judged by its pods.

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

/** The newest revision that nobody gave up and that is not known to have failed. */
export function wayBack(facts: OutcomeFacts): ControllerRevision | undefined {
  const current = hashOf(facts.sidecarSet);
  return facts.revisions.find((one) => hashOf(one) !== current && isWayBack(revisionOutcome(one, facts)));
}

function hashOf({ metadata }: Pick<ControllerRevision, "metadata">): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

// The advice about a failing release: an undo only when there is a revision to go back to.

/** `name`: name of the SidecarSet. `hasWayBack`: undefined when the revisions were not read. */
export function undoHint(name: string, hasWayBack: boolean | undefined): string {
  if (hasWayBack) return commandText`sidecarset undo ${name}, or set another image`;
  if (hasWayBack === undefined) return commandText`set another image; sidecarset history ${name} shows the revisions`;
  return "set another image: no revision is kept that undo would go back to";
}
