/** Tests that the status of a SidecarSet shows a batch's progress about once a second. */
import { expect, it } from "vitest";
import { GATE_ANNOTATION } from "../../shared/api/names.ts";
import { type Context, decideOn, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { BatchStatus, writeStatus } from "../../shared/controller/rollout/write-status.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { type Asked, podOf, rolloutPart, setOf } from "./rollout-part.ts";

const WRITE = "PATCH sidecarsets/status";
const NAMES = ["a", "b", "c", "d"];

/** Prepares a batch of four pods. */
async function stage({ refuse, more = {}, ...asked }: Asked & { refuse?: Refuse; more?: Partial<Context> } = {}) {
  const rollout = rolloutPart(refuse);
  const { clock, calls, put, readSet } = rollout;
  put(setOf({ maxUnavailable: 4, ...asked }), ...NAMES.map((name) => podOf(name)));
  const context = { ...rollout.context, ...more };
  const snapshot = await rollout.look();
  /** Returns the pod after the batch wrote to it. The batch knows of this write. */
  const upgrade = (name: string) => {
    put(podOf(name, 2));
    const pod = rollout.readPod(name);
    if (pod) snapshot.observed.view.put(pod);
  };
  const batchOf = (through: Snapshot = snapshot) => new BatchStatus(context, through);
  /** Refreshes the status at each of these times; the batch continues at once. */
  const refreshAt = async (batch: BatchStatus, ...times: readonly number[]) => {
    for (const atMs of times) {
      await clock.sleep(atMs - clock.now());
      batch.refresh();
      await batch.end();
    }
  };
  const writes = () => calls.filter(([, call]) => call.startsWith(WRITE));
  const updated = () => readSet()?.status?.updatedPods;
  return { ...rollout, context, snapshot, upgrade, batchOf, refreshAt, writes, updated };
}

it("during a batch the status is written after one second and then once each second", async () => {
  const { upgrade, batchOf, refreshAt, writes, updated } = await stage();
  const batch = batchOf();
  upgrade("a");
  await refreshAt(batch, 0, 999);
  expect([updated(), writes()]).toEqual([undefined, []]);
  await refreshAt(batch, 1_000);
  expect(updated()).toBe(1);
  upgrade("b");
  await refreshAt(batch, 1_999);
  expect(updated()).toBe(1);
  await refreshAt(batch, 2_000);
  expect(updated()).toBe(2);
  expect(writes().map(([atMs]) => atMs)).toEqual([1_000, 2_000]);
});

it("only one status write runs at a time, and the end of the batch waits for it", async () => {
  const { clock, upgrade, batchOf, writes, updated } = await stage();
  const batch = batchOf();
  upgrade("a");
  await clock.sleep(1_000);
  batch.refresh();
  batch.refresh();
  expect(updated()).toBeUndefined();
  await batch.end();
  expect([updated(), writes().length]).toEqual([1, 1]);
});

it("when counting is slow the status is written less often, so that counting takes at most a twentieth of the time", async () => {
  const { snapshot, upgrade, batchOf, refreshAt, updated } = await stage();
  const slow = {
    ...snapshot,
    get decisionMs() {
      return 100;
    },
    set decisionMs(_) {
      // The time of the decision never changes.
    },
  };
  const batch = batchOf(slow);
  upgrade("a");
  await refreshAt(batch, 1_000);
  upgrade("b");
  await refreshAt(batch, 2_999);
  expect(updated()).toBe(1);
  await refreshAt(batch, 3_000);
  expect(updated()).toBe(2);
});

it("a batch continues when the status write fails, and retries the write after a second", async () => {
  const refuse: Refuse = (call, nth) => (call === WRITE && nth === 1 ? refusal(403, "Forbidden") : undefined);
  const { upgrade, batchOf, refreshAt, writes, updated } = await stage({ refuse });
  const batch = batchOf();
  upgrade("a");
  await refreshAt(batch, 1_000, 1_999, 2_000);
  expect(writes()).toEqual([
    [1_000, `${WRITE} refused`],
    [2_000, WRITE],
  ]);
  expect(updated()).toBe(1);
});

it("a status write during a batch does not set observedGeneration", async () => {
  const { upgrade, batchOf, refreshAt, readSet } = await stage();
  upgrade("a");
  await refreshAt(batchOf(), 1_000);
  expect(readSet()?.status).toMatchObject({ updatedPods: 1 });
  expect(readSet()?.status).not.toHaveProperty("observedGeneration");
});

it("a batch does not write the status within a second of another status write", async () => {
  const { clock, context, snapshot, upgrade, batchOf, refreshAt, writes, updated } = await stage();
  const batch = batchOf();
  await clock.sleep(500);
  await writeStatus(context, snapshot, decideOn(context, snapshot, []), { isObservable: false, mayWait: false });
  upgrade("a");
  await refreshAt(batch, 1_000);
  expect([updated(), writes().length]).toEqual([0, 1]);
  await refreshAt(batch, 2_000);
  expect([updated(), writes().length]).toEqual([1, 2]);
});

it("a status write during a batch does not call the gate", async () => {
  const asked: unknown[] = [];
  const ask = async (...request: readonly unknown[]) => {
    asked.push(request);
    return { allow: true } as const;
  };
  const { upgrade, batchOf, refreshAt, updated } = await stage({
    annotations: { [GATE_ANNOTATION]: "https://gate.example.com/batch" },
    more: { gates: { ask, refusals: new Map() } },
  });
  upgrade("a");
  await refreshAt(batchOf(), 1_000);
  expect([updated(), asked]).toEqual([1, []]);
});
