/** The release that a rollout is undone to: pods of one namespace alone cannot prove that a release works. */
import { expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import {
  GIVEN_UP_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  READY_AT_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
} from "../../../shared/api/names.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { planUndo } from "../../../shared/core/rollout/halt/standstill.ts";
import { undoHint } from "../../../shared/core/rollout/history/way-back.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/new-revision.ts";
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

test("a release that a person gave up is never gone back to", () => {
  const givenUp = [{ hash: "hash-2", outcome: "aborted", at: NOW }];
  const annotations = { ...UNDOING.metadata.annotations, [GIVEN_UP_ANNOTATION]: JSON.stringify(givenUp) };
  const sidecarSet = { ...UNDOING, metadata: { ...UNDOING.metadata, annotations } };
  const facts = { halt: "pods fail", revisions: REVISIONS, pods: FAILING, now: NOW };
  expect(planUndo(sidecarSet, facts)).toMatchObject({ revision: 1 });
});

const readyRevision = (revision: ControllerRevision, at: string): ControllerRevision => ({
  ...revision,
  metadata: { ...revision.metadata, annotations: { ...revision.metadata?.annotations, [READY_AT_ANNOTATION]: at } },
});
const createdAt = (revision: ControllerRevision, creationTimestamp: string): ControllerRevision => ({
  ...revision,
  metadata: { ...revision.metadata, creationTimestamp },
});

test("a release that was never ready is never gone back to, even if a pod of one namespace is ready with it", () => {
  const revisions = [
    readyRevision(revisionOf("reg/sc:worked", 1), "2026-01-01T00:00:00Z"),
    createdAt(revisionOf("reg/sc:broken", 2), "2026-01-02T00:00:00Z"),
  ];
  const pods = [...FAILING, stateOf("tenant", "hash-2")];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions, pods, now: NOW })).toMatchObject({ revision: 1 });
});

test("where no revision is left that may have worked, the sentence names each and what became of it", () => {
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
])("undoHint says only what was looked at (a revision to go back to: %s)", (hasWayBack, hint) => {
  expect(undoHint("ss", hasWayBack)).toBe(hint);
});
