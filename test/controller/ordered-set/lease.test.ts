/** Passes over Advanced StatefulSets: one is at work at a time, as a Lease says, and what they are not allowed to do is told. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, LEASES, PODS, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { createSet, keyOf, pass, type SetCluster, startSetCluster } from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
  await createSet(cluster, "db", { replicas: 0 });
});
afterAll(() => stage?.local.close());
afterEach(async () => {
  const { items } = await cluster.list(LEASES);
  for (const { metadata } of items)
    await cluster.delete(LEASES, { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" });
});

/** One round, without what differs from one time to the next. */
async function look(through: Cluster, options: Parameters<typeof pass>[1] = {}) {
  const { startedAt: _, durationMs: __, calls: ___, ...report } = await pass(through, { follow: false, ...options });
  return report;
}

const NOTHING = { isDryRun: false, problems: [], notReached: [], sets: [] };
const DONE = { ...keyOf("db"), stop: "oneRound", why: "0 of 0 pods, 0 ready, 0 updated" };

const refusing = (verb: "get" | "list" | "patch" | "create", refused: Resource, code = 403): Cluster => ({
  ...cluster,
  [verb]: (resource: Resource, ...call: readonly never[]) =>
    resource === refused
      ? Promise.reject(new KubeError("no", { code, reason: "Refused" }))
      : (cluster[verb] as (...all: readonly unknown[]) => unknown)(resource, ...call),
});

it("leaves everything to another pass that is at work", async () => {
  const spec = { holderIdentity: "pass-other", leaseDurationSeconds: 30, renewTime: new Date().toISOString() };
  const metadata = { namespace: "kruise-system", name: "sidecarset-ordered-sets" };
  await cluster.create<KubernetesObject>(LEASES, { metadata, ...({ spec } as object) });
  expect(await look(cluster)).toEqual({ ...NOTHING, heldBy: "pass-other" });
});

it("leaves everything to another pass that took the Lease a moment before", async () => {
  expect(await look(refusing("create", LEASES, 409))).toEqual({ ...NOTHING, heldBy: "another pass" });
});

it("works without a Lease where it may not read any, and says so", async () => {
  const { sets, problems } = await look(refusing("get", LEASES));
  expect(problems).toEqual(["no Lease is used: no"]);
  expect(sets).toMatchObject([DONE]);
});

it("says why it could not list the sets, and does nothing", async () => {
  expect(await look(refusing("list", STATEFUL_SETS))).toEqual({ ...NOTHING, problems: ["no"] });
});

it("says which role permits what is forbidden", async () => {
  const { sets } = await look(refusing("list", PODS), { set: keyOf("db") });
  expect(sets).toMatchObject([
    {
      ...keyOf("db"),
      stop: "failed",
      why: "no; infra/rbac/optional/ordered-sets.yaml grants what is missing",
    },
  ]);
});
