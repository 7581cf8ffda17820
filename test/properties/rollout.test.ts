import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { IntOrString, Pod } from "../../shared/api/kubernetes.ts";
import type { Action } from "../../shared/core/actions.ts";
import { type Decision, decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { podOf, reservedFor, sidecarSetOf, UNTOUCHED } from "../support/rollout-fixture.ts";
import { holds } from "./holds.ts";
import { type Facts, type Rollout, rollouts } from "./rollouts.ts";

const CONTEXT = { now: "2026-01-02T03:04:05Z", kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };

function decided({ sidecarSet, reserved }: Rollout, pods: readonly Pod[]): Decision {
  return decide({ sidecarSet, pods, revisions: [], ...UNTOUCHED, reserved: reservedFor(reserved) }, CONTEXT);
}

type PatchPod = Extract<Action, { kind: "PatchPod" }>;

function patches({ actions }: Decision, purpose: PatchPod["purpose"]): readonly PatchPod[] {
  return actions.filter((action) => action.kind === "PatchPod").filter((action) => action.purpose === purpose);
}

const namesOf = (actions: readonly PatchPod[]) => actions.map(({ pod }) => pod.name);

/** Returns the limits by OpenKruise's rules, computed independently. */
function budgetOf(maxUnavailable: IntOrString | undefined, total: number): number {
  if (typeof maxUnavailable === "number") return maxUnavailable;
  const percent = /^(\d+)%?$/.exec(maxUnavailable ?? "")?.[1];
  return percent === undefined ? 0 : Math.ceil((Number(percent) * total) / 100);
}

function keptOf(partition: IntOrString | undefined, total: number): number {
  if (typeof partition === "number") return Math.min(partition, total);
  const percent = /^([\d.]+)%$/.exec(partition ?? "")?.[1];
  if (percent === undefined) return 0;
  const share = Math.ceil((Number(percent) * total) / 100);
  // Only 100% and more hold back all pods.
  return partition !== "100%" && total > 1 && share === total ? total - 1 : Math.min(share, total);
}

interface Told {
  readonly waiting: ReadonlySet<string>;
  readonly mayGo: number;
  readonly budgetLeft: number;
  /** number of reserved or unready pods above the budget */
  readonly excess: number;
}

/** Returns the limits of a plan, computed from the facts and not from the pods. */
function told({ sidecarSet, facts }: Rollout): Told {
  const { partition, maxUnavailable, selector } = sidecarSet.spec.updateStrategy ?? {};
  const isWaiting = ({ version, isSelected, isSettled, isReady }: Facts) =>
    version === "old" && (isSelected || !selector) && (isSettled || !isReady);
  const isDown = ({ version, isSettled, isReady, isFlipDue }: Facts) =>
    version === "new" && !(isReady && isSettled && !isFlipDue);
  const waiting = new Set(facts.flatMap((each, index) => (isWaiting(each) ? [`web-${index}`] : [])));
  const used = facts.filter((each) => each.isReserved || isDown(each)).length;
  const left = budgetOf(maxUnavailable, facts.length) - used;
  return {
    waiting,
    mayGo: Math.max(0, waiting.size - keptOf(partition, facts.length)),
    budgetLeft: Math.max(0, left),
    excess: Math.max(0, -left),
  };
}

function factsOf({ facts }: Rollout, names: readonly string[]): readonly Facts[] {
  return names.flatMap((name) => facts[Number(name.slice("web-".length))] ?? []);
}

describe("a decision:", () => {
  test("a decision upgrades only waiting pods, within the budget and the partition", () => {
    const classes = ["some", "full budget", "no budget left", "partition", "selector", "down for free", "reserved"];
    holds(rollouts, classes, (rollout, seen) => {
      const { waiting, mayGo, budgetLeft } = told(rollout);
      const upgrades = patches(decided(rollout, rollout.pods), "upgrade");
      const taken = factsOf(rollout, namesOf(upgrades));
      const costly = taken.filter(({ isReady, isReserved }) => isReady && !isReserved).length;
      expect(costly).toBeLessThanOrEqual(budgetLeft);
      expect(taken.length).toBeLessThanOrEqual(mayGo);
      expect(namesOf(upgrades).filter((name) => !waiting.has(name))).toEqual([]);
      expect(new Set(namesOf(upgrades)).size).toBe(upgrades.length);
      seen("some", taken.length > 0);
      seen("full budget", costly > 0 && costly === budgetLeft);
      seen("no budget left", waiting.size > 0 && budgetLeft === 0);
      seen("partition", waiting.size > mayGo && taken.length > 0);
      seen("selector", taken.length > 0 && rollout.sidecarSet.spec.updateStrategy?.selector !== undefined);
      seen("down for free", taken.length > costly);
      seen(
        "reserved",
        taken.some(({ isReserved }) => isReserved),
      );
    });
  });

  /**
   * Returns the least and the most pods that must go. Reserved or unready pods use no budget; the other pods use the
   * rest of it. Reserved pods wait if there are more of them than the budget.
   */
  function mustGo(rollout: Rollout): { readonly least: number; readonly most: number } {
    const { waiting, mayGo, budgetLeft, excess } = told(rollout);
    const { priorityStrategy, scatterStrategy } = rollout.sidecarSet.spec.updateStrategy ?? {};
    const sound = factsOf(rollout, [...waiting]).filter(({ isBroken }) => !isBroken);
    const free = sound.filter(({ isReady, isReserved }) => !isReady || isReserved).length;
    const isPlain = !priorityStrategy && !scatterStrategy && mayGo === waiting.size;
    const exactly = free + Math.min(sound.length - free, budgetLeft);
    const held = sound.filter(({ isReady, isReserved }) => isReady && isReserved).length;
    if (isPlain) return { least: excess > 0 ? exactly - held : exactly, most: exactly };
    const least = budgetLeft >= waiting.size ? mayGo - (waiting.size - sound.length) : 0;
    return { least, most: Math.min(mayGo, sound.length) };
  }

  test("a decision uses the whole budget up to the partition and skips pods that cannot be upgraded", () => {
    const classes = ["all", "up to the partition", "up to the budget", "past a broken one"];
    holds(rollouts, classes, (rollout, seen) => {
      const decision = decided(rollout, rollout.pods);
      if (patches(decision, "flip").length > 0) return;
      const { waiting, mayGo } = told(rollout);
      const taken = namesOf(patches(decision, "upgrade"));
      const broken = factsOf(rollout, [...waiting]).filter(({ isBroken }) => isBroken).length;
      const { least, most } = mustGo(rollout);
      expect(taken.length).toBeGreaterThanOrEqual(least);
      expect(taken.length).toBeLessThanOrEqual(most);
      expect(factsOf(rollout, taken).filter(({ isBroken }) => isBroken)).toEqual([]);
      seen("all", taken.length > 0 && taken.length === waiting.size);
      seen("up to the partition", taken.length > 0 && taken.length === mayGo && mayGo < waiting.size);
      seen("up to the budget", taken.length > 0 && taken.length < waiting.size - broken && least === most);
      seen("past a broken one", taken.length > 0 && decision.summary.problems.length > 0);
    });
  });

  test("a decision first empties the old containers of hot upgrades, even without budget", () => {
    holds(rollouts, ["flips", "flip without budget"], (rollout, seen) => {
      const decision = decided(rollout, rollout.pods);
      const due = rollout.facts.flatMap(({ isFlipDue }, index) => (isFlipDue ? [`web-${index}`] : []));
      expect(namesOf(patches(decision, "flip"))).toEqual(due);
      if (due.length > 0) expect(patches(decision, "upgrade")).toEqual([]);
      seen("flips", due.length > 0);
      seen("flip without budget", due.length > 0 && told(rollout).budgetLeft === 0);
    });
  });

  /** Returns the pods in the order of `keys`. */
  const shuffled = (pods: readonly Pod[], keys: readonly number[]) =>
    pods.map((pod, index) => ({ pod, key: keys[index] ?? 0 })).toSorted((a, b) => a.key - b.key);
  const turned = fc.tuple(rollouts, fc.array(fc.nat(), { minLength: 20, maxLength: 20 }));
  const texts = (actions: readonly Action[]) => actions.map((action) => JSON.stringify(action)).toSorted();

  test("a decision does not depend on the order of the list when the pods have different creation times", () => {
    holds(
      turned,
      ["another order", "upgrades", "not upgradable", "more than an insertion sort"],
      ([rollout, keys], seen) => {
        const other = shuffled(rollout.pods, keys).map(({ pod }) => pod);
        const [one, two] = [decided(rollout, rollout.pods), decided(rollout, other)];
        expect(namesOf(patches(two, "upgrade"))).toEqual(namesOf(patches(one, "upgrade")));
        expect(texts(two.actions)).toEqual(texts(one.actions));
        expect({ ...two.summary, problems: [] }).toEqual({ ...one.summary, problems: [] });
        seen(
          "another order",
          other.some((pod, index) => pod !== rollout.pods[index]),
        );
        seen("upgrades", patches(one, "upgrade").length > 1);
        seen("not upgradable", one.summary.notUpgradable > 0);
        seen("more than an insertion sort", one.summary.waiting > 12);
      },
    );
  });

  test("a decision upgrades the same number of pods in any order of the list when the pods have equal creation times", () => {
    holds(turned, ["ties", "another choice"], ([rollout, keys], seen) => {
      // All pods have the same creation time. Scattering depends on the order, so the test leaves it out.
      const { scatterStrategy: _scattering, ...updateStrategy } = rollout.sidecarSet.spec.updateStrategy ?? {};
      const sidecarSet = { ...rollout.sidecarSet, spec: { ...rollout.sidecarSet.spec, updateStrategy } };
      const tied = rollout.pods.map((pod) => ({
        ...pod,
        metadata: { ...pod.metadata, creationTimestamp: "2025-01-01T00:00:00Z" },
      }));
      const facts = rollout.facts.map((each) => ({ ...each, isReserved: false, isBroken: false }));
      const plain = { ...rollout, sidecarSet, facts, reserved: new Set<string>() };
      const sound = tied.map(({ metadata: { annotations = {}, ...metadata }, ...pod }) => {
        const { merged: _merged, ...others } = annotations;
        return { ...pod, metadata: { ...metadata, annotations: others } };
      });
      const one = patches(decided(plain, sound), "upgrade");
      const two = patches(
        decided(
          plain,
          shuffled(sound, keys).map(({ pod }) => pod),
        ),
        "upgrade",
      );
      const sortKeys = (taken: readonly PatchPod[]) =>
        factsOf(plain, namesOf(taken)).map(({ isReady, restarts }) => `${isReady} ${restarts}`);
      expect(two.length).toBe(one.length);
      if (updateStrategy.priorityStrategy === undefined) expect(sortKeys(two)).toEqual(sortKeys(one));
      seen("ties", new Set(sortKeys(one)).size < one.length);
      seen("another choice", namesOf(two).join() !== namesOf(one).join());
    });
  });

  test("a scatter rule with * depends on the order of the list when its values are equally frequent", () => {
    const updateStrategy = { maxUnavailable: 1, scatterStrategy: [{ key: "zone", value: "*" }] };
    const pods = ["a", "a", "a", "b", "b", "b"].map((zone, index) =>
      podOf({ name: `p${index}`, labels: { zone }, creationTimestamp: `2025-01-01T00:00:0${index}Z` }),
    );
    const select = (list: readonly Pod[]) => {
      const observed = { sidecarSet: sidecarSetOf({ updateStrategy }), pods: list, revisions: [], ...UNTOUCHED };
      return namesOf(patches(decide(observed, CONTEXT), "upgrade"));
    };
    expect(select(pods)).not.toEqual(select(pods.toReversed()));
  });
});

describe("invalid annotations of a pod:", () => {
  const keys = [
    "kruise.io/sidecarset-hash",
    "kruise.io/sidecarset-hash-without-image",
    "kruise.io/sidecarset-inplace-update-state",
    "kruise.io/sidecarset-working-hotupgrade-container",
    "merged",
  ];
  const text = fc.oneof(
    fc.json(),
    fc.string(),
    fc.json().map((value) => `{"agent":${value}}`),
    fc.constantFrom("null", "{}", "[]", '{"agent":{"lastContainerStatuses":{"agent":null}}}', '{"agent":"agent-1"}'),
  );
  const vandalised = fc.tuple(
    rollouts.filter(({ pods }) => pods.length > 1),
    fc.dictionary(fc.constantFrom(...keys), text, { minKeys: 1, noNullPrototype: true }),
    fc.option(text, { nil: undefined }),
  );

  test("any text in one pod's annotations leaves the upgrades of the other pods unchanged", () => {
    holds(vandalised, ["upgrades", "condition"], ([rollout, annotations, message], seen) => {
      const sidecarSet = {
        ...rollout.sidecarSet,
        spec: { ...rollout.sidecarSet.spec, updateStrategy: { maxUnavailable: "100%" } },
      };
      const plain = { ...rollout, sidecarSet, reserved: new Set<string>() };
      const [victim, ...others] = rollout.pods;
      const conditions = message === undefined ? [] : [{ type: "SidecarSetUpgradable", status: "True", message }];
      const broken = {
        ...victim,
        metadata: { ...victim?.metadata, annotations: { ...victim?.metadata?.annotations, ...annotations } },
        status: { ...victim?.status, conditions: [...(victim?.status?.conditions ?? []), ...conditions] },
      } as Pod;
      const [before, after] = [decided(plain, rollout.pods), decided(plain, [broken, ...others])];
      // Another property covers hot upgrades whose old container is emptied.
      if ([before, after].some((decision) => patches(decision, "flip").length > 0)) return;
      const ofOthers = (decision: Decision) => namesOf(patches(decision, "upgrade")).filter((name) => name !== "web-0");
      const taken = ofOthers(after);
      expect(taken).toEqual(ofOthers(before));
      seen("upgrades", taken.length > 0);
      seen("condition", conditions.length > 0);
    });
  });
});
