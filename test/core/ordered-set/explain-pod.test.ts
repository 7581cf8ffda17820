import { afterAll, describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_STATE_ANNOTATION, LIFECYCLE_STATE_LABEL } from "../../../shared/api/names.ts";
import type { RollingUpdateStatefulSet, StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import { explainSetPod, SET_REASONS, type SetStep } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { explainWholeSet } from "../../../shared/core/statefulset/explain/trace-set.ts";
import { planSet } from "../../../shared/core/statefulset/plan/simulated-world.ts";
import type { SetObservation } from "../../../shared/core/statefulset/reconcile.ts";
import { NOW, podOf, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const OLD = setOf();
const told = new Set<string>();

interface Given {
  readonly set?: StatefulSet;
  readonly pods?: readonly Pod[];
  readonly change?: Partial<SetObservation>;
  readonly lastPass?: string | undefined;
}

function factsOf({ set = OLD, pods = podsOf(0, 1, 2), change = {}, ...given }: Given) {
  const lastPass = "lastPass" in given ? given.lastPass : NOW;
  const status = { ...set.status, observedGeneration: set.metadata?.generation ?? 0 } as StatefulSet["status"] & object;
  const seen = { ...seenOf({ ...set, status }, pods, [revisionOfSet(OLD, 1), revisionOfSet(NEW, 2)]), ...change };
  return { seen, plan: planSet(seen, { claims: [] }), lastPass };
}

function seenSteps(steps: readonly SetStep[]): readonly SetStep[] {
  for (const { reason } of steps) told.add(reason);
  return steps;
}

const explained = (name: string, given: Given = {}) => seenSteps(explainSetPod(name, factsOf(given)));
const reasons = (steps: readonly SetStep[]) => steps.map(({ reason, verdict }) => `${verdict} ${reason}`);
const podsOf = (...ordinals: readonly number[]) => ordinals.map((ordinal) => podOf(OLD, ordinal));
const rolling = (rollingUpdate: RollingUpdateStatefulSet): StatefulSetSpec => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: 1, ...rollingUpdate } },
});
const NEW = setOf({}, "app:2");
const parallel = (spec: StatefulSetSpec = {}) => setOf({ podManagementPolicy: "Parallel", ...spec }, "app:2");
const deleting = (set: StatefulSet): StatefulSet => ({
  ...set,
  metadata: { ...set.metadata, deletionTimestamp: NOW, finalizers: ["a"] },
});

function changed(pod: Pod, metadata: Pod["metadata"] & object): Pod {
  const { labels, annotations } = pod.metadata ?? {};
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      ...metadata,
      labels: { ...labels, ...metadata.labels },
      annotations: { ...annotations, ...metadata.annotations },
    },
  };
}

function broken(pod: Pod): Pod {
  const containerStatuses = [{ name: "main", ready: false, state: { waiting: { reason: "ImagePullBackOff" } } }];
  return { ...pod, status: { phase: "Pending", conditions: [{ type: "Ready", status: "False" }], containerStatuses } };
}

const IN_RANGE = "ok OrdinalInRange";
const TICK = "ok TickRunning";
const unready = (ordinal: number) => podOf(OLD, ordinal, { isReady: false });

/** The tests above must cover every reason. */
afterAll(() => {
  expect(SET_REASONS.filter((reason) => !told.has(reason))).toEqual([]);
});

describe("explainSetPod:", () => {
  it("a pod of a set that is too large for passes is explained by the passes' report", () => {
    const [step, ...others] = explained("db-1", { set: setOf({ replicas: 20_001 }) });
    expect(step).toMatchObject({ reason: "PassFails", message: expect.stringContaining("20001 is more than 20000") });
    expect(others).toEqual([]);
  });

  it.each<readonly [string, string, Given, readonly string[]]>([
    ["needs no change", "db-1", {}, [IN_RANGE, "ok UpdatedAndReady"]],
    ["is updated by the next pass", "db-2", { set: NEW }, [IN_RANGE, "note OutOfDate", "ok NextInLine", TICK]],
    [
      "waits for others that use the budget",
      "db-0",
      { set: parallel(), pods: [podOf(OLD, 0), podOf(OLD, 1), unready(2)] },
      [IN_RANGE, "note OutOfDate", "wait BudgetUsed", TICK],
    ],
    [
      "waits because the next pass updates others",
      "db-0",
      { set: NEW },
      [IN_RANGE, "note OutOfDate", "wait WaitsForTurn", TICK],
    ],
    [
      "waits because another pod is not ready",
      "db-2",
      { set: NEW, pods: [unready(0), ...podsOf(1, 2)] },
      [IN_RANGE, "note OutOfDate", "wait OrderWaits", TICK],
    ],
    [
      "is itself not ready and delays the update",
      "db-2",
      { set: NEW, pods: [...podsOf(0, 1), unready(2)] },
      [IN_RANGE, "wait PodNotReady", "note OutOfDate", "wait OrderWaits", TICK],
    ],
    [
      "has a failing container",
      "db-2",
      { pods: [...podsOf(0, 1), broken(podOf(OLD, 2))] },
      [IN_RANGE, "stop ContainerFailing", TICK],
    ],
    [
      "waits for the removal of pods beyond the range",
      "db-2",
      { set: NEW, pods: podsOf(0, 1, 2, 3) },
      [IN_RANGE, "note OutOfDate", "wait RemovalFirst", TICK],
    ],
    [
      "has to be deleted by a person with OnDelete",
      "db-2",
      { set: setOf({ updateStrategy: { type: "OnDelete" } }, "app:2") },
      [IN_RANGE, "note OutOfDate", "stop StrategyOnDelete", TICK],
    ],
    [
      "waits because the update is paused",
      "db-2",
      { set: setOf(rolling({ paused: true }), "app:2") },
      [IN_RANGE, "note OutOfDate", "stop StrategyPaused", TICK],
    ],
    [
      "is kept by the partition",
      "db-0",
      { set: setOf(rolling({ partition: 1 }), "app:2") },
      [IN_RANGE, "note OutOfDate", "stop KeptByPartition", TICK],
    ],
    [
      "was reserved by an earlier pass",
      "db-1",
      { set: parallel(rolling({ maxUnavailable: 1 })), change: { reserved: new Set(["pod-1", "pod-2"]) } },
      [IN_RANGE, "note OutOfDate", "wait Reserved", TICK],
    ],
    [
      "is not updated because the pass fails",
      "db-2",
      {
        set: setOf({
          ...rolling({ podUpdatePolicy: "InPlaceOnly" }),
          template: { ...OLD.spec.template, spec: { containers: [{ name: "other", image: "b" }] } },
        }),
      },
      [IN_RANGE, "note OutOfDate", "stop PassFails", TICK],
    ],
    [
      "is being deleted",
      "db-2",
      { pods: [...podsOf(0, 1), changed(podOf(OLD, 2), { deletionTimestamp: NOW })] },
      [IN_RANGE, "wait PodTerminating", TICK],
    ],
    [
      "is being deleted but has a finalizer",
      "db-2",
      { pods: [...podsOf(0, 1), changed(podOf(OLD, 2), { deletionTimestamp: NOW, finalizers: ["a"] })] },
      [IN_RANGE, "stop PodTerminating", TICK],
    ],
    [
      "has failed",
      "db-2",
      { pods: [...podsOf(0, 1), podOf(OLD, 2, { phase: "Failed" })] },
      [IN_RANGE, "wait PodFinished", "ok NextInLine", TICK],
    ],
    [
      "is held by a lifecycle hook",
      "db-2",
      { pods: [...podsOf(0, 1), changed(podOf(OLD, 2), { labels: { [LIFECYCLE_STATE_LABEL]: "PreparingDelete" } })] },
      [IN_RANGE, "stop HeldByHook", TICK],
    ],
    [
      "is being updated in place",
      "db-2",
      {
        pods: [
          ...podsOf(0, 1),
          changed(podOf(OLD, 2), {
            annotations: {
              [IN_PLACE_STATE_ANNOTATION]: JSON.stringify({
                revision: "x",
                updateTimestamp: NOW,
                lastContainerStatuses: { main: { imageID: "" } },
              }),
            },
          }),
        ],
      },
      [IN_RANGE, "wait InPlaceUnderWay", TICK],
    ],
    [
      "has not been ready for long enough",
      "db-2",
      { set: setOf(rolling({ minReadySeconds: 9 })) },
      [IN_RANGE, "wait NotReadyForLongEnough", TICK],
    ],
    [
      "belongs to a set that is being deleted",
      "db-2",
      { set: deleting(NEW) },
      [IN_RANGE, "note SetTerminating", "note OutOfDate", TICK],
    ],
    ["is the next to be removed", "db-4", { pods: podsOf(0, 1, 2, 3, 4) }, ["note OutOfRange", "ok NextInLine", TICK]],
    [
      "waits for the removal of another pod",
      "db-3",
      { pods: podsOf(0, 1, 2, 3, 4) },
      ["note OutOfRange", "wait WaitsForTurn", TICK],
    ],
    [
      "is removed only after another pod is ready",
      "db-3",
      { pods: [unready(0), ...podsOf(1, 2, 3)] },
      ["note OutOfRange", "wait OrderWaits", TICK],
    ],
    [
      "has a reserved ordinal",
      "db-1",
      { set: setOf({ reserveOrdinals: [1] }), pods: podsOf(0, 1, 2, 3) },
      ["note OrdinalReserved", "ok NextInLine", TICK],
    ],
    [
      "belongs to another owner",
      "db-1",
      { pods: [podOf(OLD, 0), changed(podOf(OLD, 1), { ownerReferences: [] })] },
      ["stop NotOfTheSet"],
    ],
    [
      "waits because no pass has run for long",
      "db-2",
      { set: NEW, lastPass: "2025-01-01T00:00:00Z" },
      [IN_RANGE, "note OutOfDate", "ok NextInLine", "stop TickNotRunning"],
    ],
    [
      "may wait because the time of the last pass is unknown",
      "db-2",
      { set: NEW, lastPass: undefined },
      [IN_RANGE, "note OutOfDate", "ok NextInLine", "note TickUnknown"],
    ],
  ])("the trace explains a pod that %s", (_title, name, given, expected) => {
    expect(reasons(explained(name, given))).toEqual(expected);
  });

  it.each<readonly [string, string, Given, readonly string[]]>([
    ["the next pass creates", "db-2", { pods: podsOf(0, 1) }, [IN_RANGE, "note PodMissing", "ok NextInLine", TICK]],
    [
      "waits for an earlier pod that is not ready",
      "db-2",
      { pods: [podOf(OLD, 0), unready(1)] },
      [IN_RANGE, "note PodMissing", "wait OrderWaits", TICK],
    ],
    [
      "waits for an earlier pod that does not exist",
      "db-2",
      { pods: podsOf(0) },
      [IN_RANGE, "note PodMissing", "wait OrderWaits", TICK],
    ],
    [
      "waits because the scale budget is used up",
      "db-2",
      { set: parallel({ scaleStrategy: { maxUnavailable: 1 } }), pods: [podOf(OLD, 0), unready(1)] },
      [IN_RANGE, "note PodMissing", "wait ScaleBudgetUsed", TICK],
    ],
    ["is not wanted", "db-7", {}, ["stop OutOfRange"]],
    [
      "has a reserved ordinal",
      "db-1",
      { set: setOf({ reserveOrdinals: ["1-1"] }), pods: podsOf(0, 2, 3) },
      ["stop OrdinalReserved"],
    ],
    [
      "belongs to a set that is being deleted",
      "db-2",
      { set: deleting(OLD), pods: podsOf(0, 1) },
      [IN_RANGE, "note SetTerminating", "note PodMissing", TICK],
    ],
  ])("the trace explains a missing pod that %s", (_title, name, given, expected) => {
    expect(reasons(explained(name, given))).toEqual(expected);
  });

  it("the trace names the command to run and the pod that another one waits for", () => {
    const text = (name: string, given: Given) => JSON.stringify(explained(name, given));
    expect(text("db-2", { set: setOf(rolling({ paused: true }), "app:2") })).toMatch(
      /sidecarset resume statefulset\.apps\.kruise\.io\/db/,
    );
    expect(text("db-2", { set: NEW, pods: [unready(0), ...podsOf(1, 2)] })).toMatch(/waits for db-0: it is not ready/);
    expect(text("db-0", { set: parallel(), pods: [...podsOf(0, 1), unready(2)] })).toMatch(
      /number 3 of 3 that wait; 1 of at most 1 unavailable, held by db-2 \(it is not ready\)/,
    );
    expect(text("db-2", { pods: [...podsOf(0, 1), broken(podOf(OLD, 2))] })).toMatch(
      /undo statefulset\.apps\.kruise\.io\/db -n \S+ or fix the template, then kubectl -n \S+ delete pod db-2/,
    );
  });
});

describe("explainWholeSet:", () => {
  const whole = (given: Given) => reasons(seenSteps(explainWholeSet(factsOf(given))));
  const seenBefore = (given: Given) => {
    const facts = factsOf(given);
    const set = { ...facts.seen.set, metadata: { ...facts.seen.set.metadata, generation: 2 } };
    return reasons(seenSteps(explainWholeSet({ ...facts, seen: { ...facts.seen, set } })));
  };

  it.each<readonly [string, Given, readonly string[]]>([
    ["whose pods need no change", {}, ["ok AllAsWanted"]],
    ["that the next pass updates", { set: NEW }, ["note UnderWay", "ok NextInLine", TICK]],
    [
      "with missing pods",
      { pods: podsOf(0) },
      ["note UnderWay", "wait PodMissing", "wait PodMissing", "ok NextInLine", TICK],
    ],
    [
      "with many missing pods",
      { set: setOf({ replicas: 9 }), pods: [] },
      [
        "note UnderWay",
        "wait PodMissing",
        "wait PodMissing",
        "wait PodMissing",
        "note PodNotReady",
        "ok NextInLine",
        TICK,
      ],
    ],
    [
      "with a failing pod",
      { pods: [...podsOf(0, 1), broken(podOf(OLD, 2))] },
      ["note UnderWay", "stop ContainerFailing", TICK],
    ],
    [
      "that is paused",
      { set: setOf(rolling({ paused: true }), "app:2") },
      ["note UnderWay", "stop StrategyPaused", TICK],
    ],
    [
      "whose pods a person has to delete",
      { set: setOf({ updateStrategy: { type: "OnDelete" } }, "app:2") },
      ["note UnderWay", "stop StrategyOnDelete", TICK],
    ],
    [
      "whose remaining pods are all kept by the partition",
      { set: setOf(rolling({ partition: 3 }), "app:2") },
      ["note UnderWay", "stop KeptByPartition", TICK],
    ],
    [
      "whose remaining pods are partly kept by the partition",
      { set: setOf(rolling({ partition: 1 }), "app:2") },
      ["note UnderWay", "note KeptByPartition", "ok NextInLine", TICK],
    ],
    ["that shrinks", { set: setOf({ replicas: 2 }) }, ["note UnderWay", "wait OutOfRange", "ok NextInLine", TICK]],
    ["that is being deleted", { set: deleting(OLD) }, ["note UnderWay", "note SetTerminating", TICK]],
  ])("the trace explains a set %s", (_title, given, expected) => {
    expect(whole(given)).toEqual(expected);
  });

  it("the trace says that no pass has seen the last change of a set", () => {
    expect(seenBefore({ set: NEW })).toEqual(["note UnderWay", "ok NextInLine", "wait ChangeNotSeen", TICK]);
  });
});
