/** Tests which calls a read-only port of a cluster lets through. */
import { expect, it } from "vitest";
import { NAMESPACES, readOnlyCluster } from "../../shared/kube/port.ts";
import { bareCluster } from "../controller/bare-cluster.ts";
import { steppedClock } from "../controller/stepped-clock.ts";

const SHOP = { name: "shop" };
const MERGE = { type: "merge", body: { metadata: { labels: { a: "b" } } } } as const;

it("a read-only port reads, and sends no create, patch or delete to the API server", async () => {
  const { cluster, calls } = bareCluster(steppedClock());
  const port = readOnlyCluster(cluster);
  expect((await port.get(NAMESPACES, SHOP)).metadata?.name).toBe("shop");
  expect((await port.list(NAMESPACES)).items).toHaveLength(2);
  const refused = { reason: "ReadOnly", isOutcomeKnown: true };
  await expect(port.create(NAMESPACES, { metadata: { name: "new" } })).rejects.toMatchObject(refused);
  await expect(port.patch(NAMESPACES, SHOP, MERGE)).rejects.toMatchObject(refused);
  await expect(port.delete(NAMESPACES, SHOP)).rejects.toMatchObject(refused);
  expect(calls.map(([, call]) => call)).toEqual(["GET namespaces", "LIST namespaces"]);
});

it("a read-only port sends a dry run, which the API server does not store", async () => {
  const { cluster, calls } = bareCluster(steppedClock());
  await readOnlyCluster(cluster).create(NAMESPACES, { metadata: { name: "new" } }, { dryRun: true });
  expect(calls.map(([, call]) => call)).toEqual(["CREATE namespaces"]);
});
