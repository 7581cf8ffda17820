/**
 * Tests when a pass refuses to decide: the ledger is in another namespace, or the pods were listed before the ledger
 * was written.
 */
import { describe, expect, it } from "vitest";
import type { SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { observe, readSame } from "../../shared/controller/rollout/observe.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";

function stage() {
  const on = bareRollout("set");
  on.deploy(1);
  const keepIn = (ledgerNamespace: string) => {
    const status: SidecarSetStatus = { matchedPods: 1, updatedPods: 1, readyPods: 1, ledgerNamespace };
    const set = on.readSet();
    on.server.put("test", SIDECARSETS, { ...set, status } as typeof set);
  };
  const look = (cluster: Cluster = on.cluster) => observe({ ...on.context, cluster }, "set");
  return { ...on, keepIn, look };
}

describe("the ledger's namespace:", () => {
  it("observe refuses a SidecarSet whose ledger is in another namespace and says how to move ledgers", async () => {
    const { keepIn, look, calls } = stage();
    keepIn("elsewhere");
    await expect(look()).rejects.toThrow(
      'its ledger is kept in namespace elsewhere, and this pass keeps ledgers in kruise-system: both together would not keep maxUnavailable. Start passes with POD_NAMESPACE=elsewhere; to move ledgers, stop all passes, then run kubectl patch sidecarset set --subresource=status --type=merge -p \'{"status":{"ledgerNamespace":""}}\'',
    );
    expect(calls.map(([, call]) => call)).not.toContain("LIST pods");
  });

  it.each(["", KRUISE_NAMESPACE])(
    "observe accepts a SidecarSet whose status names the ledger namespace %j",
    async (namespace) => {
      const { keepIn, look } = stage();
      keepIn(namespace);
      expect((await look())?.sidecarSet.metadata?.name).toBe("set");
    },
  );

  it("readSame returns undefined when the status now names another ledger namespace", async () => {
    const { keepIn, look, context } = stage();
    const snapshot = await look();
    if (!snapshot) throw new Error("there is no SidecarSet");
    expect(await readSame(context, snapshot)).toBeDefined();
    keepIn("elsewhere");
    expect(await readSame(context, snapshot)).toBeUndefined();
  });
});

it("observe refuses a pod list that is older than the ledger", async () => {
  const { cluster, readSet, look } = stage();
  const place = { namespace: KRUISE_NAMESPACE, owner: readSet() };
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "set");
  await swapLedger(cluster, place, stored, { uid: "uid-set", generation: 1, reservations: [] });
  const list: Cluster["list"] = async (resource, options) => {
    const listed = await cluster.list(resource, options);
    const older = { ...listed, metadata: { ...listed.metadata, resourceVersion: "1" } };
    return (resource === PODS ? older : listed) as never;
  };
  await expect(look({ ...cluster, list })).rejects.toMatchObject({ reason: "StaleList" });
  expect(await look()).toBeDefined();
});
