/** The ControllerRevision of the current SidecarSet: the newest, an older one, or a new one. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Action } from "../../actions.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { compareRevisions, isOwn, isSameRevision } from "../../sidecarset/revision/compare-revisions.ts";
import { newRevision, revisionName, revisionText } from "../../sidecarset/revision/recorded-revision.ts";

export interface RevisionsSeen {
  readonly sidecarSet: SidecarSet;
  /** all with the label, whatever owns them */
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
  /** oldest first, after the actions; `latest` is among them */
  readonly history: readonly ControllerRevision[];
  readonly collisionCount: number;
}

/** Revisions that `matched` pods run are not deleted. */
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

/** Tells which old ControllerRevisions a pass deletes, and which stay because something still refers to them. */
const DEFAULT_LIMIT = 10;

interface History {
  /** oldest first */
  readonly history: readonly ControllerRevision[];
  readonly latest: ControllerRevision;
  readonly matched: Iterable<Pick<PodState, "pod">>;
}

/** Deletes the oldest revisions down to the limit. Revisions in use stay, even beyond the limit. */
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
