import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import type { UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
} from "../../../shared/core/rollout/disruption/disruption-budget.ts";
import {
  CONTEXT,
  NEW_HASH,
  type PodFacts,
  podOf,
  reservedFor,
  sidecarSetOf,
  takenDown,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";
import { type BudgetFacts, budgetOf, storedBudget } from "./fixture.ts";

/** Later than what the pods' records say. */
const LATER = "2025-06-01T00:10:00Z";

interface Scene {
  readonly pods: readonly Pod[];
  readonly budgets: readonly DisruptionBudget[];
  readonly reserved?: readonly string[];
  readonly strategy?: UpdateStrategy;
  readonly now?: string;
}

function decided({ pods, budgets, reserved = [], strategy = {}, now = LATER }: Scene) {
  const updateStrategy = { maxUnavailable: "100%", ...strategy };
  const sidecarSet = sidecarSetOf({ selector: {}, updateStrategy });
  const observation = {
    ...UNTOUCHED,
    sidecarSet,
    pods,
    revisions: [],
    disruptionBudgets: budgets,
    reserved: reservedFor(reserved),
  };
  const decision = decide(observation, { ...CONTEXT, now });
  const patches = decision.actions.filter((action) => action.kind === "PatchPod");
  return { decision, patches, names: patches.map(({ pod }) => pod.name).sort() };
}

const named = (...names: readonly string[]) => names.map((name) => podOf({ name }));
const a = { app: "a" };
const b = { app: "b" };
const labelled = (labels: PodFacts["labels"], ...names: readonly string[]) =>
  names.map((name) => podOf({ name, labels: labels ?? {} }));

describe("a budget", () => {
  test.each<[string, BudgetFacts, number]>([
    ["that allows one lets one go", {}, 1],
    ["that allows none lets none go", { allowed: 0 }, 0],
    ["that allows more than there are lets all go", { allowed: 9 }, 3],
    ["without a selector is about no pod", { allowed: 0, selector: null }, 3],
    ["with an empty selector is about all", { allowed: 0, selector: {} }, 0],
    ["of other pods holds none of these", { allowed: 0, selector: { matchLabels: a } }, 3],
    ["whose controller has not seen its spec lets none go", { generation: 2, observedGeneration: 1 }, 0],
    ["that is not believed with so many on their way down lets none go", { disrupted: many(2_001) }, 0],
    ["counts one that is on its way down already only once", { allowed: 0, disrupted: { x: LATER } }, 1],
  ])("%s", (_what, facts, count) => {
    expect(decided({ pods: named("x", "y", "z"), budgets: [budgetOf(facts)] }).names).toHaveLength(count);
  });

  test("says what it is, and where it stands, and how many pods wait for it", () => {
    const { decision } = decided({ pods: named("x", "y"), budgets: [budgetOf({ allowed: 0, healthy: 2 })] });
    expect(decision.summary).toMatchObject({
      hold: "disruptionBudget",
      selected: 0,
      disruptionBudgets: {
        waiting: 2,
        full: ["PodDisruptionBudget default/one allows 0 more down: 2 healthy of 2 that have to be"],
      },
    });
  });

  test("lets the next ones go that it is not about, within maxUnavailable", () => {
    const pods = [...labelled(a, "a1", "a2", "a3"), ...labelled(b, "b1", "b2", "b3")];
    const budgets = [budgetOf({ allowed: 0, selector: { matchLabels: a } })];
    expect(decided({ pods, budgets, strategy: { maxUnavailable: 2 } }).names).toStrictEqual(["b1", "b2"]);
  });

  test("must allow it, and so must every other one that is about the pod", () => {
    const pods = [...labelled(a, "a1"), ...labelled({ ...a, ...b }, "ab")];
    const budgets = [
      budgetOf({ name: "open", allowed: 5 }),
      budgetOf({
        name: "shut",
        allowed: 0,
        selector: { matchExpressions: [{ key: "app", operator: "In", values: ["b"] }] },
      }),
    ];
    const { patches } = decided({ pods, budgets });
    expect(patches.map(({ pod, disruption }) => [pod.name, disruption])).toStrictEqual([
      ["a1", { at: LATER, budgets: ["PodDisruptionBudget default/open"] }],
    ]);
  });

  test("of another namespace is about none", () => {
    const budget = { ...budgetOf({ allowed: 0 }), namespace: "elsewhere" };
    expect(decided({ pods: named("x"), budgets: [budget] }).names).toHaveLength(1);
  });
});

describe("what is down", () => {
  const down = podOf({ name: "down", isReady: false });
  test.each<[string, BudgetFacts, readonly string[]]>([
    ["goes while enough others are healthy, and is counted nowhere", { allowed: 0, healthy: 2 }, ["down"]],
    ["waits while too few are", { allowed: 0, healthy: 1 }, []],
    ["waits where none has to be healthy, as the eviction API has it", { allowed: 0, healthy: 0, desired: 0 }, []],
    ["goes in any case where the budget says so", { allowed: 0, healthy: 1, unready: "AlwaysAllow" }, ["down"]],
    ["waits while the spec was not seen", { generation: 2, observedGeneration: 1 }, []],
    [
      "goes then too where the budget says so",
      { generation: 2, observedGeneration: 1, unready: "AlwaysAllow" },
      ["down"],
    ],
  ])("%s", (_what, facts, names) => {
    const found = decided({ pods: [down], budgets: [budgetOf(facts)] });
    expect(found.names).toStrictEqual(names);
    expect(found.patches.flatMap(({ disruption }) => disruption ?? [])).toStrictEqual([]);
  });

  test("leaves what is allowed to others", () => {
    const found = decided({ pods: [down, ...named("x", "y")], budgets: [budgetOf({ allowed: 1, healthy: 3 })] });
    expect(found.names).toHaveLength(2);
    expect(found.names).toContain("down");
  });

  test("goes when it has not started yet", () => {
    const pods = [podOf({ name: "new", isReady: false, phase: "Pending" })];
    expect(decided({ pods, budgets: [budgetOf({ allowed: 0, healthy: 0 })] }).names).toHaveLength(1);
  });
});

describe("what we took down ourselves", () => {
  const lastContainerStatuses = { sc: { imageID: "cri://reg/sc:v1@id" } };
  const state = { ss: { revision: NEW_HASH, updateTimestamp: CONTEXT.now, lastContainerStatuses } };
  const begun = podOf({
    name: "begun",
    hash: NEW_HASH,
    image: "reg/sc:v2",
    statuses: podOf().status?.containerStatuses ?? [],
    annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify(state) },
  });
  test("counts while its node has not begun and the budget sees it as up", () => {
    const pods = [begun, ...named("x", "y")];
    expect(decided({ pods, budgets: [budgetOf({ allowed: 1 })] }).names).toHaveLength(0);
    expect(decided({ pods, budgets: [budgetOf({ allowed: 2 })] }).names).toHaveLength(1);
  });

  test("counts no second time where the budget counts it", () => {
    const pods = [begun, ...named("x", "y")];
    expect(decided({ pods, budgets: [budgetOf({ allowed: 1, disrupted: { begun: LATER } })] }).names).toHaveLength(1);
  });

  test("counts while it is reserved and nothing is written yet", () => {
    const [x, y, z] = named("x", "y", "z");
    const scene = { pods: [x, y, z].flatMap((pod) => pod ?? []), reserved: ["uid-x"] };
    expect(decided({ ...scene, budgets: [budgetOf({ allowed: 0 })] }).names).toStrictEqual([]);
    expect(decided({ ...scene, budgets: [budgetOf({ allowed: 1 })] }).names).toStrictEqual(["x"]);
    expect(decided({ ...scene, budgets: [budgetOf({ allowed: 2 })] }).names).toHaveLength(2);
  });

  test("is not written to twice in a second, so that ends can be told apart", () => {
    const pods = named("x");
    const { decision, names } = decided({ pods, budgets: [budgetOf()], now: CONTEXT.now });
    expect(names).toStrictEqual([]);
    expect(decision.summary.disruptionBudgets?.full).toStrictEqual(["the pod was written to in this very second"]);
  });
});

describe("what is back", () => {
  const back = podOf({ name: "back", hash: NEW_HASH, image: "reg/sc:v2" });
  const endedWith = (pod: Pod, since: string, reserved: readonly string[] = []) =>
    decided({ pods: [pod], reserved, budgets: [budgetOf({ disrupted: { back: since } })] }).decision.ended;
  test("is taken out of the budget's count, when all are updated too", () => {
    expect(endedWith(back, CONTEXT.now)).toStrictEqual([{ budget: "PodDisruptionBudget default/one", pod: "back" }]);
  });
  test.each<[string, Pod, string, readonly string[]]>([
    ["counted since another time belongs to another writer", back, LATER, []],
    ["that is not ready stays", takenDown(back), CONTEXT.now, []],
    ["that is not updated stays", podOf({ name: "back" }), CONTEXT.now, []],
    ["that is reserved again stays", back, CONTEXT.now, ["uid-back"]],
  ])("%s", (_what, pod, since, reserved) => {
    expect(endedWith(pod, since, reserved)).toBeUndefined();
  });
});

describe("a PodUnavailableBudget", () => {
  const stored = (status: object, annotations: Readonly<Record<string, string>> = {}) => {
    const { metadata } = storedBudget();
    const spec = { selector: { matchLabels: a } };
    return { metadata: { ...metadata, annotations }, ...{ spec, status: { observedGeneration: 1, ...status } } };
  };
  const of = (status: object, annotations?: Readonly<Record<string, string>>) =>
    [disruptionBudgetOf("PodUnavailableBudget", stored(status, annotations))].flatMap((budget) => budget ?? []);
  const full = { unavailableAllowed: 0, desiredAvailable: 2, currentAvailable: 2 };

  test.each<[string, readonly DisruptionBudget[], PodFacts, number]>([
    ["that is used up holds", of(full), { labels: a }, 0],
    ["that is not used up does not", of({ ...full, unavailableAllowed: 1 }), { labels: a }, 1],
    ["that wants no pod up holds none", of({ ...full, desiredAvailable: 0 }), { labels: a }, 1],
    [
      "about deletions alone holds none",
      of(full, { "kruise.io/pub-protect-operations": "DELETE,EVICT" }),
      { labels: a },
      1,
    ],
    ["about updates holds", of(full, { "kruise.io/pub-protect-operations": "DELETE,UPDATE" }), { labels: a }, 0],
    ["costs what is down nothing", of({ ...full, currentAvailable: 0 }), { labels: a, isReady: false }, 1],
    ["is about whom the pod names", of(full), { annotations: { "kruise.io/related-pub": "one" } }, 0],
    [
      "is not about a pod that names another",
      of(full),
      { labels: a, annotations: { "kruise.io/related-pub": "two" } },
      1,
    ],
    [
      "leaves out a pod that wants no protection",
      of(full),
      { labels: a, annotations: { "pod.kruise.io/pub-no-protect": "true" } },
      1,
    ],
    ["lets go what it counts already", of({ ...full, unavailablePods: { p: LATER } }), { labels: a }, 1],
  ])("%s", (_what, budgets, facts, count) => {
    expect(decided({ pods: [podOf(facts)], budgets }).names).toHaveLength(count);
  });
});

test("the pod of a StatefulSet that is next and is held is what all its others wait for", () => {
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "uid-db", controller: true }];
  const pods = named("db-0", "db-1").map((pod) => ({ ...pod, metadata: { ...pod.metadata, ownerReferences } }));
  const set = sidecarSetOf({ selector: {} });
  const annotations = { ...set.metadata?.annotations, "sidecarset.kruise.io/follow-ordinals": "true" };
  const sidecarSet = { ...set, metadata: { ...set.metadata, annotations } };
  const given = { ...UNTOUCHED, sidecarSet, pods, revisions: [] };
  const holdOf = (disruptionBudgets: readonly DisruptionBudget[]) =>
    decide({ ...given, disruptionBudgets }, { ...CONTEXT, now: LATER }).summary.hold;
  expect(holdOf([budgetOf({ allowed: 0 })])).toBe("disruptionBudget");
  expect(holdOf([budgetOf({ allowed: 1 })])).toBe("order");
});

function many(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`gone-${index}`, LATER]));
}
