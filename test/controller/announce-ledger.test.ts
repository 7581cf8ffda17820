/** Tests that a SidecarSet's status names the namespace of its ledger before any pod is reserved. */
import { expect, it } from "vitest";
import type { SidecarSet, SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { decideOn, observe } from "../../shared/controller/rollout/observe.ts";
import { announceLedger, writeStatus } from "../../shared/controller/rollout/write-status.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";

/** Returns the ledger namespace that the status names afterwards, and how often the status was written for it. */
async function announced(status: SidecarSetStatus | undefined) {
  const on = bareRollout("set");
  on.deploy(1);
  on.release(2);
  const { status: _, ...set } = on.readSet();
  on.server.put("test", SIDECARSETS, { ...set, ...(status ? { status } : {}) });
  const snapshot = await observe(on.context, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const isThere = await announceLedger(on.context, snapshot, decideOn(on.context, snapshot, []));
  const { ledgerNamespace, observedGeneration } = on.readSet().status ?? {};
  const writes = on.calls.filter(([, call]) => call === "PATCH sidecarsets/status").length;
  return { isThere, ledgerNamespace, observedGeneration, writes };
}

const COUNTS = { matchedPods: 1, updatedPods: 0, readyPods: 1, observedGeneration: 1, conditions: [] };

it("the first status names the ledger's namespace and no observedGeneration", async () => {
  expect(await announced(undefined)).toEqual({ isThere: true, ledgerNamespace: KRUISE_NAMESPACE, writes: 1 });
});

it("the status names the ledger's namespace again when somebody emptied the field", async () => {
  const after = await announced({ ...COUNTS, ledgerNamespace: "" });
  expect(after).toEqual({ isThere: true, ledgerNamespace: KRUISE_NAMESPACE, observedGeneration: 1, writes: 1 });
});

it.each<[string, SidecarSetStatus]>([
  ["the status names the ledger's namespace already", { ...COUNTS, ledgerNamespace: KRUISE_NAMESPACE }],
  ["the SidecarSet definition has no field for the ledger's namespace", COUNTS],
])("announceLedger writes nothing when %s", async (_, status) => {
  expect(await announced(status)).toMatchObject({ isThere: true, writes: 0 });
});

it("announceLedger writes the ledger's namespace at once, even right after another status write", async () => {
  const on = bareRollout("set");
  on.deploy(1);
  on.release(2);
  const snapshot = await observe(on.context, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const decision = decideOn(on.context, snapshot, []);
  await writeStatus(on.context, snapshot, decision, { isObservable: true, mayWait: false });
  const set = on.readSet();
  on.server.put("test", SIDECARSETS, { ...set, status: { ...set.status, ledgerNamespace: "" } } as SidecarSet);
  const later = await observe(on.context, "set");
  if (!later) throw new Error("there is no SidecarSet");
  expect(await announceLedger(on.context, later, decision)).toBe(true);
  expect(on.readSet().status?.ledgerNamespace).toBe(KRUISE_NAMESPACE);
});
