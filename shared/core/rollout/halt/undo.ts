/** Decides whether a SidecarSet whose rollout was stopped is put back to what worked before, and to which revision. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, UNDONE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { recordedHash } from "../../pod/recorded-hash.ts";
import type { Undone } from "../../pod/steering/annotations.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { compareRevisions } from "../../sidecarset/revision/compare-revisions.ts";
import { isControlledBy } from "../../sidecarset/revision/is-controlled-by.ts";
import { restoreRevision } from "../../sidecarset/revision/restore-revision.ts";
import { type RecordedSpec, recordedFields } from "../../sidecarset/revision/revision-data.ts";
import { currentHash, isWayBack, type RevisionOutcome, revisionOutcome, whyGivenUp } from "../history/outcomes.ts";

/** What puts the SidecarSet back, on condition that it is the one that was looked at. */
export interface Undo {
  /** the revision's number */
  readonly revision: number;
  readonly spec: RecordedSpec;
  readonly annotations: Readonly<Record<string, string>>;
  readonly message: string;
}

export interface UndoFacts {
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
    const [to = "", withoutImage = ""] = [annotations[HASH_ANNOTATION], annotations[HASH_WITHOUT_IMAGE_ANNOTATION]];
    return [{ revision, to, withoutImage }];
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
