/**
 * Tests ControllerRevisions over a sequence of changes of a SidecarSet: created, reused, renumbered, labelled,
 * truncated.
 */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { compare, type Difference } from "../compare.ts";
import { revisionViews } from "./reconcile.ts";
import { keyOf, ReconcileCluster } from "./reconcile-cluster.ts";

interface Input {
  readonly cluster: { readonly controllerRevisions?: readonly ControllerRevision[] };
  readonly steps: readonly { readonly sidecarSet: SidecarSet; readonly pods?: readonly Pod[] }[];
}

interface Expected {
  readonly steps: readonly {
    readonly collisionCount: number;
    readonly latestRevision: string;
    readonly history: readonly unknown[];
  }[];
}

const WHEN = { now: "2026-01-02T03:04:05Z", kruiseNamespace: "kruise-system" };

export function revisionSequenceSuite({ cluster: initial, steps }: Input, expected: Expected): readonly Difference[] {
  const cluster = new ReconcileCluster();
  for (const revision of initial.controllerRevisions ?? []) cluster.add(revision);
  const actual = steps.map(({ sidecarSet, pods = [] }) => {
    const name = sidecarSet.metadata?.name ?? "";
    if (cluster.sidecarSets.has(name)) cluster.updateSidecarSet(sidecarSet);
    else cluster.add(sidecarSet);
    cluster.pods.clear();
    for (const pod of pods) cluster.pods.set(keyOf(pod), pod);
    cluster.reconcile(name, WHEN);
    const { collisionCount, latestRevision } = cluster.sidecarSets.get(name)?.status ?? {};
    return { collisionCount, latestRevision, history: revisionViews(cluster.revisions.values()) };
  });
  return compare(actual, expected.steps);
}
