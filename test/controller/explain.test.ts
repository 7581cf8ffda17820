import { expect, test } from "vitest";
import { explain } from "../../shared/controller/rollout/dry-run.ts";
import type { Stop } from "../../shared/controller/rollout/report.ts";
import type { Summary } from "../../shared/core/rollout/summary.ts";

const SUMMARY: Summary = {
  matched: 9,
  updated: 0,
  ready: 9,
  updatedReady: 0,
  waiting: 9,
  notUpgradable: 0,
  immutableFields: [],
  inFlight: 0,
  partition: 0,
  maxUnavailable: 2,
  used: 0,
  down: [],
  selected: 0,
  hold: "budget",
  problems: [],
  rules: {},
};

const names = (...all: readonly string[]) =>
  all.map((name) => ({ namespace: "shop", name, why: "agent: ErrImagePull" }));
const IMMUTABLE = { notUpgradable: 4, hold: "nothingWaits" } as const;

const SENTENCES: Readonly<Record<string, readonly [Partial<Summary>, string]>> = {
  "the budget": [{ updated: 2, used: 2 }, "2 of 9 pods updated, 0 of them ready; 2 unavailable of at most 2"],
  "the partition": [
    { hold: "partition", partition: 5, updated: 4, updatedReady: 4 },
    "4 of 9 pods updated, 4 of them ready; partition keeps 5 at the old revision",
  ],
  "smaller resources": [
    { hold: "shrink", updated: 9, updatedReady: 6, selected: 3 },
    "9 of 9 pods updated, 6 of them ready; 3 are given their smaller cpu and memory, now that their new image runs",
  ],
  "pods that are down": [
    { updated: 2, used: 2, down: names("a", "b") },
    "2 of 9 pods updated, 0 of them ready; 2 unavailable of at most 2; not ready: shop/a (agent: ErrImagePull), shop/b (agent: ErrImagePull)",
  ],
  "more pods that are down than the report names": [
    { hold: "finished", updated: 9, updatedReady: 2, down: names("a") },
    "9 of 9 pods updated, 2 of them ready; not ready: shop/a (agent: ErrImagePull), 6 more",
  ],
  "fields that cannot change in place": [
    { ...IMMUTABLE, immutableFields: ["spec.containers{agent}.args", "spec.containers{agent}.env"] },
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; 4 cannot be upgraded in place, since more than images changed: spec.containers{agent}.args, spec.containers{agent}.env",
  ],
  "pods whose changed fields are unknown": [
    IMMUTABLE,
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; 4 cannot be upgraded in place",
  ],
  "pods that cannot be upgraded in place, of a paused rollout": [
    { ...IMMUTABLE, hold: "paused" },
    "paused; 0 of 9 pods updated, 0 of them ready; 4 cannot be upgraded in place",
  ],
  "pods that are replaced once a rollout is no longer paused": [
    { hold: "paused", rules: { replacement: { waiting: 2, selected: 0, kept: 0 } } },
    "paused; 0 of 9 pods updated, 0 of them ready; 2 pods cannot be upgraded in place and are to be replaced",
  ],
  "pods that cannot be handled": [
    {
      hold: "nothingWaits",
      problems: ["a", "b", "c", "d"].map((name) => ({ namespace: "shop", name, message: "bad" })),
    },
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; left alone: shop/a (bad), shop/b (bad), shop/c (bad), 1 more",
  ],
  "pods that are no longer replaced": [
    {
      ...IMMUTABLE,
      rules: { replacement: { waiting: 0, selected: 0, kept: 0, stop: "others came back as they were" } },
    },
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; 4 cannot be upgraded in place; none is replaced: others came back as they were",
  ],
  "an annotation that cannot be read": [
    { hold: "unreadable" },
    "held, since an annotation cannot be read; 0 of 9 pods updated, 0 of them ready",
  ],
  "failing pods": [
    { hold: "halted" },
    "halted, since too many updated pods fail; 0 of 9 pods updated, 0 of them ready",
  ],
  "the reason of a halt": [
    { hold: "halted", rules: { halt: { stopped: "check errors is above 1" } } },
    "halted, since check errors is above 1; 0 of 9 pods updated, 0 of them ready",
  ],
  "a gate that was not called yet": [{ hold: "gate" }, "0 of 9 pods updated, 0 of them ready; a gate is asked first"],
  "a gate that refused": [
    { hold: "gate", rules: { gate: "the gate says: not on a Friday" } },
    "0 of 9 pods updated, 0 of them ready; the gate says: not on a Friday",
  ],
  "metrics that were not checked yet": [
    { hold: "metrics" },
    "0 of 9 pods updated, 0 of them ready; metrics are checked first",
  ],
  "owners with full budgets": [
    {
      hold: "ownerBudget",
      rules: { ownerBudget: { waiting: 3, full: ["ReplicaSet web has 1 of 1", "ReplicaSet api has 2 of 2"] } },
    },
    "0 of 9 pods updated, 0 of them ready; 3 pods wait for others of their owners: ReplicaSet web has 1 of 1; ReplicaSet api has 2 of 2",
  ],
  "owner budgets without details": [
    { hold: "ownerBudget" },
    "0 of 9 pods updated, 0 of them ready; 0 pods wait for others of their owners: ",
  ],
  "waves without details": [{ hold: "wave" }, "0 of 9 pods updated, 0 of them ready; pods of later waves wait"],
};

const UPGRADING = { ...SUMMARY, hold: "none", selected: 2 } as const;
const STANDING = "0 of 9 pods updated, 0 of them ready; 2 being upgraded";

const STOPS: Readonly<Record<Stop, readonly [string, string]>> = {
  settled: [STANDING, "nothing to do"],
  oneRound: [STANDING, "nothing to do"],
  deadline: [`the time is used up, the next pass goes on: ${STANDING}`, "the time is used up, the next pass goes on"],
  stalled: [
    `nothing moved for a while, the next pass looks again: ${STANDING}`,
    "nothing moved for a while, the next pass looks again",
  ],
  unchanged: [
    `the pods that are not ready have not changed for five minutes, the next pass looks again: ${STANDING}`,
    "the pods that are not ready have not changed for five minutes, the next pass looks again",
  ],
  refused: [
    `the pass ended early, because every write that is left is refused; a later one tries again: ${STANDING}`,
    "the pass ended early, because every write that is left is refused; a later one tries again",
  ],
  aborted: [`stopped from outside: ${STANDING}`, "stopped from outside"],
  gone: ["there is no such SidecarSet", "there is no such SidecarSet"],
  contention: [
    `others kept writing the same objects, the next pass goes on: ${STANDING}`,
    "others kept writing the same objects, the next pass goes on",
  ],
  failed: [`failed: ${STANDING}`, "failed"],
};

test.each(Object.entries(SENTENCES))("explain writes one sentence about %s", (_what, [summary, sentence]) => {
  expect(explain("settled", { ...SUMMARY, ...summary })).toBe(sentence);
});

test.each(Object.entries(STOPS) as [Stop, readonly [string, string]][])(
  "explain says why the pass left the rollout, with the counts if they are known: %s",
  (stop, [known, unknown]) => {
    expect(explain(stop, UPGRADING)).toBe(known);
    expect(explain(stop, undefined)).toBe(unknown);
  },
);

const COUNT = "0 of 9 pods updated, 0 of them ready";
const REPLACED = { waiting: 0, selected: 0, kept: 0 };
const WAVE = { name: "dev", stage: "updating", pods: 4, updated: 3, updatedReady: 3, left: 1 } as const;
const WAVES = { rows: [WAVE], holder: WAVE, behind: 5, isTurning: false, atWork: "dev" } as const;
const LATER = "wave dev comes first, 1 of its 4 pods is not updated and ready yet; 5 pods of later waves wait";

test.each<[string, Partial<Summary>, string]>([
  [
    "an update strategy that updates nothing",
    { hold: "NotUpdate" },
    "the update strategy is NotUpdate; 0 of 9 pods updated, 0 of them ready",
  ],
  ["a hot upgrade", { hold: "flip", selected: 1 }, `${COUNT}; 1 hot upgrade is being finished`],
  ["hot upgrades", { hold: "flip", selected: 2 }, `${COUNT}; 2 hot upgrades are being finished`],
  [
    "pods of StatefulSets, in their order",
    { hold: "order", selected: 1, rules: { ordinals: { reason: "shop/db-2 is not ready", isStuck: false } } },
    `${COUNT}; 1 being upgraded, one at a time in the order of their sets: shop/db-2 is not ready`,
  ],
  [
    "a wave whose pods are being upgraded",
    { hold: "wave", selected: 3, rules: { waves: WAVES } },
    `${COUNT}; 3 being upgraded; ${LATER}`,
  ],
  ["a wave that later waves wait for", { hold: "wave", selected: 0, rules: { waves: WAVES } }, `${COUNT}; ${LATER}`],
  [
    "a pod that a PodDisruptionBudget blocks",
    { hold: "evictionRefused", rules: { replacement: { ...REPLACED, kept: 1 } } },
    `${COUNT}; 1 pod waits for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`,
  ],
  [
    "pods that a PodDisruptionBudget blocks",
    { hold: "evictionRefused", rules: { replacement: { ...REPLACED, kept: 2 } } },
    `${COUNT}; 2 pods wait for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`,
  ],
  [
    "evictions without details",
    { hold: "evictionRefused" },
    `${COUNT}; 0 pods wait for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`,
  ],
  [
    "workloads that are restarted",
    { hold: "restart", rules: { restarts: { underWay: ["Deployment shop/web"], waiting: 1, held: [] } } },
    `${COUNT}; Deployment shop/web is being restarted; 1 workload waits to be restarted`,
  ],
  ["restarts without details", { hold: "restart" }, COUNT],
  [
    "disruption budgets",
    {
      hold: "disruptionBudget",
      rules: {
        disruptionBudgets: {
          waiting: 2,
          full: ["shop/web allows 0 more down"],
          names: ["PodDisruptionBudget shop/web"],
        },
      },
    },
    `${COUNT}; 2 pods wait for disruption budgets: shop/web allows 0 more down`,
  ],
  [
    "disruption budgets without details",
    { hold: "disruptionBudget" },
    `${COUNT}; 0 pods wait for disruption budgets: `,
  ],
  [
    "a pod that is being replaced",
    { hold: "nothingWaits", rules: { replacement: { ...REPLACED, waiting: 1 } } },
    `${COUNT}; no other pod can be upgraded now; 1 pod cannot be upgraded in place and is to be replaced`,
  ],
  [
    "pods that are being replaced",
    { hold: "nothingWaits", rules: { replacement: { ...REPLACED, waiting: 2 } } },
    `${COUNT}; no other pod can be upgraded now; 2 pods cannot be upgraded in place and are to be replaced`,
  ],
])("explain writes one sentence about %s", (_what, summary, sentence) => {
  expect(explain("settled", { ...SUMMARY, ...summary })).toBe(sentence);
});
