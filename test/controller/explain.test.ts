import { describe, expect, test } from "vitest";
import { explain } from "../../shared/controller/rollout/explain.ts";
import type { Summary } from "../../shared/core/rollout/summary.ts";

const SUMMARY: Summary = {
  matched: 9,
  updated: 0,
  ready: 9,
  updatedReady: 0,
  waiting: 9,
  notUpgradable: 0,
  immutableFields: [],
  partition: 0,
  maxUnavailable: 2,
  used: 0,
  down: [],
  selected: 0,
  hold: "budget",
  problems: [],
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
  "more pods that are down than are named": [
    { hold: "finished", updated: 9, updatedReady: 2, down: names("a") },
    "9 of 9 pods updated, 2 of them ready; not ready: shop/a (agent: ErrImagePull), 6 more",
  ],
  "fields that cannot change in place": [
    { ...IMMUTABLE, immutableFields: ["spec.containers{agent}.args", "spec.containers{agent}.env"] },
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; 4 cannot be upgraded in place, since more than images changed: spec.containers{agent}.args, spec.containers{agent}.env",
  ],
  "pods of which nobody knows what changed": [
    IMMUTABLE,
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; 4 cannot be upgraded in place",
  ],
  "pods that cannot be handled": [
    {
      hold: "nothingWaits",
      problems: ["a", "b", "c", "d"].map((name) => ({ namespace: "shop", name, message: "bad" })),
    },
    "0 of 9 pods updated, 0 of them ready; no other pod can be upgraded now; left alone: shop/a (bad), shop/b (bad), shop/c (bad), 1 more",
  ],
};

describe("a report says why a rollout does no more", () => {
  test.each(Object.entries(SENTENCES))("%s", (_what, [summary, sentence]) => {
    expect(explain("settled", { ...SUMMARY, ...summary })).toBe(sentence);
  });

  test("and where it stands when the time is up", () => {
    expect(explain("deadline", { ...SUMMARY, updated: 2, used: 2 })).toBe(
      "the time is used up, the next pass goes on: 2 of 9 pods updated, 0 of them ready; 2 unavailable of at most 2",
    );
  });
});
