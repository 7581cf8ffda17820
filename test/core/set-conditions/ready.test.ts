import { describe, expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import {
  DRAINED_BY_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  TRAFFIC_LABEL,
} from "../../../shared/api/names.ts";
import type { SidecarSetStatus, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { checkBlocked } from "../../../shared/core/inspect/check/passes.ts";
import { endOf } from "../../../shared/core/rollout/book.ts";
import { conditionsOf } from "../../../shared/core/rollout/conditions/conditions.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { HOLDS } from "../../../shared/core/rollout/hold.ts";
import type { Summary } from "../../../shared/core/rollout/summary.ts";
import { CONTEXT, NEW_HASH, NOW, podOf, sidecarSetOf, takenDown, UNTOUCHED } from "../../support/rollout-fixture.ts";

const UPDATE_STATE = JSON.stringify({
  ss: {
    revision: "v2",
    updateTimestamp: NOW,
    lastContainerStatuses: { sc: { imageID: "cri://reg/sc:v1@id" } },
  },
});

function statuses(image: string, imageID: string): readonly ContainerStatus[] {
  return [
    { name: "main", image: "reg/main:v1", imageID: "m", ready: true },
    { name: "sc", image, imageID, ready: true },
  ];
}

/** Returns a pod with release v2 in its spec, whose kubelet has not restarted the sidecar yet. */
function inFlight(name: string, isReady = true): Pod {
  return podOf({
    name,
    hash: "v2hash",
    image: "reg/sc:v2",
    isReady,
    annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: UPDATE_STATE },
    statuses: statuses("reg/sc:v1", "cri://reg/sc:v1@id"),
  });
}

const done = (name: string) =>
  podOf({ name, hash: NEW_HASH, image: "reg/sc:v3", statuses: statuses("reg/sc:v3", "v3") });
const old = (name: string) => podOf({ name });

function look(pods: readonly Pod[], updateStrategy: UpdateStrategy = {}, settings = CONTEXT.settings) {
  const sidecarSet = sidecarSetOf({ containers: [{ name: "sc", image: "reg/sc:v3" }], updateStrategy });
  const { summary, status, failing } = decide(
    { ...UNTOUCHED, sidecarSet, pods, revisions: [] },
    { ...CONTEXT, settings },
  );
  const conditions = conditionsOf(
    { ...sidecarSet, status },
    { summary, failing, missed: [], latestRevision: "r" },
    NOW,
  );
  const said = (type: string) => {
    const found = conditions.find((condition) => condition.type === type);
    return `${found?.status} ${found?.reason}`;
  };
  const ofPods = { notUpgradable: said("NotUpgradable") };
  const message = conditions.find(({ type }) => type === "Ready")?.message;
  const blocked = conditions.find(({ type }) => type === "Blocked")?.message;
  const beside = { end: endOf(summary), degraded: said("Degraded"), message, blocked };
  const checked = checkBlocked(sidecarSet, { summary, failing }).map(({ id }) => id);
  const words = { checked, ready: said("Ready"), reconciling: said("Reconciling"), progressing: said("Progressing") };
  return { summary, ofPods, ...words, ...beside };
}

describe("pods in flight from an older release:", () => {
  test.each<[string, readonly Pod[], UpdateStrategy?]>([
    ["one pod", [inFlight("a")]],
    ["two pods", [inFlight("a"), inFlight("b")]],
    ["a pod on a lost node beside updated pods", [inFlight("a", false), done("b"), done("c")]],
    ["a pod beside others that the partition keeps", [inFlight("a"), done("b"), old("c")], { partition: 1 }],
  ])("a SidecarSet is Updating and not Ready while pods are in flight: %s", (_, pods, strategy) => {
    const { summary, ready, reconciling, progressing } = look(pods, strategy);
    expect({ ready, reconciling, progressing }).toEqual({
      ready: "False Updating",
      reconciling: "True Updating",
      progressing: "True PodsInFlight",
    });
    expect(summary).toMatchObject({ hold: "inFlight", inFlight: pods.length - summary.updated - summary.partition });
  });

  test("pods in flight are counted while the rollout is paused", () => {
    const { summary, ready } = look([inFlight("a"), old("b")], { paused: true });
    expect([summary.hold, summary.inFlight, ready]).toEqual(["paused", 1, "False Paused"]);
  });
});

/** Returns a pod that an older release took down, and that is not ready again. */
function leftDown(why?: string, name = "left"): Pod {
  const pod = takenDown(podOf({ name, image: "reg/sc:v2", isReady: false }));
  const waiting = why === undefined ? {} : { state: { waiting: { reason: why } } };
  const containerStatuses = statuses("reg/sc:v2", "").map((one) =>
    one.name === "sc" ? { ...one, ready: false, ...waiting } : one,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

describe("pods that an older release left down:", () => {
  test.each<[string, UpdateStrategy]>([
    ["a partition", { partition: "100%" }],
    ["a partition that lets one pod through", { partition: 2 }],
    ["a selector", { selector: { matchLabels: { none: "has-this" } } }],
    ["a pause", { paused: true }],
    ["maxUnavailable 0", { maxUnavailable: 0, partition: 2 }],
  ])("a SidecarSet is Degraded while a pod of an older release cannot run its sidecar, held by %s", (_, strategy) => {
    const found = look([done("a"), leftDown("ImagePullBackOff"), old("c")], strategy);
    expect([found.ready, found.degraded]).toEqual(["False Degraded", "True PodsFail"]);
    expect(found.end).toBe("badly");
  });

  test("a SidecarSet is not Ready and has no end while a pod of an older release is not ready again", () => {
    const found = look([done("a"), leftDown(), old("c")], { partition: 2 });
    expect([found.ready, found.degraded, found.end]).toEqual(["False Incomplete", "False AsExpected", undefined]);
    expect(found.message).toContain("1 pod is down since an older release: default/left (sc: not ready)");
  });

  test("a SidecarSet is Ready although a pod that no release took down is not ready behind the partition", () => {
    const own = podOf({ name: "own", isReady: false });
    expect(look([done("a"), own, old("c")], { partition: 2 }).ready).toBe("True HeldByPartition");
  });

  test("a release is Updating while it updates the pods that an older release left down", () => {
    expect(look([leftDown("ImagePullBackOff"), old("c")]).ready).toBe("False Updating");
  });

  test("a SidecarSet is Updating while another one drains a pod, although a pod of an older release fails", () => {
    const labels = { first: "yes" };
    const weightPriority = [{ weight: 1, matchSelector: { matchLabels: labels } }];
    const drains = JSON.stringify({ mesh: { since: NOW, release: "m" } });
    const annotations = { [INJECTED_LIST_ANNOTATION]: "ss,mesh", [DRAINED_BY_ANNOTATION]: drains };
    const drained = podOf({ name: "d", labels: { [TRAFFIC_LABEL]: "drained" }, annotations });
    const pods = [leftDown("ImagePullBackOff"), podOf({ name: "c", labels }), drained];
    const { summary, ready, degraded } = look(pods, { priorityStrategy: { weightPriority } });
    expect([summary.hold, summary.selected, summary.drainedElsewhere]).toEqual(["budget", 0, 1]);
    expect([ready, degraded]).toEqual(["False Updating", "False AsExpected"]);
  });

  test("a SidecarSet is Degraded while failing pods of an older release use more than the whole budget", () => {
    const down = ["a", "b", "c"].map((name) => leftDown("ImagePullBackOff", name));
    const settings = { ...CONTEXT.settings, StrictMaxUnavailable: true };
    const labels = { first: "yes" };
    const weightPriority = [{ weight: 1, matchSelector: { matchLabels: labels } }];
    const pods = [...down, podOf({ name: "d", labels })];
    const found = look(pods, { maxUnavailable: 2, priorityStrategy: { weightPriority } }, settings);
    const { summary, ready, degraded, checked } = found;
    expect([summary.hold, summary.selected, summary.used]).toEqual(["budget", 0, 3]);
    expect([ready, degraded]).toEqual(["False Degraded", "True PodsFail"]);
    expect(checked).toEqual(["PodsFail"]);
  });
});

test.each<[string, UpdateStrategy]>([
  ["the rollout is paused", { paused: true }],
  ["the partition keeps 1 pod at the old version", { partition: 1 }],
  ["updateStrategy.selector leaves out 1 pod", { selector: { matchLabels: { none: "has-this" } } }],
  ["maxUnavailable is 0, so no pod that is ready is updated", { maxUnavailable: 0 }],
])("the condition Blocked names the setting of the user: %s", (why, strategy) => {
  const { blocked } = look([done("a"), old("b")], strategy);
  expect(blocked).toBe(`nothing is in the way but what was asked for: ${why}`);
});

test.each<[string, Pod]>([
  ["no other pod can be upgraded now", podOf({ name: "a", withoutImage: "other" })],
  [
    "every pod is updated, and 1 pod is not ready: default/a (the pod is not ready)",
    podOf({ name: "a", hash: NEW_HASH, image: "reg/sc:v3", isReady: false, statuses: statuses("reg/sc:v3", "v3") }),
  ],
])("the condition Blocked names its cause instead of “nothing”: %s", (why, pod) => {
  expect(look([pod, done("b")]).blocked).toBe(why);
});

describe("pods that must be recreated for an update:", () => {
  const reshaped = podOf({ name: "a", withoutImage: "other" });
  test.each<[string, UpdateStrategy]>([
    ["the rollout is paused", { paused: true }],
    ["the strategy is NotUpdate", { type: "NotUpdate" }],
    ["the rollout continues", {}],
  ])("pods that cannot be upgraded in place are counted and reported if %s", (_, strategy) => {
    const { summary, ofPods } = look([reshaped, old("b")], strategy);
    expect([summary.notUpgradable, ofPods.notUpgradable]).toEqual([1, "True ImmutableFields"]);
  });

  test("the condition Blocked of a paused rollout names them beside the pause", () => {
    expect(look([reshaped, old("b")], { paused: true }).blocked).toBe(
      "1 pod cannot be upgraded in place; otherwise nothing is in the way but what was asked for: the rollout is paused",
    );
  });
});

describe("a rollout with a partition:", () => {
  test("a SidecarSet is Ready when every pod outside the partition is updated and ready", () => {
    expect(look([done("a"), old("b")], { partition: 1 }).ready).toBe("True HeldByPartition");
  });

  test("a SidecarSet is not Ready while an update selector leaves out pods outside the partition", () => {
    const strategy = { partition: 1, selector: { matchLabels: { canary: "yes" } } };
    const labels = { canary: "yes" };
    const pods = [podOf({ name: "a", labels }), old("b")];
    expect(look(pods, strategy).ready).toBe("False Paused");
  });
});

test("an update selector that leaves out old pods pauses the rollout, and the SidecarSet is not Ready", () => {
  const { ready, progressing } = look([done("a"), old("b")], { selector: { matchLabels: { canary: "yes" } } });
  expect([ready, progressing]).toEqual(["False Paused", "False NotSelected"]);
});

describe("the condition Ready for every reason of a hold:", () => {
  const base: Omit<Summary, "hold" | "updated" | "updatedReady" | "partition" | "inFlight"> = {
    matched: 3,
    ready: 3,
    waiting: 0,
    notUpgradable: 0,
    immutableFields: [],
    maxUnavailable: 2,
    used: 0,
    down: [],
    selected: 0,
    problems: [],
    rules: {},
  };
  const latestRevision = "r";
  const finished = {
    type: "Progressing",
    status: "False",
    reason: "Finished",
    message: "",
    lastTransitionTime: NOW,
  } as const;
  const statuses: readonly SidecarSetStatus[] = [{}, { latestRevision, conditions: [finished] }];
  /** Every way to divide three pods into updated, ready, kept by the partition, and other pods. */
  const shares = Array.from({ length: 64 }, (_, index) => {
    const [updated, updatedReady, partition] = [index % 4, Math.floor(index / 4) % 4, Math.floor(index / 16)] as const;
    return { updated, updatedReady, partition };
  }).filter(({ updated, updatedReady, partition }) => updatedReady <= updated && updated + partition <= 3);

  const readyOf = (summary: Summary, status: SidecarSetStatus) => {
    const set = { metadata: { name: "x" }, spec: {}, status };
    const conditions = conditionsOf(set, { summary, failing: [], missed: [], latestRevision }, NOW);
    const ready = conditions.find(({ type }) => type === "Ready");
    return `${ready?.status} ${ready?.reason}`;
  };
  const allowed = ({ hold, matched, updated, updatedReady, partition }: Summary) => {
    if (updated !== updatedReady) return [];
    if (updated === matched) return ["True Ready"];
    return hold === "partition" && updated + partition === matched ? ["True HeldByPartition"] : [];
  };

  test.each(HOLDS)("Ready is True only if the counts say complete: hold %s", (hold) => {
    const summaries = shares.map((some): Summary => ({ ...base, ...some, inFlight: 0, hold }));
    const wrong = summaries.flatMap((summary) =>
      statuses
        .map((status) => readyOf(summary, status))
        .filter(
          (said) => (said.startsWith("True") || said.includes("HeldByPartition")) && !allowed(summary).includes(said),
        )
        .map((said) => ({ said, summary })),
    );
    expect([summaries.length > 10, wrong]).toEqual([true, []]);
  });
});
