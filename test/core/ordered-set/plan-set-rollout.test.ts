import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_READY_CONDITION } from "../../../shared/api/names.ts";
import type { RollingUpdateStatefulSet, StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import {
  type PlannedSetStep,
  planSetRollout,
  type SetPlanOptions,
} from "../../../shared/core/statefulset/plan/plan-set-rollout.ts";
import type { StatefulSetFeatureGates } from "../../../shared/core/statefulset/step.ts";
import { NOW, podOf, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const EARLIER = "2025-12-31T00:00:00Z";
const OLD = setOf();

/** Returns a running pod that has been ready for a long time. */
function running(set: StatefulSet, ordinal: number, change: Partial<Pod["metadata"]> = {}): Pod {
  const pod = podOf(set, ordinal);
  const image = pod.spec.containers[0]?.image ?? "";
  const types = ["ContainersReady", "Ready", ...(pod.spec.readinessGates ?? []).map((gate) => gate.conditionType)];
  const conditions = types.map((type) => ({ type, status: "True", lastTransitionTime: EARLIER }));
  const containerStatuses = [{ name: "main", ready: true, image, imageID: `id-${image}` }];
  return {
    ...pod,
    metadata: { ...pod.metadata, ...change },
    status: { phase: "Running", conditions, containerStatuses },
  };
}

function stuck(pod: Pod): Pod {
  const conditions = [{ type: "Ready", status: "False" }];
  const containerStatuses = [{ name: "main", ready: false, state: { waiting: { reason: "ImagePullBackOff" } } }];
  return { ...pod, status: { phase: "Pending", conditions, containerStatuses } };
}

const rolling = (rollingUpdate: RollingUpdateStatefulSet): StatefulSetSpec => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: 1, ...rollingUpdate } },
});
const IN_PLACE = { podUpdatePolicy: "InPlaceIfPossible" };

interface Given {
  readonly pods?: readonly Pod[];
  readonly gates?: Partial<StatefulSetFeatureGates>;
  readonly options?: Partial<SetPlanOptions>;
  readonly before?: StatefulSet;
}

/** Plans for a set whose pods run the release `before`. */
function plan(set: StatefulSet, { pods, gates, options, before = OLD }: Given = {}) {
  const there = pods ?? [0, 1, 2].map((ordinal) => running(before, ordinal));
  const seen = seenOf(set, there, [revisionOfSet(before, 1)], gates);
  return planSetRollout(seen, { claims: [] }, { readyAfterSeconds: 5, ...options });
}

const text = ({ atSeconds, pods }: PlannedSetStep) =>
  `${atSeconds}s ${pods.map(({ name, action }) => `${action} ${name}`).join(", ")}`;
const steps = (...given: Parameters<typeof plan>) => plan(...given).steps.map(text);

describe("planSetRollout:", () => {
  it.each<readonly [string, StatefulSet, Given, readonly string[]]>([
    [
      "creates pods in order, each after the previous one is ready",
      setOf(),
      { pods: [] },
      ["0s create db-0", "5s create db-1", "10s create db-2"],
    ],
    [
      "creates all pods at once with Parallel",
      setOf({ podManagementPolicy: "Parallel" }),
      { pods: [] },
      ["0s create db-0, create db-1, create db-2"],
    ],

    [
      "replaces pods from the highest ordinal down",
      setOf({}, "app:2"),
      {},
      ["0s replace db-2", "5s replace db-1", "10s replace db-0"],
    ],
    [
      "replaces as many pods at once as maxUnavailable allows",
      setOf({ podManagementPolicy: "Parallel", ...rolling({ maxUnavailable: "70%" }) }, "app:2"),
      {},
      ["0s replace db-2, replace db-1", "5s replace db-0"],
    ],
    [
      "updates pods in place",
      setOf(rolling(IN_PLACE), "app:2"),
      {},
      ["0s update db-2", "5s update db-1", "10s update db-0"],
    ],
    [
      "waits until a pod has been ready for minReadySeconds",
      setOf(rolling({ ...IN_PLACE, minReadySeconds: 30 }), "app:2"),
      {},
      ["0s update db-2", "35s update db-1", "70s update db-0"],
    ],
    ["stops at the partition", setOf(rolling({ partition: 2 }), "app:2"), {}, ["0s replace db-2"]],
    ["has no steps while the update is paused", setOf(rolling({ paused: true }), "app:2"), {}, []],
    ["has no steps with OnDelete", setOf({ updateStrategy: { type: "OnDelete" } }, "app:2"), {}, []],
    [
      "deletes pods from the highest ordinal down, one after the other",
      setOf({ replicas: 1 }),
      {},
      ["0s delete db-2", "0s delete db-1"],
    ],
    [
      "deletes pods at once with Parallel",
      setOf({ replicas: 1, podManagementPolicy: "Parallel" }),
      {},
      ["0s delete db-2, delete db-1"],
    ],
    [
      "replaces a failed pod",
      setOf(),
      { pods: [running(OLD, 0), podOf(OLD, 1, { phase: "Failed" }), running(OLD, 2)] },
      ["0s replace db-1"],
    ],
    [
      "waits for a pod that is being deleted",
      setOf(),
      { pods: [running(OLD, 0), running(OLD, 1), running(OLD, 2, { deletionTimestamp: NOW })] },
      ["5s create db-2"],
    ],
    [
      "does not wait for a pod that a finalizer keeps",
      setOf(),
      { pods: [running(OLD, 0), running(OLD, 1, { deletionTimestamp: NOW, finalizers: ["example.com/a"] })] },
      [],
    ],
    [
      "has no steps behind a pod that cannot become ready",
      setOf({}, "app:2"),
      { pods: [running(OLD, 0), running(OLD, 1), stuck(running(OLD, 2))] },
      [],
    ],
    [
      "replaces a pod that cannot become ready with StatefulSetUnblocked",
      setOf({}, "app:2"),
      { pods: [running(OLD, 0), running(OLD, 1), stuck(running(OLD, 2))], gates: { StatefulSetUnblocked: true } },
      ["0s replace db-2", "5s replace db-1", "10s replace db-0"],
    ],
    [
      "has a grace period before each image",
      setOf(rolling({ ...IN_PLACE, inPlaceUpdateStrategy: { gracePeriodSeconds: 7 } }), "app:2"),
      { pods: [running(OLD, 0)], before: OLD },
      ["0s create db-1", "5s create db-2", "10s update db-0", "17s update db-0"],
    ],
    ["has no steps for a set whose pods need no change", OLD, {}, []],
  ])("a plan %s", (_title, set, given, expected) => {
    expect(steps(set, given)).toEqual(expected);
  });

  it("a plan continues past the readiness gate InPlaceUpdateReady, which a pass opens and closes", () => {
    const gated = (image: string) =>
      setOf({
        ...rolling(IN_PLACE),
        template: {
          metadata: { labels: { app: "db" } },
          spec: {
            containers: [{ name: "main", image }],
            readinessGates: [{ conditionType: IN_PLACE_READY_CONDITION }],
          },
        },
      });
    expect(steps(gated("app:1"), { pods: [], before: gated("app:1") })).toEqual([
      "0s create db-0",
      "5s create db-1",
      "10s create db-2",
    ]);
    expect(steps(gated("app:2"), { before: gated("app:1") })).toEqual([
      "0s update db-2",
      "5s update db-1",
      "10s update db-0",
    ]);
  });

  it("a step has the numbers of ready and unavailable pods and the images that change", () => {
    const {
      steps: [first],
      before,
      after,
      isComplete,
      seconds,
    } = plan(setOf(rolling(IN_PLACE), "app:2"));
    expect(first).toEqual({
      atSeconds: 0,
      pods: [{ name: "db-2", action: "update", images: [{ container: "main", from: "app:1", to: "app:2" }] }],
      updated: 0,
      ready: 2,
      unavailable: 1,
      maxUnavailable: 1,
    });
    expect([before.updated, after.updated, after.ready, isComplete, seconds]).toEqual([0, 3, 3, true, 15]);
  });

  it("a plan names what holds the remaining pods", () => {
    const { isComplete, after } = plan(setOf(rolling({ partition: 2 }), "app:2"));
    expect([isComplete, after.hold, after.updated, after.waitingFor]).toEqual([false, "partition", 1, []]);
  });

  it("a plan names the problem that ends every pass", () => {
    const changed = setOf(rolling({ podUpdatePolicy: "InPlaceOnly" }));
    const template = { ...changed.spec.template, spec: { containers: [{ name: "other", image: "app:2" }] } };
    const { problem, steps } = plan({ ...changed, spec: { ...changed.spec, template } });
    expect([problem, steps]).toEqual([expect.stringMatching(/InPlaceOnly but Pod db-2/), []]);
  });

  describe("a label that a container reads into its environment:", () => {
    const env = [{ name: "X", valueFrom: { fieldRef: { fieldPath: "metadata.labels['x']" } } }];
    const reading = (x: string, podUpdatePolicy: string, image: string) => {
      const spec = { containers: [{ name: "main", image, env }] };
      return setOf({ ...rolling({ podUpdatePolicy }), template: { metadata: { labels: { app: "db", x } }, spec } });
    };
    const planned = (podUpdatePolicy: string, image: string) => {
      const before = reading("1", podUpdatePolicy, image);
      const pods = [0, 1, 2].map((ordinal) => {
        const pod = running(before, ordinal);
        const containerStatuses = (pod.status?.containerStatuses ?? []).map((status) => ({
          ...status,
          containerID: `containerd://${ordinal}`,
        }));
        return { ...pod, status: { ...pod.status, containerStatuses } };
      });
      return plan(reading("2", podUpdatePolicy, image), { before, pods });
    };

    it("a change of the label restarts pods in place, one after the other", () => {
      const { steps, isComplete } = planned("InPlaceOnly", "app:1");
      expect([steps.map(text), isComplete]).toEqual([["0s update db-2", "5s update db-1", "10s update db-0"], true]);
    });

    it("a change of the label replaces pods whose image has no alias, and InPlaceOnly reports a problem", () => {
      const image = "registry.example/app:1";
      const { steps, isComplete } = planned("InPlaceIfPossible", image);
      expect([steps.map(text)[0], isComplete]).toEqual(["0s replace db-2", true]);
      expect(planned("InPlaceOnly", image).problem).toMatch(
        /InPlaceOnly but Pod db-2 .*: container main reads changed/,
      );
    });
  });

  it("a plan is cut short at maxSteps", () => {
    const { isCutShort, steps } = plan(setOf({}, "app:2"), { options: { maxSteps: 2 } });
    expect([isCutShort, steps.length]).toEqual([true, 2]);
    expect(plan(setOf({}, "app:2")).isCutShort).toBe(false);
  });

  it("a plan ends if waiting does not help", () => {
    const pods = [0, 1, 2].map((ordinal) => podOf(OLD, ordinal));
    const { isComplete, after } = plan(setOf(rolling({ minReadySeconds: 10 }), "app:2"), { pods });
    expect([isComplete, after.waitingFor[0]?.why]).toEqual([false, "has to be ready for 10 s more"]);
  });
});
