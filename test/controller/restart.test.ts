/**
 * Tests passes that restart workloads instead of evicting pods, on the embedded cluster with its own workload
 * controllers.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import {
  RESTARTED_AT_ANNOTATION as AT,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  REPLACE_ANNOTATION,
  RESTARTED_FOR_ANNOTATION,
} from "../../shared/api/names.ts";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { newPassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { readLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { beginRollout, type Progress, settleRollout } from "../../shared/controller/rollout/rollout.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import {
  BUILT_IN_STATEFUL_SETS,
  type Cluster,
  DEPLOYMENTS,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import {
  eventually,
  fastClock,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const WORKLOADS = new Set(["deployments", "statefulsets"]);

const options = (name: string, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 300_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet: name,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock: fastClock(20),
  memory: newPassMemory(),
  ...more,
});
const pass = async (name: string, more: Partial<PassOptions> = {}, to = cluster) => {
  const { sidecarSets } = await runPass(to, options(name, more));
  return sidecarSets[0];
};

interface Workload extends KubernetesObject {
  readonly spec: { readonly template: KubernetesObject; readonly [field: string]: unknown };
}

/** Creates pods at version 2 whose record names a version that no update in place can change. */
async function begin(set: string, workloads: readonly string[], more: object = {}, resource: Resource = DEPLOYMENTS) {
  const { metadata = {}, spec } = injectedPod(set, "", 2);
  const { name: _, namespace: _own, ...template } = metadata;
  for (const name of workloads) {
    const labels = { ...template.labels, own: name };
    const selector = { matchLabels: { own: name } };
    const body = { replicas: 2, selector, template: { metadata: { ...template, labels }, spec }, ...more };
    await cluster.create<Workload>(resource, { metadata: { name, namespace: NAMESPACE }, spec: body });
  }
  const count = 2 * workloads.length;
  await eventually(async () => expect((await readPods(cluster, set)).filter(isReady).length).toBe(count));
  for (const pod of await readPods(cluster, set)) await outdate(set, pod);
}

async function outdate(set: string, { metadata }: Pod) {
  const record = JSON.stringify({ [set]: { hash: "old", sidecarSetName: set, sidecarList: ["proxy"] } });
  const annotations = { [HASH_ANNOTATION]: record, [HASH_WITHOUT_IMAGE_ANNOTATION]: record };
  const key = { namespace: NAMESPACE, name: metadata?.name ?? "" };
  await cluster.patch(PODS, key, { type: "merge", body: { metadata: { annotations } } });
}

async function ask(name: string, replace = "NotUpgradable,Restart", strategy: UpdateStrategy = {}) {
  const set = sidecarSet(name, 2, strategy);
  const annotations = { ...set.metadata?.annotations, [REPLACE_ANNOTATION]: replace };
  await cluster.create(SIDECARSETS, { ...set, metadata: { ...set.metadata, name, annotations } });
}

const workload = (name: string, resource = DEPLOYMENTS) =>
  cluster.get<Workload>(resource, { namespace: NAMESPACE, name });
const restartedAt = async (name: string, resource = DEPLOYMENTS) =>
  (await workload(name, resource)).spec.template.metadata?.annotations?.[AT];
/** Returns the names of restarted workloads, in the order of the restarts. */
function restartedOf(prefix: string): readonly string[] {
  const atOf = (object: unknown) => (object as Workload | undefined)?.spec?.template?.metadata?.annotations?.[AT];
  const isRestart = ({ object, previous }: { readonly object: unknown; readonly previous: unknown }) =>
    atOf(object) !== undefined && atOf(object) !== atOf(previous);
  const writes = test.history().filter(({ resource, name }) => WORKLOADS.has(resource) && name.startsWith(prefix));
  return writes.filter(isRestart).map(({ name }) => name);
}
const evictions = () => test.history().filter(({ subresource }) => (subresource as string | undefined) === "eviction");

it("workloads are restarted one after the other, each once, without an eviction", async () => {
  await begin("one", ["one-a", "one-b"]);
  await ask("one");
  const report = await pass("one");
  expect(report).toMatchObject({ stop: "settled", tally: { restarted: 2, upgraded: 0 } });
  // The last old pod may still be about to end.
  await eventually(async () => expect((await readPods(cluster, "one")).filter(isReady).length).toBe(4));
  expect((await readSet(cluster, "one")).status).toMatchObject({ matchedPods: 4, updatedPods: 4, updatedReadyPods: 4 });
  for (const name of ["one-a", "one-b"])
    expect((await workload(name)).metadata?.annotations?.[RESTARTED_FOR_ANNOTATION]).toBe("one=hash2");
  expect(restartedOf("one").toSorted()).toEqual(["one-a", "one-b"]);
  expect(evictions()).toHaveLength(0);
  const { ledger } = await readLedger(cluster, KRUISE_NAMESPACE, "one");
  expect([ledger.reservations, ledger.restarted]).toEqual([[], undefined]);
});

it("Restart=2 restarts two workloads at once only if maxUnavailable allows it", async () => {
  await begin("two", ["two-a", "two-b", "two-c"], { strategy: { rollingUpdate: { maxUnavailable: 1 } } });
  await ask("two", "NotUpgradable,Restart=2", { maxUnavailable: 1 });
  await pass("two", { follow: false });
  expect(restartedOf("two")).toHaveLength(1);
  await cluster.delete(SIDECARSETS, { name: "two" });
  await ask("two", "NotUpgradable,Restart=2", { maxUnavailable: 2 });
  await pass("two");
  expect(restartedOf("two")).toHaveLength(3);
  expect((await readSet(cluster, "two")).status).toMatchObject({ updatedReadyPods: 6 });
});

it("a StatefulSet is restarted, but not one with update strategy OnDelete, and the report says why", async () => {
  await begin("sets", ["sets-a"], { serviceName: "a" }, BUILT_IN_STATEFUL_SETS);
  await begin("sets-b", ["sets-b"], { serviceName: "b", updateStrategy: { type: "OnDelete" } }, BUILT_IN_STATEFUL_SETS);
  await ask("sets");
  await ask("sets-b");
  await pass("sets");
  expect((await readSet(cluster, "sets")).status).toMatchObject({ updatedReadyPods: 2 });
  const report = await pass("sets-b");
  expect(report?.why).toContain(`not restarted: StatefulSet ${NAMESPACE}/sets-b: its update strategy is OnDelete`);
  expect(restartedOf("sets-b")).toHaveLength(0);
});

it.each([
  ["the SidecarSet is paused", { paused: true }],
  ["the partition keeps one of its pods", { partition: 1 }],
  ["the update selector excludes its pods", { selector: { matchLabels: { own: "none" } } }],
  ["maxUnavailable is 0", { maxUnavailable: 0 }],
])("no workload is restarted while %s", async (what, strategy) => {
  const name = `held-${what.length}`;
  await begin(name, [`${name}-a`]);
  await ask(name, "NotUpgradable,Restart", strategy);
  await pass(name);
  expect(await restartedAt(`${name}-a`)).toBe(undefined);
});

it("a workload is restarted exactly once although a pass is killed, whichever call comes next", async () => {
  await begin("alive", ["alive-a"]);
  await ask("alive");
  const alive = faultyCluster(cluster, "killAfter", () => false);
  await pass("alive", {}, alive);
  const first = alive.calls.indexOf("GET replicasets");
  const last = alive.calls.indexOf("PATCH deployments") + 2;
  expect(last - first).toBeGreaterThan(5);
  const places = Array.from({ length: last - first }, (_, place) => first + place);
  await Promise.all(places.map((place) => killAt(place, `kill-${place}`)));
});

async function killAt(place: number, name: string): Promise<void> {
  await begin(name, [`${name}-a`]);
  await ask(name);
  const faulty = faultyCluster(cluster, "killAfter", (index) => index === place);
  await Promise.race([pass(name, {}, faulty), faulty.struck]);
  await pass(name);
  expect(restartedOf(`${name}-a`), `killed after ${faulty.calls.at(-1)}`).toHaveLength(1);
  expect((await readSet(cluster, name)).status).toMatchObject({ updatedReadyPods: 2 });
}

it("a late restart fails after observedGeneration shows a pause", async () => {
  await begin("late", ["late-a"]);
  await ask("late");
  const faulty = faultyCluster(cluster, "killLate", (_, call) => call === "PATCH deployments");
  await Promise.race([pass("late", {}, faulty), faulty.struck]);
  const body = { spec: { updateStrategy: { paused: true } } };
  const { metadata } = await cluster.patch(SIDECARSETS, { name: "late" }, { type: "merge", body });
  await pass("late");
  expect((await readSet(cluster, "late")).status?.observedGeneration).toBe(metadata?.generation);
  await faulty.releaseLate();
  expect(restartedOf("late")).toHaveLength(0);
});

it("pods are not upgraded in place while a workload is restarted, and no workload is restarted during upgrades", async () => {
  await begin("mixed", ["mixed-a"]);
  for (const name of ["mixed-x", "mixed-y"]) await cluster.create(PODS, injectedPod("mixed", name));
  await eventually(async () => expect((await readPods(cluster, "mixed")).filter(isReady).length).toBe(4));
  await ask("mixed");
  await pass("mixed", { follow: false });
  expect(restartedOf("mixed")).toHaveLength(0);
  await pass("mixed");
  expect(restartedOf("mixed")).toHaveLength(1);
  expect((await readSet(cluster, "mixed")).status).toMatchObject({ updatedReadyPods: 4 });
});

it.each([403, 404, 409, 422] as const)(
  "a restart that a policy refuses with %i is reported and retried after a while",
  async (code) => {
    const name = `denied-${code}`;
    await begin(name, [`${name}-a`]);
    await ask(name);
    let writes = 0;
    const denied: Cluster = {
      ...cluster,
      patch: async (resource, key, patch, more) => {
        if (resource !== DEPLOYMENTS) return cluster.patch(resource, key, patch, more);
        writes++;
        throw new KubeError("policy hands-off denied request", { code, reason: "Invalid" });
      },
    };
    const report = await pass(name, { deadlineMs: 60_000 }, denied);
    expect(report?.tally.problems).toEqual([
      {
        namespace: NAMESPACE,
        name: `${name}-a`,
        message: expect.stringMatching(/^is not restarted: policy hands-off denied/),
      },
    ]);
    // The tries come after at least 2, 4, 8, 16 and 30 seconds.
    expect(writes).toBeGreaterThan(0);
    expect(writes).toBeLessThanOrEqual(6);
    const { ledger } = await readLedger(cluster, KRUISE_NAMESPACE, name);
    expect([ledger.reservations, ledger.restarted]).toEqual([[], undefined]);
    await pass(name);
    expect((await readSet(cluster, name)).status).toMatchObject({ updatedReadyPods: 2 });
  },
);

it("the status at the end of a pass also names workloads that may not be read", async () => {
  await begin("unread", ["unread-a"]);
  await ask("unread");
  const denied: Cluster = {
    ...cluster,
    get: async (resource, key) => {
      if (resource !== DEPLOYMENTS) return cluster.get(resource, key);
      throw new KubeError("deployments.apps is forbidden", { code: 403, reason: "Forbidden" });
    },
  };
  const settings = DEFAULT_ROLLOUT_SETTINGS;
  const clock = fastClock(20);
  const recorded = new Set<string>();
  const context = {
    cluster: denied,
    clock,
    settings,
    recorded,
    kruiseNamespace: KRUISE_NAMESPACE,
    tally: newTally(),
    endsAtMs: clock.now() + 60_000,
  };
  const begun = (await beginRollout(context, "unread")) as Progress;
  const owed = { ...begun, result: { ...begun.result, isStatusOwed: true } };
  const {
    rules: { restarts },
  } = (await settleRollout(context, owed)).result.decision.summary;
  expect(restarts).toEqual(begun.result.decision.summary.rules.restarts);
  expect(restarts?.held).toEqual([expect.stringMatching(/may not be read.*deployments.apps is forbidden/)]);
  const blocked = (await readSet(cluster, "unread")).status?.conditions?.find(({ type }) => type === "Blocked");
  expect(blocked).toMatchObject({ status: "True", message: expect.stringMatching(/may not be read/) });
});

it.each([403, 422] as const)(
  "an eviction that a policy refuses with %i is reported and retried after a while",
  async (code) => {
    const name = `kept-${code}`;
    await begin(name, [`${name}-a`]);
    await ask(name, "NotUpgradable");
    let writes = 0;
    const denied: Cluster = {
      ...cluster,
      create: async (resource, object, more) => {
        if (more?.subresource !== "eviction") return cluster.create(resource, object, more);
        writes++;
        throw new KubeError("policy hands-off denied request", { code, reason: "Invalid" });
      },
    };
    const report = await pass(name, { deadlineMs: 60_000 }, denied);
    expect(report?.tally.problems.map(({ message }) => message.replace(/ \(infra.*/, ""))).toContain(
      "is not evicted: policy hands-off denied request",
    );
    expect(writes).toBeGreaterThan(0);
    expect(writes).toBeLessThanOrEqual(6);
    const { ledger } = await readLedger(cluster, KRUISE_NAMESPACE, name);
    expect([ledger.reservations, ledger.departed ?? []]).toEqual([[], []]);
  },
);
