import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { planEvictions } from "../../../shared/core/rollout/missed/plan-evictions.ts";
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

const has = Array.from({ length: 6 }, (_, index) => pod(`has-${index}`));
const missed = [pod("a"), pod("b"), pod("c"), pod("d")];

test.each<[string, SidecarSet, readonly Pod[], readonly Pod[], readonly string[]]>([
  ["as many as may be unavailable", set({ maxUnavailable: 2 }), [...has, ...missed], missed, ["a", "b"]],
  ["a share of all that are selected", set({ maxUnavailable: "30%" }), [...has, ...missed], missed, ["a", "b", "c"]],
  ["one by default", set({}), [...has, ...missed], missed, ["a"]],
  [
    "less where others are down or going",
    set({ maxUnavailable: 3 }),
    [pod("x", "down"), pod("y", "going"), pod("z", "finished"), ...missed],
    missed,
    ["a"],
  ],
  ["none where the budget is used up", set({}), [pod("x", "down"), ...missed], missed, []],
  [
    "those that are down already cost nothing",
    set({}),
    [pod("e", "down"), pod("f", "down"), ...missed],
    [pod("e", "down"), pod("f", "down"), ...missed],
    ["e", "f"],
  ],
  ["none unless it is asked for", set({ maxUnavailable: 2 }, ""), missed, missed, []],
  ["none where the annotation says no", set({ maxUnavailable: 2 }, "false"), missed, missed, []],
  ["none while the rollout is paused", set({ maxUnavailable: 2, paused: true }), missed, missed, []],
  ["none while injection is paused: they would come back as they are", set({}, "true", true), missed, missed, []],
])("%s", (...[, sidecarSet, selected, without, evicted]) => {
  const plan = planEvictions(sidecarSet, selected, without, { reserved: new Set() });
  expect(plan.map(({ metadata }) => metadata?.name)).toEqual(evicted);
});

describe("beside a rollout", () => {
  const namesOf = (selected: readonly Pod[], reserved: readonly string[]) =>
    planEvictions(set({ maxUnavailable: 2 }), selected, missed, { reserved: new Set(reserved) }).map(
      ({ metadata }) => metadata?.name,
    );

  test("a pod that is reserved counts as down, however ready it is", () => {
    expect(namesOf([...has, ...missed], ["uid-has-0"])).toEqual(["a"]);
    expect(namesOf([...has, ...missed], ["uid-has-0", "uid-has-1"])).toEqual([]);
  });

  test("one that misses the sidecars and is reserved is left to whoever reserved it", () => {
    expect(namesOf([...has, ...missed], ["uid-a"])).toEqual(["b"]);
  });

  test("a pod that was given its image and does not run it yet counts as down", () => {
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
