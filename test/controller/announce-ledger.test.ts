/** When a SidecarSet's status says where its ledger is: before anything is reserved. */
import { expect, it } from "vitest";
import type { SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { decideOn, observe } from "../../shared/controller/rollout/observe.ts";
import { announceLedger } from "../../shared/controller/rollout/write-status.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";

/** Where it is said by now, and how often the status was written for that. */
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

it("the first status says it, and not which generation is observed", async () => {
  expect(await announced(undefined)).toEqual({ isThere: true, ledgerNamespace: KRUISE_NAMESPACE, writes: 1 });
});

it("it is said again where it was to be forgotten", async () => {
  const after = await announced({ ...COUNTS, ledgerNamespace: "" });
  expect(after).toEqual({ isThere: true, ledgerNamespace: KRUISE_NAMESPACE, observedGeneration: 1, writes: 1 });
});

it.each<[string, SidecarSetStatus]>([
  ["it is said already", { ...COUNTS, ledgerNamespace: KRUISE_NAMESPACE }],
  ["the definition has nowhere to say it", COUNTS],
])("nothing is written where %s", async (_, status) => {
  expect(await announced(status)).toMatchObject({ isThere: true, writes: 0 });
});
