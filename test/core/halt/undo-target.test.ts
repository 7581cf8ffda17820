/** Which release a rollout is taken back to: one namespace alone does not say what works. */
import { expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, UNDO_ON_HALT_ANNOTATION } from "../../../shared/api/names.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { planUndo } from "../../../shared/core/rollout/halt/undo.ts";
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
  ["the newest before it, when no pod runs another", [], 2],
  ["the newest before it, though a pod of one namespace says that it is well with an older", ["tenant"], 2],
  ["what is well in two namespaces", ["tenant", "shop"], 1],
])("%s", (_, namespaces, revision) => {
  const pods = [...FAILING, ...namespaces.map((namespace) => stateOf(namespace, "hash-1"))];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions: REVISIONS, pods, now: NOW })).toMatchObject({ revision });
});

test("where all pods are in one namespace what is well there is gone back to", () => {
  const pods = [stateOf("shop", NEW_HASH, false), stateOf("shop", "hash-1")];
  expect(planUndo(UNDOING, { halt: "pods fail", revisions: REVISIONS, pods, now: NOW })).toMatchObject({ revision: 1 });
});
