/** Tests that every decision treats finished and evicted pods as deleted. Such pods stay in lists for a long time. */
import { describe, expect, test } from "vitest";
import type { OwnerReference, Pod } from "../../shared/api/kubernetes.ts";
import {
  EVICT_MISSED_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  HALT_ON_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  REPLACE_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { mayHaveMissed } from "../../shared/core/injection/missed/missed-pods.ts";
import { decide } from "../../shared/core/rollout/decide.ts";
import { planEvictions } from "../../shared/core/rollout/rules/missed/plan-evictions.ts";
import { awaitedOf } from "../../shared/core/rollout/rules/replacement/missing-pods.ts";
import { replacementOf } from "../../shared/core/rollout/rules/replacement/replacement.ts";
import {
  CONTEXT,
  NEW_HASH,
  NOW,
  type PodFacts,
  podOf,
  sidecarSetOf,
  takenDown,
  UNTOUCHED,
} from "../support/rollout-fixture.ts";

const LATER = "2025-07-01T00:00:00Z";
const ENDS: readonly (readonly [string, Pod["status"]])[] = [
  ["Succeeded", { phase: "Succeeded" }],
  ["Failed", { phase: "Failed" }],
  ["evicted by its kubelet", { phase: "Failed", reason: "Evicted" } as Pod["status"]],
];
const updated = { hash: NEW_HASH, image: "reg/sc:v2" } as const;

function owned(kind: "ReplicaSet" | "StatefulSet", facts: PodFacts): Pod {
  const pod = podOf(facts);
  const owner: OwnerReference = { apiVersion: "apps/v1", kind, name: "web", uid: "web", controller: true };
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
}

const without = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, annotations: {} } });

/**
 * Returns the pods and copies of them that have ended in this way. Each pod has `each` copies, before, between and
 * after the pods.
 */
function among(pods: readonly Pod[], ended: Pod["status"], each: number): readonly Pod[] {
  return pods.flatMap((pod, index) => {
    const copies = Array.from({ length: each }, (_, copy): Pod => {
      const name = `${pod.metadata?.name}-ended-${copy}`;
      return { ...pod, metadata: { ...pod.metadata, name, uid: `uid-${name}` }, status: { ...pod.status, ...ended } };
    });
    return index % 2 === 0 ? [...copies, pod] : [pod, ...copies];
  });
}

function setWith(strategy: UpdateStrategy, annotations: Readonly<Record<string, string>> = {}): SidecarSet {
  const set = sidecarSetOf({ selector: {}, updateStrategy: strategy });
  const metadata = { ...set.metadata, annotations: { ...set.metadata?.annotations, ...annotations } };
  return { ...set, metadata: { ...metadata, managedFields: [{ time: NOW, fieldsV1: { "f:spec": {} } }] } as never };
}

const OLD = ["0", "1", "2", "3"].map((name) => podOf({ name: `web-${name}` }));
const MIXED = [
  ...OLD,
  podOf({ name: "new", ...updated }),
  takenDown(podOf({ name: "down", ...updated, isReady: false })),
];
const ORDINALS = ["0", "1", "2"].map((name) => owned("StatefulSet", { name: `web-${name}` }));
const RESHAPED = ["a", "b", "c"].map((name) => owned("ReplicaSet", { name, withoutImage: "other" }));

describe.each(ENDS)("with additional pods that are %s:", (_, ended) => {
  test.each<[string, SidecarSet, readonly Pod[]]>([
    ["a budget in numbers", setWith({ maxUnavailable: 2 }), MIXED],
    ["a budget in percent", setWith({ maxUnavailable: "50%" }), MIXED],
    ["a partition in numbers", setWith({ maxUnavailable: 4, partition: 2 }), MIXED],
    ["a partition in percent", setWith({ maxUnavailable: 4, partition: "50%" }), MIXED],
    ["a paused rollout", setWith({ paused: true }), MIXED],
    ["ordinals", setWith({ maxUnavailable: 2 }, { [FOLLOW_ORDINALS_ANNOTATION]: "true" }), ORDINALS],
    ["a budget of each owner", setWith({ maxUnavailable: 3 }, { [OWNER_BUDGET_ANNOTATION]: "34%" }), ORDINALS],
    ["a rollout that halts", setWith({ maxUnavailable: 2 }, { [HALT_ON_ANNOTATION]: "0" }), MIXED],
    [
      "waves",
      setWith({ maxUnavailable: 2 }, { [WAVES_ANNOTATION]: '[{"name":"first","selector":{}},{"name":"rest"}]' }),
      MIXED,
    ],
    ["pods that are replaced", setWith({ maxUnavailable: 2 }, { [REPLACE_ANNOTATION]: "NotUpgradable" }), RESHAPED],
    [
      "pods that are restarted",
      setWith({ maxUnavailable: 2 }, { [REPLACE_ANNOTATION]: "NotUpgradable, Restart" }),
      RESHAPED,
    ],
  ])("the decision is the same as without them: %s", (__, sidecarSet, pods) => {
    const decided = (all: readonly Pod[]) => decide({ sidecarSet, pods: all, revisions: [], ...UNTOUCHED }, CONTEXT);
    const alone = decided(pods);
    for (const each of [1, 3]) expect(decided(among(pods, ended, each))).toEqual(alone);
  });

  test.each([2, "50%"])(
    "the same number of pods that missed their sidecars is evicted with maxUnavailable %s",
    (maxUnavailable) => {
      const sidecarSet = setWith({ maxUnavailable }, { [EVICT_MISSED_ANNOTATION]: "true" });
      const bare = ["x", "y", "z"].map((name) => without(owned("ReplicaSet", { name, creationTimestamp: LATER })));
      const evicted = (pods: readonly Pod[]) =>
        planEvictions(sidecarSet, pods, mayHaveMissed(pods, sidecarSet, NOW), { reserved: new Set() });
      const alone = evicted([...OLD, ...bare]);
      expect(alone.length).toBeGreaterThan(0);
      for (const each of [1, 3]) expect(evicted(among([...OLD, ...bare], ended, each))).toEqual(alone);
    },
  );

  test("a finished pod of the same controller does not take the place of an evicted one", () => {
    const departure = {
      namespace: "default",
      name: "gone",
      uid: "uid-gone",
      owner: "web",
      of: 4,
      since: NOW,
      until: LATER,
    };
    const facts = { sidecarSet: setWith({}), reserved: new Set<string>(), now: NOW };
    const missing = (pods: readonly Pod[]) => awaitedOf([departure], { ...facts, pods }).missing;
    const alone = missing(RESHAPED);
    expect([...alone]).toEqual([["default/web", 1]]);
    for (const each of [1, 3]) expect(missing(among(RESHAPED, ended, each))).toEqual(alone);
  });

  test("a finished pod without sidecars does not stop the replacement of others", () => {
    const sidecarSet = setWith({}, { [REPLACE_ANNOTATION]: "NotUpgradable" });
    const [first] = RESHAPED;
    const bare = without(owned("ReplicaSet", { name: "bare", creationTimestamp: LATER }));
    const awaited = { open: [], since: new Map(), missing: new Map(), gone: [], overdue: [] };
    const states = [{ pod: first, isUpdated: true }] as never;
    const stopOf = (pods: readonly Pod[]) =>
      replacementOf({ sidecarSet, pods, states, revisions: [], awaited, forbidden: new Set() })?.stop;
    expect(stopOf([...RESHAPED, bare])).toContain("default/bare");
    expect(stopOf([...RESHAPED, { ...bare, status: { ...bare.status, ...ended } }])).toBeUndefined();
  });
});
