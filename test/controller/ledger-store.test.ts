import { afterAll, beforeAll, expect, it } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { EMPTY_LEDGER, type Ledger } from "../../shared/core/ledger.ts";
import { type Cluster, CONFIG_MAPS, SIDECARSETS } from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import { KRUISE_NAMESPACE, sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const generation = (number: number): Ledger => ({ uid: "u", generation: number, reservations: [] });

it("a ledger is swapped by one of those who read it, from the first write on", async () => {
  const set = await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("swap", 1, {}));
  const place = { namespace: KRUISE_NAMESPACE, owner: set };
  const none = await readLedger(cluster, KRUISE_NAMESPACE, "swap");
  expect(none).toEqual({ ledger: EMPTY_LEDGER });
  const first = await swapLedger(cluster, place, none, generation(1));
  expect(first?.ledger).toEqual(generation(1));
  expect(await swapLedger(cluster, place, none, generation(7))).toBeUndefined();

  if (!first) throw new Error("the first write was lost");
  const second = await swapLedger(cluster, place, first, generation(2));
  expect(await swapLedger(cluster, place, first, generation(7))).toBeUndefined();
  expect(await readLedger(cluster, KRUISE_NAMESPACE, "swap")).toEqual(second);
  expect(second?.ledger).toEqual(generation(2));

  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-swap" };
  const owner = { kind: "SidecarSet", name: "swap", uid: set.metadata?.uid };
  expect((await cluster.get(CONFIG_MAPS, key)).metadata?.ownerReferences).toMatchObject([owner]);
  if (!second) throw new Error("the second write was lost");
  const lossy = faultyCluster(cluster, "lostAnswer", () => true);
  expect(await swapLedger(lossy, place, second, generation(3))).toBeUndefined();
  await cluster.delete(CONFIG_MAPS, key);
  expect(await swapLedger(cluster, place, second, generation(4))).toBeUndefined();
});

it("a ledger belongs to its SidecarSet, for the garbage collector, only while nothing is reserved", async () => {
  const owner = await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("owned", 1, {}));
  const place = { namespace: KRUISE_NAMESPACE, owner };
  const owners = async () =>
    (await cluster.get(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-owned" })).metadata
      ?.ownerReferences ?? [];
  const pod = { namespace: "shop", name: "a", uid: "uid-a", resourceVersion: "7", generation: 1, revision: "new" };
  const reserved: Ledger = { ...generation(1), reservations: [pod] };
  const first = await swapLedger(cluster, place, await readLedger(cluster, KRUISE_NAMESPACE, "owned"), reserved);
  expect(await owners()).toEqual([]);
  const second = first && (await swapLedger(cluster, place, first, generation(1)));
  expect(await owners()).toMatchObject([{ uid: owner.metadata?.uid }]);
  if (second) await swapLedger(cluster, place, second, reserved);
  expect(await owners()).toEqual([]);
});

it("the ledger of an Advanced StatefulSet goes with its namespace, whatever is reserved", async () => {
  const owner = { metadata: { name: "ordered", uid: "u" } };
  const pod = { namespace: "shop", name: "a", uid: "uid-a", resourceVersion: "7", generation: 1, revision: "" };
  const ledger: Ledger = { ...generation(1), reservations: [pod] };
  const place = { namespace: KRUISE_NAMESPACE, owner, kind: "statefulset" } as const;
  const none = await readLedger(cluster, KRUISE_NAMESPACE, "ordered", "statefulset");
  const stored = await swapLedger(cluster, place, none, ledger);
  expect(stored?.ledger.reservations).toHaveLength(1);
  const { items } = await cluster.list(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE });
  const own = items.find(({ metadata }) => metadata?.name?.endsWith("-ordered"));
  expect(own?.metadata?.name).toContain("statefulset");
  expect(own?.metadata?.finalizers).toBeUndefined();
});
