import { describe, expect, test } from "vitest";
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { reconcileSet } from "../../../shared/core/statefulset/reconcile.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { SetCluster } from "../../runner/suites/set-cluster.ts";
import { NOW, podOf, revisionOfSet, setOf } from "./fixture.ts";

const STATE = "lifecycle.apps.kruise.io/state";
const HOOK = { labelsHandler: { "example.com/online": "true" } };
const set = setOf({ podManagementPolicy: "Parallel", replicas: 2, lifecycle: { preNormal: HOOK } });

interface Facts {
  readonly phase?: string;
  readonly state?: string;
  readonly hasGate?: boolean;
  readonly nodeName?: string;
  readonly isTerminating?: boolean;
}

/** Returns a pod that its hook does not delay, without a condition for its readiness gate. */
function pod(ordinal: number, { phase = "Running", state = "Normal", hasGate, nodeName, isTerminating }: Facts): Pod {
  const made = podOf(set, ordinal, { phase, labels: { [STATE]: state, ...HOOK.labelsHandler } });
  const readinessGates = hasGate ? [{ conditionType: "InPlaceUpdateReady" }] : [];
  const deletion = isTerminating ? { deletionTimestamp: NOW } : {};
  return {
    ...made,
    kind: "Pod",
    metadata: { ...made.metadata, ...deletion },
    spec: { ...made.spec, readinessGates, ...(nodeName ? { nodeName } : {}) },
  };
}

function pass(of: StatefulSet, pods: readonly Pod[], ...older: readonly ControllerRevision[]) {
  const cluster = new SetCluster("db", false);
  const revisions = [...older, revisionOfSet(of, older.length + 1)].map((one) => ({
    ...one,
    kind: "ControllerRevision",
  }));
  for (const object of [of, ...pods, ...revisions]) cluster.add(object);
  const listed = cluster.list<Pod>("Pod");
  const seen = { set: of, pods: listed, revisions, gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, now: NOW };
  const { failure, requeueAfterSeconds } = cluster.run(reconcileSet(seen), NOW);
  const states = cluster.list<Pod>("Pod").map(({ metadata }) => `${metadata?.name} ${metadata?.labels?.[STATE]}`);
  const names = cluster
    .list<Pod>("Pod")
    .map(({ metadata }) => metadata?.labels?.["statefulset.kubernetes.io/pod-name"]);
  const images = cluster.list<Pod>("Pod").map(({ metadata, spec }) => `${metadata?.name} ${spec.containers[0]?.image}`);
  return { failure: failure?.message, states, images, names, requeueAfterSeconds };
}

describe("a pass refreshes the pods of a set before it updates any:", () => {
  test("a pass refreshes a pod out of range even after another pod changed its state", () => {
    const pods = [
      pod(0, { state: "PreparingNormal", nodeName: "n" }),
      pod(1, { nodeName: "n" }),
      pod(2, { state: "PreparingNormal", nodeName: "n", isTerminating: true }),
    ];
    const { failure, states } = pass(set, pods);
    expect(failure).toBeUndefined();
    expect(states).toEqual(["db-0 Normal", "db-1 Normal", "db-2 Normal"]);
  });

  test.each([
    ["that is out of range and has no node", { phase: "Pending" }, 2],
    ["that has failed", { phase: "Failed", nodeName: "n" }, 1],
  ])("a pass fails if a pod %s is deleted before its gate is opened", (_, facts, ordinal) => {
    const others = [0, 1].filter((other) => other !== ordinal).map((other) => pod(other, { nodeName: "n" }));
    const pods = [...others, pod(ordinal, { ...facts, hasGate: true })];
    expect(pass(set, pods).failure).toBe(`pods "db-${ordinal}" not found`);
  });
});

describe("a pass uses the stored version of a pod that it has written:", () => {
  test("a pod that is being deleted still gets its next lifecycle state", () => {
    const pods = [0, 1, 2].map((ordinal) =>
      pod(ordinal, { nodeName: "n", ...(ordinal === 2 ? { state: "PreparingNormal" } : {}) }),
    );
    expect(pass(set, pods).states).toEqual(["db-0 Normal", "db-1 Normal", "db-2 Normal"]);
  });

  test("a pod that a hook keeps from deletion still gets its next lifecycle state", () => {
    const held = { ...set, spec: { ...set.spec, lifecycle: { preNormal: HOOK, preDelete: HOOK } } };
    const pods = [0, 1, 2].map((ordinal) =>
      pod(ordinal, { nodeName: "n", ...(ordinal === 2 ? { state: "PreparingNormal" } : {}) }),
    );
    expect(pass(held, pods).states).toEqual(["db-0 Normal", "db-1 Normal", "db-2 Normal"]);
  });

  test.each([
    ["ReCreate", { preDelete: HOOK }, "PreparingDelete"],
    ["InPlaceIfPossible", { inPlaceUpdate: HOOK }, "PreparingUpdate"],
  ])(
    "a pod that just got its missing label is prepared for an update with the policy %s",
    (podUpdatePolicy, lifecycle, state) => {
      const rollingUpdate = { partition: 0, maxUnavailable: 1, podUpdatePolicy };
      const updateStrategy = { type: "RollingUpdate", rollingUpdate };
      const spec = { podManagementPolicy: "Parallel", replicas: 1, updateStrategy, lifecycle };
      const { labels, ...metadata } = pod(0, {}).metadata ?? {};
      const { "statefulset.kubernetes.io/pod-name": _, ...others } = labels ?? {};
      const nameless = { ...pod(0, { nodeName: "n" }), metadata: { ...metadata, labels: others } };
      const { failure, states, names } = pass(setOf(spec, "app:2"), [nameless], revisionOfSet(set, 1));
      expect({ failure, states, names }).toEqual({ failure: undefined, states: [`db-0 ${state}`], names: ["db-0"] });
    },
  );

  test("the end of a grace period does not delay other pods", () => {
    const rollingUpdate = { partition: 0, maxUnavailable: 2, podUpdatePolicy: "ReCreate" };
    const wanted = setOf(
      {
        podManagementPolicy: "Parallel",
        replicas: 2,
        updateStrategy: { type: "RollingUpdate", rollingUpdate },
      },
      "app:2",
    );
    const revision = revisionOfSet(wanted, 2).metadata?.name ?? "";
    const grace = { revision, containerImages: { main: "app:2" }, graceSeconds: 5 };
    const state = { revision, updateTimestamp: "2025-12-31T23:59:00Z", lastContainerStatuses: {} };
    const annotations = {
      "apps.kruise.io/inplace-update-grace": JSON.stringify(grace),
      "apps.kruise.io/inplace-update-state": JSON.stringify(state),
    };
    const first = podOf(wanted, 0);
    const updating = {
      ...first,
      metadata: { ...first.metadata, annotations },
      spec: { ...first.spec, nodeName: "n", containers: [{ name: "main", image: "app:1" }] },
    };
    const old = podOf(set, 1);
    const { failure, images } = pass(wanted, [updating, old]);
    expect(failure).toBeUndefined();
    expect(images).toEqual(["db-0 app:2"]);
  });
});

test.each([
  [300, 300],
  [301, 0],
])("a pass for a pod that is available in %i seconds is repeated after %i seconds", (minReadySeconds, seconds) => {
  const rollingUpdate = { partition: 0, maxUnavailable: 1, minReadySeconds };
  const slow = setOf({
    podManagementPolicy: "Parallel",
    replicas: 1,
    updateStrategy: { type: "RollingUpdate", rollingUpdate },
  });
  const conditions = [{ type: "Ready", status: "True", lastTransitionTime: NOW }];
  const ready = { ...podOf(slow, 0), status: { phase: "Running", conditions } };
  expect(pass(slow, [ready]).requeueAfterSeconds).toBe(seconds);
});
