/** Tests when a watch ends because the rollout needs a person. Also tests the estimated time of the other pods. */
import { expect, it } from "vitest";
import { progressOf, standingOf } from "../../functions/cli/input/progress.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { SetFacts } from "../../shared/core/inspect/explain/trace-rollout.ts";
import { addSeconds } from "../../shared/go/seconds-between.ts";
import { LABELS, setOf, updatedPod } from "../core/check/fixture.ts";
import { HOLD_SCENES } from "../core/holds/scenes.ts";
import { seededChance } from "../simulation/chance.ts";
import { type HoldScene, type Judged, judged } from "../support/hold-places.ts";
import { CONTEXT, NOW, podOf, reservedFor, takenDown, UNTOUCHED } from "../support/rollout-fixture.ts";

const SET = setOf("ss", { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
const oldPod = (name: string, isReady = true, withoutImage = withoutImageOf(SET)) =>
  podOf({ labels: LABELS, name, isReady, withoutImage });

function withoutImageOf({ metadata }: SidecarSet): string {
  return metadata?.annotations?.["kruise.io/sidecarset-hash-without-image"] ?? "";
}

/** Returns a pod that the rollout took down and that is not ready again. */
function down(name: string, reason: string): Pod {
  const statuses = [
    { name: "main", ready: true },
    { name: "sc", ready: false, state: { waiting: { reason } } },
  ];
  return takenDown(updatedPod(SET, { name, isReady: false, statuses }));
}

const LOST = down("lost", "ImagePullBackOff");
const LOST_TOO = down("lost-too", "CrashLoopBackOff");
const STRICT = { settings: { ...CONTEXT.settings, StrictMaxUnavailable: true } };

it.each<readonly [string, boolean, readonly Pod[], Partial<SetFacts>]>([
  ["every pod that uses the budget has failed", true, [LOST, LOST_TOO, oldPod("a")], {}],
  ["every pod is updated, and each pod that is not ready has failed", true, [LOST, updatedPod(SET, { name: "a" })], {}],
  ["every pod is updated, and one is starting", false, [LOST, down("new", "ContainerCreating")], {}],
  ["one pod that uses the budget is starting", false, [LOST, down("new", "ContainerCreating"), oldPod("a")], {}],
  ["the budget has room and other pods wait", false, [LOST, oldPod("a"), oldPod("b")], {}],
  ["a pass is writing to a waiting pod", false, [LOST, oldPod("a"), oldPod("b")], { reserved: reservedFor(["uid-a"]) }],
  [
    "a pass may be writing to a failed pod",
    false,
    [LOST, LOST_TOO, oldPod("a")],
    { reserved: reservedFor(["uid-lost"]) },
  ],
  [
    "with StrictMaxUnavailable an outdated pod may become ready again",
    false,
    [LOST, oldPod("x", false, "no"), oldPod("a")],
    STRICT,
  ],
])("when %s, isStopped is %s", (_title, isStopped, pods, given) => {
  const own = { pods, revisions: [], ...UNTOUCHED, lastPass: NOW, ...CONTEXT, ...given };
  expect(progressOf(SET, own).isStopped === true).toBe(isStopped);
});

it("status -w of a rollout with a partition ends when the updated pods have failed", () => {
  const held = { ...SET, spec: { ...SET.spec, updateStrategy: { maxUnavailable: 2, partition: 1 } } };
  const own = { revisions: [], ...UNTOUCHED, lastPass: NOW, ...CONTEXT };
  expect(progressOf(held, { ...own, pods: [LOST, oldPod("a")] }).isStopped).toBe(true);
  expect(progressOf(held, { ...own, pods: [down("new", "ErrImagePull"), oldPod("a")] }).isStopped).toBeUndefined();
});

const WAVES = {
  "sidecarset.kruise.io/waves": JSON.stringify([{ name: "dev", namespaceSelector: { matchLabels: { stage: "dev" } } }]),
};

it.each<readonly [string, boolean, readonly Pod[]]>([
  ["the only pod that is left of a wave has failed", true, [LOST]],
  ["one pod of a wave has failed, and another is starting", false, [LOST, down("new", "ContainerCreating")]],
])("when %s and later waves wait, isStopped is %s", (_title, isStopped, pods) => {
  const inDev = ({ metadata, ...pod }: Pod): Pod => ({ ...pod, metadata: { ...metadata, namespace: "dev" } });
  const metadata = { ...SET.metadata, annotations: { ...SET.metadata?.annotations, ...WAVES } };
  const own = { revisions: [], ...UNTOUCHED, lastPass: NOW, ...CONTEXT };
  const facts = {
    ...own,
    pods: [...pods.map(inDev), oldPod("a")],
    namespaceLabels: new Map([["dev", { stage: "dev" }]]),
  };
  const progress = progressOf(
    { ...SET, metadata, spec: { ...SET.spec, updateStrategy: { maxUnavailable: 5 } } },
    facts,
  );
  expect([progress.summary.hold, progress.isStopped === true]).toEqual(["wave", isStopped]);
});

it("status -w of a rollout in the order of StatefulSets ends when the awaited pod never becomes ready", () => {
  const stuck = judged(HOLD_SCENES.order[2] as HoldScene);
  const waiting = judged(HOLD_SCENES.order[3] as HoldScene);
  const isStopped = ({ observation, facts }: Judged) => standingOf(observation.sidecarSet, facts).isStopped === true;
  expect([stuck, waiting].map(({ held, decision, state }) => [held.hold, decision.failing.length, state])).toEqual([
    ["order", 0, "Blocked"],
    ["order", 0, "Updating"],
  ]);
  expect([stuck, waiting].map(isStopped)).toEqual([true, false]);
});

/** Returns the estimate if each updated pod was ready that many seconds after its update. */
function etaAfter(seconds: readonly number[]): number | undefined {
  const ready = seconds.map((after, index) => {
    const pod = updatedPod(SET, { name: `ready-${index}` });
    const lastTransitionTime = addSeconds(NOW, after) ?? NOW;
    return { ...pod, status: { ...pod.status, conditions: [{ type: "Ready", status: "True", lastTransitionTime }] } };
  }) as readonly Pod[];
  const pods = [...ready, oldPod("a"), oldPod("b")];
  const own = { pods, revisions: [], ...UNTOUCHED, lastPass: NOW, ...CONTEXT, now: addSeconds(NOW, 10_000) ?? NOW };
  return progressOf(SET, own).etaSeconds;
}

it("the estimate for the rest of a rollout uses the median time of the pods that are ready again", () => {
  const { pick, between } = seededChance(1);
  for (let times = 0; times < 100; times++) {
    const seconds = Array.from({ length: 2 * between(0, 4) + 1 }, () => pick([2, 9, 10, 35, 100, 900, 1_000]));
    const middle = seconds.toSorted((one, other) => one - other)[(seconds.length - 1) / 2] ?? 0;
    expect([seconds, etaAfter(seconds)]).toEqual([seconds, etaAfter([middle])]);
  }
  expect(etaAfter([9, 10, 100])).toBe(10);
});
