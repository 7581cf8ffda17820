/** Tests to which release a rollout is undone: pods of only one namespace cannot prove that a release works. */
import { expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import {
  GIVEN_UP_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  READY_AT_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  UNDONE_ANNOTATION,
} from "../../../shared/api/names.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { undoHint, wayBack } from "../../../shared/core/rollout/history/history.ts";
import { planUndo } from "../../../shared/core/rollout/rules/halt/standstill.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { NEW_HASH, NOW, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const SET = sidecarSetOf();
const UNDOING = {
  ...SET,
  metadata: { ...SET.metadata, annotations: { ...SET.metadata?.annotations, [UNDO_ON_HALT_ANNOTATION]: "true" } },
};

function revisionOf(image: string, revision: number): ControllerRevision {
  const sidecarSet = sidecarSetOf({ containers: [{ name: "sc", image }] });
  const made = newRevision(sidecarSet, { revision, collisionCount: 0, namespace: "kruise-system" });
  const annotations = { [HASH_ANNOTATION]: `hash-${revision}`, [HASH_WITHOUT_IMAGE_ANNOTATION]: "same" };
  return { ...made, metadata: { ...made.metadata, annotations } };
}
const REVISIONS = [revisionOf("reg/sc:vulnerable", 1), revisionOf("reg/sc:fixed", 2)];

function stateOf(namespace: string, hash: string, isReady = true) {
  const pod = podOf({ name: `${namespace}-${hash}`, hash, isReady });
  return podStateOf({ ...pod, metadata: { ...pod.metadata, namespace } }, UNDOING, undefined);
}
const FAILING = [stateOf("shop", NEW_HASH, false), stateOf("web", NEW_HASH, false)];

test.each([
  ["the newest older revision if no pod runs another one", [], 2],
  ["the newest older revision even if a pod of one namespace is ready with an older one", ["tenant"], 2],
  ["an older revision that works in two namespaces", ["tenant", "shop"], 1],
])("planUndo chooses %s", (_, namespaces, revision) => {
  const pods = [...FAILING, ...namespaces.map((namespace) => stateOf(namespace, "hash-1"))];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions: REVISIONS, pods, now: NOW })).toMatchObject({ revision });
});

test("planUndo chooses the revision that works if all pods are in one namespace", () => {
  const pods = [stateOf("shop", NEW_HASH, false), stateOf("shop", "hash-1")];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions: REVISIONS, pods, now: NOW })).toMatchObject({ revision: 1 });
});

test("pods that were just written and still run their old containers prove no release", () => {
  const written = { ...stateOf("shop", "hash-1"), isConsistent: false };
  const pods = [stateOf("shop", NEW_HASH, false), written];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions: REVISIONS, pods, now: NOW })).toMatchObject({ revision: 2 });
});

test("an undo never goes back to a release that a person gave up", () => {
  const givenUp = [{ hash: "hash-2", outcome: "aborted", at: NOW }];
  const annotations = { ...UNDOING.metadata.annotations, [GIVEN_UP_ANNOTATION]: JSON.stringify(givenUp) };
  const sidecarSet = { ...UNDOING, metadata: { ...UNDOING.metadata, annotations } };
  const facts = { halt: "pods fail", revisions: REVISIONS, pods: FAILING, now: NOW };
  expect(planUndo(sidecarSet, facts)).toMatchObject({ revision: 1 });
});

/** Returns a SidecarSet with these undone releases as pairs of hashes, the oldest first. */
function undoneBefore(...pairs: readonly (readonly [from: string, to: string])[]) {
  const undone = pairs.map(([from, to]) => ({ from, to, revision: 1, message: `${from} failed`, at: NOW }));
  const annotations = { ...UNDOING.metadata.annotations, [UNDONE_ANNOTATION]: JSON.stringify(undone) };
  return { ...UNDOING, metadata: { ...UNDOING.metadata, annotations } };
}

test.each<[string, readonly (readonly [from: string, to: string])[]]>([
  ["the last", [["hash-2", "hash-1"]]],
  [
    "an earlier one",
    [
      ["hash-2", "hash-1"],
      ["hash-0", "hash-1"],
    ],
  ],
])("an undo never goes back to a release that was undone, even if its pods are ready: %s", (_, pairs) => {
  const pods = [...FAILING, stateOf("shop", "hash-2"), stateOf("web", "hash-2")];
  const facts = { halt: "pods fail", revisions: REVISIONS, pods, now: NOW };
  expect(planUndo(UNDOING, facts)).toMatchObject({ revision: 2 });
  expect(planUndo(undoneBefore(...pairs), facts)).toMatchObject({ revision: 1 });
});

test("a release that came back after an undo is not undone again, and a release that a rollback wrote is not undone", () => {
  const facts = { halt: "pods fail", revisions: REVISIONS, pods: FAILING, now: NOW };
  expect(planUndo(undoneBefore([NEW_HASH, "hash-2"], ["hash-1", "hash-2"]), facts)).toMatch(/^it was undone before/);
  expect(planUndo(undoneBefore(["hash-1", NEW_HASH], ["hash-1", "hash-2"]), facts)).toMatch(
    /^it is what another release/,
  );
});

test("sidecarset undo suggests no release that was undone automatically", () => {
  const wayBackOf = (sidecarSet: typeof UNDOING) => {
    const facts = { sidecarSet, runningPods: () => 0, readyPods: () => 1, revisions: REVISIONS.toReversed() };
    return wayBack(facts)?.revision;
  };
  expect(wayBackOf(UNDOING)).toBe(2);
  expect(wayBackOf(undoneBefore(["hash-2", "hash-1"]))).toBe(1);
});

const readyRevision = (revision: ControllerRevision, at: string): ControllerRevision => ({
  ...revision,
  metadata: { ...revision.metadata, annotations: { ...revision.metadata?.annotations, [READY_AT_ANNOTATION]: at } },
});
const createdAt = (revision: ControllerRevision, creationTimestamp: string): ControllerRevision => ({
  ...revision,
  metadata: { ...revision.metadata, creationTimestamp },
});

test("an undo never goes back to a release that was never ready, even if a pod of one namespace is ready with it", () => {
  const revisions = [
    readyRevision(revisionOf("reg/sc:worked", 1), "2026-01-01T00:00:00Z"),
    createdAt(revisionOf("reg/sc:broken", 2), "2026-01-02T00:00:00Z"),
  ];
  const pods = [...FAILING, stateOf("tenant", "hash-2")];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions, pods, now: NOW })).toMatchObject({ revision: 1 });
});

test("if no revision may have worked, the message names each revision with its outcome", () => {
  const revisions = [
    readyRevision(revisionOf("reg/sc:worked", 1), "2026-01-01T00:00:00Z"),
    createdAt(revisionOf("reg/sc:broken", 2), "2026-01-02T00:00:00Z"),
  ];
  const givenUp = [{ hash: "hash-1", outcome: "undone", at: NOW }];
  const annotations = { ...UNDOING.metadata.annotations, [GIVEN_UP_ANNOTATION]: JSON.stringify(givenUp) };
  const sidecarSet = { ...UNDOING, metadata: { ...UNDOING.metadata, annotations } };
  expect(planUndo(sidecarSet, { halt: "pods fail", revisions, pods: FAILING, now: NOW })).toBe(
    "it is not undone, since no revision is kept that may have worked: 2 (never ready), 1 (undone)",
  );
});

test.each([
  [true, "sidecarset undo ss, or set another image"],
  [false, "set another image: no revision is kept that undo would go back to"],
  [undefined, "set another image; sidecarset history ss shows the revisions"],
])("undoHint names only revisions that were read (a revision to go back to: %s)", (hasWayBack, hint) => {
  expect(undoHint("ss", hasWayBack)).toBe(hint);
});

test("the newest five undos are remembered, so that a release that comes back is not undone again", () => {
  const earlier = [1, 2, 3, 4, 5].map((index) => [`bad-${index}`, "hash-1"] as const);
  const facts = { halt: "pods fail", revisions: REVISIONS, pods: FAILING, now: NOW };
  const undo = planUndo(undoneBefore(...earlier), facts);
  if (typeof undo !== "object") throw new Error(undo);
  const remembered: readonly { readonly from: string }[] = JSON.parse(undo.annotations[UNDONE_ANNOTATION] ?? "[]");
  expect(remembered.map(({ from }) => from)).toEqual(["bad-2", "bad-3", "bad-4", "bad-5", NEW_HASH]);
});
