/** What a dry run says of an Advanced StatefulSet, by its ledger too. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { readLedger, swapLedger } from "../../../shared/controller/rollout/ledger-store.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import type { Ledger } from "../../../shared/core/ledger.ts";
import { type Cluster, PODS } from "../../../shared/kube/port.ts";
import { newPod } from "../../support/objects.ts";
import { createSet, keyOf, NAMESPACE, readSet, type SetCluster, settle, startSetCluster } from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

const dryRun = (name: string) => settle(cluster, name, { dryRun: true });

/** Writes the set's ledger as another pass would have left it. */
async function reserve(name: string, ledger: Partial<Ledger>): Promise<void> {
  const owner = await readSet(cluster, name);
  const { uid = "", generation = 0 } = owner.metadata ?? {};
  const place = { namespace: NAMESPACE, owner, kind: "statefulset" } as const;
  const stored = await readLedger(cluster, NAMESPACE, name, "statefulset");
  await swapLedger(cluster, place, stored, { uid, generation, reservations: [], ...ledger });
}

it("a set that is not there is gone", async () => {
  expect(await dryRun("absent")).toEqual({
    ...keyOf("absent"),
    stop: "gone",
    why: "there is no such StatefulSet of apps.kruise.io",
    tally: newSetTally(),
  });
});

it("a set whose ledger is of a newer generation is planned as if nothing was reserved", async () => {
  await createSet(cluster, "newer", { replicas: 0 });
  await settle(cluster, "newer", { follow: false });
  await reserve("newer", { generation: 9 });
  const { planned, status } = await dryRun("newer");
  expect(planned).toEqual([]);
  expect(status).toEqual((await readSet(cluster, "newer")).status);
});

it("what is reserved and not wanted any more would be fenced", async () => {
  await createSet(cluster, "fenced", { replicas: 0 });
  await settle(cluster, "fenced", { follow: false });
  // Nobody schedules it, so that nobody else writes to it.
  const spec = { schedulerName: "nobody", containers: [{ name: "main", image: "app:1" }] };
  const { metadata } = await cluster.create<Pod>(PODS, newPod(keyOf("fenced-0"), spec));
  const { uid = "", resourceVersion = "" } = metadata ?? {};
  await reserve("fenced", {
    reservations: [{ ...keyOf("fenced-0"), uid, resourceVersion, generation: 1, revision: "" }],
  });
  expect((await dryRun("fenced")).planned).toEqual(["fence shop/fenced-0: it was reserved and is not wanted any more"]);
});
