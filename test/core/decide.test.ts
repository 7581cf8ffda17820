import { array, assert, boolean, constantFrom, integer, property, record } from "fast-check";
import { describe, expect, test } from "vitest";
import type { ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import {
  EVICT_MISSED_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  HASH_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  UPGRADABLE_CONDITION,
} from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { type Decision, decide, type Observation } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { RULES, type Rule } from "../../shared/core/rollout/select/observed-states.ts";
import { projectPod } from "../../shared/core/rollout/upgrade/project-pod.ts";
import { ReconcileCluster } from "../runner/suites/reconcile-cluster.ts";
import { listedPod } from "../support/objects.ts";
import {
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  NOW,
  OLD_HASH,
  podOf,
  reservedFor,
  sidecarSetOf,
  statusesOf,
  UNTOUCHED,
} from "../support/rollout-fixture.ts";

const CONTEXT = { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };
const NAMES = ["a", "b", "c"];

function observe(sidecarSet: SidecarSet, pods: readonly Pod[], more: Partial<Observation> = {}): Decision {
  const observation = { sidecarSet, pods, revisions: [], ...UNTOUCHED, ...more };
  return decide(observation, CONTEXT);
}

const rolling = (updateStrategy: UpdateStrategy) => sidecarSetOf({ updateStrategy });
const old = NAMES.map((name) => podOf({ name }));
const kindsOf = ({ actions }: Decision) => actions.map(({ kind }) => kind);
const patchedBy = ({ actions }: Decision) =>
  actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));

describe("the list of rules:", () => {
  test("the list has its rules in the order on which later rules rely", () => {
    expect(RULES.map(({ name }) => name)).toEqual([
      "ordinals",
      "ownerBudget",
      "disruptionBudgets",
      "missed",
      "replacement",
      "prePull",
      "restarts",
      "waves",
    ]);
  });

  test("without the rules, their annotations change nothing in the decision", () => {
    const plain = rolling({ maxUnavailable: 2 });
    const asked = {
      [FOLLOW_ORDINALS_ANNOTATION]: "true",
      [OWNER_BUDGET_ANNOTATION]: "0",
      [EVICT_MISSED_ANNOTATION]: "true",
    };
    const steered = {
      ...plain,
      metadata: { ...plain.metadata, annotations: { ...plain.metadata?.annotations, ...asked } },
    };
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "db", controller: true };
    const pods = ["db-0", "db-1", "db-2"].map((name) => {
      const pod = podOf({ name });
      return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
    });
    const by = (sidecarSet: SidecarSet, rules: readonly Rule[]) =>
      decide({ sidecarSet, pods, revisions: [], ...UNTOUCHED }, { ...CONTEXT, rules });
    const decided = by(steered, []);
    expect([patchedBy(decided), decided.summary.rules]).toEqual([patchedBy(by(plain, RULES)), {}]);
    expect(patchedBy(decided)).toHaveLength(2);
    expect(patchedBy(by(steered, RULES))).toEqual([]);
  });
});

describe("decide in one pass:", () => {
  test("a pod that is evicted because it missed its sidecars uses budget until its deletion should be over", () => {
    const later = "2027-01-01T00:00:00Z";
    const bare = (more: object): Pod =>
      listedPod(
        { namespace: "shop", name: "bare", uid: "uid-bare", resourceVersion: "1", ...more },
        { containers: [] },
        { phase: "Running" },
      );
    const set = rolling({ maxUnavailable: 1 });
    const annotations = { ...set.metadata?.annotations, "sidecarset.kruise.io/evict-missed": "true" };
    const evicting = { ...set, metadata: { ...set.metadata, annotations } };
    const going = { deletionTimestamp: later };
    const reserved = reservedFor(["uid-bare"]);
    expect(patchedBy(observe(evicting, [...old, bare(going)]))).toEqual([]);
    expect(patchedBy(observe(evicting, [...old, bare({})], { reserved }))).toEqual([]);
    expect(patchedBy(observe(evicting, [...old, bare({})]))).toHaveLength(1);
    expect(patchedBy(observe(evicting, [...old, bare({ deletionTimestamp: NOW })]))).toHaveLength(1);
    expect(patchedBy(observe(set, [...old, bare(going)]))).toHaveLength(1);
  });

  test("the first pass creates the revision and patches the status, the first pod and its condition", () => {
    const decision = observe(rolling({ maxUnavailable: 1 }), old);
    expect(kindsOf(decision)).toEqual(["CreateRevision", "PatchStatus", "PatchPod", "PatchPodCondition"]);
    expect(decision.summary).toMatchObject({ matched: 3, waiting: 3, selected: 1, used: 0, hold: "budget" });
    expect(decision.status.latestRevision).toMatch(/^ss-/);
  });

  test("a second pass over a paused SidecarSet with the same pods has no actions", () => {
    const first = observe(rolling({ paused: true }), old);
    const [create] = first.actions;
    const revisions = create?.kind === "CreateRevision" ? [create.revision] : [];
    const sidecarSet = { ...rolling({ paused: true }), status: first.status };
    expect(observe(sidecarSet, old, { revisions }).actions).toEqual([]);
  });

  test.each([
    ["of a paused SidecarSet", { paused: true }, old, ["paused"]],
    ["of a SidecarSet with the type NotUpdate", { type: "NotUpdate" }, old, ["NotUpdate"]],
    ["if all pods are updated", {}, [podOf({ hash: NEW_HASH })], ["finished"]],
    ["if no pods match", {}, [], ["finished"]],
    ["if the partition is 100%", { partition: "100%" }, old, ["partition"]],
    ["if the partition is 1 of 3 pods", { partition: 1, maxUnavailable: 5 }, old, ["partition", "a", "b"]],
    ["if the budget is used up", {}, [podOf({ name: "d", hash: NEW_HASH, isReady: false }), ...old], ["budget"]],
    ["if maxUnavailable is 100%", { maxUnavailable: "100%" }, old, ["none", ...NAMES]],
    ["if the update selector matches no pod", { selector: { matchLabels: { x: "y" } } }, old, ["notSelected"]],
  ])("one pass selects the right pods and names the hold %s", (_, strategy, pods, expected) => {
    const decision = observe(rolling(strategy), pods);
    expect([decision.summary.hold, ...patchedBy(decision)]).toEqual(expected);
  });

  test("matchedPods does not count pods that the SidecarSet did not inject", () => {
    const stranger = podOf({ name: "x", annotations: { "kruise.io/sidecarset-injected-list": "other" } });
    expect(observe(rolling({}), [stranger]).status.matchedPods).toBe(0);
  });

  test("a pod that cannot be updated in place is counted, and gets the condition with status False and an event", () => {
    const decision = observe(rolling({}), [podOf({ withoutImage: "other" })]);
    expect(decision.summary).toMatchObject({ notUpgradable: 1, immutableFields: [], hold: "nothingWaits" });
    expect(decision.actions).toContainEqual(
      expect.objectContaining({ kind: "PatchPodCondition", condition: expect.objectContaining({ status: "False" }) }),
    );
    expect(decision.actions).toContainEqual(expect.objectContaining({ reason: "NotUpgradablePods" }));
  });

  test("a pass finishes a hot upgrade before it begins others, even if maxUnavailable is 0", () => {
    const flipping = hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2", { name: "f", hash: NEW_HASH });
    const waiting = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { name: "w" });
    const decision = observe(hotSidecarSetOf("reg/mesh:v2", { updateStrategy: { maxUnavailable: 0 } }), [
      waiting,
      flipping,
    ]);
    expect([decision.summary.hold, decision.summary.selected, patchedBy(decision)]).toEqual(["flip", 1, ["f"]]);
    expect(decision.actions).toContainEqual(expect.objectContaining({ purpose: "flip", usesBudget: false }));
  });

  test("an action says whether its patch uses budget", () => {
    const pods = [podOf({ name: "up" }), podOf({ name: "down", isReady: false })];
    const { actions } = observe(rolling({ maxUnavailable: 1 }), pods);
    const costs = actions.flatMap((action) =>
      action.kind === "PatchPod" ? [[action.pod.name, action.usesBudget]] : [],
    );
    expect(costs).toEqual([
      ["down", false],
      ["up", true],
    ]);
  });
});

describe("decide with one bad pod:", () => {
  const merging = { patchPodMetadata: [{ annotations: { key: "{}" }, patchPolicy: "MergePatchJson" }] };

  test("a pod whose annotation cannot be merged is reported and does not block the others", () => {
    const bad = podOf({ name: "0-bad", annotations: { key: "no" } });
    const decision = observe(sidecarSetOf({ ...merging, updateStrategy: { maxUnavailable: 1 } }), [bad, ...old]);
    expect(patchedBy(decision)).toEqual(["a"]);
    expect(decision.summary.problems).toEqual([
      { namespace: "default", name: "0-bad", message: "annotation key: Invalid JSON Document" },
    ]);
  });

  test("a pod whose condition cannot be parsed is reported and still upgraded", () => {
    const pod = podOf();
    const condition = { type: UPGRADABLE_CONDITION, status: "True", message: "zzz" };
    const bad = { ...pod, status: { ...pod.status, conditions: [...(pod.status?.conditions ?? []), condition] } };
    const decision = observe(rolling({}), [bad]);
    expect(patchedBy(decision)).toEqual(["p"]);
    expect(kindsOf(decision)).not.toContain("PatchPodCondition");
    expect(decision.summary.problems).toHaveLength(1);
  });

  test("a pod without metadata is not counted", () => {
    expect(observe(rolling({}), [{ spec: { containers: [] } }]).summary.matched).toBe(0);
  });
});

describe("decide about revisions:", () => {
  const sidecarSet = rolling({ paused: true });
  const created = () => {
    const [create] = observe(sidecarSet, []).actions;
    if (create?.kind !== "CreateRevision") throw new Error("no revision");
    return create.revision;
  };
  const named = (name: string, revision: number, data: unknown = {}): ControllerRevision => ({
    metadata: { name, namespace: "kruise-system", labels: { "kruise.io/sidecarset-name": "ss" } },
    revision,
    data,
  });

  test("a revision name that is taken by other data increases the collision count", () => {
    const first = created();
    const decision = observe(sidecarSet, [], { taken: [{ ...first, data: { other: 1 } }] });
    const [create] = decision.actions;
    expect(create).toMatchObject({ kind: "CreateRevision" });
    expect(create?.kind === "CreateRevision" && create.revision.metadata?.name).not.toBe(first.metadata?.name);
    expect(decision.status.collisionCount).toBe(1);
  });

  test("a revision with the same name and data is used again", () => {
    const first = created();
    const decision = observe(sidecarSet, [], { taken: [first] });
    expect(kindsOf(decision)).toEqual(["PatchStatus"]);
    expect(decision.status.latestRevision).toBe(first.metadata?.name);
  });

  test("a rollback gives the older revision the newest number", () => {
    const first = { ...created(), revision: 3 };
    const decision = observe(sidecarSet, [], { revisions: [named("newer", 4), first] });
    const name = first.metadata?.name ?? "";
    expect(decision.actions[0]).toEqual({ kind: "RenumberRevision", name, namespace: "kruise-system", revision: 5 });
  });

  test("revisionHistoryLimit 0 keeps the latest revision and the revisions in use", () => {
    const pinned = { injectionStrategy: { revision: { revisionName: "r2" } }, revisionHistoryLimit: 0 };
    const set = sidecarSetOf({ ...pinned, updateStrategy: { paused: true } });
    const revisions = [1, 2, 3, 4].map((number) => named(`r${number}`, number, { number }));
    const record = { ss: { hash: OLD_HASH, controllerRevision: "r3" } };
    const pod = podOf({ annotations: { [HASH_ANNOTATION]: JSON.stringify(record) } });
    const { actions } = observe(set, [pod], { revisions });
    const deleted = actions.flatMap((action) => (action.kind === "DeleteRevision" ? [action.name] : []));
    expect(deleted).toEqual(["r1", "r4"]);
  });

  test("a rollback with a smaller revisionHistoryLimit keeps the revision that it returns to", () => {
    const first = { ...created(), revision: 1 };
    const set = { ...sidecarSet, spec: { ...sidecarSet.spec, revisionHistoryLimit: 1 } };
    const { actions } = observe(set, [], { revisions: [first, named("r2", 2), named("r3", 3)] });
    const deleted = actions.flatMap((action) => (action.kind === "DeleteRevision" ? [action.name] : []));
    expect(deleted).toEqual(["r2", "r3"]);
  });
});

const anyPods = array(
  record({ isUpdated: boolean(), isReady: boolean(), isUpgradable: boolean(), isMatched: boolean() }),
  { maxLength: 12 },
).map((facts) =>
  facts.map(({ isUpdated, isReady, isUpgradable, isMatched }, index) =>
    podOf({
      name: `p${index}`,
      hash: isUpdated ? NEW_HASH : OLD_HASH,
      image: isUpdated ? "reg/sc:v2" : "reg/sc:v1",
      isReady,
      withoutImage: isUpgradable ? "same" : "other",
      creationTimestamp: `2025-01-01T00:00:${String(index).padStart(2, "0")}Z`,
      ...(isMatched ? {} : { phase: "Failed" }),
    }),
  ),
);

describe("decide with generated pods:", () => {
  test("decide makes the same decision from projected pods", () => {
    assert(
      property(anyPods, (pods) => {
        const sidecarSet = rolling({ maxUnavailable: 2 });
        const projected = pods.map((pod) => projectPod(pod, sidecarSet));
        expect(observe(sidecarSet, projected)).toEqual(observe(sidecarSet, pods));
        expect(projected.map((pod) => projectPod(pod, sidecarSet))).toEqual(projected);
      }),
      { numRuns: 200 },
    );
  });
});

/** Finishes the kubelet's work: the containers run their images, and the pod is ready again. */
function finish(pod: Pod): Pod {
  return { ...pod, status: { ...podOf({ spec: pod.spec, statuses: statusesOf(pod.spec) }).status } };
}

/** Starts the kubelet's work: containers with a new image are down. */
function restart(pod: Pod): Pod {
  const wanted = new Map(pod.spec.containers.map(({ name, image }) => [name, image]));
  const statuses = pod.status?.containerStatuses ?? [];
  const isRunning = statuses.every(({ name, image }) => wanted.get(name) === image);
  return isRunning
    ? pod
    : { ...pod, status: { ...podOf({ isReady: false, statuses: statusesOf(pod.spec, false) }).status } };
}

function isDown({ status }: Pod): boolean {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True";
}

interface Rollout {
  readonly size: number;
  readonly maxUnavailable: number | string;
  readonly partition: number | string;
  readonly isHot: boolean;
  /** the pod that the kubelet finishes after each pass; after the last entry it finishes all pods */
  readonly order: readonly number[];
}

function clusterFor({ size, isHot, maxUnavailable, partition }: Rollout): ReconcileCluster {
  const spec = { updateStrategy: { maxUnavailable, partition }, selector: {} };
  const cluster = new ReconcileCluster();
  cluster.add(isHot ? hotSidecarSetOf("reg/mesh:v2", spec) : sidecarSetOf(spec));
  for (let index = 0; index < size; index++) {
    const name = `p${index}`;
    const pod = isHot ? hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { name }) : podOf({ name });
    cluster.add({ kind: "Pod", ...pod });
  }
  return cluster;
}

/** Calls `watch` after every pass with the number of pods that are down; returns the last decision. */
function runRollout(rollout: Rollout, watch: (down: number, limit: number) => void): Decision | undefined {
  const cluster = clusterFor(rollout);
  const keys = [...cluster.pods.keys()];
  let decision = cluster.reconcile("ss", CONTEXT);
  const one = rollout.order.map((turn) => [keys[turn % keys.length] ?? ""]);
  const all = Array.from({ length: 3 * keys.length }, () => keys);
  for (const finished of [...one, ...all]) {
    for (const key of keys) cluster.updatePod(key, restart);
    watch([...cluster.pods.values()].filter(isDown).length, decision?.summary.maxUnavailable ?? 0);
    for (const key of finished) cluster.updatePod(key, finish);
    decision = cluster.reconcile("ss", CONTEXT);
  }
  return decision;
}

describe("decide over many passes:", () => {
  const anyRollout = record({
    size: integer({ min: 1, max: 6 }),
    maxUnavailable: constantFrom(1, 2, 3, "30%"),
    partition: constantFrom(0, 2, "100%"),
    isHot: boolean(),
    order: array(integer({ min: 0, max: 5 }), { maxLength: 12 }),
  });

  test("every rollout reaches its partition and never has more pods down than maxUnavailable", () => {
    assert(
      property(anyRollout, (rollout) => {
        const end = runRollout(rollout, (down, limit) => expect(down).toBeLessThanOrEqual(limit));
        const kept = rollout.partition === "100%" ? rollout.size : Math.min(Number(rollout.partition), rollout.size);
        expect(end?.status.updatedPods).toBe(rollout.size - kept);
      }),
      { numRuns: 100 },
    );
  });
});
