import { array, assert, boolean, constantFrom, integer, property, record } from "fast-check";
import { describe, expect, test } from "vitest";
import type { IntOrString, Pod } from "../../../shared/api/kubernetes.ts";
import type { UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { type PodState, podStateOf } from "../../../shared/core/pod/pod-state.ts";
import type { BudgetUse } from "../../../shared/core/rollout/select/budget.ts";
import { selectPods } from "../../../shared/core/rollout/select/select.ts";
import { listedPod } from "../../support/objects.ts";
import { NEW_HASH, OLD_HASH, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const NONE: BudgetUse = { reserved: new Set(), StrictMaxUnavailable: false, rules: {} };
const CREATED = "2025-01-01T00:00:";

const anyPod = record({
  isUpdated: boolean(),
  isReady: boolean(),
  isUpgradable: boolean(),
  zone: constantFrom("a", "b", "c"),
});
/** Pods are created in different seconds, so that no two compare equal. */
const anyPods = array(anyPod, { maxLength: 40 }).map((facts) =>
  facts.map(({ isUpdated, isReady, isUpgradable, zone }, index) =>
    podOf({
      name: `p${index}`,
      hash: isUpdated ? NEW_HASH : OLD_HASH,
      isReady,
      withoutImage: isUpgradable ? "same" : "other",
      labels: { zone, canary: String(index % 3 === 0) },
      creationTimestamp: `${CREATED}${String(index).padStart(2, "0")}Z`,
    }),
  ),
);
const anyLimit = constantFrom<IntOrString>(0, 1, 2, 5, 100, -1, "0%", "10%", "50%", "100%", "150%", "x");
const selector = { matchLabels: { canary: "true" } };
const anyStrategy = record({
  partition: anyLimit,
  maxUnavailable: anyLimit,
  selector: constantFrom(undefined, {}, selector),
  priority: constantFrom(
    undefined,
    { weightPriority: [{ weight: 5, matchSelector: { matchLabels: { zone: "b" } } }] },
    { orderPriority: [{ orderedKey: "zone" }] },
  ),
}).map(
  ({ partition, maxUnavailable, selector, priority }): UpdateStrategy => ({
    partition,
    maxUnavailable,
    ...(selector ? { selector } : {}),
    ...(priority ? { priorityStrategy: priority } : {}),
  }),
);

function select(pods: readonly Pod[], updateStrategy: UpdateStrategy, budgetUse = NONE) {
  const sidecarSet = sidecarSetOf({ updateStrategy });
  const states = pods.map((pod) => podStateOf(pod, sidecarSet, undefined));
  return { states, ...selectPods(sidecarSet, states, budgetUse) };
}

const namesOf = (states: Iterable<PodState>) => Array.from(states, ({ pod }) => pod.metadata?.name);
const uidOf = ({ pod }: PodState) => pod.metadata?.uid ?? "";

describe("generated pods and strategies", () => {
  test("no more ready pods are selected than the budget has left", () => {
    assert(
      property(anyPods, anyStrategy, (pods, strategy) => {
        const { selected, used, maxUnavailable } = select(pods, strategy);
        const taken = selected.filter(({ isReady }) => isReady).length;
        expect(taken).toBeLessThanOrEqual(Math.max(0, maxUnavailable - used));
      }),
      { numRuns: 700 },
    );
  });

  test("the partition limits the number of selected pods", () => {
    assert(
      property(anyPods, anyStrategy, (pods, strategy) => {
        const { selected, waiting, kept } = select(pods, strategy);
        expect(selected.length).toBeLessThanOrEqual(waiting.length - kept);
        if (typeof strategy.partition === "number") {
          expect(kept).toBe(Math.max(0, Math.min(strategy.partition, pods.length, waiting.length)));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("only old, upgradable pods that the update selector names are selected", () => {
    assert(
      property(anyPods, anyStrategy, (pods, strategy) => {
        const { selected, notUpgradable } = select(pods, strategy);
        const isNamed = ({ pod }: PodState) =>
          strategy.selector !== selector || pod.metadata?.labels?.["canary"] === "true";
        expect(selected.every((state) => !state.isUpdated && isNamed(state))).toBe(true);
        const fixed = [...notUpgradable];
        expect(fixed.every((state) => !state.isUpdated && isNamed(state))).toBe(true);
        expect(selected.filter((state) => fixed.includes(state))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("the order of the pod list does not change the selection when no two pods compare equal", () => {
    assert(
      property(anyPods, anyStrategy, integer({ min: 1, max: 39 }), (pods, strategy, turn) => {
        const turned = [...pods.slice(turn), ...pods.slice(0, turn)].toReversed();
        expect(namesOf(select(turned, strategy).selected)).toEqual(namesOf(select(pods, strategy).selected));
      }),
      { numRuns: 500 },
    );
  });

  test("a reserved pod uses the budget once, whether or not it is selected", () => {
    assert(
      property(anyPods, anyStrategy, array(integer({ min: 0, max: 39 })), (pods, strategy, indexes) => {
        const reserved = new Set(indexes.map((index) => `uid-p${index}`));
        const { states, selected, used, maxUnavailable } = select(pods, strategy, {
          reserved,
          StrictMaxUnavailable: false,
          rules: {},
        });
        const isHeld = (state: PodState) => reserved.has(uidOf(state));
        const down = states.filter((state) => state.isUpdated && !state.isReady);
        expect(used).toBe(new Set([...down, ...states.filter(isHeld)]).size);
        const fresh = selected.filter((state) => state.isReady && !isHeld(state)).length;
        expect(fresh).toBeLessThanOrEqual(Math.max(0, maxUnavailable - used));
      }),
      { numRuns: 500 },
    );
  });

  test("a selected pod is selected again while it is reserved", () => {
    assert(
      property(anyPods, anyStrategy, boolean(), (pods, strategy, isStrict) => {
        const { selected } = select(pods, strategy, { ...NONE, StrictMaxUnavailable: isStrict });
        const again = select(pods, strategy, {
          reserved: new Set(selected.map(uidOf)),
          StrictMaxUnavailable: isStrict,
          rules: {},
        });
        expect(namesOf(again.selected)).toEqual(namesOf(selected));
      }),
      { numRuns: 500 },
    );
  });

  test("with StrictMaxUnavailable, no more pods are down after a batch than maxUnavailable or than before", () => {
    assert(
      property(anyPods, anyStrategy, array(integer({ min: 0, max: 39 })), (pods, strategy, indexes) => {
        const reserved = new Set(indexes.map((index) => `uid-p${index}`));
        const { states, selected, used, maxUnavailable } = select(pods, strategy, {
          reserved,
          StrictMaxUnavailable: true,
          rules: {},
        });
        const down = states.filter((state) => !state.isReady);
        expect(used).toBe(new Set([...down, ...states.filter((state) => reserved.has(uidOf(state)))]).size);
        const after = new Set([...down, ...selected]).size;
        expect(after).toBeLessThanOrEqual(Math.max(down.length, maxUnavailable));
      }),
      { numRuns: 500 },
    );
  });
});

describe("selectPods", () => {
  const ready = (name: string) => podOf({ name });
  const down = (name: string) => podOf({ name, isReady: false });

  test("pods that are down are selected without using the budget", () => {
    expect(namesOf(select([ready("a"), down("b"), down("c")], { maxUnavailable: 0 }).selected)).toEqual(["b", "c"]);
  });

  test("no pod is selected after the first one that does not fit into the budget", () => {
    const priorityStrategy = { weightPriority: [{ weight: 1, matchSelector: { matchLabels: { first: "y" } } }] };
    const pods = [
      podOf({ name: "a", labels: { first: "y" } }),
      podOf({ name: "b", labels: { first: "y" } }),
      down("c"),
    ];
    const { selected, blocked } = select(pods, { maxUnavailable: 1, priorityStrategy });
    expect([namesOf(selected), blocked]).toEqual([["a"], 2]);
  });

  test("a weight without a selector counts for every pod", () => {
    const heavy = { weight: 3, matchSelector: { matchLabels: { heavy: "y" } } };
    const everybody = JSON.parse('{"weight":-2}');
    const pods = [podOf({ name: "a" }), podOf({ name: "b", labels: { heavy: "y" } })];
    const namesBy = (...weightPriority: (typeof heavy)[]) =>
      namesOf(select(pods, { maxUnavailable: 2, priorityStrategy: { weightPriority } }).selected);
    expect(namesBy(everybody, heavy)).toEqual(["b", "a"]);
    expect(namesBy(everybody, { ...heavy, weight: -1 })).toEqual(["a", "b"]);
    expect(namesBy({ ...everybody, weight: 2 }, { ...heavy, weight: -1 })).toEqual(["a", "b"]);
  });

  test("a pod that canTake rejects is skipped and uses no budget", () => {
    const sidecarSet = sidecarSetOf({ updateStrategy: { maxUnavailable: 1 } });
    const states = [ready("a"), ready("b"), ready("c")].map((pod) => podStateOf(pod, sidecarSet, undefined));
    const { selected, blocked } = selectPods(sidecarSet, states, NONE, {
      canTake: ({ pod }) => pod.metadata?.name !== "a",
    });
    expect([namesOf(selected), blocked]).toEqual([["b"], 1]);
  });

  test("when more pods are reserved than the budget allows, only reserved pods that are down are selected", () => {
    const held = (...names: string[]) => ({
      reserved: new Set(names.map((name) => `uid-${name}`)),
      StrictMaxUnavailable: false,
      rules: {},
    });
    const pods = [ready("a"), ready("b"), ready("c"), down("d")];
    const two = select(pods, { maxUnavailable: 2 }, held("a", "b", "c", "d"));
    expect([namesOf(two.selected), two.blocked]).toEqual([["d"], 3]);
    const three = select(pods, { maxUnavailable: 3 }, held("a", "b", "c", "d"));
    expect([namesOf(three.selected), three.blocked]).toEqual([["d", "a", "b", "c"], 0]);
    const none = select(pods, { maxUnavailable: 0 }, held("a", "b", "d"));
    expect([namesOf(none.selected), none.blocked]).toEqual([["d"], 3]);
  });

  test("a reserved pod is not selected when updated pods that are down use up the budget", () => {
    const updated = ["x", "y"].map((name) => podOf({ name, hash: NEW_HASH, isReady: false }));
    const reserved = { reserved: new Set(["uid-a"]), StrictMaxUnavailable: false, rules: {} };
    expect(select([...updated, ready("a")], { maxUnavailable: 2 }, reserved).selected).toEqual([]);
    expect(namesOf(select([...updated, ready("a")], { maxUnavailable: 3 }, reserved).selected)).toEqual(["a"]);
  });

  test("with StrictMaxUnavailable, old pods that are down use budget and are selected", () => {
    const strict = { ...NONE, StrictMaxUnavailable: true };
    const { selected, used, blocked } = select([ready("a"), ready("b"), down("c")], { maxUnavailable: 1 }, strict);
    expect([namesOf(selected), used, blocked]).toEqual([["c"], 1, 2]);
    expect(namesOf(select([ready("a"), ready("b")], { maxUnavailable: 1 }, strict).selected)).toEqual(["a"]);
  });

  test("an update selector with an unknown operator selects no pod", () => {
    const broken = { matchExpressions: [{ key: "a", operator: "Near" }] };
    expect(select([ready("a")], { selector: broken }).waiting).toHaveLength(0);
  });

  test("the scatter value * scatters pods over every value of the label", () => {
    const pods = ["a", "a", "a", "b", "b", "b"].map((zone, index) => podOf({ name: `p${index}`, labels: { zone } }));
    const { waiting } = select(pods, { maxUnavailable: 6, scatterStrategy: [{ key: "zone", value: "*" }] });
    const zones = Array.from(waiting, ({ pod }) => pod.metadata?.labels?.["zone"]).join("");
    expect(zones).not.toBe("aaabbb");
    expect(namesOf(waiting).toSorted()).toEqual(["p0", "p1", "p2", "p3", "p4", "p5"]);
  });
});

describe("selectPods with incomplete pods", () => {
  const bare = (uid: string, metadata: Pod["metadata"] = {}): Pod => listedPod({ uid, ...metadata });
  const waitingOf = (pods: readonly Pod[], updateStrategy: UpdateStrategy) => {
    const states = pods.map((pod) => podStateOf(pod, { spec: {} }, undefined));
    const old = states.map((state) => ({ ...state, isUpdated: false }));
    const { waiting } = selectPods({ spec: { updateStrategy } }, old, NONE);
    return Array.from(waiting, ({ pod }) => pod.metadata?.uid);
  };

  test("every strategy accepts pods without metadata, and an update selector excludes them", () => {
    const strategies: readonly UpdateStrategy[] = [
      {},
      { priorityStrategy: { orderPriority: [{ orderedKey: "a" }] } },
      { priorityStrategy: { weightPriority: [{ weight: 1, matchSelector: { matchLabels: { a: "b" } } }] } },
      { scatterStrategy: [{ key: "a", value: "*" }] },
      { scatterStrategy: [{ key: "a", value: "b" }] },
    ];
    const nobody: Pod = { spec: { containers: [] } };
    for (const strategy of strategies) expect(waitingOf([nobody, nobody, nobody], strategy)).toHaveLength(3);
    expect(waitingOf([nobody], { selector: { matchLabels: { a: "b" } } })).toEqual([]);
  });

  test("pods whose order labels end in the same number keep their order", () => {
    const pods = ["x1", "y1", "z1", "w2"].map((value) => bare(value, { labels: { order: value } }));
    const priorityStrategy = { orderPriority: [{ orderedKey: "order" }] };
    expect(waitingOf(pods, { priorityStrategy })).toEqual(["w2", "x1", "y1", "z1"]);
  });

  test("the scatter value * leaves out pods without the label", () => {
    const zones = ["a", "a", "", "a", "", "", "a", ""];
    const pods = zones.map((zone, index) => bare(`${index}`, zone === "" ? {} : { labels: { zone } }));
    const named = waitingOf(pods, { scatterStrategy: [{ key: "zone", value: "a" }] });
    expect(waitingOf(pods, { scatterStrategy: [{ key: "zone", value: "*" }] })).toEqual(named);
  });
});

describe("scatterStrategy", () => {
  const anyTerms = array(
    record({ key: constantFrom("zone", "canary", "none"), value: constantFrom("*", "a", "b", "true", "", "z") }),
    { maxLength: 4 },
  );

  test("scattering keeps every pod exactly once", () => {
    assert(
      property(anyPods, anyTerms, (pods, scatterStrategy) => {
        const plain = select(pods, {});
        const scattered = select(pods, { scatterStrategy });
        expect(namesOf(scattered.waiting).toSorted()).toEqual(namesOf(plain.waiting).toSorted());
      }),
      { numRuns: 500 },
    );
  });
});
