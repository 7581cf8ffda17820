/**
 * A takeover: the reference makes some turns of a sequence, and the product makes the others, compared with the
 * reference's.
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

/** A copy of the parts that can change. */
function copyOf(model: ReconcileCluster): ReconcileCluster {
  const copy = new ReconcileCluster();
  for (const object of [...model.sidecarSets.values(), ...model.pods.values(), ...model.revisions.values()])
    copy.add(object);
  return copy;
}

/** A pass of the product also records on a revision when its rollout was complete (docs/annotations.md). */
function asTheyLeaveThem(model: ReconcileCluster): void {
  for (const [key, revision] of model.revisions) {
    const { annotations, ...metadata } = revision.metadata ?? {};
    const { [READY_AT_ANNOTATION]: _, ...theirs } = annotations ?? {};
    const kept = Object.keys(theirs).length > 0 ? { ...metadata, annotations: theirs } : metadata;
    model.revisions.set(key, { ...revision, metadata: kept });
  }
}

/** Compares statuses. Both write one before they touch any pod; the product writes another one afterwards. */
function compareWithTheirs(seen: ReconcileCluster, turn: Turn, written: Written, path: string): readonly Difference[] {
  const { sidecarSet: name, expected } = turn;
  const set = seen.sidecarSets.get(name);
  if (set) seen.sidecarSets.set(name, { ...set, status: written.status ?? {} });
  seen.events = [...written.events];
  asTheyLeaveThem(seen);
  if (set) return compareRound(seen, name, expected, path);
  // Its revisions are deleted too, which the reference's test cluster does not do.
  seen.revisions.clear();
  return compareRound(seen, name, { ...expected, controllerRevisions: [] }, path);
}

export class TakeoverRun {
  /** the cluster as last read */
  seen = new ReconcileCluster();
  readonly #cluster: TakenOver;
  readonly #isOlder: boolean;
  /** Versions of the SidecarSet that the product's passes saw → the reference's versions. */
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

  /** The API server may need a moment to see writes that went to etcd directly. */
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

  /** Other writers' changes before the turn. */
  async prepare(turn: Turn): Promise<void> {
    const steps = (model: ReconcileCluster) => {
      for (const step of turn.before) take(model, step);
    };
    await this.#cluster.change(this.seen, steps, this.#isOlder);
    await this.#lookFor(this.seen);
    this.noteVersion(turn);
  }

  /** Maps the next pass' version to the reference's. */
  noteVersion({ sidecarSet, expected }: Turn): void {
    const { resourceVersion = "" } = this.seen.sidecarSets.get(sidecarSet)?.metadata ?? {};
    this.#versions.set(resourceVersion, expected.sidecarSetResourceVersionAtRead);
  }

  /** The last read cluster, with the reference's versions of the SidecarSet. */
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

  /** The differences to the reference; at rest also any write of a pod. */
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
