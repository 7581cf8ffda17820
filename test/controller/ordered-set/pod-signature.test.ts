import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { POD_READY_CONDITION } from "../../../shared/api/names.ts";
import { signatureOf } from "../../../shared/controller/statefulset/pod-signature.ts";
import { listedPod } from "../../support/objects.ts";

type Change = { readonly metadata?: object; readonly status?: object };

const NOT_READY = { type: "Ready", status: "False" };
const OPENED = { conditions: [NOT_READY, { type: POD_READY_CONDITION, status: "True" }] };
const UNSEEN = { phase: undefined };
const UPDATING = { "apps.kruise.io/inplace-update-state": "{}" };

function pod({ metadata, status }: Change = {}): Pod {
  return listedPod(
    { name: "db-0", namespace: "shop", uid: "u", labels: { app: "db" }, ...metadata },
    { containers: [{ name: "main", image: "app:1" }], readinessGates: [{ conditionType: POD_READY_CONDITION }] },
    { phase: "Running", conditions: [NOT_READY], ...status },
  );
}

const runs = (imageID: string) => ({
  containerStatuses: [{ name: "main", image: "app:1", imageID, containerID: "c" }],
});

const annotated = (imageID: string) => ({ metadata: { annotations: { a: "b" } }, status: runs(imageID) });
const going = (metadata: object) => ({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z", ...metadata } });

describe("what a node reports of a pod is news to its set", () => {
  test.each<[string, Change, Change]>([
    ["it is ready", {}, { status: { conditions: [{ type: "Ready", status: "True" }] } }],
    ["it has failed, and was not ready before", {}, { status: { phase: "Failed" } }],
    ["it has succeeded, and was not ready before", {}, { status: { phase: "Succeeded" } }],
    ["it is another pod", {}, { metadata: { uid: "other" } }],
    ["it is on its way out", {}, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }],
    ["it has another label", {}, { metadata: { labels: { app: "other" } } }],
    ["it has another annotation", {}, { metadata: { annotations: { a: "b" } } }],
    ["it has a finalizer", {}, { metadata: { finalizers: ["example.com/keep"] } }],
    ["it has another finalizer, on its way out", going({ finalizers: ["a"] }), going({ finalizers: ["b"] })],
    ["it is another pod, on its way out", going({}), going({ uid: "other" })],
    ["its gate is opened, which waited for a pass", {}, { status: OPENED }],
    [
      "its new image runs, while it is updated in place",
      { metadata: { annotations: UPDATING }, status: runs("old") },
      { metadata: { annotations: UPDATING }, status: runs("new") },
    ],
  ])("when %s", (_, before, after) => {
    expect(signatureOf(pod(after))).not.toBe(signatureOf(pod(before)));
  });

  test.each<[string, Change, Change]>([
    ["its image runs, and it is not updated", { status: runs("old") }, { status: runs("new") }],
    [
      "a condition has another message",
      {},
      { status: { conditions: [{ type: "Ready", status: "False", message: "m" }] } },
    ],
    ["its image runs, and it has some annotation", annotated("old"), annotated("new")],
    ["its gate is opened before its node has seen it", { status: UNSEEN }, { status: { ...OPENED, ...UNSEEN } }],
    ["it has another resourceVersion", {}, { metadata: { resourceVersion: "2" } }],
  ])("not when %s", (_, before, after) => {
    expect(signatureOf(pod(after))).toBe(signatureOf(pod(before)));
  });
});
