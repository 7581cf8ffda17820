/**
 * Tests that a pod leaves its Services' endpoints before its sidecars restart. It must return in every end of the
 * rollout.
 */
import { expect, test } from "vitest";
import { podRows } from "../../../functions/cli/input/pod-rows.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import {
  DRAIN_ANNOTATION,
  DRAINED_BY_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  HASH_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  TRAFFIC_LABEL,
} from "../../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { explainPod, explainSidecarSet } from "../../../shared/core/inspect/explain/explain.ts";
import { podStanding } from "../../../shared/core/inspect/report/pod-standing.ts";
import { otherDrains } from "../../../shared/core/pod/pod-records.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { wordsOf } from "../../../shared/core/rollout/book.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { patched } from "../../../shared/core/rollout/plan/simulated-kubelet.ts";
import { drainNow } from "../../../shared/core/rollout/rules/drain/drain.ts";
import { newlyWanted } from "../../../shared/core/rollout/rules/gate/approval.ts";
import { sceneOf } from "../../../shared/core/rollout/select/observed-states.ts";
import { unavailableOf } from "../../../shared/core/rollout/summary.ts";
import { addSeconds } from "../../../shared/go/seconds-between.ts";
import { growsLinearly } from "../../support/growth.ts";
import {
  CONTEXT,
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  NOW,
  podOf,
  sidecarSetOf,
  statusesOf,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";

const SERVING = { [TRAFFIC_LABEL]: "serving" };
const DRAINED = { [TRAFFIC_LABEL]: "drained" };

function setOf(updateStrategy: UpdateStrategy = {}, drain: string | null = "10s", set = sidecarSetOf()): SidecarSet {
  const annotations = { ...set.metadata?.annotations, ...(drain === null ? {} : { [DRAIN_ANNOTATION]: drain }) };
  return { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, updateStrategy } };
}

const old = (name = "a") => podOf({ name, labels: SERVING });

function held(name = "a", { by = {}, release = NEW_HASH, since = NOW } = {}): Pod {
  const holds = { ss: { since, release }, ...by };
  return podOf({ name, labels: DRAINED, annotations: { [DRAINED_BY_ANNOTATION]: JSON.stringify(holds) } });
}

/** Returns a pod that only another SidecarSet drains. */
const elsewhere = (name: string, of: Parameters<typeof podOf>[0] = {}): Pod =>
  podOf({
    ...of,
    name,
    labels: DRAINED,
    annotations: {
      [INJECTED_LIST_ANNOTATION]: "ss,mesh",
      [DRAINED_BY_ANNOTATION]: JSON.stringify({ mesh: { since: NOW, release: "m" } }),
    },
  });

/** Returns the decision of a pass `seconds` after the start. */
function decided(sidecarSet: SidecarSet, pods: readonly Pod[], seconds = 0) {
  const now = addSeconds(NOW, seconds) ?? NOW;
  const decision = decide({ ...UNTOUCHED, revisions: [], sidecarSet, pods }, { ...CONTEXT, now });
  const writes = decision.actions.filter((action) => action.kind === "PatchPod");
  const told = writes.map(({ purpose, pod, images, labels = {} }) =>
    [purpose, pod.name, ...images.map(({ to }) => to), ...Object.values(labels)].join(" "),
  );
  return { ...decision, writes, told };
}

function after(sidecarSet: SidecarSet, pods: readonly Pod[], seconds = 0): readonly Pod[] {
  const { writes } = decided(sidecarSet, pods, seconds);
  return pods.map((pod) => {
    const patch = writes.find((one) => one.pod.uid === pod.metadata?.uid);
    return patch ? { ...patched(pod, patch), ...(patch.images.length > 0 ? { status: pod.status } : {}) } : pod;
  });
}

/** Returns the pod after its kubelet restarted containers with a new image. */
function restarted(pod: Pod): Pod {
  return { ...pod, status: { ...pod.status, containerStatuses: statusesOf(pod.spec) } };
}

test("a pod is drained, updated when its time is over, and put back when the new container runs", () => {
  const sidecarSet = setOf();
  const draining = after(sidecarSet, [old()]);
  expect(decided(sidecarSet, [old()]).told).toEqual(["drain a drained"]);
  expect(decided(sidecarSet, draining, 9).told).toEqual([]);
  expect(decided(sidecarSet, draining, 9).summary).toMatchObject({
    hold: "drain",
    rules: { drain: { pods: 1, seconds: 1 } },
  });
  expect(decided(sidecarSet, draining, 10).told).toEqual(["upgrade a reg/sc:v2"]);
  const updated = after(sidecarSet, draining, 10);
  expect(decided(sidecarSet, updated, 11).told).toEqual([]);
  const back = updated.map(restarted);
  expect(decided(sidecarSet, back, 12).told).toEqual(["putBack a serving"]);
  expect(decided(sidecarSet, after(sidecarSet, back, 12), 13).told).toEqual([]);
});

test.each(['{"toString":1}', "1e999", '[[{"valueOf":null,"toString":null}]]', "null", "7", "[]"])(
  "a forged drain record with the values %s stops no rollout, and its pod is put back",
  (words) => {
    const text = `{"ss":{"since":${words},"release":${words}}}`;
    const forged = podOf({ name: "a", labels: DRAINED, annotations: { [DRAINED_BY_ANNOTATION]: text } });
    expect(decided(setOf({ maxUnavailable: 2 }), [forged, old("b")]).told).toEqual([
      "putBack a serving",
      "drain b drained",
    ]);
    expect(decided(setOf({ maxUnavailable: 2 }, null), [forged, old("b")]).told).toContain("upgrade b reg/sc:v2");
  },
);

test("a pod that is drained counts against maxUnavailable until it is back in endpoints", () => {
  const sidecarSet = setOf();
  const draining = after(sidecarSet, [old("a"), old("b")]);
  expect(decided(sidecarSet, draining, 5).summary).toMatchObject({ used: 1, selected: 1 });
  const back = after(sidecarSet, draining, 10).map(restarted);
  expect(decided(sidecarSet, back, 11).told).toEqual(["putBack a serving"]);
  expect(decided(sidecarSet, after(sidecarSet, back, 11), 12).told).toEqual(["drain b drained"]);
});

test("without the annotation a pod is updated at once, and its labels stay", () => {
  expect(decided(setOf({}, null), [old()]).told).toEqual(["upgrade a reg/sc:v2"]);
});

test("a pod without the label is updated at once, because no Service selects it by that label", () => {
  const others = [podOf({ name: "a" }), podOf({ name: "b", labels: { [TRAFFIC_LABEL]: "maintenance" } })];
  expect(decided(setOf({ maxUnavailable: 2 }), others).told).toEqual(["upgrade a reg/sc:v2", "upgrade b reg/sc:v2"]);
});

test("a pod that is not ready is taken out of endpoints by the write that updates it", () => {
  const down = podOf({ name: "a", labels: SERVING, isReady: false });
  expect(decided(setOf(), [down]).told).toEqual(["upgrade a reg/sc:v2 drained"]);
});

test("a hot upgrade is not drained, because its old container works until the new one does", () => {
  const hot = setOf({}, "10s", hotSidecarSetOf());
  const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { name: "a", labels: SERVING });
  expect(decided(hot, [pod]).told).toEqual(["upgrade a reg/mesh:v2"]);
});

test.each<[string, SidecarSet]>([
  ["the rollout is paused", setOf({ paused: true })],
  ["the strategy is NotUpdate", setOf({ type: "NotUpdate" })],
  ["the partition keeps it", setOf({ partition: 1 })],
  ["updateStrategy.selector leaves it out", setOf({ selector: { matchLabels: { canary: "yes" } } })],
  ["maxUnavailable is 0 now", setOf({ maxUnavailable: 0 })],
  [
    "a newer release came",
    {
      ...setOf(),
      metadata: { ...setOf().metadata, annotations: { ...setOf().metadata?.annotations, [HASH_ANNOTATION]: "newer" } },
    },
  ],
])("a drained pod is put back when %s", (_, sidecarSet) => {
  expect(decided(sidecarSet, [held()], 5).told).toEqual(["putBack a serving"]);
});

test("pods are put back when the release stops, is undone, or loses the annotation", () => {
  const failing = podOf({
    name: "b",
    hash: NEW_HASH,
    image: "reg/sc:v2",
    isReady: false,
    statuses: [
      { name: "main", ready: true },
      { name: "sc", ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } },
    ],
  });
  const halting = setOf();
  const halted = {
    ...halting,
    metadata: {
      ...halting.metadata,
      annotations: { ...halting.metadata?.annotations, "sidecarset.kruise.io/halt-on": "0" },
    },
  };
  expect(decided(halted, [held(), failing], 5).told).toEqual(["putBack a serving"]);
  const undone = {
    ...setOf(),
    metadata: { ...setOf().metadata, annotations: { ...setOf().metadata?.annotations, [HASH_ANNOTATION]: "old" } },
  };
  expect(decided(undone, [held()], 5).told).toEqual(["putBack a serving"]);
  expect(decided(setOf({ paused: true }, null), [held()], 5).told).toEqual(["putBack a serving"]);
});

test("a smaller budget puts drained pods back instead of restarting them", () => {
  expect(decided(setOf({ maxUnavailable: 1 }), [held("a"), held("b")], 10).told).toEqual([
    "putBack a serving",
    "putBack b serving",
  ]);
});

test("a drained pod whose node is lost keeps its place, because it was drained while it was ready", () => {
  const lost = held("b");
  const conditions = [{ type: "Ready", status: "False" as const }];
  const pods = [
    podOf({ name: "a", hash: NEW_HASH, image: "reg/sc:v2", isReady: false }),
    { ...lost, status: { ...lost.status, conditions } },
    held("c"),
  ];
  expect(decided(setOf({ maxUnavailable: 2 }), pods, 10).told).toEqual(["putBack c serving", "upgrade b reg/sc:v2"]);
});

test("a drained pod whose container has not restarted yet stays out of endpoints in every state of the rollout", () => {
  const updated = after(setOf(), [held()], 10);
  expect(decided(setOf({ paused: true }), updated, 11).told).toEqual([]);
});

test("a pod that another SidecarSet drains stays drained, and a pod whose label somebody reset is drained again", () => {
  const by = { mesh: { since: NOW, release: "m" } };
  const [, write] = [
    decided(setOf({ paused: true }), [held("a", { by })]),
    decided(setOf({ paused: true }), [held("a", { by })]).writes[0],
  ];
  expect(write).toMatchObject({ labels: {}, annotations: { [DRAINED_BY_ANNOTATION]: JSON.stringify(by) } });
  const serving = { ...held(), metadata: { ...held().metadata, labels: SERVING } };
  expect(decided(setOf(), [serving], 20).told).toEqual(["drain a drained"]);
});

test("a pod that two SidecarSets drain has a drain record of both", () => {
  const mesh = { since: NOW, release: "m" };
  const annotations = { [DRAINED_BY_ANNOTATION]: JSON.stringify({ mesh }) };
  for (const isReady of [true, false]) {
    const [write] = decided(setOf(), [podOf({ name: "a", labels: DRAINED, annotations, isReady })]).writes;
    const holds = JSON.parse(write?.annotations[DRAINED_BY_ANNOTATION] ?? "{}");
    expect(holds).toEqual({ mesh, ss: { since: NOW, release: NEW_HASH } });
  }
});

test("a drain with a start time in the future begins again, so a fast clock keeps no pod out of endpoints", () => {
  const since = addSeconds(NOW, 3_600) ?? "";
  const [write] = decided(setOf(), [held("a", { since })], 5).writes;
  expect(write?.annotations[DRAINED_BY_ANNOTATION]).toContain(addSeconds(NOW, 5));
});

test("checks and a gate are asked before a drain, and not before the restart or before a pod is put back", () => {
  const wanted = (pod: Pod, seconds: number) =>
    newlyWanted(decided(setOf(), [pod], seconds), new Set()).map(({ name }) => name);
  expect(wanted(old(), 0)).toEqual(["a"]);
  expect(wanted(held(), 10)).toEqual([]);
  expect(newlyWanted(decided(setOf({ partition: 1 }), [held()]), new Set())).toEqual([]);
});

test("the time of a drain that a gate delayed starts when the drain is written", () => {
  const [planned] = decided(setOf(), [old()]).writes;
  const later = addSeconds(NOW, 30) ?? "";
  const written = planned && drainNow(planned, setOf(), later);
  expect(written?.annotations[DRAINED_BY_ANNOTATION]).toContain(later);
  const [update] = decided(setOf(), [held()], 10).writes;
  expect(update && drainNow(update, setOf(), later)).toBe(update);
});

test("the plan has the drain as a step of its own, with the time that it takes, and counts a drained pod once", () => {
  const observation = { ...UNTOUCHED, revisions: [], sidecarSet: setOf(), pods: [old("a"), old("b")] };
  const plan = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5 });
  const told = plan.steps.map(({ atSeconds, purpose, pods, down }) => [atSeconds, purpose, pods[0]?.name, down]);
  expect(told).toEqual([
    [0, "drain", "a", 1],
    [10, "upgrade", "a", 1],
    [15, "drain", "b", 1],
    [25, "upgrade", "b", 1],
  ]);
  expect([plan.seconds, plan.isComplete, plan.drain]).toEqual([30, true, { seconds: 10, undrained: 0 }]);
  const bare = { ...observation, pods: [old("a"), podOf({ name: "b" })] };
  expect(planRollout(bare, { ...CONTEXT, readyAfterSeconds: 5 }).drain).toEqual({ seconds: 10, undrained: 1 });
});

test("status, pods and the page say that a pod is drained, not that it waits for its turn", () => {
  const [sidecarSet, pods] = [setOf(), [held(), old("b")]];
  const facts = { ...UNTOUCHED, ...CONTEXT, revisions: [], pods, lastPass: NOW };
  const told = podRows({ sidecarSet, facts } as never).map(({ state }) => state);
  expect(told).toEqual([`drained since ${NOW}, updated next`, "waiting for its turn"]);
  const { states } = sceneOf({ ...facts, sidecarSet }, CONTEXT);
  expect([...states].map((state) => podStanding(state, sidecarSet, false)?.why)).toEqual([`drained since ${NOW}`, ""]);
});

test("explain says how long a pod stays drained, and that a pod without the label is not drained", () => {
  const factsOf = (pods: readonly Pod[], seconds: number) => ({
    ...UNTOUCHED,
    revisions: [],
    pods,
    settings: CONTEXT.settings,
    now: addSeconds(NOW, seconds) ?? NOW,
    kruiseNamespace: CONTEXT.kruiseNamespace,
    lastPass: NOW,
    registrations: [{ name: "mpod.kb.io" }],
    namespace: { metadata: { name: "default" } },
    sidecarSets: [selecting(setOf())],
  });
  const explained = (pod: Pod, seconds = 0, others: readonly Pod[] = []) =>
    explainPod(pod, selecting(setOf()), factsOf([pod, ...others], seconds))
      .map(({ message }) => message)
      .join();
  expect(explained(old())).toContain("the next pass drains it for 10 seconds, and then updates it");
  expect(explained(held(), 4)).toContain(`drained since ${NOW}: its sidecars restart in 6 seconds`);
  expect(explained(podOf({ name: "a" }))).toContain(
    "without a drain: it has no label sidecarset.kruise.io/traffic=serving",
  );
  expect(explained(old(), 0, [elsewhere("b")])).toContain(
    "1 of at most 1 unavailable, held by default/b (drained for mesh)",
  );
  const shared = [elsewhere("b", { hash: NEW_HASH, image: "reg/sc:v2" }), old("c")];
  const every = { matchExpressions: [{ key: "none", operator: "DoesNotExist" as const }] };
  const sidecarSet = { ...setOf(), spec: { ...setOf().spec, selector: every } };
  const steps = explainSidecarSet(sidecarSet, factsOf(shared, 0));
  expect(steps.map(({ message }) => message)).toContain(
    "pods wait: 1 of at most 1 unavailable, held by default/b (drained for mesh)",
  );
  const updated = elsewhere("a", { hash: NEW_HASH, image: "reg/sc:v2" });
  expect(explained(updated)).toContain(
    "mesh drains the pod, which uses a share of maxUnavailable until it is put back",
  );
});

const selecting = (set: SidecarSet): SidecarSet => ({ ...set, spec: { ...set.spec, selector: {} } });

test.each([
  ["10s", 10],
  [" 2m ", 120],
  ["1h", 3_600],
  ["2h", undefined],
  ["0s", undefined],
  ["10", undefined],
])("a drain of %s is %s seconds", (text, seconds) => {
  const { drainSeconds, problems } = steeringOf(setOf({}, text));
  expect(drainSeconds).toBe(seconds);
  expect(problems.map((one) => one.isStopping)).toEqual(seconds === undefined ? [false] : []);
});

test("the end of a hot upgrade leaves pods drained if it is their turn", () => {
  const hot = hotSidecarSetOf();
  const containers = [...(hot.spec.containers ?? []), { name: "sidecar", image: "reg/sc:v2" }];
  const set = setOf({ maxUnavailable: 2 }, "10s", { ...hot, spec: { ...hot.spec, containers } });
  const withPlain = (pod: Pod, image: string): Pod => {
    const spec = { ...pod.spec, containers: [...pod.spec.containers, { name: "sidecar", image }] };
    return { ...pod, spec, status: { ...pod.status, containerStatuses: statusesOf(spec) } };
  };
  const { metadata = {} } = held("b");
  const { labels = {}, annotations = {} } = metadata;
  const slots = ["reg/mesh:v2", "reg/empty:1"] as const;
  const waiting = withPlain(hotPodOf(slots, "mesh-1", { name: "b", labels, annotations }), "reg/sc:v1");
  const facts = { name: "a", labels: SERVING, hash: NEW_HASH };
  const flipping = withPlain(hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2", facts), "reg/sc:v2");
  expect(decided(set, [waiting], 5).told).toEqual([]);
  expect(decided(set, [flipping, waiting], 5).told).toEqual(["flip a reg/empty:1"]);
});

test("a drain record that its SidecarSet did not ask for allows no update: the pod is put back, and then the gate is called", () => {
  const gated = setOf({}, null);
  const annotations = { ...gated.metadata?.annotations, "sidecarset.kruise.io/gate": "https://gate.example/may-i" };
  const set = { ...gated, metadata: { ...gated.metadata, annotations } };
  const forged = held("a", { since: "2000-01-01T00:00:00Z" });
  expect(decided(set, [forged]).told).toEqual(["putBack a serving"]);
  const [back] = after(set, [forged]) as [Pod];
  const next = decided(set, [back], 1);
  expect([next.told, newlyWanted(next, new Set()).map(({ name }) => name)]).toEqual([["upgrade a reg/sc:v2"], ["a"]]);
});

test.each<[string, SidecarSet]>([
  ["drains", setOf()],
  ["does not drain", setOf({}, null)],
])("a pod that another SidecarSet drains counts against maxUnavailable of a SidecarSet that %s", (_, sidecarSet) => {
  const updated = elsewhere("b", { hash: NEW_HASH, image: "reg/sc:v2" });
  for (const other of [elsewhere("b"), updated]) {
    const { told, summary } = decided(sidecarSet, [old("a"), other]);
    expect([told.filter((text) => text.includes(" a ")), unavailableOf(summary)]).toEqual([[], 1]);
  }
  const { summary } = decided(sidecarSet, [old("a"), updated]);
  expect(summary).toMatchObject({ hold: "budget", drainedElsewhere: 1 });
  expect(wordsOf("budget", summary, "").sentence).toContain("when other SidecarSets put theirs back, or when");
  const two = { ...sidecarSet, spec: { ...sidecarSet.spec, updateStrategy: { maxUnavailable: 2 } } };
  expect(decided(two, [old("a"), updated]).told).toHaveLength(1);
});

test.each([
  ["from this moment", 0, 0],
  ["almost two hours old", 7_199, 0],
  ["two hours old, longer than any drain", 7_200, 1],
  ["from a clock five minutes ahead", -300, 0],
  ["further in the future", -301, 1],
])(
  "a pod that another SidecarSet drains uses budget as long as its drain record allows, here with an entry %s",
  (_, age, others) => {
    const other = elsewhere("b", { hash: NEW_HASH, image: "reg/sc:v2" });
    expect(decided(setOf({}, null), [old("a"), other], age).told).toHaveLength(others);
  },
);

test.each([{}, { since: 5, release: "m" }, { since: "soon", release: "m" }, "x"])(
  "an entry without a time (%j) uses no budget",
  (entry) => {
    const other = elsewhere("b", { hash: NEW_HASH, image: "reg/sc:v2" });
    const annotations = { ...other.metadata?.annotations, [DRAINED_BY_ANNOTATION]: JSON.stringify({ mesh: entry }) };
    const forged = { ...other, metadata: { ...other.metadata, annotations } };
    expect(decided(setOf({}, null), [old("a"), forged]).told).toHaveLength(1);
  },
);

test("a pod that another SidecarSet drains uses budget only once, so that its own update needs no more budget", () => {
  expect(decided(setOf(), [elsewhere("a")]).told).toEqual(["drain a"]);
  expect(decided(setOf({}, null), [elsewhere("a")]).told).toEqual(["upgrade a reg/sc:v2"]);
  expect(decided(setOf({ maxUnavailable: 0 }), [elsewhere("a")]).told).toEqual([]);
});

test("two SidecarSets that drain different pods at the same moment both continue, because a drain keeps its place", () => {
  expect(decided(setOf(), [held("a"), elsewhere("b")], 5).told).toEqual([]);
  expect(decided(setOf(), [held("a"), elsewhere("b")], 10).told).toEqual(["upgrade a reg/sc:v2"]);
});

test("a plan assumes that the drain of another SidecarSet ends, and counts its pod as down until then", () => {
  const observation = { ...UNTOUCHED, revisions: [], sidecarSet: setOf({}, null), pods: [old("a"), elsewhere("b")] };
  const plan = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5 });
  expect([plan.downBefore, plan.isComplete]).toEqual([1, true]);
  expect(plan.steps.map(({ pods, down, atSeconds }) => [pods.map(({ name }) => name).join(), down, atSeconds])).toEqual(
    [
      ["a", 1, 5],
      ["b", 1, 10],
    ],
  );
});

test.each<[string, string, string]>([
  ["an owner", OWNER_BUDGET_ANNOTATION, "1"],
  ["a set that follows ordinals", FOLLOW_ORDINALS_ANNOTATION, "true"],
])(
  "a pod that another SidecarSet drains counts in the budget of %s, whose own drains continue",
  (_, annotation, value) => {
    const owned = (pod: Pod): Pod => {
      const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "uid-db", controller: true };
      return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
    };
    const set = setOf({ maxUnavailable: 5 });
    const annotations = { ...set.metadata?.annotations, [annotation]: value };
    const careful = { ...set, metadata: { ...set.metadata, annotations } };
    const other = elsewhere("db-0", { hash: NEW_HASH, image: "reg/sc:v2" });
    expect(decided(careful, [owned(old("db-1")), owned(other)]).told).toEqual([]);
    expect(decided(careful, [owned(old("db-1")), owned(podOf({ name: "db-0" }))]).told).toEqual(["drain db-1 drained"]);
    expect(decided(careful, [owned(held("db-1")), owned(other)], 10).told).toEqual(["upgrade db-1 reg/sc:v2"]);
  },
);

test("the time to read a drain record grows linearly with its length, for any text", () => {
  const names = (count: number, prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}${at}`);
  const hostile = (count: number) => {
    const holds = JSON.stringify(Object.fromEntries(names(count, "x").map((name) => [name, 1])));
    const list = [...names(count, "y"), "ss"].join();
    const annotations = { [INJECTED_LIST_ANNOTATION]: list, [DRAINED_BY_ANNOTATION]: holds };
    return podOf({ labels: DRAINED, annotations });
  };
  expect(growsLinearly(hostile, (pod) => otherDrains(pod, "ss"), 500)).toBe(true);
});
