/**
 * Tests the webhook's list of more SidecarSets than fit on one page. Announcements keep it current on a real API
 * server.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import { clusterView } from "../../shared/webhook/view/cluster-view.ts";
import { controlPlane } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { removeStored, storeObjects } from "./support/stored-objects.ts";
import { until } from "./support/until.ts";

const SETS = 600;
const sets = Array.from({ length: SETS }, (_, index): SidecarSet => sidecarSet(`long-${index}`));

let functions: Functions;
let cluster: Cluster;
beforeAll(async () => {
  const admin = controlPlane();
  cluster = clusterOf(admin);
  functions = await startFunctions(admin, { hasTicks: false });
  await storeObjects(admin.etcdUrl, sets);
  await until("the API server sees them all", async () => {
    const { items, metadata } = await cluster.list(SIDECARSETS, { limit: 1 });
    return items.length + (metadata.remainingItemCount ?? 0) >= SETS;
  });
});
afterAll(async () => {
  await removeStored(controlPlane().etcdUrl, sets);
  await functions?.close();
});

function sidecarSet(name: string): SidecarSet {
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name, generation: 1 },
    spec: { selector: { matchLabels: { app: name } }, containers: [{ name: "agent", image: "agent:1" }] },
  };
}

it("after one list, created, changed and deleted SidecarSets are read one by one, and nothing is listed again", async () => {
  const calls = { list: 0, ofSets: 0 };
  const counted: Cluster = {
    ...cluster,
    list: (...args) => {
      calls.list++;
      return cluster.list(...args);
    },
    get: (...args) => {
      if (args[0] === SIDECARSETS) calls.ofSets++;
      return cluster.get(...args);
    },
  };
  // On this clock the registration is already old.
  const now = () => Date.now() + 600_000;
  const options = { kruiseNamespace: "kruise-system", freshnessMs: 0, isAnnounced: true, now };
  const view = clusterView({ ...options, connect: async () => counted });
  const read = async () => {
    const { sidecarSets } = (await view.listSidecarSets()).value;
    return new Map(sidecarSets.map((one) => [one.metadata?.name, one.spec.containers?.[0]?.image]));
  };
  const pages = Math.ceil(SETS / 500);
  expect([(await read()).size, calls.list]).toEqual([SETS, pages]);

  await cluster.create(SIDECARSETS, sidecarSet("late"));
  expect((await read()).get("late")).toBe("agent:1");
  const operations = [{ op: "replace", path: "/spec/containers/0/image", value: "agent:2" }] as const;
  await cluster.patch(SIDECARSETS, { name: "late" }, { type: "json", operations });
  expect((await read()).get("late")).toBe("agent:2");
  await cluster.delete(SIDECARSETS, { name: "late" });
  expect((await read()).has("late")).toBe(false);
  for (let quiet = 0; quiet < 5; quiet++) expect((await read()).size).toBe(SETS);
  expect(calls.list).toBe(pages);
  expect(calls.ofSets).toBeLessThan(10);
  addFigure("single reads of a view of 600 SidecarSets that saw three writes", calls.ofSets);
});
