/** Decides which ControllerRevision stands for the SidecarSet as it is: the newest, an older one, or a new one. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Action } from "../../actions.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { compareRevisions, isOwn, isSameRevision } from "../../sidecarset/revision/compare-revisions.ts";
import { newRevision, revisionName } from "../../sidecarset/revision/new-revision.ts";
import { revisionText } from "../../sidecarset/revision/revision-data.ts";

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

/** Decides which old ControllerRevisions are deleted, and which are kept because something still refers to them. */
const DEFAULT_LIMIT = 10;

interface History {
  /** oldest first */
  readonly history: readonly ControllerRevision[];
  readonly latest: ControllerRevision;
  readonly matched: Iterable<Pick<PodState, "pod">>;
}

/** Oldest first, until the limit is kept. If too many are in use, more than the limit stay. */
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

/** Named by a pod or by the injection strategy, there by name or by custom version. */
function namesInUse(sidecarSet: SidecarSet, { history, matched }: History): ReadonlySet<string> {
  const { revisionName, customVersion } = sidecarSet.spec.injectionStrategy?.revision ?? {};
  // One that is empty stands for the revisions without the label, as a missing key does in Go.
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
