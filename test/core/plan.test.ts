import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { planRollout } from "../../shared/core/rollout/plan/plan.ts";
import type { RolloutPlan } from "../../shared/core/rollout/plan/planned-step.ts";
import {
  CONTEXT,
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  podOf,
  sidecarSetOf,
  statusesOf,
  UNTOUCHED,
} from "../support/rollout-fixture.ts";

function plan(sidecarSet: SidecarSet, pods: readonly Pod[], maxSteps?: number): RolloutPlan {
  const observation = { sidecarSet, pods, revisions: [], ...UNTOUCHED };
  const limit = maxSteps === undefined ? {} : { maxSteps };
  return planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5, ...limit });
}

const withStrategy = (updateStrategy: UpdateStrategy) => sidecarSetOf({ updateStrategy });
const podsOf = (count: number) => Array.from({ length: count }, (_, index) => podOf({ name: `p${index}` }));
const sizes = ({ steps }: RolloutPlan) => steps.map(({ atSeconds, pods }) => [atSeconds, pods.length]);

/** Returns a pod whose sidecar image cannot be pulled. */
function stuckPod(name: string, hash: string): Pod {
  const pod = podOf({ name, hash, isReady: false });
  const containerStatuses = statusesOf(pod.spec).map((status) =>
    status.name === "sc"
      ? { ...status, ready: false, state: { waiting: { reason: "ImagePullBackOff" } } }
      : { ...status, ready: true },
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

/** A pod without steps. */
const STEPLESS: Pod = podOf({
  isReady: false,
  phase: "Pending",
  spec: {
    containers: [
      { name: "main", image: "m" },
      { name: "sc", image: "reg/sc:v1" },
    ],
  },
});
const IMMUTABLE = podOf({ withoutImage: "else" });
const SLOW = podOf({ name: "slow", hash: NEW_HASH, isReady: false });

interface Expected {
  /** the steps, each as [second, pods] */
  readonly steps: readonly (readonly number[])[];
  readonly hold: string;
  readonly isComplete?: boolean;
  readonly seconds: number;
}

const ROWS: readonly (readonly [string, SidecarSet, readonly Pod[], Expected])[] = [
  [
    "updates maxUnavailable pods at a time",
    withStrategy({ maxUnavailable: 2 }),
    podsOf(5),
    {
      steps: [
        [0, 2],
        [5, 2],
        [10, 1],
      ],
      hold: "finished",
      isComplete: true,
      seconds: 15,
    },
  ],
  [
    "updates one pod at a time by default",
    sidecarSetOf(),
    podsOf(2),
    {
      steps: [
        [0, 1],
        [5, 1],
      ],
      hold: "finished",
      isComplete: true,
      seconds: 10,
    },
  ],
  [
    "leaves out the pods that the partition keeps",
    withStrategy({ maxUnavailable: "100%", partition: 3 }),
    podsOf(5),
    { steps: [[0, 2]], hold: "partition", seconds: 5 },
  ],
  [
    "has no steps while the rollout is paused",
    withStrategy({ paused: true }),
    podsOf(5),
    { steps: [], hold: "paused", seconds: 0 },
  ],
  [
    "has no steps with the type NotUpdate",
    withStrategy({ type: "NotUpdate" }),
    podsOf(5),
    { steps: [], hold: "NotUpdate", seconds: 0 },
  ],
  [
    "has no steps if all pods are updated",
    sidecarSetOf(),
    [podOf({ hash: NEW_HASH })],
    { steps: [], hold: "finished", isComplete: true, seconds: 0 },
  ],
  ["has no steps without pods", sidecarSetOf(), [], { steps: [], hold: "finished", isComplete: true, seconds: 0 }],
  [
    "leaves out a pod that cannot be updated in place",
    sidecarSetOf(),
    [IMMUTABLE, podOf({ name: "q" })],
    { steps: [[0, 1]], hold: "nothingWaits", seconds: 5 },
  ],
  [
    "has no steps while a pod that cannot start uses up the budget",
    sidecarSetOf(),
    [stuckPod("bad", NEW_HASH), ...podsOf(3)],
    { steps: [], hold: "budget", seconds: 0 },
  ],
  [
    "continues after a pod in flight is ready",
    sidecarSetOf(),
    [SLOW, podOf({ name: "q" })],
    { steps: [[5, 1]], hold: "finished", isComplete: true, seconds: 10 },
  ],
  [
    "updates an old pod that is down without using budget",
    sidecarSetOf(),
    [stuckPod("bad", "old"), ...podsOf(1)],
    { steps: [[0, 2]], hold: "finished", isComplete: true, seconds: 5 },
  ],
  [
    "does not wait for a pod without a node",
    sidecarSetOf(),
    [STEPLESS],
    { steps: [[0, 1]], hold: "finished", seconds: 0 },
  ],
];

describe("planRollout:", () => {
  it.each(ROWS)("a plan %s", (_title, sidecarSet, pods, expected) => {
    const planned = plan(sidecarSet, pods);
    const { hold, seconds, isComplete = false } = expected;
    expect(sizes(planned)).toEqual(expected.steps);
    expect([planned.after.hold, planned.isComplete, planned.seconds]).toEqual([hold, isComplete, seconds]);
    expect(planned.isCutShort).toBe(false);
  });

  it("a plan never takes more pods down than maxUnavailable and names each change of an image", () => {
    const planned = plan(withStrategy({ maxUnavailable: 3 }), podsOf(10));
    expect(planned.steps.map(({ unavailable }) => unavailable)).toEqual([3, 3, 3, 1]);
    expect(planned.steps.map(({ updated }) => updated)).toEqual([0, 3, 6, 9]);
    const names = planned.steps.flatMap(({ pods }) => pods.map(({ name }) => name));
    expect(new Set(names).size).toBe(10);
    expect(planned.steps[0]?.pods[0]?.images).toEqual([{ container: "sc", from: "reg/sc:v1", to: "reg/sc:v2" }]);
  });

  const broken = (count: number) => Array.from({ length: count }, (_, index) => stuckPod(`bad${index}`, "old"));

  it("a plan counts pods that are down only after their update, as OpenKruise does", () => {
    const planned = plan(withStrategy({ maxUnavailable: 4 }), [...broken(4), ...podsOf(8)]);
    expect(planned.downBefore).toBe(4);
    expect(planned.steps.map(({ pods, unavailable, down }) => [pods.length, unavailable, down])).toEqual([
      [8, 8, 8],
      [4, 4, 4],
    ]);
  });

  it("a plan's number of down pods includes pods that keep the old release", () => {
    const strategy = { maxUnavailable: 2, selector: { matchLabels: { up: "yes" } } };
    const good = podsOf(2).map((pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { up: "yes" } } }));
    const planned = plan(withStrategy(strategy), [...broken(3), ...good]);
    expect(planned.steps.map(({ unavailable, down }) => [unavailable, down])).toEqual([[2, 5]]);
  });

  it("a plan counts all pods that are down with StrictMaxUnavailable", () => {
    const sidecarSet = withStrategy({ maxUnavailable: 4 });
    const pods = [...broken(2), ...podsOf(4)];
    const observation = { sidecarSet, pods, revisions: [], ...UNTOUCHED };
    const settings = { ...CONTEXT.settings, StrictMaxUnavailable: true };
    const options = { ...CONTEXT, settings, readyAfterSeconds: 5 };
    expect(planRollout(observation, options).steps.map(({ unavailable, down }) => [unavailable, down])).toEqual([
      [4, 4],
      [2, 2],
    ]);
  });

  it("a plan has a second step of a hot upgrade, which empties the old container", () => {
    const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1");
    const planned = plan(hotSidecarSetOf(), [pod]);
    expect(planned.steps.map(({ atSeconds, purpose }) => [atSeconds, purpose])).toEqual([
      [0, "upgrade"],
      [5, "flip"],
    ]);
    expect(planned.isComplete).toBe(true);
  });

  it("a plan is cut short at maxSteps and says so", () => {
    const planned = plan(sidecarSetOf(), podsOf(9), 4);
    expect([planned.steps.length, planned.isCutShort, planned.isComplete]).toEqual([4, true, false]);
  });
});
