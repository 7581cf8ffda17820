/** Tests that advice to restart appears only if a new pod would get the sidecars. */
import { expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { IGNORE_MISSED_ANNOTATION, MIRROR_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { restartAdvice } from "../../shared/core/inspect/restart-advice.ts";
import { newPod } from "../support/objects.ts";

const OWNER = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "u", controller: true };
const podIn = (namespace: string, annotations: Readonly<Record<string, string>> = {}): Pod =>
  newPod({ namespace, name: "web-0", annotations, ownerReferences: [OWNER] }, { containers: [] });
const setOf = (spec: Partial<SidecarSetSpec>): SidecarSet => ({
  metadata: { name: "agent" },
  spec: { selector: { matchLabels: { app: "web" } }, ...spec },
  status: { latestRevision: "agent-2" } as NonNullable<SidecarSet["status"]>,
});
const pinned = (revision: object) =>
  setOf({ injectionStrategy: { revision } as NonNullable<SidecarSetSpec["injectionStrategy"]> });
const RESTART = "recreate it: kubectl -n shop rollout restart statefulset/web";
const ignored = { [IGNORE_MISSED_ANNOTATION]: "true" };

test.each([
  ["nothing prevents its success", setOf({}), RESTART],
  ["the pinned revision is the newest", pinned({ revisionName: "agent-2" }), RESTART],
  [
    "the pinned version is the current one",
    setOf({ customVersion: "v2", injectionStrategy: { revision: { customVersion: "v2", policy: "Always" } } }),
    RESTART,
  ],
])("a restart is suggested if %s", (_, sidecarSet, advice) => {
  expect(restartAdvice([podIn("shop")], sidecarSet)).toBe(advice);
});

test.each([
  ["injection is paused", setOf({ injectionStrategy: { paused: true } }), podIn("shop"), "paused to false first"],
  [
    "an older revision is pinned",
    pinned({ revisionName: "agent-1" }),
    podIn("shop"),
    "new pods get the revision agent-1",
  ],
  [
    "an older version is pinned for a share of the pods",
    pinned({ customVersion: "v1", policy: "Partial" }),
    podIn("shop"),
    "v1",
  ],
  ["the namespace is excluded", setOf({}), podIn("kube-system"), "ask no webhook about pods of kube-system"],
  ["the pod is a mirror pod", setOf({}), podIn("shop", { [MIRROR_ANNOTATION]: "x" }), "the mirror of a static pod"],
  [
    "the pod has an annotation that asks passes to leave it unchanged",
    setOf({}),
    podIn("shop", ignored),
    "meant to stay as it is",
  ],
])("no restart is suggested if %s", (_, sidecarSet, pod, why) => {
  const advice = restartAdvice([pod], sidecarSet);
  expect(advice).toContain(why);
  expect(advice).not.toContain("kubectl");
});

test("a pod without any sidecars is restarted for a pinned revision's sidecars, and not while injection is paused", () => {
  expect(restartAdvice([podIn("shop")], pinned({ revisionName: "agent-1" }), { promised: "any" })).toBe(RESTART);
  expect(
    restartAdvice([podIn("shop")], setOf({ injectionStrategy: { paused: true } }), { promised: "any" }),
  ).not.toContain("kubectl");
});

test("the command leaves out pods that a restart does not help", () => {
  const pods = [podIn("shop"), podIn("kube-system"), podIn("bank", { [MIRROR_ANNOTATION]: "x" })];
  expect(restartAdvice(pods, setOf({}))).toBe(RESTART);
});
