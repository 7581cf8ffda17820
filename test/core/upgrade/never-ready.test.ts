/** Which pods use no budget where a SidecarSet ignores those that were never ready. */

import { describe, expect, test } from "vitest";
import type { Pod, PodStatus } from "../../../shared/api/kubernetes.ts";
import { IGNORE_NEVER_READY_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isNeverReady } from "../../../shared/core/pod/was-ready.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { annotationProblems } from "../../../shared/core/rollout/halt/annotation-problems.ts";
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
/** takenDown: updated at NOW */
const LONG_BEFORE = "2025-05-31T23:58:00Z";
const SHORTLY_BEFORE = "2025-05-31T23:59:30Z";

interface Ready {
  readonly since?: string;
  readonly status?: string;
}

/** Updated and down, started at START. */
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

describe("a pod was never ready", () => {
  test.each<[string, boolean, Pod]>([
    ["that has not been ready since it was started", true, downPod({ since: START })],
    ["whose node has not said anything yet", true, downPod(undefined)],
    ["that was started and updated before it was ready", true, downPod({ since: START }, { isPatched: true })],
    [
      "that was updated in the second in which it was started",
      true,
      downPod({ since: NOW }, { isPatched: true, start: NOW }),
    ],
    [
      "that was updated in the second in which it was started",
      true,
      downPod({ since: NOW }, { isPatched: true, start: NOW }),
    ],
    ["that was not ready when it was updated", true, downPod({ since: LONG_BEFORE }, { isPatched: true })],
    ["unless it was for two seconds", false, downPod({ since: LATER })],
    ["unless nobody knows when it was started", false, downPod({ since: START }, { start: "soon" })],
    ["unless it was ready until it was updated", false, downPod({ since: NOW }, { isPatched: true })],
    ["unless clocks may differ", false, downPod({ since: SHORTLY_BEFORE }, { isPatched: true })],
    ["unless it is now", false, downPod({ since: START, status: "True" })],
    ["unless nobody knows since when", false, downPod({})],
  ])("%s", (_what, expected, pod) => {
    expect(isNeverReady(pod, setWith())).toBe(expected);
  });
});

describe("two pods of a tenant that are never ready", () => {
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
    ["hold a rollout up, as in OpenKruise", undefined, 2, 0],
    ["hold none up where they are ignored", "true", 0, 2],
    ["hold one up where somebody says no", "false", 2, 0],
    ["hold one up where nobody can read what was said", "yes", 2, 0],
  ])("%s", (_what, text, used, selected) => {
    const down = used === 0 ? [] : ["n1", "n2"];
    expect(decided(setWith(text, 2), [...never, ...others])).toEqual({ used, selected, down });
  });

  test("leave the budget to those that were ready", () => {
    const taken = downPod({ since: NOW }, { isPatched: true, name: "t" });
    expect(decided(setWith("true"), [...never, taken, ...others])).toEqual({ used: 1, selected: 0, down: ["t"] });
  });

  test("are ignored where every pod that is down counts, too", () => {
    const strict = { StrictMaxUnavailable: true };
    expect(decided(setWith("true"), [...never, old, ...others], strict)).toEqual({ used: 0, selected: 2, down: [] });
    expect(decided(setWith(undefined, 3), [...never, old, ...others], strict).used).toBe(3);
  });

  test("use budget while they are reserved", () => {
    const set = setWith("true");
    const pods = [...never, ...others].map((pod) => projectPod(pod, set));
    const observation = { sidecarSet: set, pods, revisions: [], ...UNTOUCHED, reserved: reservedFor(["uid-n1"]) };
    expect(decide(observation, CONTEXT).summary.used).toBe(1);
  });
});

test("what nobody can read is told", () => {
  expect(annotationProblems(setWith("yes"))).toEqual([
    `the annotation ${IGNORE_NEVER_READY_ANNOTATION} says yes: write true or false; until then pods that were never ready use budget`,
  ]);
  expect(["true", "false", undefined].flatMap((text) => annotationProblems(setWith(text)))).toEqual([]);
});
