import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { readLedger, refuseOlderList, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { EMPTY_LEDGER, type Ledger } from "../../shared/core/ledger.ts";
import { type Cluster, CONFIG_MAPS, SIDECARSETS } from "../../shared/kube/port.ts";
import { bareCluster, refusal } from "./bare-cluster.ts";
import { faultyCluster } from "./faults.ts";
import { KRUISE_NAMESPACE, sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const generation = (number: number): Ledger => ({ uid: "u", generation: number, reservations: [] });

it("only one of two concurrent writers can swap a ledger, from the first write on", async () => {
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

it("a ledger has its SidecarSet as owner only while nothing is reserved", async () => {
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

it("the ledger of an Advanced StatefulSet has no finalizer, even while something is reserved", async () => {
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

describe("refuseOlderList:", () => {
  const stored = (resourceVersion?: string) => ({
    ledger: EMPTY_LEDGER,
    ...(resourceVersion ? { resourceVersion } : {}),
  });

  it.each<[string, string | undefined, string | undefined]>([
    ["a list as new as the ledger", "7", "7"],
    ["a list newer than the ledger", "7", "10"],
    ["a list when the ledger was never written", undefined, "7"],
    ["a list without a version", "7", undefined],
  ])("refuseOlderList accepts %s", (_, written, listed) => {
    expect(() => refuseOlderList(stored(written), listed)).not.toThrow();
  });

  it("refuseOlderList refuses a list that is older than the ledger", () => {
    expect(() => refuseOlderList(stored("10"), "9")).toThrow(
      "pods were listed as of resourceVersion 9, and the ledger was written at 10: the API server that listed them lags behind, so the pass makes no decision from this list",
    );
    const told = { code: 0, reason: "StaleList", isOutcomeKnown: true };
    expect(() => refuseOlderList(stored("10"), "9")).toThrow(expect.objectContaining(told));
  });
});

describe("a ledger's ConfigMap:", () => {
  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-set" };

  it("readLedger fails and says what to do when the ConfigMap of that name is not a ledger", async () => {
    const { cluster: bare, server } = bareCluster(steppedClock());
    server.put("test", CONFIG_MAPS, { metadata: { ...key, uid: "u" } });
    await expect(readLedger(bare, KRUISE_NAMESPACE, "set")).rejects.toMatchObject({
      ...{ code: 0, reason: "InvalidLedger", isOutcomeKnown: true },
      message:
        "the ConfigMap kruise-system/sidecarset-ledger-set is no ledger of reservations: delete it while no pass runs",
    });
  });

  it("readLedger fails when reading the ConfigMap is forbidden", async () => {
    const { cluster: bare } = bareCluster(steppedClock(), () => refusal(403, "Forbidden"));
    await expect(readLedger(bare, KRUISE_NAMESPACE, "set")).rejects.toThrow("Forbidden");
  });

  it("a ledger keeps its steering and the annotations and finalizers of others", async () => {
    const { cluster: bare, server } = bareCluster(steppedClock());
    const place = { namespace: KRUISE_NAMESPACE, owner: { metadata: { name: "set", uid: "u" } } };
    const first = await swapLedger(bare, place, { ledger: EMPTY_LEDGER }, generation(1));
    expect(server.peek(CONFIG_MAPS, key)?.metadata?.annotations ?? {}).toEqual({});
    expect(first?.ledger).not.toHaveProperty("steering");
    const { metadata, ...map } = server.peek(CONFIG_MAPS, key) ?? {};
    server.put("test", CONFIG_MAPS, {
      ...map,
      metadata: { ...metadata, annotations: { team: "shop" }, finalizers: ["example.com/kept"] },
    });
    const read = await readLedger(bare, KRUISE_NAMESPACE, "set");
    const second = await swapLedger(bare, place, read, { ...generation(2), steering: "halt" });
    expect(second?.ledger).toEqual({ ...generation(2), steering: "halt" });
    expect(server.peek(CONFIG_MAPS, key)?.metadata).toMatchObject({
      annotations: { team: "shop" },
      finalizers: ["example.com/kept"],
    });
    expect(await readLedger(bare, KRUISE_NAMESPACE, "set")).toEqual(second);
  });
});

it.each(["sidecarset", "statefulset"] as const)(
  "the ledger of a %s has it as owner for the garbage collector",
  async (kind) => {
    const { cluster, server } = bareCluster(steppedClock());
    const owner = { metadata: { name: "web", uid: "uid-web" } };
    const place = { namespace: KRUISE_NAMESPACE, owner, kind };
    await swapLedger(cluster, place, { ledger: EMPTY_LEDGER }, generation(1));
    const [ledger] = server.all(CONFIG_MAPS);
    expect(ledger?.metadata?.ownerReferences).toEqual([
      {
        apiVersion: "apps.kruise.io/v1beta1",
        kind: kind === "sidecarset" ? "SidecarSet" : "StatefulSet",
        name: "web",
        uid: "uid-web",
      },
    ]);
  },
);
