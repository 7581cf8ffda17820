import { describe, expect, test } from "vitest";
import type { OwnerReference, Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { type Departure, NONE_AWAITED } from "../../../shared/core/actions.ts";
import { reportOnSidecarSet } from "../../../shared/core/inspect/report/report.ts";
import { NONE_PASSED_OVER, refusalText } from "../../../shared/core/refused-pods.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { unexpired } from "../../../shared/core/rollout/rules/replacement/missing-pods.ts";
import { evictionsOf } from "../../../shared/core/rollout/rules/replacement/plan-replacement.ts";
import { NOTHING_RESERVED, reservedOf } from "../../../shared/core/rollout/select/reserved.ts";
import {
  CONTEXT,
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  type PodFacts,
  podOf,
  sidecarSetOf,
  statusesOf,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";

const CHANGED = "2025-05-31T10:00:00Z";
const BEFORE = "2025-05-30T00:00:00Z";
const AFTER = "2025-05-31T10:05:00Z";

const ownerOf = (kind: string, apiVersion = "apps/v1", name = "web"): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid: `uid-${name}`,
  controller: true,
});
const OWNER = ownerOf("ReplicaSet");

interface Facts {
  readonly name: string;
  readonly isReady?: boolean;
  readonly hash?: string;
  readonly withoutImage?: string;
  readonly owner?: OwnerReference;
  readonly created?: string;
}

/** Returns a pod that cannot be upgraded by default. */
function pod({ name, owner = OWNER, created = BEFORE, withoutImage = "other", ...facts }: Facts): Pod {
  const { metadata, ...rest } = podOf({ name, withoutImage, creationTimestamp: created, ...facts });
  const place = { ...metadata, uid: `uid-${name}`, namespace: "shop", resourceVersion: "7" };
  return { ...rest, metadata: owner.kind === "" ? place : { ...place, ownerReferences: [owner] } };
}

const updated = (name: string, isReady = true) =>
  pod({ name, isReady, hash: NEW_HASH, withoutImage: "same", created: AFTER });

function setOf(spec: SidecarSetSpec = {}, replace = "NotUpgradable"): SidecarSet {
  const { metadata, ...rest } = sidecarSetOf({ selector: {}, ...spec });
  const annotations = replace === "" ? {} : { "sidecarset.kruise.io/replace": replace };
  const managedFields = [{ time: CHANGED, fieldsV1: { "f:spec": {} } }];
  return {
    ...rest,
    metadata: { ...metadata, managedFields, annotations: { ...metadata?.annotations, ...annotations } } as NonNullable<
      SidecarSet["metadata"]
    >,
  };
}

function decided(sidecarSet: SidecarSet, pods: readonly Pod[], reserved = NOTHING_RESERVED) {
  const { actions, summary } = decide({ ...UNTOUCHED, sidecarSet, pods, revisions: [], reserved }, CONTEXT);
  const evictions = evictionsOf(actions);
  return { evictions, evicted: evictions.map((one) => one.pod.name), summary, actions };
}

const three = ["a", "b", "c"].map((name) => pod({ name }));
const gone = (name: string, facts: Partial<Departure> = {}): Departure => {
  const until = "2025-06-01T00:10:00Z";
  return {
    namespace: "shop",
    name,
    uid: `uid-${name}`,
    owner: OWNER.uid,
    of: 3,
    until,
    since: "2025-06-01T00:00:00Z",
    ...facts,
  };
};
const awaiting = (...departed: readonly Departure[]) =>
  reservedOf([], { uid: "", generation: 0, revision: "" }, { departed });

test.each([
  ["suggests to recreate pods that no pass replaces", "", "trouble"],
  ["says that pods wait to be replaced, and suggests nothing", "NotUpgradable", "wait"],
])("the page %s", (_, replace, kind) => {
  const observation = { ...UNTOUCHED, sidecarSet: setOf({}, replace), pods: three, revisions: [] };
  const subject = { observation, events: [], missed: new Set<string>(), lastPass: undefined };
  const reason = reportOnSidecarSet(subject, CONTEXT).reasons.find((one) => one.reason === "NotUpgradable");
  expect([reason?.kind, reason?.next === undefined]).toEqual([kind, kind === "wait"]);
});

test.each([
  ["a space", "a b"],
  ["a line break", "a\nb"],
  ["200 characters", "u".repeat(200)],
])("a pod whose owner has a uid with %s is not evicted, because a ledger could not be read with it", (_, uid) => {
  const invented = pod({ name: "x", owner: { ...ownerOf("CloneSet", "apps.kruise.io/v1alpha1"), uid } });
  expect(decided(setOf({ updateStrategy: { maxUnavailable: "100%" } }), [invented, ...three]).evicted).toEqual([
    "a",
    "b",
    "c",
  ]);
});

describe("hot-upgrade pods that cannot be upgraded in place:", () => {
  const EMPTY = "reg/empty:1";
  /** Returns a pod whose container mesh-2 has the image `wanted` in its spec. The kubelet has not started it. */
  const hot = (name: string, working: "mesh-1" | "mesh-2", wanted: string) => {
    const before = { ss: { lastContainerStatuses: { "mesh-2": { imageID: `cri://${EMPTY}@id` } } } };
    const facts: PodFacts = {
      name,
      withoutImage: "other",
      creationTimestamp: BEFORE,
      statuses: statusesOf(hotPodOf(["reg/mesh:v1", EMPTY], working).spec),
      annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify(before) },
    };
    const { metadata, ...rest } = hotPodOf(["reg/mesh:v1", wanted], working, facts);
    return { ...rest, metadata: { ...metadata, namespace: "shop", ownerReferences: [OWNER] } };
  };
  const through = hot("through", "mesh-1", EMPTY);
  const midway = ["a", "b", "c"].map((name) => hot(name, "mesh-2", "reg/mesh:v2"));
  const hotSet = (maxUnavailable: number, annotations = {}) => {
    const { metadata, spec } = setOf({ ...hotSidecarSetOf("reg/mesh:v3").spec, updateStrategy: { maxUnavailable } });
    return { metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } }, spec };
  };
  const evictedOf = (sidecarSet: SidecarSet, pods: readonly Pod[], settings = CONTEXT.settings) => {
    const { actions } = decide({ ...UNTOUCHED, sidecarSet, pods, revisions: [] }, { ...CONTEXT, settings });
    return evictionsOf(actions).map(({ pod, usesBudget }) => [pod.name, usesBudget]);
  };

  const podDown = (pod: Pod): Pod => {
    const containerStatuses = statusesOf(pod.spec, false);
    return { ...pod, status: { ...pod.status, conditions: [], containerStatuses } };
  };

  test("an eviction of a working hot-upgrade pod uses budget", () => {
    expect(evictedOf(hotSet(2), [through, ...midway])).toHaveLength(2);
    expect(evictedOf(hotSet(1), midway)).toEqual([[expect.any(String), true]]);
  });

  test("an eviction of a hot-upgrade pod that is down uses no budget", () => {
    expect(evictedOf(hotSet(1), [through, ...midway.map(podDown)])).toHaveLength(4);
  });

  test("StrictMaxUnavailable delays evictions of hot-upgrade pods until maxUnavailable allows all pods that count as down", () => {
    const settings = { ...CONTEXT.settings, StrictMaxUnavailable: true };
    expect(evictedOf(hotSet(2), midway, settings)).toEqual([]);
    expect(evictedOf(hotSet(3), midway, settings)).toHaveLength(3);
    expect(evictedOf(hotSet(1), midway.slice(0, 1), settings)).toHaveLength(1);
  });

  test("follow-ordinals lets one hot-upgrade pod at a time be evicted", () => {
    const inOrder = { "sidecarset.kruise.io/follow-ordinals": "true" };
    const ofSet = (name: string): Pod => {
      const { metadata, ...rest } = hot(name, "mesh-2", "reg/mesh:v2");
      return { ...rest, metadata: { ...metadata, ownerReferences: [ownerOf("StatefulSet")] } };
    };
    const [one, other] = [ofSet("web-0"), ofSet("web-1")];
    const down = podDown(one);
    expect(evictedOf(hotSet(3, inOrder), [one])).toEqual([["web-0", true]]);
    expect(evictedOf(hotSet(3, inOrder), [down, other])).toEqual([]);
    expect(evictedOf(hotSet(3, inOrder), [down])).toEqual([["web-0", false]]);
  });

  test("max-unavailable-per-owner counts hot-upgrade pods of the same owner", () => {
    const ofOwner = { "sidecarset.kruise.io/max-unavailable-per-owner": "1" };
    expect(evictedOf(hotSet(3, ofOwner), midway)).toEqual([]);
    expect(evictedOf(hotSet(3, ofOwner), midway.slice(0, 1))).toHaveLength(1);
  });
});

describe("pods that cannot be upgraded in place:", () => {
  test("no pod is evicted without the replace annotation", () => {
    const { evicted, summary } = decided(setOf({}, ""), three);
    expect([evicted, summary.notUpgradable, summary.rules.replacement]).toEqual([[], 3, undefined]);
  });

  test.each<[string, SidecarSetSpec, number]>([
    ["by default evicts one pod", {}, 1],
    ["with maxUnavailable 2 evicts two pods", { updateStrategy: { maxUnavailable: 2 } }, 2],
    ["with a partition keeps the pods of the partition", { updateStrategy: { maxUnavailable: 3, partition: 1 } }, 2],
    ["that is paused evicts no pod", { updateStrategy: { maxUnavailable: 3, paused: true } }, 0],
    ["with the type NotUpdate evicts no pod", { updateStrategy: { maxUnavailable: 3, type: "NotUpdate" } }, 0],
    [
      "with an update selector evicts no pod that it leaves out",
      { updateStrategy: { selector: { matchLabels: { is: "none" } } } },
      0,
    ],
  ])("a rollout %s", (_what, spec, count) => {
    expect(decided(setOf(spec), three).evicted).toHaveLength(count);
  });

  test("evictions and in-place upgrades share the budget", () => {
    const pods = [pod({ name: "in-place", withoutImage: "same" }), ...three];
    const { actions, evicted } = decided(setOf({ updateStrategy: { maxUnavailable: 2 } }), pods);
    const patched = actions.flatMap((one) => (one.kind === "PatchPod" ? [one.pod.name] : []));
    expect(patched.length + evicted.length).toBe(2);
  });

  test("an eviction contains the uid and the resourceVersion of the pod, and the departure to record", () => {
    const [eviction] = decided(setOf(), three).evictions;
    expect(eviction?.pod).toMatchObject({ uid: "uid-a", resourceVersion: "7" });
    expect(eviction?.departure).toEqual(gone("a", { until: "2025-06-01T00:10:30Z" }));
  });

  test("a pod that lacks a container of the SidecarSet is evicted too", () => {
    const containers = [{ name: "sc", image: "reg/sc:v2" }, { name: "new" }];
    expect(decided(setOf({ containers }), three).evicted).toHaveLength(1);
    expect(decided(setOf({ containers }, ""), three).summary.matched).toBe(0);
  });

  test.each<[string, OwnerReference, string, boolean]>([
    ["a pod of a StatefulSet is evicted", ownerOf("StatefulSet"), "NotUpgradable", true],
    [
      "a pod of an OpenKruise CloneSet is evicted",
      ownerOf("CloneSet", "apps.kruise.io/v1alpha1"),
      "NotUpgradable",
      true,
    ],
    ["a pod without a controller is not evicted", ownerOf(""), "NotUpgradable", false],
    ["a pod of a Node is not evicted", ownerOf("Node", "v1"), "NotUpgradable", false],
    ["a pod of an unknown controller is not evicted", ownerOf("Farm", "example.com/v1"), "NotUpgradable", false],
    ["a pod of a Job is not evicted", ownerOf("Job", "batch/v1"), "NotUpgradable", false],
    ["a pod of a Job is evicted if the annotation names Jobs", ownerOf("Job", "batch/v1"), "NotUpgradable, Jobs", true],
    ["a pod is not evicted if the annotation names only Missed", OWNER, "Missed", false],
    ["a pod is not evicted if the annotation is invalid", OWNER, "NotUpgradable,all", false],
  ])("%s", (_what, owner, replace, isEvicted) => {
    expect(decided(setOf({}, replace), [pod({ name: "a", owner })]).evicted).toHaveLength(isEvicted ? 1 : 0);
  });
});

describe("an evicted pod without a successor:", () => {
  test("an evicted pod uses budget until its successor is ready", () => {
    const left = three.slice(1);
    expect(decided(setOf(), left, awaiting(gone("a"))).evicted).toEqual([]);
    expect(decided(setOf(), [...left, updated("a2", false)], awaiting(gone("a"))).evicted).toEqual([]);
    expect(decided(setOf(), [...left, updated("a2")], awaiting(gone("a"))).evicted).toHaveLength(1);
  });

  test("the summary, and so the conditions, name an evicted pod until another pod takes its place", () => {
    const left = three.slice(1);
    const downOf = (...pods: readonly Pod[]) => decided(setOf(), pods, awaiting(gone("a"))).summary.down;
    const why = "it was evicted, and no other pod has taken its place yet";
    expect(downOf(...left)).toEqual([{ namespace: "shop", name: "a", why }]);
    expect(downOf(...left, updated("a2"))).toEqual([]);
  });

  test("a pod of another namespace that names the same owner is no successor, whether it is ready or not", () => {
    const left = three.slice(1);
    const { metadata, ...rest } = updated("a2");
    for (const namespace of ["bakery", ""])
      expect(
        decided(setOf(), [...left, { ...rest, metadata: { ...metadata, namespace } }], awaiting(gone("a"))).evicted,
      ).toEqual([]);
  });

  test("an evicted pod uses budget while it is being deleted", () => {
    const [first, ...left] = three;
    const going = { ...first, metadata: { ...first?.metadata, deletionTimestamp: "2025-06-01T00:00:30Z" } } as Pod;
    expect(decided(setOf(), [going, ...left], awaiting(gone("a"))).evicted).toEqual([]);
  });

  test("a departure expires at its time, because the controller may have fewer replicas, unless the pod still exists", () => {
    const [late, open] = [gone("a", { until: "2025-05-31T23:59:59Z" }), gone("b")];
    expect(unexpired([late, open], new Set(), "2025-06-01T00:00:00Z")).toEqual([open]);
    expect(unexpired([late, open], new Set(["uid-a"]), "2025-06-01T00:00:00Z")).toEqual([late, open]);
  });

  // The newest pod is deleted first.
  test.each<[string, Partial<Departure>, readonly Pod[], string]>([
    ["for an hour", { until: "2025-05-31T23:00:01Z" }, three, "z"],
    ["for an hour only", { until: "2025-05-31T23:00:00Z" }, three, "a"],
    ["unless a successor has come since", { until: "2025-05-31T23:59:59Z" }, [...three, updated("x2")], "a"],
    ["and the pods of that namespace come last", { namespace: "yard", until: "2025-05-31T23:59:59Z" }, three, "a"],
  ])(
    "after evicted pods of a namespace had no successors in time, the pods of other namespaces come first %s",
    (_, facts, pods, expected) => {
      const { metadata, ...rest } = pod({ name: "z", created: "2025-05-29T00:00:00Z" });
      const other = { ...rest, metadata: { ...metadata, namespace: "yard" } };
      const reserved = awaiting(gone("x", { of: 4, ...facts }));
      expect(decided(setOf(), [...pods, other], reserved).evicted).toEqual([expected]);
      expect(decided(setOf(), pods, reserved).evicted).toEqual(["a"]);
    },
  );

  test("only a pod of the same name succeeds an evicted StatefulSet pod", () => {
    const owner = ownerOf("StatefulSet");
    const [first] = decided(setOf(), [pod({ name: "web-0", owner }), pod({ name: "web-1", owner })]).evictions;
    expect(first?.departure).toMatchObject({ name: "web-0", of: 0 });
    const reserved = awaiting({ ...gone("web-0"), of: 0 });
    const [one, two] = [pod({ name: "web-1", owner }), pod({ name: "web-2", owner })];
    expect(decided(setOf(), [one, two], reserved).evicted).toEqual([]);
    const back = {
      ...updated("web-0"),
      metadata: { ...updated("web-0").metadata, uid: "another", ownerReferences: [owner] },
    };
    expect(decided(setOf(), [back, one, two], reserved).evicted).toHaveLength(1);
  });

  describe("an evicted pod and a failed pod of the same controller:", () => {
    const created = "2025-05-31T00:00:00Z";
    const bare = (name: string, isReady: boolean) => {
      const { metadata, ...rest } = pod({ name, isReady, created });
      const { annotations: _, ...others } = metadata ?? {};
      return { ...rest, metadata: others } as Pod;
    };

    test("an older failed pod that becomes ready is not the successor of the evicted pod", () => {
      const [departure] = decided(setOf(), [...three, bare("down", false)]).evictions.map((one) => one.departure);
      expect(departure).toMatchObject({ name: "a", of: 4, since: CONTEXT.now });
      const reserved = awaiting(departure as Departure);
      const left = three.slice(1);
      expect(decided(setOf(), [...left, bare("down", false)], reserved).evicted).toEqual([]);
      expect(decided(setOf(), [...left, bare("down", true)], reserved).evicted).toEqual([]);
      expect(decided(setOf(), [...left, bare("down", true), updated("a2")], reserved).evicted).toHaveLength(1);
    });

    test("an evicted pod uses budget while its successor is not ready", () => {
      const since = "2025-06-01T00:00:00Z";
      const reserved = awaiting(gone("a", { of: 3, since }));
      const { metadata, ...rest } = bare("a2", false);
      const successor = { ...rest, metadata: { ...metadata, creationTimestamp: "2025-06-01T00:00:01Z" } };
      expect(decided(setOf(), [...three.slice(1), successor], reserved).evicted).toEqual([]);
    });

    test("an evicted pod needs one successor only, even if the failed pod is evicted too", () => {
      const letGo = gone("down", { of: NONE_AWAITED });
      const reserved = awaiting(gone("a", { of: 4 }), letGo);
      const left = three.slice(1);
      expect(decided(setOf(), left, reserved).evicted).toEqual([]);
      expect(decided(setOf(), [...left, updated("a2")], reserved).evicted).toHaveLength(1);
      expect(decided(setOf(), left, awaiting(letGo)).evicted).toHaveLength(1);
    });
  });

  test("an evicted pod without a successor counts in the total of a percentage partition", () => {
    const set = setOf({ updateStrategy: { maxUnavailable: 3, partition: "67%" } });
    // The partition keeps 2 of 3 pods, so the 2 remaining pods must both stay.
    expect(decided(set, three.slice(1), awaiting(gone("a"))).evicted).toEqual([]);
  });
});

describe("reasons to evict no pod:", () => {
  test.each<[string, SidecarSet, readonly Pod[], RegExp]>([
    [
      "a new pod was created with the old release",
      setOf({ updateStrategy: { maxUnavailable: 3 } }),
      [...three, pod({ name: "again", created: AFTER })],
      /created after the change.*shop\/again/,
    ],
    ["injection is paused", setOf({ injectionStrategy: { paused: true } }), three, /injection is paused/],
    [
      "new pods get another revision",
      setOf({ injectionStrategy: { revision: { revisionName: "ss-1" } } }),
      three,
      /given revision ss-1/,
    ],
  ])("no pod is evicted if %s", (_what, set, pods, why) => {
    const { evicted, summary } = decided(set, pods);
    expect(evicted).toEqual([]);
    expect(summary.rules.replacement?.stop).toMatch(why);
  });

  test("no pod is evicted if a new pod was created without a sidecar", () => {
    const bare = pod({ name: "bare", created: AFTER });
    const { annotations: _, ...metadata } = bare.metadata ?? {};
    const { summary, evicted } = decided(setOf(), [...three, { ...bare, metadata }]);
    expect([evicted, summary.rules.replacement?.isInVain]).toEqual([[], true]);
  });

  const elsewhere = ({ metadata, ...rest }: Pod): Pod => ({ ...rest, metadata: { ...metadata, namespace: "bakery" } });
  const again = pod({ name: "again", created: AFTER });

  test("a pod that was recreated without its new sidecars stops evictions only in its own namespace", () => {
    const owner = ownerOf("ReplicaSet", "apps/v1", "api");
    const other = elsewhere(pod({ name: "other", owner }));
    const { evicted, summary } = decided(setOf(), [...three, again, other]);
    expect(evicted).toEqual(["other"]);
    expect(summary).toMatchObject({ notUpgradable: 4, rules: { replacement: { isInVain: true, waiting: 1 } } });
  });

  test("a pod of another namespace that names the owner of pods without sidecars does not stop their evictions", () => {
    const bare = pod({ name: "bare", owner: ownerOf("ReplicaSet", "apps/v1", "api"), created: AFTER });
    const { annotations: _, ...metadata } = bare.metadata ?? {};
    const forged = elsewhere(pod({ name: "forged", owner: ownerOf("ReplicaSet", "apps/v1", "api") }));
    const pods = [...three, { ...bare, metadata }, forged];
    expect(decided(setOf(), pods).summary.rules.replacement).not.toHaveProperty("isInVain");
  });

  test("no pod is evicted anywhere after pods of two namespaces were recreated without their new sidecars", () => {
    const third = { ...again, metadata: { ...again.metadata, namespace: "forge", uid: "uid-third" } };
    const { evicted } = decided(setOf(), [...three, elsewhere(again), third]);
    expect(evicted).toEqual([]);
  });

  test("evictions stop at the size limit of the ledger: an eviction takes two lines, an awaited pod one", () => {
    const many = Array.from({ length: 1_200 }, (_, index) => pod({ name: `pod-${index}` }));
    const set = setOf({ updateStrategy: { maxUnavailable: "100%" } });
    const at = (departed: number) =>
      awaiting(...Array.from({ length: departed }, (_, index) => gone(`gone-${index}`, { of: 1_200 + departed })));
    expect(decided(set, many).evicted).toHaveLength(1_000);
    expect(decided(set, many, at(1_000)).evicted).toHaveLength(500);
    expect(decided(set, many, at(2_000)).evicted).toHaveLength(0);
  });

  test("pods of a controller whose eviction was just refused are not evicted, other pods are", () => {
    const keptOwners = new Set([`shop/${OWNER.uid}`]);
    const reserved = { ...NOTHING_RESERVED, keptOwners };
    const other = pod({ name: "other", owner: ownerOf("ReplicaSet", "apps/v1", "api") });
    expect(decided(setOf(), [...three, other], reserved).evicted).toEqual(["other"]);
    expect(decided(setOf(), three, reserved).summary).toMatchObject({
      hold: "evictionRefused",
      rules: { replacement: { kept: 3 } },
    });
    // A refused pod of another namespace may name the same owner.
    const foreign = { ...NOTHING_RESERVED, keptOwners: new Set([`bakery/${OWNER.uid}`]) };
    expect(decided(setOf(), three, foreign).evicted).toEqual(["a"]);
  });
});

describe("when Kubernetes does not allow a new image for a running pod", () => {
  const FROZEN =
    'Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.activeDeadlineSeconds`';
  const POLICY = "ValidatingAdmissionPolicy 'images' denied request: the registry is not trusted";
  const same = (name: string) => pod({ name, withoutImage: "same" });

  /** Returns a ledger in which these pods were refused, before the next try. */
  function refusedOnes(messages: Readonly<Record<string, string>>) {
    const named = Object.entries(messages).map(([name, message]) => ({
      ...{ namespace: "shop", name, uid: `uid-${name}`, message },
      times: 1,
      until: "2025-06-01T00:10:00Z",
    }));
    const passedOver = { ...NONE_PASSED_OVER, uids: new Set(named.map(({ uid }) => uid)) };
    return { ...NOTHING_RESERVED, refused: { named, passedOver } };
  }

  const wide = (replace = "NotUpgradable") => setOf({ updateStrategy: { maxUnavailable: 5 } }, replace);

  test("pods that the API server refused are replaced if the annotation allows it, and the status says why", () => {
    const { evicted, summary } = decided(wide(), [same("a"), same("b")], refusedOnes({ a: FROZEN, b: FROZEN }));
    expect(evicted).toEqual(["a", "b"]);
    expect(summary.rules.replacement).toMatchObject({ waiting: 2, selected: 2 });
    expect(summary.trouble?.text).toContain("Kubernetes lets no image change, so such pods are replaced");
  });

  test("without the annotation no pod is replaced, and the status says what to do", () => {
    const { evicted, summary } = decided(wide(""), [same("a"), same("b")], refusedOnes({ a: FROZEN, b: FROZEN }));
    expect(evicted).toEqual([]);
    expect(summary.trouble?.text).toContain("the annotation sidecarset.kruise.io/replace with NotUpgradable");
  });

  test("a pod is replaced only after the API server has refused its own image", () => {
    expect(decided(wide(), [same("a"), same("b")], refusedOnes({ a: FROZEN })).evicted).toEqual(["a"]);
  });

  test("the only pod that the partition leaves to update is replaced after one refusal", () => {
    const set = setOf({ updateStrategy: { maxUnavailable: 5, partition: 1 } });
    expect(decided(set, [same("a"), same("b")], refusedOnes({ a: FROZEN })).evicted).toEqual(["a"]);
  });

  test("no pod is replaced if the API server lists images among the fields that may change", () => {
    const changedByWebhook =
      'Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`';
    expect(decided(wide(), [same("a")], refusedOnes({ a: changedByWebhook })).evicted).toEqual([]);
  });

  test("a policy's refusal replaces no pod, because the policy might refuse the new pod as well", () => {
    expect(decided(wide(), [same("a"), same("b")], refusedOnes({ a: POLICY, b: POLICY })).evicted).toEqual([]);
    expect(decided(wide(), [same("a"), same("b")], refusedOnes({ a: FROZEN, b: POLICY })).evicted).toEqual(["a"]);
    const quoted = `admission webhook "x" denied the request: ${FROZEN}`;
    expect(decided(wide(), [same("a")], refusedOnes({ a: quoted })).evicted).toEqual([]);
  });

  test("the text about a pod that a policy refused does not mention replacements", () => {
    const reserved = refusedOnes({ a: FROZEN, b: POLICY });
    const named = reserved.refused.named.map((one) => (one.name === "b" ? { ...one, times: 3 } : one));
    for (const replace of ["NotUpgradable", ""]) {
      const { summary } = decided(wide(replace), [same("a"), same("b")], {
        ...reserved,
        refused: { ...reserved.refused, named },
      });
      expect(summary.trouble?.text).toContain("pod shop/b (and 1 more pod)");
      expect(summary.trouble?.text).not.toContain("Kubernetes lets no image change");
    }
  });

  test("replacement stays within maxUnavailable", () => {
    const set = setOf({ updateStrategy: { maxUnavailable: 1 } });
    expect(decided(set, [same("a"), same("b")], refusedOnes({ a: FROZEN, b: FROZEN })).evicted).toEqual(["a"]);
  });

  test("a pod with the longest name is replaced, although the ledger keeps 200 characters of a refusal", () => {
    const name = "a".repeat(253);
    const kept = refusalText(FROZEN.replace('"a"', `"${name}"`));
    expect(kept.length).toBeLessThanOrEqual(201);
    expect(decided(wide(), [same(name)], refusedOnes({ [name]: kept })).evicted).toEqual([name]);
  });

  describe("a plan after such refusals", () => {
    const planned = (replace: string, names: readonly string[]) =>
      planRollout(
        {
          ...UNTOUCHED,
          sidecarSet: setOf({ updateStrategy: { maxUnavailable: 1 } }, replace),
          pods: names.map(same),
          revisions: [],
          reserved: refusedOnes({ a: FROZEN, b: FROZEN }),
        },
        { ...CONTEXT, readyAfterSeconds: 5 },
      );

    test("a pass replaces every pod after one refusal, because the other pods would be refused as well", () => {
      const { steps, isComplete } = planned("NotUpgradable", ["a", "b", "c"]);
      expect(steps.flatMap(({ pods }) => pods.map((one) => one.isReplaced))).toEqual([true, true, true]);
      expect(isComplete).toBe(true);
    });

    test.each([
      ["before", { a: POLICY, b: FROZEN }],
      ["after", { a: FROZEN, b: POLICY }],
    ])(
      "a pass replaces the others too if a policy refused a pod %s one whose images may not change",
      (_when, messages) => {
        const sidecarSet = setOf({ updateStrategy: { maxUnavailable: 1 } });
        const seen = {
          ...UNTOUCHED,
          sidecarSet,
          revisions: [],
          pods: ["a", "b", "c"].map(same),
          reserved: refusedOnes(messages),
        };
        const { steps } = planRollout(seen, { ...CONTEXT, readyAfterSeconds: 5 });
        expect(steps.flatMap(({ pods }) => pods.map((one) => one.isReplaced))).toEqual([true, true]);
      },
    );

    test("a rollout updates no pod without the annotation for replacements, and says why", () => {
      const { steps, isComplete, after } = planned("", ["a", "b", "c"]);
      expect(steps).toEqual([]);
      expect(isComplete).toBe(false);
      expect(after.hold).toBe("refused");
      expect(after.trouble?.text).toContain("Kubernetes lets no image change");
    });
  });
});
