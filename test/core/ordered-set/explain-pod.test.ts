import { afterAll, describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_STATE_ANNOTATION, LIFECYCLE_STATE_LABEL } from "../../../shared/api/names.ts";
import type { RollingUpdateStatefulSet, StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import { SET_REASONS, type SetStep } from "../../../shared/core/statefulset/explain/set-reasons.ts";
import { explainSetPod } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { explainWholeSet } from "../../../shared/core/statefulset/explain/trace-set.ts";
import { planSet } from "../../../shared/core/statefulset/plan/plan-set.ts";
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

/** Every rule is seen at work. */
afterAll(() => {
  expect(SET_REASONS.filter((reason) => !told.has(reason))).toEqual([]);
});

describe("why a pod of a set is as it is", () => {
  it.each<readonly [string, string, Given, readonly string[]]>([
    ["it is as wanted", "db-1", {}, [IN_RANGE, "ok UpdatedAndReady"]],
    ["the next pass takes it", "db-2", { set: NEW }, [IN_RANGE, "note OutOfDate", "ok NextInLine", TICK]],
    [
      "others are before it, and use the budget",
      "db-0",
      { set: parallel(), pods: [podOf(OLD, 0), podOf(OLD, 1), unready(2)] },
      [IN_RANGE, "note OutOfDate", "wait BudgetUsed", TICK],
    ],
    ["the next pass takes others", "db-0", { set: NEW }, [IN_RANGE, "note OutOfDate", "wait WaitsForTurn", TICK]],
    [
      "the order waits for another one",
      "db-2",
      { set: NEW, pods: [unready(0), ...podsOf(1, 2)] },
      [IN_RANGE, "note OutOfDate", "wait OrderWaits", TICK],
    ],
    [
      "the order waits for it",
      "db-2",
      { set: NEW, pods: [...podsOf(0, 1), unready(2)] },
      [IN_RANGE, "wait PodNotReady", "note OutOfDate", "wait OrderWaits", TICK],
    ],
    [
      "its container fails",
      "db-2",
      { pods: [...podsOf(0, 1), broken(podOf(OLD, 2))] },
      [IN_RANGE, "stop ContainerFailing", TICK],
    ],
    [
      "pods beyond the range go first",
      "db-2",
      { set: NEW, pods: podsOf(0, 1, 2, 3) },
      [IN_RANGE, "note OutOfDate", "wait RemovalFirst", TICK],
    ],
    [
      "somebody has to delete it",
      "db-2",
      { set: setOf({ updateStrategy: { type: "OnDelete" } }, "app:2") },
      [IN_RANGE, "note OutOfDate", "stop StrategyOnDelete", TICK],
    ],
    [
      "the update is paused",
      "db-2",
      { set: setOf(rolling({ paused: true }), "app:2") },
      [IN_RANGE, "note OutOfDate", "stop StrategyPaused", TICK],
    ],
    [
      "the partition keeps it",
      "db-0",
      { set: setOf(rolling({ partition: 1 }), "app:2") },
      [IN_RANGE, "note OutOfDate", "stop KeptByPartition", TICK],
    ],
    [
      "an earlier pass has reserved it",
      "db-1",
      { set: parallel(rolling({ maxUnavailable: 1 })), change: { reserved: new Set(["pod-1", "pod-2"]) } },
      [IN_RANGE, "note OutOfDate", "wait Reserved", TICK],
    ],
    [
      "no pass gets there",
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
      "it is being deleted",
      "db-2",
      { pods: [...podsOf(0, 1), changed(podOf(OLD, 2), { deletionTimestamp: NOW })] },
      [IN_RANGE, "wait PodTerminating", TICK],
    ],
    [
      "somebody keeps it from being deleted",
      "db-2",
      { pods: [...podsOf(0, 1), changed(podOf(OLD, 2), { deletionTimestamp: NOW, finalizers: ["a"] })] },
      [IN_RANGE, "stop PodTerminating", TICK],
    ],
    [
      "it has ended",
      "db-2",
      { pods: [...podsOf(0, 1), podOf(OLD, 2, { phase: "Failed" })] },
      [IN_RANGE, "wait PodFinished", "ok NextInLine", TICK],
    ],
    [
      "a hook holds it",
      "db-2",
      { pods: [...podsOf(0, 1), changed(podOf(OLD, 2), { labels: { [LIFECYCLE_STATE_LABEL]: "PreparingDelete" } })] },
      [IN_RANGE, "stop HeldByHook", TICK],
    ],
    [
      "its update in place is under way",
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
      "it has not been ready for long enough",
      "db-2",
      { set: setOf(rolling({ minReadySeconds: 9 })) },
      [IN_RANGE, "wait NotReadyForLongEnough", TICK],
    ],
    ["the set goes", "db-2", { set: deleting(NEW) }, [IN_RANGE, "note SetTerminating", "note OutOfDate", TICK]],
    ["it is the next to go", "db-4", { pods: podsOf(0, 1, 2, 3, 4) }, ["note OutOfRange", "ok NextInLine", TICK]],
    ["others go before it", "db-3", { pods: podsOf(0, 1, 2, 3, 4) }, ["note OutOfRange", "wait WaitsForTurn", TICK]],
    [
      "it goes when another one is ready",
      "db-3",
      { pods: [unready(0), ...podsOf(1, 2, 3)] },
      ["note OutOfRange", "wait OrderWaits", TICK],
    ],
    [
      "its ordinal was reserved",
      "db-1",
      { set: setOf({ reserveOrdinals: [1] }), pods: podsOf(0, 1, 2, 3) },
      ["note OrdinalReserved", "ok NextInLine", TICK],
    ],
    [
      "it is somebody else's",
      "db-1",
      { pods: [podOf(OLD, 0), changed(podOf(OLD, 1), { ownerReferences: [] })] },
      ["stop NotOfTheSet"],
    ],
    [
      "no pass has run for long",
      "db-2",
      { set: NEW, lastPass: "2025-01-01T00:00:00Z" },
      [IN_RANGE, "note OutOfDate", "ok NextInLine", "stop TickNotRunning"],
    ],
    [
      "nobody knows of a pass",
      "db-2",
      { set: NEW, lastPass: undefined },
      [IN_RANGE, "note OutOfDate", "ok NextInLine", "note TickUnknown"],
    ],
  ])("%s", (_title, name, given, expected) => {
    expect(reasons(explained(name, given))).toEqual(expected);
  });

  it.each<readonly [string, string, Given, readonly string[]]>([
    ["the next pass makes it", "db-2", { pods: podsOf(0, 1) }, [IN_RANGE, "note PodMissing", "ok NextInLine", TICK]],
    [
      "one before it is not ready",
      "db-2",
      { pods: [podOf(OLD, 0), unready(1)] },
      [IN_RANGE, "note PodMissing", "wait OrderWaits", TICK],
    ],
    ["one before it is not there", "db-2", { pods: podsOf(0) }, [IN_RANGE, "note PodMissing", "wait OrderWaits", TICK]],
    [
      "no more may be unavailable",
      "db-2",
      { set: parallel({ scaleStrategy: { maxUnavailable: 1 } }), pods: [podOf(OLD, 0), unready(1)] },
      [IN_RANGE, "note PodMissing", "wait ScaleBudgetUsed", TICK],
    ],
    ["nobody wants it", "db-7", {}, ["stop OutOfRange"]],
    [
      "its ordinal is reserved",
      "db-1",
      { set: setOf({ reserveOrdinals: ["1-1"] }), pods: podsOf(0, 2, 3) },
      ["stop OrdinalReserved"],
    ],
    [
      "the set goes",
      "db-2",
      { set: deleting(OLD), pods: podsOf(0, 1) },
      [IN_RANGE, "note SetTerminating", "note PodMissing", TICK],
    ],
  ])("why a pod is not there: %s", (_title, name, given, expected) => {
    expect(reasons(explained(name, given))).toEqual(expected);
  });

  it("names what may be done, and whom one waits for", () => {
    const text = (name: string, given: Given) => JSON.stringify(explained(name, given));
    expect(text("db-2", { set: setOf(rolling({ paused: true }), "app:2") })).toMatch(
      /sidecarset resume statefulset\.apps\.kruise\.io\/db/,
    );
    expect(text("db-2", { set: NEW, pods: [unready(0), ...podsOf(1, 2)] })).toMatch(/waits for db-0: it is not ready/);
    expect(text("db-0", { set: parallel(), pods: [...podsOf(0, 1), unready(2)] })).toMatch(
      /number 3 of 3 that wait; 1 of at most 1 unavailable, held by db-2 \(it is not ready\)/,
    );
    expect(text("db-2", { pods: [...podsOf(0, 1), broken(podOf(OLD, 2))] })).toMatch(
      /undo statefulset\.apps\.kruise\.io\/db or fix the template, then kubectl delete pod db-2/,
    );
  });
});

describe("where a set stands as a whole", () => {
  const whole = (given: Given) => reasons(seenSteps(explainWholeSet(factsOf(given))));
  const seenBefore = (given: Given) => {
    const facts = factsOf(given);
    const set = { ...facts.seen.set, metadata: { ...facts.seen.set.metadata, generation: 2 } };
    return reasons(seenSteps(explainWholeSet({ ...facts, seen: { ...facts.seen, set } })));
  };

  it.each<readonly [string, Given, readonly string[]]>([
    ["all is as wanted", {}, ["ok AllAsWanted"]],
    ["the next pass goes on", { set: NEW }, ["note UnderWay", "ok NextInLine", TICK]],
    [
      "pods are missing",
      { pods: podsOf(0) },
      ["note UnderWay", "wait PodMissing", "wait PodMissing", "ok NextInLine", TICK],
    ],
    [
      "many are missing",
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
    ["one fails", { pods: [...podsOf(0, 1), broken(podOf(OLD, 2))] }, ["note UnderWay", "stop ContainerFailing", TICK]],
    [
      "it is paused",
      { set: setOf(rolling({ paused: true }), "app:2") },
      ["note UnderWay", "stop StrategyPaused", TICK],
    ],
    [
      "somebody has to delete pods",
      { set: setOf({ updateStrategy: { type: "OnDelete" } }, "app:2") },
      ["note UnderWay", "stop StrategyOnDelete", TICK],
    ],
    [
      "the partition keeps all that are left",
      { set: setOf(rolling({ partition: 3 }), "app:2") },
      ["note UnderWay", "stop KeptByPartition", TICK],
    ],
    [
      "the partition keeps some of those that are left",
      { set: setOf(rolling({ partition: 1 }), "app:2") },
      ["note UnderWay", "note KeptByPartition", "ok NextInLine", TICK],
    ],
    ["it shrinks", { set: setOf({ replicas: 2 }) }, ["note UnderWay", "wait OutOfRange", "ok NextInLine", TICK]],
    ["it goes", { set: deleting(OLD) }, ["note UnderWay", "note SetTerminating", TICK]],
  ])("%s", (_title, given, expected) => {
    expect(whole(given)).toEqual(expected);
  });

  it("a change that no pass has seen is told of", () => {
    expect(seenBefore({ set: NEW })).toEqual(["note UnderWay", "ok NextInLine", "wait ChangeNotSeen", TICK]);
  });
});
