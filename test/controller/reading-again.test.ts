/** When a pass goes on with the pods that one before it has read, and when it reads all of them again. */
import { describe, expect, it } from "vitest";
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

describe("what was read for a SidecarSet", () => {
  it("is gone on with as long as nothing was written for which it would be read in another way", () => {
    const { take } = stage();
    const first = take();
    expect(take()).toBe(first);
    expect(take({ ...set, metadata: { ...set.metadata, labels: { seen: "1" } } })).toBe(first);
  });

  it.each<[string, SidecarSet, Also, string]>([
    ["the ledger was written", set, NOTHING_ELSE, "8"],
    ["resources are read too", set, { ...NOTHING_ELSE, resources: true }, "7"],
    ["workloads are read too", set, { ...NOTHING_ELSE, workloads: true }, "7"],
    ["labels of disruption budgets are read too", set, { ...NOTHING_ELSE, budgetLabels: ["team"] }, "7"],
    ["it is another one of its name", { ...set, metadata: { ...set.metadata, uid: "v" } }, NOTHING_ELSE, "7"],
    ["its spec was written", { ...set, metadata: { ...set.metadata, generation: 2 } }, NOTHING_ELSE, "7"],
  ])("is read again where %s", (_, of, also, ledger) => {
    const { take } = stage();
    const first = take();
    expect(take(of, also, ledger)).not.toBe(first);
    expect(take(of, also, ledger)).toBe(take(of, also, ledger));
  });

  it("is believed for four minutes, as long as an API server goes on with its list, and kept no longer", async () => {
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

  it("has no pods twice that come late for the pass before", async () => {
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

  it("goes on for a second pass as for a first", async () => {
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
});
