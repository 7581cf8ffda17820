import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import {
  DRAINED_BY_ANNOTATION,
  HASH_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  TRAFFIC_LABEL,
} from "../../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { HOLDS } from "../../../shared/core/rollout/hold.ts";
import { planEvictions } from "../../../shared/core/rollout/rules/missed/plan-evictions.ts";
import { listedPod } from "../../support/objects.ts";

type Kind = "ready" | "down" | "going" | "finished";

function pod(name: string, kind: Kind = "ready"): Pod {
  const metadata = {
    name,
    uid: `uid-${name}`,
    ...(kind === "going" ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
  };
  const status = kind === "down" ? "False" : "True";
  const phase = kind === "finished" ? "Succeeded" : "Running";
  return listedPod(metadata, { containers: [] }, { phase, conditions: [{ type: "Ready", status }] });
}

function set(updateStrategy: UpdateStrategy, annotation = "true", paused = false): SidecarSet {
  const annotations = annotation === "" ? {} : { "sidecarset.kruise.io/evict-missed": annotation };
  return { metadata: { name: "agent", annotations }, spec: { updateStrategy, injectionStrategy: { paused } } };
}

function drained(of: Pod): Pod {
  const annotations = { [INJECTED_LIST_ANNOTATION]: "mesh", [DRAINED_BY_ANNOTATION]: '{"mesh":{}}' };
  const metadata = { labels: { [TRAFFIC_LABEL]: "drained" }, annotations };
  return { ...of, metadata: { ...of.metadata, ...metadata } };
}

const has = Array.from({ length: 6 }, (_, index) => pod(`has-${index}`));
const missed = [pod("a"), pod("b"), pod("c"), pod("d")];

test.each<[string, SidecarSet, readonly Pod[], readonly Pod[], readonly string[]]>([
  ["two pods with maxUnavailable 2", set({ maxUnavailable: 2 }), [...has, ...missed], missed, ["a", "b"]],
  ["a percentage of all selected pods", set({ maxUnavailable: "30%" }), [...has, ...missed], missed, ["a", "b", "c"]],
  ["one pod by default", set({}), [...has, ...missed], missed, ["a"]],
  [
    "fewer pods if others are down or being deleted",
    set({ maxUnavailable: 3 }),
    [pod("x", "down"), pod("y", "going"), pod("z", "finished"), ...missed],
    missed,
    ["a"],
  ],
  ["no pod if a SidecarSet drains a pod that is counted", set({}), [drained(pod("x")), ...missed], missed, []],
  ["no pod if the budget is used up", set({}), [pod("x", "down"), ...missed], missed, []],
  [
    "pods that are down already, without using budget",
    set({}),
    [pod("e", "down"), pod("f", "down"), ...missed],
    [pod("e", "down"), pod("f", "down"), ...missed],
    ["e", "f"],
  ],
  ["no pod without the annotation", set({ maxUnavailable: 2 }, ""), missed, missed, []],
  ["no pod if the annotation is false", set({ maxUnavailable: 2 }, "false"), missed, missed, []],
  ["no pod while the rollout is paused", set({ maxUnavailable: 2, paused: true }), missed, missed, []],
  [
    "no pod while injection is paused, because the new pod would have no sidecars",
    set({}, "true", true),
    missed,
    missed,
    [],
  ],
])("planEvictions evicts %s", (...[, sidecarSet, selected, without, evicted]) => {
  const plan = planEvictions(sidecarSet, selected, without, { reserved: new Set() });
  expect(plan.map(({ metadata }) => metadata?.name)).toEqual(evicted);
});

test("planEvictions evicts no pod under a hold that stops evictions, and continues under every other hold", () => {
  const stops = HOLDS.filter(
    (hold) => planEvictions(set({}), [...has, ...missed], missed, { reserved: new Set(), holds: [hold] }).length === 0,
  );
  expect(stops).toEqual(["paused"]);
});

test("planEvictions evicts no pod while the rollout is paused and its type is NotUpdate", () => {
  const both = set({ paused: true, type: "NotUpdate" });
  expect(planEvictions(both, [...has, ...missed], missed, { reserved: new Set(), holds: ["NotUpdate"] })).toEqual([]);
});

describe("planEvictions during a rollout:", () => {
  const namesOf = (selected: readonly Pod[], reserved: readonly string[]) =>
    planEvictions(set({ maxUnavailable: 2 }), selected, missed, { reserved: new Set(reserved) }).map(
      ({ metadata }) => metadata?.name,
    );

  test("a reserved pod counts as down even if it is ready", () => {
    expect(namesOf([...has, ...missed], ["uid-has-0"])).toEqual(["a"]);
    expect(namesOf([...has, ...missed], ["uid-has-0", "uid-has-1"])).toEqual([]);
  });

  test("a missed pod that is reserved is not evicted", () => {
    expect(namesOf([...has, ...missed], ["uid-a"])).toEqual(["b"]);
  });

  test("an updated pod that does not run its new image yet counts as down", () => {
    const records = JSON.stringify({ agent: { hash: "", sidecarSetName: "agent", updateTimestamp: null } });
    const annotations = { [INJECTED_LIST_ANNOTATION]: "agent", [HASH_ANNOTATION]: records };
    const { metadata, status } = pod("given");
    const given: Pod = {
      metadata: { ...metadata, annotations },
      spec: { containers: [{ name: "agent", image: "agent:2" }] },
      ...(status ? { status } : {}),
    };
    expect(namesOf([given, ...missed], [])).toEqual(["a"]);
  });
});
