/** Decides which ControllerRevision stands for the SidecarSet as it is: the newest, an older one, or a new one. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Action } from "../../actions.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { compareRevisions, isOwn, isSameRevision } from "../../sidecarset/revision/compare-revisions.ts";
import { newRevision, revisionName } from "../../sidecarset/revision/new-revision.ts";
import { revisionText } from "../../sidecarset/revision/revision-data.ts";
import { truncateHistory } from "./truncate-history.ts";

export interface RevisionsSeen {
  readonly sidecarSet: SidecarSet;
  /** by label, whatever owns them */
  readonly revisions: readonly ControllerRevision[];
  /** found under names that were wanted */
  readonly taken: readonly ControllerRevision[];
}

export interface HistoryPlan {
  readonly actions: readonly Action[];
  readonly latest: { readonly name: string; readonly collisionCount: number };
}

/** The revision that the SidecarSet is at, and what was done for it. */
interface Registered {
  readonly actions: readonly Action[];
  readonly latest: ControllerRevision;
  /** oldest first, as they will be; `latest` is among them */
  readonly history: readonly ControllerRevision[];
  readonly collisionCount: number;
}

/** `matched` pods keep the revisions alive that they were brought to. */
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
 * Under the first free name; or the same revision, found under a name that is taken.
 * Compat: one that is found is neither labelled nor renumbered, and the hash label is that of the first name
 * (reconcile, revision-exists-unlabelled-same-data and revision-name-collision).
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

/** Names of the label are moved to the latest revision; a label that is no longer asked for stays. */
function labelCustomVersion({ spec }: SidecarSet, latest: ControllerRevision, namespace: string): readonly Action[] {
  const { customVersion } = spec;
  if (!customVersion || latest.metadata?.labels?.[CUSTOM_VERSION_LABEL] === customVersion) return [];
  return [{ kind: "LabelRevision", name: nameOf(latest), namespace, customVersion }];
}

function nameOf({ metadata }: ControllerRevision): string {
  return metadata?.name ?? "";
}
