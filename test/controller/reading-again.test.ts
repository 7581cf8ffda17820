/** Tests which pods a pass reuses from the last pass, and when it reads all pods again. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { Reading, type Readings, takeUpReading } from "../../shared/controller/rollout/reading.ts";
import { EMPTY_LEDGER } from "../../shared/core/ledger.ts";
import { type Also, NOTHING_ELSE } from "../../shared/core/rollout/upgrade/project-pod.ts";
import type { Cluster, ListOptions } from "../../shared/kube/port.ts";
import { injectedPod, sidecarSet } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

const set: SidecarSet = { ...sidecarSet("set", 1, {}), metadata: { name: "set", uid: "u", generation: 1 } };

function stage() {
  const { clock } = steppedClock();
  const readings: Readings = new Map();
  const take = (of: SidecarSet = set, also: Also = NOTHING_ELSE, resourceVersion = "7") =>
    takeUpReading(readings, clock, of, { stored: { ledger: EMPTY_LEDGER, resourceVersion }, also });
  return { clock, readings, take };
}

it("a pass reuses the pods that an earlier pass has read when no relevant change happened", () => {
  const { take } = stage();
  const first = take();
  expect(take()).toBe(first);
  expect(take({ ...set, metadata: { ...set.metadata, labels: { seen: "1" } } })).toBe(first);
});

it("a pass reuses the pods that an earlier pass has read although somebody changes the labels by which disruption budgets select", () => {
  const { take } = stage();
  const asking = (...keys: readonly string[]): Also => ({
    ...NOTHING_ELSE,
    budgetLabels: new Map([["greedy", new Set(keys)]]),
  });
  const first = take(set, asking("one"));
  expect(take(set, asking("other"))).toBe(first);
  expect(first.also.budgetLabels?.get("greedy")).toEqual(new Set(["one"]));
});

it.each<[string, SidecarSet, Also, string]>([
  ["the ledger was written", set, NOTHING_ELSE, "8"],
  ["the pass also needs resources", set, { ...NOTHING_ELSE, resources: true }, "7"],
  ["the pass also needs workloads", set, { ...NOTHING_ELSE, workloads: true }, "7"],
  [
    "the pass also needs labels of disruption budgets",
    set,
    { ...NOTHING_ELSE, budgetLabels: new Map([["shop", new Set(["team"])]]) },
    "7",
  ],
  ["the SidecarSet was recreated", { ...set, metadata: { ...set.metadata, uid: "v" } }, NOTHING_ELSE, "7"],
  ["the spec changed", { ...set, metadata: { ...set.metadata, generation: 2 } }, NOTHING_ELSE, "7"],
])("a pass reads the pods again when %s", (_, of, also, ledger) => {
  const { take } = stage();
  const first = take();
  expect(take(of, also, ledger)).not.toBe(first);
  expect(take(of, also, ledger)).toBe(take(of, also, ledger));
});

it("pods that were read are reused for less than four minutes and then dropped", async () => {
  const { take, clock, readings } = stage();
  await clock.sleep(1_000);
  const first = take();
  await clock.sleep(239_999);
  expect(take()).toBe(first);
  await clock.sleep(1);
  const other = take({ ...set, metadata: { ...set.metadata, name: "other" } });
  expect([...readings.keys()]).toEqual(["other"]);
  expect(take()).not.toBe(first);
  expect(other).not.toBe(first);
});

it("pods that arrive too late for a pass are not kept for the next pass", async () => {
  const { take } = stage();
  const reading = take();
  const kept: unknown[] = [];
  const late = Promise.withResolvers<void>();
  const cluster = {
    list: async (_: unknown, { keep }: ListOptions) => {
      await late.promise;
      kept.push(keep?.(injectedPod("set", "late") as Pod));
      return { metadata: { resourceVersion: "9" }, items: [], kept: [] };
    },
  } as unknown as Cluster;
  const read = reading.readList(cluster, "", {}, { isSelected: () => true, isOver: () => false });
  take();
  late.resolve();
  await read;
  expect(kept).toEqual([undefined]);
  expect(new Reading(set, NOTHING_ELSE).pods).toBe(0);
});

it("several passes can continue one read of the pods", async () => {
  const { take } = stage();
  take();
  take();
  const reading = take();
  const kept: unknown[] = [];
  const cluster = {
    list: async (_: unknown, { keep }: ListOptions) => {
      kept.push(keep?.(injectedPod("set", "in-time") as Pod));
      return { metadata: { resourceVersion: "9" }, items: [], kept: [] };
    },
  } as unknown as Cluster;
  await reading.readList(cluster, "", {}, { isSelected: () => true, isOver: () => false });
  expect(kept).toEqual([expect.any(Number)]);
});
