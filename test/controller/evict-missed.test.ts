/** Tests evictions of pods that missed their sidecars: how the answer to one eviction affects the others. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ConfigMap, OwnerReference, Pod } from "../../shared/api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { evictMissed } from "../../shared/controller/rollout/evict-missed.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { type Context, observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { EMPTY_LEDGER } from "../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import {
  allReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
let owner: OwnerReference;
let other: OwnerReference;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  [owner, other] = [await createOwner("owner"), await createOwner("other")];
});
afterAll(() => test?.close());

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

async function createOwner(name: string): Promise<OwnerReference> {
  const { metadata } = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: keyOf(name) });
  return { apiVersion: "v1", kind: "ConfigMap", name, uid: metadata?.uid ?? "", controller: true };
}

/**
 * Prepares a round with two ready pods that missed their sidecars; one of them may be down. They share an owner unless
 * `owners` differ.
 */
async function look(name: string, owners: readonly OwnerReference[] = [owner, owner]): Promise<Snapshot> {
  const { metadata, ...set } = sidecarSet(name, 1, { maxUnavailable: 1 });
  const annotations = { ...metadata?.annotations, [EVICT_MISSED_ANNOTATION]: "true" };
  const made = await cluster.create<SidecarSet>(SIDECARSETS, { ...set, metadata: { ...metadata, annotations } });
  const { uid = "", generation = 0 } = made.metadata ?? {};
  const ledger = { uid, generation, reservations: [] };
  await swapLedger(cluster, { namespace: KRUISE_NAMESPACE, owner: made }, { ledger: EMPTY_LEDGER }, ledger);
  for (const [index, one] of ["a", "b"].entries()) {
    const meta = { ...keyOf(`${name}-${one}`), labels: { app: name }, ownerReferences: owners.slice(index, index + 1) };
    await cluster.create<Pod>(PODS, newPod(meta));
  }
  await allReady(cluster, name);
  const snapshot = await observe(contextOf(cluster), name);
  if (!snapshot) throw new Error(`there is no SidecarSet ${name}`);
  return { ...snapshot, missed: await readPods(cluster, name) };
}

function contextOf(through: Cluster): Context {
  return {
    cluster: through,
    clock: systemClock,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    tally: newTally(),
    recorded: new Set(),
    endsAtMs: Number.POSITIVE_INFINITY,
  };
}

/** Runs a pass in which every eviction gets this answer. "late": success, and the eviction happens after the pass. */
async function evict(name: string, error: KubeError | "late" | undefined, snapshot?: Snapshot) {
  const tried: string[] = [];
  const answering: Cluster = {
    ...cluster,
    create: (resource, object, options) => {
      if (options?.subresource !== "eviction") return cluster.create(resource, object, options);
      tried.push(object.metadata?.name ?? "");
      if (error === "late") return Promise.resolve(object);
      return error ? Promise.reject(error) : cluster.create(resource, object, options);
    },
  };
  const context = contextOf(answering);
  const { evicted, isOutdated } = await evictMissed(context, snapshot ?? (await look(name)), []);
  const { ledger } = await readLedger(cluster, KRUISE_NAMESPACE, name);
  return {
    evicted,
    isOutdated,
    tried,
    problems: context.tally.problems.map(({ message }) => message),
    reserved: ledger.reservations.map((one) => one.name),
  };
}

const answer = (code: number, more: Partial<ConstructorParameters<typeof KubeError>[1]> = {}) =>
  new KubeError("no", { code, reason: "Refused", ...more });

const denied = (code: number) =>
  new KubeError('admission webhook "w.shop" denied the request: no', { code, reason: "Denied" });

/** kube-apiserver's answer before the disruption controller has processed the budget's newest generation. */
const UNPROCESSED = {
  retryAfterSeconds: 10,
  causes: [
    { reason: "DisruptionBudget", message: "The disruption budget web is still being processed by the server." },
  ],
};

/** kube-apiserver's answer for a pod that two budgets select. */
const TWO_BUDGETS = new KubeError(
  "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
  { code: 500, reason: "InternalError" },
);

it("only one of two pods that missed their sidecars is evicted when maxUnavailable is 1", async () => {
  const result = await evict("evicted", undefined);
  expect(result).toEqual({
    evicted: 1,
    isOutdated: false,
    tried: ["evicted-a"],
    problems: [],
    reserved: [],
  });
});

it.each<[string, KubeError, readonly string[]]>([
  ["kept", answer(429), ["is not evicted: no"]],
  ["told-to-wait", answer(429, { retryAfterSeconds: 3 }), ["is not evicted: no"]],
  ["answered-409", answer(409), ["is not evicted: no"]],
  ["forbidden", answer(403), ["is not evicted: no (infra/rbac/optional/eviction.yaml permits it)"]],
  ["refused", answer(422), ["is not evicted: no"]],
])(
  "if a pod's eviction fails, no other pod of its owner is evicted and nothing stays reserved: SidecarSet %s",
  async (name, error, problems) => {
    expect(await evict(name, error)).toEqual({
      evicted: 0,
      isOutdated: false,
      tried: [`${name}-a`],
      problems,
      reserved: [],
    });
  },
);

it.each<[string, KubeError, string]>([
  ["a disruption budget", answer(429), "budget"],
  ["a budget that its controller has not processed", answer(429, UNPROCESSED), "unprocessed"],
  ["an API server without time", answer(429, { retryAfterSeconds: 10 }), "busy"],
  ["missing rights", answer(403), "forbidden-too"],
  ["a policy", answer(422), "policy"],
  ["a webhook that answers 400", answer(400), "webhook"],
  ["a webhook that answers 500", answer(500), "webhook-500"],
  ["a webhook that denies with 401", denied(401), "webhook-401"],
  ["a webhook that denies with 404", denied(404), "webhook-404"],
  ["a webhook that denies with 503", denied(503), "webhook-503"],
  ["a webhook that does not answer in time", answer(0, { isOutcomeKnown: false }), "webhook-slow"],
  ["a second budget for the same pod", TWO_BUDGETS, "two-budgets"],
])("when %s blocks an eviction, a pod of another controller is evicted instead", async (_what, error, name) => {
  const snapshot = await look(name, [owner, other]);
  const { tried, reserved, problems } = await evict(name, error, snapshot);
  expect([tried, reserved]).toEqual([[`${name}-a`, `${name}-b`], []]);
  expect(problems).toHaveLength(2);
  expect(problems[0]).toContain(`is not evicted: ${error.message}`);
});

it("a pod whose eviction succeeded stays reserved while it exists unchanged, and no other pod is evicted in its place", async () => {
  expect(await evict("late", "late")).toEqual({
    evicted: 1,
    isOutdated: false,
    tried: ["late-a"],
    problems: [],
    reserved: ["late-a"],
  });
});

it("a pod whose eviction got no answer and whose fence fails stays reserved, and no other pod is evicted in its place", async () => {
  const snapshot = await look("unfenced");
  const patch = cluster.patch;
  cluster = {
    ...cluster,
    patch: (resource, ...rest) => (resource === PODS ? Promise.reject(answer(403)) : patch(resource, ...rest)),
  };
  const { tried, reserved } = await evict("unfenced", answer(0, { isOutcomeKnown: false }), snapshot).finally(() => {
    cluster = { ...cluster, patch };
  });
  expect([tried, reserved]).toEqual([["unfenced-a"], ["unfenced-a"]]);
});

it("no pod is evicted after another pass has written the ledger", async () => {
  const snapshot = await look("overtaken");
  await evict("overtaken", answer(429), { ...snapshot });
  expect(await evict("overtaken", undefined, snapshot)).toEqual({
    evicted: 0,
    isOutdated: true,
    tried: [],
    problems: [],
    reserved: [],
  });
});

it("no pod is evicted when the pods that missed their sidecars are unknown", async () => {
  const { missed: _, ...snapshot } = await look("unknown");
  expect(await evict("unknown", undefined, snapshot)).toMatchObject({ evicted: 0, tried: [], problems: [] });
});
