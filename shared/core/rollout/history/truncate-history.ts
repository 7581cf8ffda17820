/** Decides which old ControllerRevisions are deleted, and which are kept because something still refers to them. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Action } from "../../actions.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { compareRevisions } from "../../sidecarset/revision/compare-revisions.ts";

const DEFAULT_LIMIT = 10;

export interface History {
  /** oldest first */
  readonly history: readonly ControllerRevision[];
  readonly latest: ControllerRevision;
  readonly matched: Iterable<Pick<PodState, "pod">>;
}

/** Oldest first, until the limit is kept. If too many are in use, more than the limit stay. */
export function truncateHistory(sidecarSet: SidecarSet, seen: History, namespace: string): readonly Action[] {
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
