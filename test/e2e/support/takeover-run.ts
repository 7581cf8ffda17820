/**
 * Runs a takeover: the reference makes some turns of a sequence, and the product makes the rest. The results are
 * compared.
 */
import { READY_AT_ANNOTATION } from "../../../shared/api/names.ts";
import { type Difference, formatDifference } from "../../runner/compare.ts";
import { compareRound, take } from "../../runner/suites/reconcile.ts";
import { ReconcileCluster } from "../../runner/suites/reconcile-cluster.ts";
import { afterReference, type ReferenceSequence, type Turn } from "./reference-sequence.ts";
import { countsOf, type TakenOver, type Written } from "./taken-over.ts";
import { until } from "./until.ts";

/** The namespaces of all sequences. */
export const SEQUENCE_NAMESPACES: ReadonlySet<string> = new Set(["default", "ns-a", "ns-b", "ns-c"]);

const VERSION_ANNOTATION = /^version(alt)?\.sidecarset\.kruise\.io\//;

function namesIn({ sidecarSets, pods }: ReconcileCluster): string {
  return [...sidecarSets.keys(), ...pods.keys()].toSorted().join(", ");
}

/** Copies the parts that can change. */
function copyOf(model: ReconcileCluster): ReconcileCluster {
  const copy = new ReconcileCluster();
  for (const object of [...model.sidecarSets.values(), ...model.pods.values(), ...model.revisions.values()])
    copy.add(object);
  return copy;
}

/**
 * Removes what a pass of the product additionally records on a revision when its rollout completes
 * (docs/annotations.md).
 */
function asTheyLeaveThem(model: ReconcileCluster): void {
  for (const [key, revision] of model.revisions) {
    const { annotations, ...metadata } = revision.metadata ?? {};
    const { [READY_AT_ANNOTATION]: _, ...theirs } = annotations ?? {};
    const kept = Object.keys(theirs).length > 0 ? { ...metadata, annotations: theirs } : metadata;
    model.revisions.set(key, { ...revision, metadata: kept });
  }
}

/** Compares statuses. Both write a status before they change a pod; the product writes another one afterwards. */
function compareWithTheirs(seen: ReconcileCluster, turn: Turn, written: Written, path: string): readonly Difference[] {
  const { sidecarSet: name, expected } = turn;
  const set = seen.sidecarSets.get(name);
  if (set) seen.sidecarSets.set(name, { ...set, status: written.status ?? {} });
  seen.events = [...written.events];
  asTheyLeaveThem(seen);
  if (set) return compareRound(seen, name, expected, path);
  // The garbage collector also deletes revisions, which the reference's test cluster does not do.
  seen.revisions.clear();
  return compareRound(seen, name, { ...expected, controllerRevisions: [] }, path);
}

export class TakeoverRun {
  /** the cluster at the last read */
  seen = new ReconcileCluster();
  readonly #cluster: TakenOver;
  readonly #isOlder: boolean;
  /** SidecarSet's version in the product's passes → the reference's version */
  readonly #versions = new Map<string, string>();

  constructor(cluster: TakenOver, isOlder: boolean) {
    this.#cluster = cluster;
    this.#isOlder = isOlder;
  }

  /** Loads the cluster after `count` turns. */
  async begin(sequence: ReferenceSequence, count: number): Promise<void> {
    const model = afterReference(sequence, count);
    await this.#cluster.load(model, this.#isOlder);
    await this.#lookFor(model);
  }

  /** Waits until the API server shows writes that went directly to etcd. */
  async #lookFor(model: ReconcileCluster): Promise<void> {
    const wanted = namesIn(model);
    const isThere = async () => {
      await this.look();
      return namesIn(this.seen) === wanted;
    };
    await until(wanted, isThere);
  }

  async look(): Promise<void> {
    this.seen = await this.#cluster.read(SEQUENCE_NAMESPACES);
  }

  /** Makes the changes of other writers before the turn. */
  async prepare(turn: Turn): Promise<void> {
    const steps = (model: ReconcileCluster) => {
      for (const step of turn.before) take(model, step);
    };
    await this.#cluster.change(this.seen, steps, this.#isOlder);
    await this.#lookFor(this.seen);
    this.noteVersion(turn);
  }

  /** Remembers the reference's version that belongs to the next pass' version. */
  noteVersion({ sidecarSet, expected }: Turn): void {
    const { resourceVersion = "" } = this.seen.sidecarSets.get(sidecarSet)?.metadata ?? {};
    this.#versions.set(resourceVersion, expected.sidecarSetResourceVersionAtRead);
  }

  /** Returns the last read cluster with the reference's versions of the SidecarSet. */
  inTheirVersions(): ReconcileCluster {
    const model = copyOf(this.seen);
    for (const key of model.pods.keys()) {
      model.updatePod(key, (pod) => {
        const annotations = Object.entries(pod.metadata?.annotations ?? {}).map(
          ([name, value]) =>
            [name, VERSION_ANNOTATION.test(name) ? (this.#versions.get(value) ?? value) : value] as const,
        );
        return { ...pod, metadata: { ...pod.metadata, annotations: Object.fromEntries(annotations) } };
      });
    }
    return model;
  }

  /** Returns the differences from the reference; at rest also every write of a pod. */
  async ourTurn(turn: Turn, path: string) {
    const before = this.inTheirVersions();
    const status = countsOf(before.sidecarSets.get(turn.sidecarSet)) ?? {};
    const written = { status, ...(await this.#cluster.pass(turn.sidecarSet, turn.now)) };
    await this.look();
    const differences = compareWithTheirs(this.inTheirVersions(), turn, written, path).map(formatDifference);
    const [report] = written.report.sidecarSets;
    const isAsExpected = report?.stop === (before.sidecarSets.has(turn.sidecarSet) ? "oneRound" : "gone");
    if (!isAsExpected) differences.unshift(`${path}: ${JSON.stringify(written.report)}`);
    const isAtRest = !compareRound(before, turn.sidecarSet, turn.expected, "$").some((one) =>
      one.path.startsWith("$.pods"),
    );
    if (isAtRest && written.podWrites > 0) differences.push(`${path}: ${written.podWrites} writes at rest`);
    return { differences, isAtRest, podWrites: written.podWrites };
  }
}
