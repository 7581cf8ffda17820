import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import type { UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import {
  type DisruptionBudget,
  disruptionBudgetOf,
} from "../../../shared/core/rollout/rules/disruption-budgets/disruption-budget.ts";
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

/** A time after the ones in the pods' records. */
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

describe("decide with a disruption budget:", () => {
  test.each<[string, BudgetFacts, number]>([
    ["that allows one disruption lets one pod go", {}, 1],
    ["that allows no disruption lets no pod go", { allowed: 0 }, 0],
    ["that allows more disruptions than pods lets all pods go", { allowed: 9 }, 3],
    ["without a selector holds no pod", { allowed: 0, selector: null }, 3],
    ["with an empty selector holds all pods", { allowed: 0, selector: {} }, 0],
    ["that selects only other pods holds no pod", { allowed: 0, selector: { matchLabels: a } }, 3],
    ["whose controller has not seen the new spec lets no pod go", { generation: 2, observedGeneration: 1 }, 0],
    ["with more than 2000 disrupted pods lets no pod go", { disrupted: many(2_001) }, 0],
    ["counts a disrupted pod only once", { allowed: 0, disrupted: { x: LATER } }, 1],
  ])("a disruption budget %s", (_what, facts, count) => {
    expect(decided({ pods: named("x", "y", "z"), budgets: [budgetOf(facts)] }).names).toHaveLength(count);
  });

  test("the summary names the budget, its numbers and how many pods wait for it", () => {
    const { decision } = decided({ pods: named("x", "y"), budgets: [budgetOf({ allowed: 0, healthy: 2 })] });
    expect(decision.summary).toMatchObject({
      hold: "disruptionBudget",
      selected: 0,
      rules: {
        disruptionBudgets: {
          waiting: 2,
          full: ["PodDisruptionBudget default/one allows 0 more down: 2 healthy of 2 that have to be"],
        },
      },
    });
  });

  test("a full budget does not hold pods that it does not select", () => {
    const pods = [...labelled(a, "a1", "a2", "a3"), ...labelled(b, "b1", "b2", "b3")];
    const budgets = [budgetOf({ allowed: 0, selector: { matchLabels: a } })];
    expect(decided({ pods, budgets, strategy: { maxUnavailable: 2 } }).names).toStrictEqual(["b1", "b2"]);
  });

  test("every budget that selects a pod must allow its disruption", () => {
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

  test("a budget of another namespace does not hold a pod", () => {
    const budget = { ...budgetOf({ allowed: 0 }), namespace: "elsewhere" };
    expect(decided({ pods: named("x"), budgets: [budget] }).names).toHaveLength(1);
  });
});

describe("a pod that is down, with a budget:", () => {
  const down = podOf({ name: "down", isReady: false });
  test.each<[string, BudgetFacts, readonly string[]]>([
    ["is updated while enough others are healthy", { allowed: 0, healthy: 2 }, ["down"]],
    ["waits while too few others are healthy", { allowed: 0, healthy: 1 }, []],
    ["waits if the budget needs no healthy pod, as in the eviction API", { allowed: 0, healthy: 0, desired: 0 }, []],
    [
      "is updated if unhealthyPodEvictionPolicy is AlwaysAllow",
      { allowed: 0, healthy: 1, unready: "AlwaysAllow" },
      ["down"],
    ],
    ["waits while the budget's controller has not seen the spec", { generation: 2, observedGeneration: 1 }, []],
    [
      "is updated if the spec was not seen and unhealthyPodEvictionPolicy is AlwaysAllow",
      { generation: 2, observedGeneration: 1, unready: "AlwaysAllow" },
      ["down"],
    ],
  ])("a pod that is down %s", (_what, facts, names) => {
    const found = decided({ pods: [down], budgets: [budgetOf(facts)] });
    expect(found.names).toStrictEqual(names);
    expect(found.patches.flatMap(({ disruption }) => disruption ?? [])).toStrictEqual([]);
  });

  test("a pod that is down does not use the allowed disruptions of others", () => {
    const found = decided({ pods: [down, ...named("x", "y")], budgets: [budgetOf({ allowed: 1, healthy: 3 })] });
    expect(found.names).toHaveLength(2);
    expect(found.names).toContain("down");
  });

  test("a pod that has not started yet is updated although the budget allows no disruption", () => {
    const pods = [podOf({ name: "new", isReady: false, phase: "Pending" })];
    expect(decided({ pods, budgets: [budgetOf({ allowed: 0, healthy: 0 })] }).names).toHaveLength(1);
  });
});

describe("a pod that a rollout took down, with a budget:", () => {
  const lastContainerStatuses = { sc: { imageID: "cri://reg/sc:v1@id" } };
  const state = { ss: { revision: NEW_HASH, updateTimestamp: CONTEXT.now, lastContainerStatuses } };
  const begun = podOf({
    name: "begun",
    hash: NEW_HASH,
    image: "reg/sc:v2",
    statuses: podOf().status?.containerStatuses ?? [],
    annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify(state) },
  });
  test("a patched pod counts as a disruption until its node restarts it or the budget sees it as unhealthy", () => {
    const pods = [begun, ...named("x", "y")];
    expect(decided({ pods, budgets: [budgetOf({ allowed: 1 })] }).names).toHaveLength(0);
    expect(decided({ pods, budgets: [budgetOf({ allowed: 2 })] }).names).toHaveLength(1);
  });

  test("a patched pod does not count twice if the budget already counts it as disrupted", () => {
    const pods = [begun, ...named("x", "y")];
    expect(decided({ pods, budgets: [budgetOf({ allowed: 1, disrupted: { begun: LATER } })] }).names).toHaveLength(1);
  });

  test("a reserved pod counts as a disruption before it is patched", () => {
    const [x, y, z] = named("x", "y", "z");
    const scene = { pods: [x, y, z].flatMap((pod) => pod ?? []), reserved: ["uid-x"] };
    expect(decided({ ...scene, budgets: [budgetOf({ allowed: 0 })] }).names).toStrictEqual([]);
    expect(decided({ ...scene, budgets: [budgetOf({ allowed: 1 })] }).names).toStrictEqual(["x"]);
    expect(decided({ ...scene, budgets: [budgetOf({ allowed: 2 })] }).names).toHaveLength(2);
  });

  test("a pod is not patched twice in the same second, so that the end of a disruption is clear", () => {
    const pods = named("x");
    const { decision, names } = decided({ pods, budgets: [budgetOf()], now: CONTEXT.now });
    expect(names).toStrictEqual([]);
    expect(decision.summary.rules.disruptionBudgets?.full).toStrictEqual([
      "the pod was written to in this very second",
    ]);
  });
});

describe("a pod that is ready again, with a budget:", () => {
  const back = podOf({ name: "back", hash: NEW_HASH, image: "reg/sc:v2" });
  const endedWith = (pod: Pod, since: string, reserved: readonly string[] = []) =>
    decided({ pods: [pod], reserved, budgets: [budgetOf({ disrupted: { back: since } })] }).decision.ended;
  test("a pod that is ready again is removed from the budget, even if all pods are updated", () => {
    expect(endedWith(back, CONTEXT.now)).toStrictEqual([{ budget: "PodDisruptionBudget default/one", pod: "back" }]);
  });
  test.each<[string, Pod, string, readonly string[]]>([
    ["was counted at another time by another writer", back, LATER, []],
    ["is not ready", takenDown(back), CONTEXT.now, []],
    ["is not updated", podOf({ name: "back" }), CONTEXT.now, []],
    ["is reserved again", back, CONTEXT.now, ["uid-back"]],
  ])("a pod stays in the budget if it %s", (_what, pod, since, reserved) => {
    expect(endedWith(pod, since, reserved)).toBeUndefined();
  });
});

describe("decide with a PodUnavailableBudget:", () => {
  const stored = (status: object, annotations: Readonly<Record<string, string>> = {}) => {
    const { metadata } = storedBudget();
    const spec = { selector: { matchLabels: a } };
    return { metadata: { ...metadata, annotations }, ...{ spec, status: { observedGeneration: 1, ...status } } };
  };
  const of = (status: object, annotations?: Readonly<Record<string, string>>) =>
    [disruptionBudgetOf("PodUnavailableBudget", stored(status, annotations))].flatMap((budget) => budget ?? []);
  const full = { unavailableAllowed: 0, desiredAvailable: 2, currentAvailable: 2 };

  test.each<[string, readonly DisruptionBudget[], PodFacts, number]>([
    ["that is used up holds the pod", of(full), { labels: a }, 0],
    ["that its controller has not counted yet holds the pod", of({ observedGeneration: 0 }), { labels: a }, 0],
    ["that is not used up lets the pod go", of({ ...full, unavailableAllowed: 1 }), { labels: a }, 1],
    ["with desiredAvailable 0 lets the pod go", of({ ...full, desiredAvailable: 0 }), { labels: a }, 1],
    [
      "that protects only deletions lets the pod go",
      of(full, { "kruise.io/pub-protect-operations": "DELETE,EVICT" }),
      { labels: a },
      1,
    ],
    [
      "that protects updates holds the pod",
      of(full, { "kruise.io/pub-protect-operations": "DELETE,UPDATE" }),
      { labels: a },
      0,
    ],
    ["lets a pod go that is down already", of({ ...full, currentAvailable: 0 }), { labels: a, isReady: false }, 1],
    ["holds a pod that names it in an annotation", of(full), { annotations: { "kruise.io/related-pub": "one" } }, 0],
    [
      "lets a pod go that names another budget",
      of(full),
      { labels: a, annotations: { "kruise.io/related-pub": "two" } },
      1,
    ],
    [
      "lets a pod go that has the annotation pub-no-protect",
      of(full),
      { labels: a, annotations: { "pod.kruise.io/pub-no-protect": "true" } },
      1,
    ],
    [
      "lets a pod go that it counts as unavailable already",
      of({ ...full, unavailablePods: { p: LATER } }),
      { labels: a },
      1,
    ],
  ])("a PodUnavailableBudget %s", (_what, budgets, facts, count) => {
    expect(decided({ pods: [podOf(facts)], budgets }).names).toHaveLength(count);
  });
});

test("with follow-ordinals the other pods of a StatefulSet wait for a pod that a budget holds", () => {
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

describe("many budgets and pods:", () => {
  const MANY = 60;
  const values = Array.from({ length: 100 }, (_, index) => `v${index}`);
  /** Returns how often one decision about this many pods reads the budgets' selectors. */
  const readsWith = (pods: number) => {
    let reads = 0;
    const budgets = Array.from({ length: MANY }, (_, index) => {
      const budget = budgetOf({ name: `b${index}`, allowed: 1_000 });
      const matchExpressions = [{ key: "app", operator: "In", values: index < 4 ? values : ["other"] }];
      return Object.defineProperty({ ...budget }, "selector", {
        get: () => {
          reads++;
          return { matchExpressions };
        },
      });
    });
    const { names } = decided({
      pods: named(...Array.from({ length: pods }, (_, index) => `p${index}`)).map((pod) => ({
        ...pod,
        metadata: { ...pod.metadata, labels: { app: "v99", pod: pod.metadata?.name ?? "" } },
      })),
      budgets,
    });
    expect(names).toHaveLength(pods);
    return reads;
  };

  test("many pods with the same selected labels need no more selector reads than a single pod", () => {
    expect(readsWith(50)).toBeLessThanOrEqual(readsWith(1));
  });

  test("a long list of values holds the pods whose label is in it, or not in it, and no others", () => {
    const pods = [...labelled({ app: "v99" }, "in"), ...labelled({ app: "x" }, "out"), ...labelled({}, "none")];
    const holding = (operator: string) =>
      decided({
        pods,
        budgets: [budgetOf({ allowed: 0, selector: { matchExpressions: [{ key: "app", operator, values }] } })],
      }).names;
    expect(holding("In")).toEqual(["none", "out"]);
    expect(holding("NotIn")).toEqual(["in"]);
  });

  const inGreedy = (pod: Pod) => ({ ...pod, metadata: { ...pod.metadata, namespace: "greedy" } });
  const count = (length: number, of: (index: number) => string) => Array.from({ length }, (_, index) => of(index));

  test("a pod that more than 4 budgets select waits and says so, and a pod of 4 budgets is updated", () => {
    const budgets = count(5, (index) => `b${index}`).map((name, index) =>
      budgetOf({ name, allowed: 9, selector: index < 4 ? {} : { matchLabels: a } }),
    );
    const { names, decision } = decided({ pods: [...labelled(a, "five"), ...labelled(b, "four")], budgets });
    expect(names).toStrictEqual(["four"]);
    expect(decision.summary.rules.disruptionBudgets?.full).toStrictEqual([
      "more than 4 disruption budgets select the pod",
    ]);
  });

  test("a namespace with too many budgets keeps its own pods waiting, and pods of another namespace are updated", () => {
    const keys = count(60, (index) => `k${index}`);
    const pods = count(200, (index) => `g${index}`).map((name) =>
      inGreedy(podOf({ name, labels: Object.fromEntries(keys.map((key) => [key, `${key}-of-${name}`])) })),
    );
    const matchExpressions = [
      ...keys.map((key) => ({ key, operator: "Exists" })),
      { key: "k0", operator: "In", values: ["none"] },
    ];
    const budgets = count(200, (index) => `b${index}`).map((name) => ({
      ...budgetOf({ name, selector: { matchExpressions } }),
      namespace: "greedy",
    }));
    const { names, decision } = decided({ pods: [...pods, ...named("x")], budgets });
    expect(names.filter((name) => name === "x")).toStrictEqual(["x"]);
    // A comparison has 62 requirements, so a million comparisons are enough for 80 pods.
    expect(names).toHaveLength(1 + 80);
    expect(decision.summary.rules.disruptionBudgets).toStrictEqual({
      waiting: 120,
      full: ["its namespace has too many disruption budgets to compare each with the pods there"],
      names: expect.arrayContaining(["PodDisruptionBudget greedy/b0"]),
    });
  });

  test("each of 3,000 budgets with one pod is compared only with its own pod", () => {
    const owners = count(3_000, (index) => `o${index}`);
    const pods = owners.map((name) => podOf({ name, labels: { app: "shared", owner: name } }));
    const budgets = owners.map((owner) =>
      budgetOf({ name: owner, allowed: 0, selector: { matchLabels: { app: "shared", owner } } }),
    );
    const { decision } = decided({ pods, budgets: budgets.slice(1) });
    expect(decision.summary.rules.disruptionBudgets?.waiting).toBe(2_999);
    expect(decision.summary.selected).toBe(1);
  });

  test("a selector of more than 16,384 characters holds all pods of its namespace", () => {
    const matchLabels = { app: "x".repeat(16_384) };
    const budgets = [{ ...budgetOf({ allowed: 9, selector: { matchLabels } }), namespace: "greedy" }];
    const { names, decision } = decided({ pods: [inGreedy(podOf({ name: "g" })), ...named("x")], budgets });
    expect(names).toStrictEqual(["x"]);
    expect(decision.summary.rules.disruptionBudgets?.full).toStrictEqual([
      "PodDisruptionBudget greedy/one has a selector of more than 16384 characters, so all pods of its namespace wait",
    ]);
  });
});
