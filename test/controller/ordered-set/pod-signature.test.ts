import { expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { POD_READY_CONDITION } from "../../../shared/api/names.ts";
import { signatureOf } from "../../../shared/controller/statefulset/reconcile.ts";
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

test.each<[string, Change, Change]>([
  ["becomes ready", {}, { status: { conditions: [{ type: "Ready", status: "True" }] } }],
  ["fails without having been ready", {}, { status: { phase: "Failed" } }],
  ["succeeds without having been ready", {}, { status: { phase: "Succeeded" } }],
  ["is replaced by another pod", {}, { metadata: { uid: "other" } }],
  ["begins to terminate", {}, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }],
  ["gets another label", {}, { metadata: { labels: { app: "other" } } }],
  ["gets another annotation", {}, { metadata: { annotations: { a: "b" } } }],
  ["gets a finalizer", {}, { metadata: { finalizers: ["example.com/keep"] } }],
  ["gets another finalizer while it terminates", going({ finalizers: ["a"] }), going({ finalizers: ["b"] })],
  ["is replaced by another pod while both terminate", going({}), going({ uid: "other" })],
  ["has its readiness gate opened", {}, { status: OPENED }],
  [
    "runs its new image during an update in place",
    { metadata: { annotations: UPDATING }, status: runs("old") },
    { metadata: { annotations: UPDATING }, status: runs("new") },
  ],
])("the signature of a pod changes when it %s", (_, before, after) => {
  expect(signatureOf(pod(after))).not.toBe(signatureOf(pod(before)));
});

test.each<[string, Change, Change]>([
  ["runs its image without an update", { status: runs("old") }, { status: runs("new") }],
  [
    "gets another message in a condition",
    {},
    { status: { conditions: [{ type: "Ready", status: "False", message: "m" }] } },
  ],
  ["runs its image and has an unrelated annotation", annotated("old"), annotated("new")],
  ["has its gate opened before its node has seen it", { status: UNSEEN }, { status: { ...OPENED, ...UNSEEN } }],
  ["gets another resourceVersion", {}, { metadata: { resourceVersion: "2" } }],
])("the signature of a pod stays the same when it %s", (_, before, after) => {
  expect(signatureOf(pod(after))).toBe(signatureOf(pod(before)));
});
