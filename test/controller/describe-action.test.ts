import { expect, test } from "vitest";
import { describeAction } from "../../shared/controller/rollout/dry-run.ts";
import type { Action, Departure, PodPrecondition, Restarted } from "../../shared/core/actions.ts";

const POD: PodPrecondition = { namespace: "shop", name: "web-0", uid: "u1", resourceVersion: "7" };
const REVISION = { namespace: "kruise-system", name: "proxy-54c8" };
const WORKLOAD: Restarted & PodPrecondition = { ...POD, workload: "Deployment", name: "web" };
const DEPARTURE: Departure = { namespace: "shop", name: "web-0", uid: "u1", owner: "r1", of: 3, since: "", until: "" };
const PATCH = { kind: "PatchPod", pod: POD, annotations: {}, isFirstAnnotation: false, usesBudget: true } as const;
const IMAGES = [
  { index: 1, container: "proxy", from: "proxy:1", to: "proxy:2" },
  { index: 2, container: "log", from: "log:1", to: "log:2" },
];

const LINES: Readonly<Record<string, readonly [Action, string]>> = {
  "a new revision": [
    { kind: "CreateRevision", revision: { metadata: REVISION, revision: 4 } },
    "create ControllerRevision proxy-54c8, revision 4",
  ],
  "a rollback": [
    { kind: "RenumberRevision", ...REVISION, revision: 5 },
    "make ControllerRevision proxy-54c8 the newest, revision 5",
  ],
  "a custom version": [
    { kind: "LabelRevision", ...REVISION, customVersion: "2026-11" },
    "label ControllerRevision proxy-54c8 with custom version 2026-11",
  ],
  "a revision that is too old": [{ kind: "DeleteRevision", ...REVISION }, "delete ControllerRevision proxy-54c8"],
  "counts of pods": [
    { kind: "PatchStatus", sidecarSet: "proxy", status: { matchedPods: 2, updatedPods: 1 } },
    'write the status of SidecarSet proxy: {"matchedPods":2,"updatedPods":1}',
  ],
  "new images": [
    { ...PATCH, purpose: "upgrade", images: IMAGES },
    "upgrade pod shop/web-0: proxy proxy:1 → proxy:2, log log:1 → log:2",
  ],
  "a drain": [
    { ...PATCH, purpose: "drain", images: [], labels: { "sidecarset.kruise.io/traffic": "drained" } },
    "drain pod shop/web-0: sidecarset.kruise.io/traffic=drained",
  ],
  "the end of a drain": [
    { ...PATCH, purpose: "putBack", images: [], labels: { "sidecarset.kruise.io/traffic": "serving" } },
    "put back pod shop/web-0: sidecarset.kruise.io/traffic=serving",
  ],
  "the end of a hot upgrade": [
    { ...PATCH, purpose: "flip", images: IMAGES.slice(0, 1) },
    "flip pod shop/web-0: proxy proxy:1 → proxy:2",
  ],
  "a pod that only gets annotations": [
    { ...PATCH, purpose: "upgrade", images: [] },
    "upgrade pod shop/web-0: annotations only",
  ],
  "an eviction": [
    { kind: "EvictPod", pod: POD, usesBudget: true, departure: DEPARTURE },
    "evict pod shop/web-0: its controller creates another, with the sidecars of now",
  ],
  "a restart": [
    { kind: "RestartWorkload", workload: WORKLOAD, at: "2026-11-27T12:00:00Z", restartedFor: "{}" },
    "restart Deployment shop/web: it recreates its pods as its own strategy says, with the sidecars of now",
  ],
  "a condition": [
    {
      kind: "PatchPodCondition",
      pod: POD,
      conditions: [],
      condition: { type: "SidecarSetUpgradable", status: "False", reason: "UpdateImmutableField" },
    },
    "set condition SidecarSetUpgradable=False (UpdateImmutableField) of pod shop/web-0",
  ],
  "an event": [
    {
      kind: "RecordEvent",
      regarding: { kind: "SidecarSet", name: "proxy", uid: "s1" },
      type: "Warning",
      reason: "Undone",
      message: "it was put back",
    },
    "record event Undone about SidecarSet proxy: it was put back",
  ],
};

test.each(Object.entries(LINES))("describeAction writes one line about %s", (_what, [action, line]) => {
  expect(describeAction(action)).toBe(line);
});
