/** Tests a tenant with arbitrary pods in one namespace, and a rollout that also covers other namespaces. */

import fc from "fast-check";
import { expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import { HALT_ON_ANNOTATION, OWNER_BUDGET_ANNOTATION, UNDO_ON_HALT_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type Decision, decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { newRevision } from "../../shared/core/sidecarset/revision/recorded-revision.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import { NEW_HASH, NOW, podOf, sidecarSetOf, takenDown, UNTOUCHED } from "../support/rollout-fixture.ts";

const COUNT = 500;
const [SOON, BEFORE] = ["2025-06-01T00:00:20Z", "2025-05-01T00:00:00Z"];

const state = fc.constantFrom<NonNullable<ContainerStatus["state"]>>(
  { waiting: { reason: "CrashLoopBackOff" } },
  { waiting: { reason: "ImagePullBackOff" } },
  { terminated: { exitCode: 137, reason: "OOMKilled" } },
  { running: { startedAt: NOW } },
);
const status = fc.record({
  name: fc.constantFrom("sc", "main", "other"),
  image: fc.constantFrom("reg/sc:v2", "reg/sc:v1", "x"),
  imageID: fc.constantFrom("before", "after"),
  ready: fc.boolean(),
  restartCount: fc.constantFrom(0, 1, 9_999),
  state,
});
const facts = fc.record({
  hash: fc.constantFrom(NEW_HASH, "old", "", "forged"),
  isReady: fc.boolean(),
  image: fc.constantFrom("reg/sc:v2", "reg/sc:v1"),
  creationTimestamp: fc.constantFrom(BEFORE, NOW),
  phase: fc.constantFrom("Running", "Pending", "Failed", "Unknown"),
  statuses: fc.array(status, { maxLength: 4 }),
});
const hostile = fc.record({
  facts,
  isForged: fc.boolean(),
  since: fc.constantFrom(undefined, NOW, SOON, BEFORE, "never"),
});

/** Returns a pod with a pass' annotations, perhaps forged, and any condition. */
function hostilePod({ facts: given, isForged, since }: typeof hostile extends fc.Arbitrary<infer T> ? T : never): Pod {
  const pod = isForged ? takenDown(podOf(given)) : podOf(given);
  const type = { type: "Ready", status: given.isReady ? "True" : "False" } as const;
  const conditions = [{ ...type, ...(since ? { lastTransitionTime: since } : {}) }];
  return { ...pod, status: { ...pod.status, conditions } };
}

/** Healthy pods of other namespaces: true means updated. */
const others = fc.array(fc.boolean(), { minLength: 1, maxLength: 10 });
const haltOn = fc.constantFrom("0", "1", "3", "10%", "50%", "10% within 5m", "2 within 1h");

const SET = sidecarSetOf();
const REVISION = newRevision(sidecarSetOf({ containers: [{ name: "sc", image: "reg/sc:v1" }] }), {
  revision: 1,
  collisionCount: 0,
  namespace: "kruise-system",
});

function placed(pod: Pod, namespace: string, index: number): Pod {
  const name = `${namespace}-${index}`;
  return { ...pod, metadata: { ...pod.metadata, namespace, name, uid: name } };
}

function decided(pods: readonly Pod[], limit: string): Decision {
  const annotations = { ...SET.metadata?.annotations, [HALT_ON_ANNOTATION]: limit, [UNDO_ON_HALT_ANNOTATION]: "true" };
  const sidecarSet: SidecarSet = { ...SET, metadata: { ...SET.metadata, annotations } };
  return decide(
    { sidecarSet, pods, revisions: [REVISION], ...UNTOUCHED },
    { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS },
  );
}

test("the pods of a single namespace cannot stop a rollout or undo it", () => {
  let forged = 0;
  const runs = COUNT * ATTACK_TIMES;
  const property = fc.property(
    fc.array(hostile, { minLength: 1, maxLength: 20 }),
    others,
    haltOn,
    (bad, fine, limit) => {
      const pods = [
        ...bad.map((one, index) => placed(hostilePod(one), "tenant", index)),
        ...fine.map((isUpdated, index) => {
          const pod = isUpdated ? podOf({ hash: NEW_HASH, image: "reg/sc:v2" }) : podOf();
          return placed(pod, index % 2 === 0 ? "shop" : "web", index);
        }),
      ];
      if (bad.some(({ isForged }) => isForged)) forged++;
      const { halt, undo } = decided(pods, limit);
      expect([halt, undo]).toEqual([undefined, undefined]);
    },
  );
  const { failed, counterexample } = fc.check(property, { numRuns: runs, seed: 20_261_123 });
  addAttacks(runs, failed ? 1 : 0);
  expect(counterexample).toBeNull();
  expect(forged).toBeGreaterThan(runs / 4);
});

test("failing sidecars in two namespaces stop a rollout", () => {
  const statuses = [
    { name: "sc", image: "reg/sc:v2", ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } },
  ];
  const down = takenDown(podOf({ hash: NEW_HASH, image: "reg/sc:v2", isReady: false, statuses }));
  expect(decided([placed(down, "shop", 0), placed(down, "web", 1), placed(podOf(), "web", 2)], "0").halt).toBeDefined();
});

test("pods that wait for a node raise a percentage of maxUnavailable, as in OpenKruise, but no number and no owner budget", () => {
  const owned = {
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "w", controller: true }],
  };
  const good = Array.from({ length: 20 }, (_, index) => {
    const { metadata, ...rest } = placed(podOf(), "shop", index);
    return { ...rest, metadata: { ...metadata, ...owned } };
  });
  const waiting = Array.from({ length: 180 }, (_, index) =>
    placed(podOf({ isReady: false, phase: "Pending" }), "tenant", index),
  );
  const updated = (pods: readonly Pod[], maxUnavailable: number | string, perOwner?: string) => {
    const set = sidecarSetOf({ ...SET.spec, updateStrategy: { maxUnavailable } });
    const budget = perOwner === undefined ? {} : { [OWNER_BUDGET_ANNOTATION]: perOwner };
    const annotations = { ...set.metadata?.annotations, ...budget };
    const sidecarSet = { ...set, metadata: { ...set.metadata, annotations } };
    const { actions } = decide(
      { sidecarSet, pods, revisions: [REVISION], ...UNTOUCHED },
      { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS },
    );
    return actions.filter((action) => action.kind === "PatchPod" && action.pod.namespace === "shop").length;
  };
  expect([updated(good, "10%"), updated([...waiting, ...good], "10%")]).toEqual([2, 20]);
  expect([updated([...waiting, ...good], 2), updated([...waiting, ...good], "10%", "2")]).toEqual([2, 2]);
});

test("a pod that is never ready uses budget, as in OpenKruise, and an unready old pod is updated without budget", () => {
  const updated = (pods: readonly Pod[]) => {
    const sidecarSet = sidecarSetOf({ ...SET.spec, updateStrategy: { maxUnavailable: 1 } });
    const observation = { sidecarSet, pods, revisions: [REVISION], ...UNTOUCHED };
    const { actions } = decide(observation, {
      now: NOW,
      kruiseNamespace: "kruise-system",
      settings: DEFAULT_ROLLOUT_SETTINGS,
    });
    return actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));
  };
  const neverReady = placed(podOf({ hash: NEW_HASH, image: "reg/sc:v2", isReady: false }), "tenant", 0);
  const down = placed(podOf({ isReady: false }), "tenant", 1);
  const others = [placed(podOf(), "shop", 2), placed(podOf(), "shop", 3)];
  expect(updated(others)).toHaveLength(1);
  expect(updated([neverReady, ...others])).toEqual([]);
  expect(updated([neverReady, down, ...others])).toEqual(["tenant-1"]);
});
