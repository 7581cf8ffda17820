import { array, assert, boolean, constantFrom, integer, property, record } from "fast-check";
import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { OWNER_BUDGET_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { type PodState, podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import type { BudgetUse } from "../../../shared/core/rollout/select/budget.ts";
import { selectPods } from "../../../shared/core/rollout/select/select.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { NEW_HASH, NOW, OLD_HASH, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const useOf = (set: SidecarSet, reserved: ReadonlySet<string> = new Set()): BudgetUse => {
  const { ownerBudget } = steeringOf(set);
  return { reserved, StrictMaxUnavailable: false, rules: ownerBudget ? { ownerBudget } : {} };
};

function setWith(perOwner: string | undefined, maxUnavailable = 100): SidecarSet {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable } });
  const annotations = {
    ...set.metadata?.annotations,
    ...(perOwner === undefined ? {} : { [OWNER_BUDGET_ANNOTATION]: perOwner }),
  };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

interface Facts {
  readonly owner: string;
  readonly isReady?: boolean;
  readonly isUpdated?: boolean;
}

const podWith = ({ owner, isReady = true, isUpdated = false }: Facts, index: number): Pod => {
  const pod = podOf({ name: `p${index}`, isReady, hash: isUpdated ? NEW_HASH : OLD_HASH });
  const reference = { apiVersion: "apps/v1", kind: "StatefulSet", name: owner, uid: `uid-${owner}`, controller: true };
  return {
    ...pod,
    metadata: { ...pod.metadata, uid: `u${index}`, ...(owner === "" ? {} : { ownerReferences: [reference] }) },
  };
};
const statesOf = (set: SidecarSet, facts: readonly Facts[]) =>
  facts.map((one, index) => podStateOf(projectPod(podWith(one, index), set), set, undefined));
const ownerOf = ({ pod }: PodState) => pod.metadata?.ownerReferences?.[0]?.name ?? "";
const many = (count: number, facts: Facts) => Array.from({ length: count }, () => facts);

describe("max-unavailable-per-owner", () => {
  test.each<[string, string | undefined, readonly Facts[], number]>([
    ["all pods are selected without the annotation", undefined, many(4, { owner: "a" }), 4],
    [
      "an owner budget of 1 selects one pod of each owner",
      "1",
      [...many(4, { owner: "a" }), ...many(4, { owner: "b" })],
      2,
    ],
    ["an owner budget of 0 selects no pod", "0", many(3, { owner: "a" }), 0],
    ["an owner budget of 25% is rounded up", "25%", many(5, { owner: "a" }), 2],
    [
      "an owner budget of 50% is a share of the pods of each owner",
      "50%",
      [...many(4, { owner: "a" }), ...many(2, { owner: "b" })],
      3,
    ],
    ["an owner budget does not limit pods without an owner", "1", many(3, { owner: "" }), 3],
    [
      "an old pod that is down uses the owner budget and is selected",
      "1",
      [{ owner: "a", isReady: false }, ...many(3, { owner: "a" })],
      1,
    ],
    [
      "an updated pod that is down uses the owner budget",
      "2",
      [{ owner: "a", isReady: false, isUpdated: true }, ...many(3, { owner: "a" })],
      1,
    ],
    ["all pods that are down already are selected", "1", many(3, { owner: "a", isReady: false }), 3],
    ["an owner budget that cannot be read selects no ready pod", "some", many(3, { owner: "a" }), 0],
  ])("%s", (_what, perOwner, facts, count) => {
    const set = setWith(perOwner);
    expect(selectPods(set, statesOf(set, facts), useOf(set)).selected).toHaveLength(count);
  });

  test("a pod that is down and names the owner of pods in another namespace does not use that owner's budget", () => {
    const set = setWith("1");
    const states = statesOf(set, [{ owner: "a", isReady: false, isUpdated: true }, { owner: "a" }]).map(
      (state, index) => ({
        ...state,
        pod: { ...state.pod, metadata: { ...state.pod.metadata, namespace: index === 0 ? "evil" : "shop" } },
      }),
    );
    expect(selectPods(set, states, useOf(set)).selected.map(({ pod }) => pod.metadata?.namespace)).toEqual(["shop"]);
  });

  test("maxUnavailable limits the pods of all owners together", () => {
    const set = setWith("2", 3);
    const states = statesOf(set, [...many(4, { owner: "a" }), ...many(4, { owner: "b" })]);
    expect(selectPods(set, states, useOf(set)).selected).toHaveLength(3);
  });

  test("reserved pods use the owner budget, and wait when more are reserved than the budget allows", () => {
    const set = setWith("1");
    const states = statesOf(set, many(3, { owner: "a" }));
    const names = (reserved: readonly string[], isReservedForThis = false) =>
      selectPods(set, states, {
        ...useOf(set, new Set(reserved)),
        isReservedForThis,
      })
        .selected.map(({ pod }) => pod.metadata?.uid)
        .sort();
    expect(names(["u1"])).toEqual(["u1"]);
    expect(names(["u1", "u2"])).toEqual([]);
    expect(names(["u1", "u2"], true)).toEqual(["u1", "u2"]);
  });

  test("the summary names the owner whose budget is used up", () => {
    const set = setWith("1");
    const pods = [{ owner: "a", isReady: false, isUpdated: true }, ...many(2, { owner: "a" })].map(podWith);
    const observation = { sidecarSet: set, pods, revisions: [], ...UNTOUCHED };
    const { summary } = decide(observation, {
      now: NOW,
      kruiseNamespace: "kruise-system",
      settings: DEFAULT_ROLLOUT_SETTINGS,
    });
    expect(summary.hold).toBe("ownerBudget");
    expect(summary.rules.ownerBudget).toEqual({
      waiting: 2,
      full: ["StatefulSet default/a: 1 of at most 1 down or on their way (p0)"],
    });
  });

  test("an owner budget that cannot be read holds the rollout with an explanation", () => {
    const observation = {
      sidecarSet: setWith("1 or 2"),
      pods: [podWith({ owner: "a" }, 0)],
      revisions: [],
      ...UNTOUCHED,
    };
    const { summary, halt } = decide(observation, {
      now: NOW,
      kruiseNamespace: "kruise-system",
      settings: DEFAULT_ROLLOUT_SETTINGS,
    });
    expect(summary.hold).toBe("unreadable");
    expect(halt).toBe(
      `the annotation ${OWNER_BUDGET_ANNOTATION} says 1 or 2: write a number of pods or a share, such as 1 or 25%`,
    );
  });

  test("no owner has more pods down or selected than its budget, unless they were down before", () => {
    const anyFacts = record({ owner: constantFrom("", "a", "b", "c"), isReady: boolean(), isUpdated: boolean() });
    let looked = 0;
    assert(
      property(
        array(anyFacts, { maxLength: 20 }),
        integer({ min: 0, max: 4 }),
        array(integer({ min: 0, max: 19 }), { maxLength: 3 }),
        (facts, limit, held) => {
          const set = setWith(String(limit));
          const states = statesOf(set, facts);
          const reserved = new Set(held.map((index) => `u${index}`));
          const { selected } = selectPods(set, states, useOf(set, reserved));
          for (const [owner, own] of Map.groupBy(states, ownerOf)) {
            if (owner === "") continue;
            const isCounted = (state: PodState) => !state.isReady || reserved.has(state.pod.metadata?.uid ?? "");
            const before = own.filter(isCounted).length;
            const after = own.filter((state) => isCounted(state) || selected.includes(state)).length;
            expect(after).toBeLessThanOrEqual(Math.max(before, limit));
            looked++;
          }
        },
      ),
    );
    expect(looked).toBeGreaterThan(50);
  });
});
