/** Decides whether there is a revision that an undo goes back to, by what its pods show. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import { commandText } from "../../pod/command-text.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { recordedHash } from "../../pod/recorded-hash.ts";
import { compareRevisions } from "../../sidecarset/revision/compare-revisions.ts";
import { isControlledBy } from "../../sidecarset/revision/is-controlled-by.ts";
import { isWayBack, type OutcomeFacts, revisionOutcome } from "./outcomes.ts";

/** `revisions`: of all SidecarSets. The facts have those of this one, newest first. */
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

/** The newest revision that was not given up, and of which nobody knows that it never worked. */
export function wayBack(facts: OutcomeFacts): ControllerRevision | undefined {
  const current = hashOf(facts.sidecarSet);
  return facts.revisions.find((one) => hashOf(one) !== current && isWayBack(revisionOutcome(one, facts)));
}

function hashOf({ metadata }: Pick<ControllerRevision, "metadata">): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

// What is advised about a release that fails: an undo only where it has a revision to go back to.

/** `name` is the SidecarSet's. `hasWayBack` is undefined where nobody looked at the revisions. */
export function undoHint(name: string, hasWayBack: boolean | undefined): string {
  if (hasWayBack) return commandText`sidecarset undo ${name}, or set another image`;
  if (hasWayBack === undefined) return commandText`set another image; sidecarset history ${name} shows the revisions`;
  return "set another image: no revision is kept that undo would go back to";
}
