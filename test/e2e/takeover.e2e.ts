/** Takes over a cluster that OpenKruise has managed, at rest and at every point of its rollouts. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { controlPlane } from "./support/access.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { asNew, type ReferenceSequence, readSequences, turnsOf } from "./support/reference-sequence.ts";
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

/** Figures of the run. */
const looked = { takeovers: 0, storedAsV1alpha1: 0, turns: 0, atRest: 0, podWrites: 0 };

afterEach(() => cluster.clear(SEQUENCE_NAMESPACES));
afterAll(async () => {
  await cluster?.removeNode("n1");
  await functions?.close();
});

/** A real garbage collector deletes objects of an owner that does not exist. */
const NOT_ON_A_REAL_CLUSTER = "reconcile: revision-owned-by-someone-else-and-orphan";

/** Random rollouts are similar, so CI tests a third of them. */
const isWanted = ({ name }: ReferenceSequence) =>
  IS_SOAK || Number(/rand-rollout\/(\d+)/.exec(name)?.[1] ?? 0) % 3 === 0;

const SEQUENCES = ["reconcile", "hot-upgrade"]
  .flatMap(readSequences)
  .filter(({ name }) => name !== NOT_ON_A_REAL_CLUSTER)
  .filter(isWanted);

/** Runs a sequence whose first `count` turns are the reference's, and the others the product's. */
async function takeOver(sequence: ReferenceSequence, count: number): Promise<readonly string[]> {
  const isOlder = count % 2 === 1;
  looked.takeovers += 1;
  looked.storedAsV1alpha1 += isOlder ? 1 : 0;
  const fresh = asNew(sequence, String(looked.takeovers));
  const run = new TakeoverRun(cluster, isOlder);
  await run.begin(fresh, count);
  const differences: string[] = [];
  for (const [index, turn] of turnsOf(fresh).entries()) {
    if (index < count) continue;
    await run.prepare(turn);
    const our = await run.ourTurn(turn, `after ${count} turns of theirs, turn ${index}`);
    differences.push(...our.differences);
    looked.turns += 1;
    looked.atRest += our.isAtRest ? 1 : 0;
    looked.podWrites += our.podWrites;
  }
  await cluster.clear(SEQUENCE_NAMESPACES);
  return differences;
}

/** Returns the numbers of turns before the takeover: one for each sequence, all of them in a soak. */
function pointsOf(sequence: ReferenceSequence, index: number): readonly number[] {
  const { length } = sequence.expected.reconciles;
  return IS_SOAK ? [...Array(length).keys()] : [index % length];
}

/** OpenKruise leaves the condition of updated pods at False; docs/compatibility-rollouts.md says why we correct it. */
const IS_MENDED = "reconcile: immutable-change-reverted-exactly";
const OF_MENDING = /\.sidecarSetUpgradableCondition\.|: 2 writes at rest$/;

describe("the product continues rollouts of OpenKruise as OpenKruise would", () => {
  it.each(SEQUENCES.map((sequence, index) => [sequence.name, sequence, pointsOf(sequence, index)] as const))(
    "%s",
    async (name, sequence, points) => {
      for (const point of points) {
        const differences = await takeOver(sequence, point);
        const others = differences.filter((line) => name !== IS_MENDED || !OF_MENDING.test(line));
        expect(others).toEqual([]);
      }
    },
  );

  it("the tests took over finished and running rollouts, in both API versions", () => {
    const { takeovers, turns, atRest, podWrites, storedAsV1alpha1 } = looked;
    addFigure("takeovers from OpenKruise", takeovers);
    addFigure("takeovers of SidecarSets stored as v1alpha1", storedAsV1alpha1);
    addFigure("passes compared with OpenKruise's own", turns);
    addFigure("passes that found nothing to do", atRest);
    addFigure("pod writes that OpenKruise would have made too", podWrites);
    expect(Math.min(atRest, turns - atRest, podWrites, storedAsV1alpha1)).toBeGreaterThan(10);
  });
});
