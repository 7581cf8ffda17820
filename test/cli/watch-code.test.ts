/** Tests the exit code at the end of `status -w`: success only if the counts say that everything is done. */
import { expect, it } from "vitest";
import { watchCode } from "../../functions/cli/input/progress.ts";
import { NOTHING_COUNTED, type Summary } from "../../shared/core/rollout/summary.ts";

const PARTITION: Partial<Summary> = { hold: "partition", matched: 4, updated: 3, updatedReady: 3, partition: 1 };
const RESTARTS = {
  underWay: [],
  waiting: 0,
  held: ["DaemonSet shop/web: others of its pods have to stay as they are"],
};

const ROWS: Readonly<Record<string, readonly [Partial<Summary>, number | undefined]>> = {
  "every pod is updated and ready: it exits with 0": [{ hold: "finished", matched: 4, updated: 4, updatedReady: 4 }, 0],
  "an updated pod is not ready: it continues": [
    { hold: "finished", matched: 4, updated: 4, updatedReady: 3 },
    undefined,
  ],
  "the partition holds all old pods back: it exits with 0": [PARTITION, 0],
  "the partition holds one pod back, and the selector leaves out another: it exits with 0": [
    { ...PARTITION, updated: 2, updatedReady: 2, notSelected: 1 },
    0,
  ],
  "the partition holds one pod back, and another belongs to a workload that is not restarted: it exits with 3": [
    { ...PARTITION, updated: 2, updatedReady: 2, rules: { restarts: RESTARTS } },
    3,
  ],
  "the partition holds one pod back, and another can only be recreated: it exits with 3": [
    { ...PARTITION, updated: 2, updatedReady: 2, notUpgradable: 1 },
    3,
  ],
  "the partition holds one pod back, and another is in flight from an older release: it continues": [
    { ...PARTITION, updated: 2, updatedReady: 2, inFlight: 1 },
    undefined,
  ],
  "the rollout is paused: it exits with 3": [{ hold: "paused", matched: 4 }, 3],
};

const codeFor = (counts: Partial<Summary>, observedGeneration: number) =>
  watchCode({
    sidecarSet: { metadata: { name: "mesh", generation: 2 }, spec: {}, status: { observedGeneration } } as never,
    progress: { summary: { ...NOTHING_COUNTED, ...counts } },
  });

it.each(Object.entries(ROWS))("status -w when %s", (_, [counts, code]) => {
  expect(codeFor(counts, 2)).toBe(code);
});

it("status -w continues while no pass has observed the generation, even if every pod is updated", () => {
  expect(codeFor({ hold: "finished", matched: 4, updated: 4, updatedReady: 4 }, 1)).toBeUndefined();
});
