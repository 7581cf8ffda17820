/** Tests pods that use no budget because the SidecarSet ignores pods that were never ready. */

import { describe, expect, test } from "vitest";
import type { Pod, PodStatus } from "../../../shared/api/kubernetes.ts";
import { IGNORE_NEVER_READY_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isNeverReady } from "../../../shared/core/pod/is-ready.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import type { RolloutSettings } from "../../../shared/core/rollout/rollout-settings.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import {
  CONTEXT,
  NEW_HASH,
  NOW,
  podOf,
  reservedFor,
  sidecarSetOf,
  takenDown,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";

const START = "2025-05-31T20:00:00Z";
const LATER = "2025-05-31T20:00:02Z";
/** A time long before NOW, at which takenDown updates a pod. */
const LONG_BEFORE = "2025-05-31T23:58:00Z";
const SHORTLY_BEFORE = "2025-05-31T23:59:30Z";

interface Ready {
  readonly since?: string;
  readonly status?: string;
}

/** Returns an updated pod that is down and was started at START. */
function downPod(ready: Ready | undefined, { isPatched = false, name = "p", start = START } = {}): Pod {
  const pod = podOf({ name, hash: NEW_HASH, image: "reg/sc:v2", isReady: false });
  const { since, status = "False" } = ready ?? {};
  const condition = { type: "Ready", status, ...(since ? { lastTransitionTime: since } : {}) };
  const stored: PodStatus = { ...pod.status, startTime: start, conditions: ready ? [condition] : [] };
  const patched = isPatched ? takenDown(pod) : pod;
  return { ...patched, metadata: { ...patched.metadata, uid: `uid-${name}` }, status: stored };
}

function setWith(text?: string, maxUnavailable = 1): SidecarSet {
  const set = sidecarSetOf({ updateStrategy: { maxUnavailable } });
  const own = text === undefined ? {} : { [IGNORE_NEVER_READY_ANNOTATION]: text };
  return { ...set, metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations, ...own } } };
}

describe("isNeverReady", () => {
  test.each<[string, boolean, Pod]>([
    ["a pod that was not ready since its start counts as never ready", true, downPod({ since: START })],
    ["a pod whose node has not reported yet counts as never ready", true, downPod(undefined)],
    [
      "a pod that was updated before it was ready counts as never ready",
      true,
      downPod({ since: START }, { isPatched: true }),
    ],
    [
      "a pod that was updated in the second of its start counts as never ready",
      true,
      downPod({ since: NOW }, { isPatched: true, start: NOW }),
    ],
    [
      "a pod that was not ready when it was updated counts as never ready",
      true,
      downPod({ since: LONG_BEFORE }, { isPatched: true }),
    ],
    ["a pod that was ready for two seconds does not count as never ready", false, downPod({ since: LATER })],
    [
      "a pod without a valid start time does not count as never ready",
      false,
      downPod({ since: START }, { start: "soon" }),
    ],
    [
      "a pod that was ready until its update does not count as never ready",
      false,
      downPod({ since: NOW }, { isPatched: true }),
    ],
    [
      "a pod that became unready 30 seconds before its update does not count as never ready, because clocks may differ",
      false,
      downPod({ since: SHORTLY_BEFORE }, { isPatched: true }),
    ],
    ["a pod that is ready does not count as never ready", false, downPod({ since: START, status: "True" })],
    ["a pod without a transition time does not count as never ready", false, downPod({})],
  ])("%s", (_what, expected, pod) => {
    expect(isNeverReady(pod, setWith())).toBe(expected);
  });
});

describe("ignore-never-ready", () => {
  const never = ["n1", "n2"].map((name) => downPod({ since: START }, { name }));
  const others = ["a", "b", "c"].map((name) => podOf({ name }));
  const old = { ...podOf({ name: "old", isReady: false }), status: { startTime: START, conditions: [] } };

  function decided(set: SidecarSet, pods: readonly Pod[], gates: Partial<RolloutSettings> = {}) {
    const observed = pods.map((pod) => projectPod(pod, set));
    const observation = { sidecarSet: set, pods: observed, revisions: [], ...UNTOUCHED };
    const { summary } = decide(observation, { ...CONTEXT, settings: { ...CONTEXT.settings, ...gates } });
    return { used: summary.used, selected: summary.selected, down: summary.down.map(({ name }) => name) };
  }

  test.each<[string, string | undefined, number, number]>([
    ["pods that were never ready delay a rollout by default, as in OpenKruise", undefined, 2, 0],
    ["pods that were never ready do not delay a rollout when the annotation is true", "true", 0, 2],
    ["pods that were never ready delay a rollout when the annotation is false", "false", 2, 0],
    ["pods that were never ready delay a rollout when the annotation cannot be read", "yes", 2, 0],
  ])("%s", (_what, text, used, selected) => {
    const down = used === 0 ? [] : ["n1", "n2"];
    expect(decided(setWith(text, 2), [...never, ...others])).toEqual({ used, selected, down });
  });

  test("a pod that was ready before its update uses budget while pods that were never ready are ignored", () => {
    const taken = downPod({ since: NOW }, { isPatched: true, name: "t" });
    expect(decided(setWith("true"), [...never, taken, ...others])).toEqual({ used: 1, selected: 0, down: ["t"] });
  });

  test("pods that were never ready are also ignored with StrictMaxUnavailable", () => {
    const strict = { StrictMaxUnavailable: true };
    expect(decided(setWith("true"), [...never, old, ...others], strict)).toEqual({ used: 0, selected: 2, down: [] });
    expect(decided(setWith(undefined, 3), [...never, old, ...others], strict).used).toBe(3);
  });

  test("a pod that was never ready uses budget while it is reserved", () => {
    const set = setWith("true");
    const pods = [...never, ...others].map((pod) => projectPod(pod, set));
    const observation = { sidecarSet: set, pods, revisions: [], ...UNTOUCHED, reserved: reservedFor(["uid-n1"]) };
    expect(decide(observation, CONTEXT).summary.used).toBe(1);
  });
});

test("steeringOf reports a value that is neither true nor false", () => {
  expect(steeringOf(setWith("yes")).problems.map(({ text }) => text)).toEqual([
    `the annotation ${IGNORE_NEVER_READY_ANNOTATION} says yes: write true or false; until then pods that were never ready use budget`,
  ]);
  expect(["true", "false", undefined].flatMap((text) => steeringOf(setWith(text)).problems)).toEqual([]);
});
