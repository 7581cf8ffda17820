/** Tests passes over Advanced StatefulSets: a Lease allows one at a time, and a pass reports missing rights. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { SetPassOptions } from "../../../shared/controller/statefulset/pass.ts";
import { DOINGS, type Doing, type Ending } from "../../../shared/doings.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, LEASES, PODS, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { type BareCluster, bareCluster } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, keyOf, pass } from "./fixture.ts";

let bare: BareCluster;
let cluster: Cluster;
beforeEach(async () => {
  bare = bareCluster(steppedClock());
  cluster = bare.cluster;
  await createSet(cluster, "db", { replicas: 0 });
});

const LEASE = { namespace: "kruise-system", name: "sidecarset-ordered-sets" };

/** Runs a round, and returns its result without parts that differ each time. */
async function look(through: Cluster, options: Partial<SetPassOptions> = {}) {
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

/** Gives the Lease to another pass. */
async function takeLease(): Promise<void> {
  const spec = { holderIdentity: "pass-other", leaseDurationSeconds: 30, renewTime: new Date().toISOString() };
  await bare.cluster.create<KubernetesObject>(LEASES, { metadata: LEASE, ...({ spec } as object) });
}

it("a pass leaves all sets to another pass that holds the Lease", async () => {
  await takeLease();
  expect(await look(cluster)).toEqual({ ...NOTHING, heldBy: "pass-other" });
});

it("a pass leaves all sets to another pass that created the Lease first", async () => {
  const create: Cluster["create"] = async (resource, object, options) => {
    if (resource === LEASES) await takeLease();
    return await cluster.create(resource, object, options);
  };
  expect(await look({ ...cluster, create })).toEqual({ ...NOTHING, heldBy: "another pass" });
});

it("a pass works without a Lease and names it when a policy answers 409 to each write of it", async () => {
  const { sets, problems } = await look(refusing("create", LEASES, 409));
  expect(problems).toEqual([
    "no Lease is used: the Lease kruise-system/sidecarset-ordered-sets is not written, and nobody else wrote it: no",
  ]);
  expect(sets).toMatchObject([DONE]);
});

it("a pass works without a Lease and reports it when reading the Lease is forbidden", async () => {
  const { sets, problems } = await look(refusing("get", LEASES));
  expect(problems).toEqual(["no Lease is used: no"]);
  expect(sets).toMatchObject([DONE]);
});

it("a pass reports why it cannot list the sets and does nothing", async () => {
  expect(await look(refusing("list", STATEFUL_SETS))).toEqual({ ...NOTHING, problems: ["no"] });
});

it("a pass names the role that grants a forbidden request", async () => {
  const { sets } = await look(refusing("list", PODS), { set: keyOf("db") });
  expect(sets).toMatchObject([
    {
      ...keyOf("db"),
      stop: "failed",
      why: "no; infra/rbac/optional/ordered-sets.yaml grants what is missing",
    },
  ]);
});

it("a pass makes one call when there is no set", async () => {
  await cluster.delete(STATEFUL_SETS, keyOf("db"));
  const before = bare.calls.length;
  expect(await look(cluster)).toEqual(NOTHING);
  expect(bare.calls.slice(before).map(([, call]) => call)).toEqual(["LIST statefulsets"]);
});

it("a pass begins after the set that the last pass began last, and stores its progress in the Lease", async () => {
  await createSet(cluster, "web", { replicas: 0 });
  const word = (cursor: string) => ({ "sidecarset.kruise.io/last-served": cursor });
  await cluster.create(LEASES, { metadata: { ...LEASE, annotations: word("shop/db") } });
  const words: unknown[] = [];
  const patch: Cluster["patch"] = (resource, key, ...call) => {
    if (resource === LEASES) words.push((call[0] as { readonly body?: KubernetesObject }).body?.metadata?.annotations);
    return cluster.patch(resource, key, ...call);
  };
  const { sets } = await look({ ...cluster, patch });
  expect(sets.map(({ name }) => name)).toEqual(["web", "db"]);
  expect(words).toEqual([word("shop/web"), word("shop/db")]);
});

it("a dry run plans the later steps only of a set that is requested by name", async () => {
  const planOf = async (options: Partial<SetPassOptions>) =>
    (await look(cluster, { dryRun: true, ...options })).sets.map(({ plan }) => plan);
  expect(await planOf({})).toEqual([undefined]);
  expect(await planOf({ set: keyOf("db") })).toEqual([expect.any(Object)]);
});

const endings: Ending[] = [];
const listen = (message: unknown) => {
  const doing = message as Doing;
  if (doing.name === "ordered-set pass") doing.end = (ending) => endings.push(ending);
};
afterEach(() => DOINGS.unsubscribe(listen));

it("the published step of a pass ends with its problems and the failed sets", async () => {
  DOINGS.subscribe(listen);
  const refused = refusing("list", PODS);
  await look({ ...refused, get: refusing("get", LEASES).get });
  await look(cluster);
  const failed = "shop/db: no; infra/rbac/optional/ordered-sets.yaml grants what is missing";
  expect(endings).toMatchObject([{ problems: ["no Lease is used: no", failed] }, { problems: [] }]);
});
