/** Tests which pods count for a halt, and which do not. */

import { expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import {
  HALT_ON_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { type Decision, decide } from "../../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { testimonyOf } from "../../../shared/core/rollout/rules/halt/standstill.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { NEW_HASH, NOW, OLD_HASH, podOf, sidecarSetOf, takenDown, UNTOUCHED } from "../../support/rollout-fixture.ts";

const FAILS = { waiting: { reason: "CrashLoopBackOff" } } as const;
const status = (name: string, state?: ContainerStatus["state"]): ContainerStatus => ({
  name,
  image: name === "sc" ? "reg/sc:v2" : "reg/main:v1",
  ready: state === undefined,
  ...(state ? { state } : {}),
});
const failing = (name: string, container: "sc" | "main", namespace = "default"): Pod => {
  const statuses = [
    status("main", container === "main" ? FAILS : undefined),
    status("sc", container === "sc" ? FAILS : undefined),
  ];
  const pod = podOf({ name, hash: NEW_HASH, image: "reg/sc:v2", isReady: false, statuses });
  return { ...pod, metadata: { ...pod.metadata, namespace, uid: `${namespace}/${name}` } };
};
const notReadySince = (pod: Pod, lastTransitionTime?: string): Pod => ({
  ...pod,
  status: {
    ...pod.status,
    conditions: [{ type: "Ready", status: "False", ...(lastTransitionTime ? { lastTransitionTime } : {}) }],
  },
});

/** Returns the pod with an image that another client wrote. */
const withImage = (pod: Pod, image: string): Pod => ({
  ...pod,
  spec: { ...pod.spec, containers: pod.spec.containers.map((one) => (one.name === "sc" ? { ...one, image } : one)) },
});

const SET = sidecarSetOf();

test.each<[string, Pod, number, number]>([
  ["whose sidecar fails since its update counts as failing and updated", takenDown(failing("p", "sc")), 1, 1],
  ["whose app container fails counts as updated only", takenDown(failing("p", "main")), 0, 1],
  [
    "whose sidecar was given another image by somebody else counts as updated only",
    withImage(takenDown(failing("p", "sc")), "reg/other:v9"),
    0,
    1,
  ],
  [
    "whose sidecar a webhook gave the image from a mirror counts as failing and updated",
    withImage(
      takenDown(failing("p", "sc")),
      "mirror.example/hub/reg/sc:v2@sha256:0123456789012345678901234567890123456789012345678901234567890123",
    ),
    1,
    1,
  ],
  ["that was created with the latest sidecars counts as neither", notReadySince(failing("p", "sc"), NOW), 0, 0],
  [
    "that was not ready before its update counts as updated only",
    notReadySince(takenDown(failing("p", "sc")), "2025-05-31T23:58:00Z"),
    0,
    1,
  ],
  [
    "with a clock difference of 30 seconds counts as failing and updated",
    notReadySince(takenDown(failing("p", "sc")), "2025-05-31T23:59:30Z"),
    1,
    1,
  ],
  ["without a time in its Ready condition counts as updated only", notReadySince(takenDown(failing("p", "sc"))), 0, 1],
  [
    "that is not updated counts as neither",
    takenDown(podOf({ isReady: false, statuses: [status("main"), status("sc", FAILS)] })),
    0,
    0,
  ],
])("for a halt, a pod %s", (_, pod, witnesses, upgraded) => {
  const testimony = testimonyOf(SET, [podStateOf(pod, SET, undefined)]);
  expect([testimony.witnesses.length, testimony.upgraded]).toEqual([witnesses, upgraded]);
});

const UNDOING: SidecarSet = {
  ...SET,
  metadata: {
    ...SET.metadata,
    annotations: { ...SET.metadata?.annotations, [HALT_ON_ANNOTATION]: "0", [UNDO_ON_HALT_ANNOTATION]: "true" },
  },
};
const RECORDED = newRevision(sidecarSetOf({ containers: [{ name: "sc", image: "reg/sc:v1" }] }), {
  revision: 1,
  collisionCount: 0,
  namespace: "kruise-system",
});
const BEFORE: typeof RECORDED = {
  ...RECORDED,
  metadata: {
    ...RECORDED.metadata,
    annotations: { [HASH_ANNOTATION]: OLD_HASH, [HASH_WITHOUT_IMAGE_ANNOTATION]: "same" },
  },
};
const decided = (sidecarSet: SidecarSet, pods: readonly Pod[]): Decision =>
  decide(
    { sidecarSet, pods, revisions: [BEFORE], ...UNTOUCHED },
    { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS },
  );
const FINE = podOf({ name: "fine", hash: NEW_HASH, image: "reg/sc:v2" });
const OLD = podOf({ name: "old" });

test.each<[string, readonly Pod[], boolean]>([
  ["a sidecar fails and all pods are in one namespace", [takenDown(failing("p", "sc")), FINE, OLD], true],
  ["only app containers fail", ["a", "b", "c"].map((name) => takenDown(failing(name, "main"))).concat(OLD), false],
  [
    "sidecars of only one of several namespaces fail",
    ["a", "b", "c"].map((name) => takenDown(failing(name, "sc", "tenant"))).concat(OLD),
    false,
  ],
  [
    "sidecars of two namespaces fail",
    [takenDown(failing("a", "sc", "tenant")), takenDown(failing("p", "sc")), OLD],
    true,
  ],
])("decide undoes a release only with enough proof; here %s", (_, pods, isUndone) => {
  const { halt, undo } = decided(UNDOING, pods);
  expect([halt !== undefined, undo !== undefined]).toEqual([isUndone, isUndone]);
});

const blockedBy = (reason: string): Pick<SidecarSet, "status"> => ({
  status: {
    conditions: [{ type: "Blocked", status: "True", reason, message: "", lastTransitionTime: NOW }],
  } as unknown as NonNullable<SidecarSet["status"]>,
});
const paused = (status: Pick<SidecarSet, "status"> = {}): SidecarSet => ({
  ...UNDOING,
  ...status,
  spec: { ...UNDOING.spec, updateStrategy: { paused: true } },
});

test("a paused release that fails halts without being undone, and says that it is undone later", () => {
  const { halt, undo, summary } = decided(paused(), [takenDown(failing("p", "sc")), FINE, OLD]);
  expect([summary.hold, summary.asked, undo]).toEqual(["halted", "paused", undefined]);
  expect(halt).toMatch(/; it is undone once the strategy lets it go on$/);
});

test.each([
  ["stays halted if it was halted before", blockedBy("Halted"), "halted"],
  ["is only paused if it was not halted before", blockedBy("MaxUnavailable"), "paused"],
])("a paused rollout whose pods are all updated %s", (_, status, hold) => {
  expect(decided(paused(status), [takenDown(failing("p", "sc")), FINE]).summary.hold).toBe(hold);
});

test("a finished rollout is never undone, also if pods fail later", () => {
  const pods = [takenDown(failing("p", "sc")), FINE];
  const { latestRevision = "" } = decided(UNDOING, pods).status;
  const progressing = (reason: string) =>
    ({ type: "Progressing", status: "False", reason, message: "", lastTransitionTime: NOW }) as const;
  const stored = (status: NonNullable<SidecarSet["status"]>) =>
    decided({ ...UNDOING, status }, pods).undo !== undefined;
  expect(latestRevision).not.toBe("");
  expect(stored({ latestRevision, conditions: [progressing("Finished")] })).toBe(false);
  expect(stored({ latestRevision, conditions: [progressing("RollingOut")] })).toBe(true);
  expect(stored({ latestRevision: "another", conditions: [progressing("Finished")] })).toBe(true);
  // OpenKruise's definition keeps no conditions, so the state is unknown and no action follows.
  expect(stored({ latestRevision })).toBe(false);
});
