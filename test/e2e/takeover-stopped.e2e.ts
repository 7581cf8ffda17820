/**
 * Stops a pass anywhere. The state must be one that OpenKruise leaves too when it is stopped: each object is as before
 * or as after OpenKruise's reconcile, in the order of its writes. From there the cluster must reach OpenKruise's end.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import { parseUpgradeRecords } from "../../shared/core/pod/pod-records.ts";
import { type FaultyCluster, faultyCluster } from "../controller/faults.ts";
import { compareRound, type Reconciled, revisionViews } from "../runner/suites/reconcile.ts";
import type { ReconcileCluster } from "../runner/suites/reconcile-cluster.ts";
import { controlPlane } from "./support/access.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { asNew, type ReferenceSequence, readSequences, type Turn, turnsOf } from "./support/reference-sequence.ts";
import { IS_SOAK } from "./support/size.ts";
import { TakenOver } from "./support/taken-over.ts";
import { SEQUENCE_NAMESPACES, TakeoverRun } from "./support/takeover-run.ts";

let functions: Functions;
let cluster: TakenOver;
beforeAll(async () => {
  // The reference's SidecarSets patch these annotations into pods.
  functions = await startFunctions(controlPlane(), { hasTicks: false, fenceAnnotations: ["k", "keep", "oom", "over"] });
  cluster = await TakenOver.connect(controlPlane());
  // Only the garbage collector deletes the revisions that other tests left.
  await cluster.clear(SEQUENCE_NAMESPACES);
  await cluster.addNode("n1");
});
afterEach(() => cluster.clear(SEQUENCE_NAMESPACES));
afterAll(async () => {
  await cluster?.removeNode("n1");
  await functions?.close();
});

const SEQUENCES = ["reconcile", "hot-upgrade"].flatMap(readSequences);

/** Turns in which the reference writes to pods. CI tests one of each kind. */
const IN_CI: Readonly<Record<string, number>> = {
  "reconcile: max2-percent-with-readiness": 1,
  "reconcile: patch-pod-metadata-with-image": 1,
  "reconcile: immutable-change-then-revert": 1,
  "reconcile: revisions-truncate-limit-2": 5,
  "hot-upgrade: basic-flip": 1,
  "hot-upgrade: three-pods-flip-before-next-pod": 2,
};

function turnsToStop(sequence: ReferenceSequence): readonly number[] {
  if (!IS_SOAK) return [IN_CI[sequence.name] ?? []].flat();
  const views = sequence.expected.reconciles.map(({ pods }) => JSON.stringify(pods));
  return views.flatMap((view, index) => (index > 0 && view !== views[index - 1] ? [index] : []));
}

const CASES = SEQUENCES.flatMap((sequence) =>
  turnsToStop(sequence).map((index) => [`${sequence.name}, turn ${index}`, sequence, index] as const),
);

/** Returns the revisions that a pod names as its upgrade. */
function revisionsNamedBy(pod: Pod): readonly string[] {
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
  return Object.values(records).flatMap(({ controllerRevision }) => controllerRevision ?? []);
}

/** Returns the differences between one pod and the reference's pod. */
function differencesOf(seen: ReconcileCluster, key: string, turn: Turn, expected: Reconciled): readonly string[] {
  const path = `$.pods[${JSON.stringify(key)}]`;
  const all = compareRound(seen, turn.sidecarSet, expected, "$");
  return all.filter((one) => one.path === path || one.path.startsWith(`${path}.`)).map(({ path: where }) => where);
}

const ofCondition = (path: string) => path.includes(".sidecarSetUpgradableCondition");

/** Returns why the reference never passes through this state. The reference writes a pod before its condition. */
function objections(before: ReconcileCluster, seen: ReconcileCluster, turn: Turn): readonly string[] {
  const asBefore: Reconciled = { ...turn.expected, pods: viewsOf(before, turn) };
  const torn = [...seen.pods.keys()].filter((key) => {
    const fromBefore = differencesOf(seen, key, turn, asBefore);
    const fromAfter = differencesOf(seen, key, turn, turn.expected);
    return fromBefore.length > 0 && !fromAfter.every(ofCondition);
  });
  const revisions = new Set([...seen.revisions.values()].map(({ metadata }) => metadata?.name));
  const known = new Set([...before.pods.values()].flatMap(revisionsNamedBy));
  const named = [...seen.pods.values()].flatMap(revisionsNamedBy).filter((name) => !known.has(name));
  const latest = seen.sidecarSets.get(turn.sidecarSet)?.status?.latestRevision;
  const missing = [...named, ...(latest ? [latest] : [])].filter((name) => !revisions.has(name));
  return [...torn.map((key) => `${key} is half written`), ...missing.map((name) => `revision ${name} is missing`)];
}

/** Returns pods in the form of the reference's expectations. */
function viewsOf(model: ReconcileCluster, turn: Turn): Reconciled["pods"] {
  const empty = { ...turn.expected, pods: {} };
  const found = compareRound(model, turn.sidecarSet, empty, "$").filter(({ path }) => path.startsWith("$.pods["));
  return Object.fromEntries(
    found.map(({ path, actual }) => [JSON.parse(path.slice("$.pods[".length, -1)) as string, rawView(actual)]),
  );
}

/** Parses annotations, so that JSON is compared. */
function rawView(view: unknown): Reconciled["pods"][string] {
  const { annotations, ...rest } = view as Reconciled["pods"][string];
  const texts = Object.entries(annotations).map(([key, value]) => [
    key,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  return { ...rest, annotations: Object.fromEntries(texts) };
}

const historyOf = (views: readonly unknown[]) =>
  (views as Reconciled["controllerRevisions"]).map(({ name, revision, dataRaw }) => `${revision} ${name} ${dataRaw}`);

/** Two passes may delete more old revisions than one. The kept revisions must be the reference's. */
function historyObjections({ revisions }: ReconcileCluster, { expected }: Turn): readonly string[] {
  const theirs = historyOf(expected.controllerRevisions);
  const ours = historyOf(revisionViews(revisions.values()));
  const foreign = ours.filter((view) => !theirs.includes(view));
  return ours.at(-1) === theirs.at(-1) ? foreign : [...foreign, "the newest revision is another one"];
}

let stops = 0;

/** Stops a pass at a call; returns undefined if the pass made fewer calls. */
async function stopAt(
  sequence: ReferenceSequence,
  index: number,
  call: number,
): Promise<readonly string[] | undefined> {
  stops += 1;
  const fresh = asNew(sequence, `stop-${stops}`);
  const turn = turnsOf(fresh)[index] as Turn;
  const run = new TakeoverRun(cluster, false);
  await run.begin(fresh, index);
  await run.prepare(turn);
  const before = run.inTheirVersions();
  let faulty: FaultyCluster | undefined;
  const pass = cluster.pass(turn.sidecarSet, turn.now, (through) => {
    faulty = faultyCluster(through, "killAfter", (at) => at === call);
    return faulty;
  });
  const isWhole = await Promise.race([pass.then(() => true), faulty?.struck.then(() => false)]);
  await run.look();
  run.noteVersion(turn);
  const found = objections(before, run.inTheirVersions(), turn);
  const { differences } = await run.ourTurn(turn, `stopped after call ${call}`);
  await cluster.clear(SEQUENCE_NAMESPACES);
  // A pod that was written to before the stop keeps its condition. OpenKruise does not return to it either.
  const after = differences.filter((text) => /\.pods\b/.test(text) && !ofCondition(text));
  const history = historyObjections(run.seen, turn);
  return isWhole ? undefined : [...[...found, ...history].map((text) => `call ${call}: ${text}`), ...after];
}

describe("OpenKruise continues after a pass that is stopped after any of its calls", () => {
  it.each(CASES)("%s", async (_name, sequence, index) => {
    const found: string[] = [];
    let call = 0;
    for (; ; call += 1) {
      const objection = await stopAt(sequence, index, call);
      if (objection === undefined) break;
      found.push(...objection);
    }
    addFigure("passes stopped after one of their calls", call);
    expect(found).toEqual([]);
    expect(call).toBeGreaterThan(6);
  });
});
