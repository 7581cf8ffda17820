/** Decides what became of each revision of a SidecarSet, and which of them a rollout may go back to unless one is named. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { GIVEN_UP_ANNOTATION, HASH_ANNOTATION, READY_AT_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { GivenUp } from "../../pod/steering/annotations.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { undoneBefore } from "../halt/undone.ts";

/** `unknown`: the revision is older than the first record of a revision that was ready. */
export type RevisionOutcome = GivenUp | "ready" | "rolling out" | "no pods" | "never ready" | "unknown";

export interface OutcomeFacts {
  readonly sidecarSet: SidecarSet;
  /** of this SidecarSet */
  readonly revisions: readonly ControllerRevision[];
  /** pods that are ready with a revision now */
  readonly readyPods: (revision: ControllerRevision) => number;
  /** pods that run a revision now */
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

/** True for a revision that worked, or of which nobody remembers that it did not. */
export function isWayBack(outcome: RevisionOutcome): boolean {
  return outcome === "ready" || outcome === "unknown";
}

/** Undefined for a release that nobody gave up, and where the annotation cannot be read. */
export function whyGivenUp(sidecarSet: SidecarSet, hash: string): GivenUp | undefined {
  const found = steeringOf(sidecarSet).givenUp.findLast((one) => one.hash === hash);
  return found?.outcome ?? (undoneBefore(sidecarSet, hash) === undefined ? undefined : "halted");
}

/** The annotation after the current release was given up for `target`, which counts as good again. */
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

/** The last pass saw the current release halted. */
export function isHalted({ status }: SidecarSet): boolean {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  return blocked?.status === "True" && blocked.reason === "Halted";
}

/** Passes wrote down which revisions were ready when this one was created. */
function isRemembered({ metadata }: ControllerRevision, revisions: readonly ControllerRevision[]): boolean {
  const created = metadata?.creationTimestamp ?? "";
  return revisions.some((one) => {
    const at = readyAt(one);
    return at !== undefined && at <= created;
  });
}

/** When a pass first saw a revision's rollout complete, RFC3339. */
export function readyAt({ metadata }: ControllerRevision): string | undefined {
  return metadata?.annotations?.[READY_AT_ANNOTATION];
}

function revisionHash({ metadata }: ControllerRevision): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

export function currentHash({ metadata }: SidecarSet): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}
