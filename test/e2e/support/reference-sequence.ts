/** A sequence of OpenKruise's own reconciles, with the cluster after each. */
import { readFileSync } from "node:fs";
import type { ControllerRevision, KubernetesObject, Namespace } from "../../../shared/api/kubernetes.ts";
import { withCondition } from "../../runner/suites/pod-update.ts";
import {
  type Reconciled,
  type ReconcileExpectation,
  type ReconcileInput,
  type ReconcileStep,
  take,
} from "../../runner/suites/reconcile.ts";
import { ReconcileCluster } from "../../runner/suites/reconcile-cluster.ts";

export interface ReferenceSequence {
  readonly name: string;
  readonly input: ReconcileInput;
  readonly expected: ReconcileExpectation;
}

/** One reconcile, and the acts of users, kubelets and owners before it. */
export interface Turn {
  readonly before: readonly Exclude<ReconcileStep, { readonly op: "reconcile" }>[];
  readonly sidecarSet: string;
  readonly now: string;
  readonly expected: Reconciled;
}

/** @param file of test/vectors/controller, such as hot-upgrade */
export function readSequences(file: string): readonly ReferenceSequence[] {
  const text = readFileSync(new URL(`../../vectors/controller/${file}.json`, import.meta.url), "utf8");
  return (JSON.parse(text) as readonly ReferenceSequence[]).map((one) => ({ ...one, name: `${file}: ${one.name}` }));
}

/**
 * Returns the sequence with new uids, because the garbage collector remembers deleted owners. The reference's versions
 * of the SidecarSet become numbers that no API server reaches here.
 */
export function asNew(sequence: ReferenceSequence, suffix: string): ReferenceSequence {
  const versions = new Set(sequence.expected.reconciles.map((one) => one.sidecarSetResourceVersionAtRead));
  const text = JSON.stringify(sequence)
    .replaceAll(/"uid-([\w-]+)"/g, `"uid-$1-${suffix}"`)
    .replaceAll(/"(\d+)"/g, (quoted, digits: string) => (versions.has(digits) ? `"${farVersion(digits)}"` : quoted));
  return JSON.parse(text) as ReferenceSequence;
}

const farVersion = (version: string) => `90000${version}`;

export function turnsOf({ input, expected }: ReferenceSequence): readonly Turn[] {
  const turns: Turn[] = [];
  let before: Turn["before"][number][] = [];
  for (const step of input.steps) {
    if (step.op !== "reconcile") {
      before.push(step);
      continue;
    }
    const wanted = expected.reconciles[turns.length];
    if (wanted === undefined) throw new Error(`no expectation for reconcile ${turns.length}`);
    turns.push({ before, sidecarSet: step.sidecarSet, now: step.now, expected: wanted });
    before = [];
  }
  return turns;
}

/** Returns the cluster after the first `count` turns, all made by the reference. */
export function afterReference(sequence: ReferenceSequence, count: number): ReconcileCluster {
  const cluster = new ReconcileCluster();
  for (const object of sequence.input.objects) cluster.add(object);
  for (const { before, sidecarSet, expected } of turnsOf(sequence).slice(0, count)) {
    for (const step of before) take(cluster, step);
    leaveBehind(cluster, sidecarSet, expected);
  }
  return cluster;
}

/** Gives the cluster the state after the reference's reconcile. */
function leaveBehind(cluster: ReconcileCluster, name: string, expected: Reconciled): void {
  const set = cluster.sidecarSets.get(name);
  if (set && expected.sidecarSetStatus)
    cluster.sidecarSets.set(name, { ...set, status: { ...expected.sidecarSetStatus } });
  cluster.revisions.clear();
  for (const view of expected.controllerRevisions) cluster.add(revisionOf(view));
  for (const [key, { annotations, images, sidecarSetUpgradableCondition }] of Object.entries(expected.pods)) {
    cluster.updatePod(key, (pod) => {
      const containers = pod.spec.containers.map((one) => ({ ...one, image: images[one.name] ?? one.image ?? "" }));
      const metadata = { ...pod.metadata, annotations };
      const written = { ...pod, metadata, spec: { ...pod.spec, containers } };
      return sidecarSetUpgradableCondition ? withCondition(written, sidecarSetUpgradableCondition) : written;
    });
  }
}

function revisionOf({ dataRaw, revision, ...metadata }: Readonly<Record<string, unknown>>): ControllerRevision {
  const kept = Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null));
  const data: unknown = JSON.parse(String(dataRaw));
  return { apiVersion: "apps/v1", kind: "ControllerRevision", metadata: kept, data, revision: Number(revision) };
}

/** Returns all objects of the cluster as etcd would hold them. */
export function objectsOf({ sidecarSets, pods, revisions, namespaces }: ReconcileCluster): readonly KubernetesObject[] {
  return [...namespaces.map(activeNamespace), ...sidecarSets.values(), ...pods.values(), ...revisions.values()];
}

function activeNamespace(namespace: Namespace): KubernetesObject {
  const uid = `uid-${namespace.metadata?.name}`;
  const rest = { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } };
  return { ...namespace, metadata: { uid, ...namespace.metadata }, ...rest } as KubernetesObject;
}
