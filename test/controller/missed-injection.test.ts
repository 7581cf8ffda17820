/** Tests pods that were created while the webhook was down, and the conditions that report them. */

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { ConfigMap, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { evictMissed } from "../../shared/controller/rollout/evict-missed.ts";
import { observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { faultyCluster } from "./faults.ts";
import {
  deploy,
  eventually,
  fastClock,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

const MISSED = 1_000;
const DEFINITIONS = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};

const REPLICA_SETS = { group: "apps", version: "v1", plural: "replicasets", namespaced: true };
const EVICT = { metadata: { annotations: { "sidecarset.kruise.io/evict-missed": "true" } } };

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
  await cluster.create(NAMESPACES, { metadata: { name: "managed", labels: { "control-plane": "other" } } });
});
afterAll(() => local?.close());

const pass = async (name: string, through: Cluster = cluster) => {
  const report = await runPass(through, {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 20_000,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
    sidecarSet: name,
  });
  return { report: report.sidecarSets[0], calls: report.calls };
};

function barePod(set: string, name: string, metadata: object = {}): Pod {
  const { metadata: injected, spec } = injectedPod(set, name);
  const { annotations: _, ...rest } = injected ?? {};
  return listedPod({ ...rest, ...metadata }, { containers: spec.containers.slice(0, 1) });
}

/** Waits a second, because the order of events within one second is unknown. */
async function aSecondAfter(name: string): Promise<void> {
  const { metadata } = await readSet(cluster, name);
  await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(metadata?.creationTimestamp ?? "") + 1_000));
}

const readyPods = async (set: string) => (await readPods(cluster, set)).filter(isReady);

const condition = ({ status }: SidecarSet, wanted: string) => status?.conditions?.find(({ type }) => type === wanted);

test(`all ${MISSED} pods without sidecars are found in one pass, and no other pods`, async () => {
  await cluster.create<Pod>(PODS, barePod("down", "before"));
  await eventually(async () => {
    const { metadata } = await cluster.get<Pod>(PODS, { namespace: NAMESPACE, name: "before" });
    expect(Date.now()).toBeGreaterThan(Date.parse(metadata?.creationTimestamp ?? "") + 1_000);
  });
  await deploy(cluster, "down", 0, {});
  await aSecondAfter("down");
  const others: readonly Pod[] = [
    injectedPod("down", "has-them"),
    barePod("down", "spared", { annotations: { "sidecarset.kruise.io/inject": "false" } }),
    barePod("down", "exempt", { namespace: "managed" }),
    barePod("down", "elsewhere", { labels: { app: "none" } }),
  ];
  for (const pod of others) await cluster.create<Pod>(PODS, pod);
  for (let index = 0; index < MISSED; index++) await cluster.create<Pod>(PODS, barePod("down", `missed-${index}`));

  const { report } = await pass("down");
  expect(report?.missed?.count).toBe(MISSED);
  expect(report?.missed?.pods).toHaveLength(10);
  const stored = await readSet(cluster, "down");
  expect(condition(stored, "MissedInjection")).toMatchObject({ status: "True", reason: "MadeWithoutSidecars" });
  expect(condition(stored, "MissedInjection")?.message).toContain(`${MISSED} pods`);
  const { items } = await cluster.list(EVENTS, { namespace: "default" });
  expect(items.filter((event) => (event as { reason?: string }).reason === "MissedInjection")).toHaveLength(1);
});

test("nothing is written while the pods that missed their sidecars stay the same", async () => {
  const { calls } = await pass("down");
  expect(calls["PATCH sidecarsets/status"]).toBeUndefined();
  expect(calls["CREATE events"]).toBeUndefined();
});

test("pods of a canary are recognized without a list of all SidecarSets, unless a pod names many", async () => {
  const canary = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "based" };
  await deploy(cluster, "based", 0, {});
  await cluster.create<SidecarSet>(SIDECARSETS, {
    ...sidecarSet("based-canary", 0, {}),
    metadata: { name: "based-canary", annotations: canary },
  });
  await aSecondAfter("based");
  const injectedBy = (name: string, list: string) =>
    cluster.create<Pod>(PODS, barePod("based", name, { annotations: { "kruise.io/sidecarset-injected-list": list } }));
  await injectedBy("of-the-canary", "based-canary");
  await injectedBy("of-another", "other,not-there");
  await cluster.create<Pod>(PODS, barePod("based", "of-none"));
  const few = await pass("based");
  expect(few.report?.missed?.pods).toEqual([`${NAMESPACE}/of-another`, `${NAMESPACE}/of-none`]);
  expect(few.calls["LIST sidecarsets"]).toBeUndefined();

  await injectedBy("of-many", Array.from({ length: 5_000 }, (_, at) => `none-${at}`).join());
  const many = await pass("based");
  expect(many.report?.missed?.pods).toEqual([
    `${NAMESPACE}/of-another`,
    `${NAMESPACE}/of-many`,
    `${NAMESPACE}/of-none`,
  ]);
  expect(many.calls["LIST sidecarsets"]).toBe(1);
  expect(many.calls["GET sidecarsets"]).toBeLessThan(10);
});

test("the condition MissedInjection becomes False when injection is paused", async () => {
  const body = { spec: { injectionStrategy: { paused: true } } };
  await cluster.patch(SIDECARSETS, { name: "down" }, { type: "merge", body });
  expect((await pass("down")).report?.missed?.count).toBe(0);
  expect(condition(await readSet(cluster, "down"), "MissedInjection")).toMatchObject({
    status: "False",
    reason: "InjectionPaused",
  });
});

test("pods that missed their sidecars are evicted up to maxUnavailable, except pods without a recreating controller", async () => {
  await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("evicted", 1, { maxUnavailable: 2 }));
  await aSecondAfter("evicted");
  const labels = { app: "evicted" };
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: "main", image: "registry.example/main:1" }] },
  };
  const spec = { replicas: 6, selector: { matchLabels: labels }, template };
  await cluster.create(REPLICA_SETS, {
    metadata: { namespace: NAMESPACE, name: "evicted" },
    spec,
  } as KubernetesObject);
  await cluster.create<Pod>(PODS, barePod("evicted", "a-bare-one"));
  const owned = { metadata: { namespace: NAMESPACE, name: "no-controller" } };
  const owner = await cluster.create<ConfigMap>(CONFIG_MAPS, owned);
  const { name = "", uid = "" } = owner.metadata ?? {};
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name, uid }];
  await cluster.create<Pod>(PODS, barePod("evicted", "a-owned-one", { ownerReferences }));
  await eventually(async () => expect(await readyPods("evicted")).toHaveLength(8));
  const before = new Set((await readyPods("evicted")).map(({ metadata }) => metadata?.uid));

  const untouched = await pass("evicted");
  expect([untouched.report?.missed?.count, untouched.calls["CREATE pods/eviction"]]).toEqual([8, undefined]);
  await cluster.patch(SIDECARSETS, { name: "evicted" }, { type: "merge", body: EVICT });
  const { report, calls } = await pass("evicted");
  // The pass skips the bare pod, and the pod whose owner is not a controller. Other pods are evicted instead.
  expect([report?.tally.evicted, calls["CREATE pods/eviction"]]).toEqual([2, 2]);
  await eventually(async () => {
    const pods = await readyPods("evicted");
    expect(pods).toHaveLength(8);
    expect(pods.filter(({ metadata }) => !before.has(metadata?.uid))).toHaveLength(2);
  });
  const paused = { spec: { updateStrategy: { paused: true } } };
  await cluster.patch(SIDECARSETS, { name: "evicted" }, { type: "merge", body: paused });
  expect((await pass("evicted")).calls["CREATE pods/eviction"]).toBeUndefined();
});

describe("evictions during a rollout:", () => {
  const uids = async (set: string) => (await readyPods(set)).map(({ metadata }) => metadata?.uid);

  /** Prepares two pods with sidecars and two without, of which one may be down. */
  async function prepare(name: string): Promise<void> {
    await deploy(cluster, name, 2, { maxUnavailable: 1 });
    await aSecondAfter(name);
    const labels = { app: name, tier: "bare" };
    const containers = [{ name: "main", image: "registry.example/main:1" }];
    const spec = {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    };
    await cluster.create(REPLICA_SETS, { metadata: { namespace: NAMESPACE, name }, spec } as KubernetesObject);
    await eventually(async () => expect(await readyPods(name)).toHaveLength(4));
    expect((await pass(name)).report?.missed?.count).toBe(2);
    await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: EVICT });
  }

  const reservations = async (set: string) => {
    const key = { namespace: KRUISE_NAMESPACE, name: `sidecarset-ledger-${set}` };
    return (await cluster.get<ConfigMap>(CONFIG_MAPS, key)).data?.["reservations"];
  };

  test("no pod is evicted when the round has just upgraded a pod and used the budget", async () => {
    await prepare("beside");
    await release(cluster, "beside", 2, { maxUnavailable: 1 });
    const { report, calls } = await pass("beside");
    expect(report?.tally).toMatchObject({ upgraded: 1 });
    expect([report?.tally.evicted, calls["CREATE pods/eviction"]]).toEqual([undefined, undefined]);
  });

  test("a late eviction fails after observedGeneration shows a pause", async () => {
    await prepare("late-eviction");
    const before = await uids("late-eviction");
    const faulty = faultyCluster(cluster, "killLate", (_, call) => call === "CREATE pods");
    const first = runPass(faulty, {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 20_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
      sidecarSet: "late-eviction",
    });
    await Promise.race([first, faulty.struck]);
    const pause = { spec: { updateStrategy: { paused: true } } };
    await cluster.patch(SIDECARSETS, { name: "late-eviction" }, { type: "merge", body: pause });
    const { report } = await pass("late-eviction");
    const { status, metadata } = await readSet(cluster, "late-eviction");
    expect(status?.observedGeneration).toBe(metadata?.generation);
    expect(report?.tally.fenced).toBe(1);
    const { length } = local.history();
    await faulty.releaseLate();
    const since = local.history().slice(length);
    expect(since.filter(({ object }) => object.metadata.deletionTimestamp !== undefined)).toEqual([]);
    expect(await uids("late-eviction")).toEqual(before);
  });

  test("no pod is evicted under an older spec after the status shows a newer one, even if the ledger was deleted", async () => {
    const name = "forgotten";
    await prepare(name);
    const kept = new KubeError("the disruption budget needs it", { code: 429, reason: "TooManyRequests" });
    const guarded: Cluster = {
      ...cluster,
      create: (resource, object, options) =>
        options?.subresource === "eviction" ? Promise.reject(kept) : cluster.create(resource, object, options),
    };
    await pass(name, guarded);
    const before = await uids(name);
    const ledger = { namespace: KRUISE_NAMESPACE, name: `sidecarset-ledger-${name}` };
    await cluster.delete(CONFIG_MAPS, ledger);
    const frozen = faultyCluster(cluster, "freeze", (_, call) => call === "CREATE configmaps");
    const late = pass(name, frozen);
    await frozen.struck;
    const pause = { spec: { updateStrategy: { paused: true } } };
    await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: pause });
    await pass(name);
    const { metadata, status } = await readSet(cluster, name);
    expect(status?.observedGeneration).toBe(metadata?.generation);
    await cluster.delete(CONFIG_MAPS, ledger);
    frozen.thaw();
    expect((await late).report?.tally.evicted).toBeUndefined();
    expect(await uids(name)).toEqual(before);
  });

  test("a pod whose eviction got no answer is fenced in the same pass, so that a late eviction fails", async () => {
    await prepare("unanswered");
    const before = await uids("unanswered");
    let late: (() => Promise<unknown>) | undefined;
    const slow: Cluster = {
      ...cluster,
      create: (resource, object, options) => {
        if (options?.subresource !== "eviction") return cluster.create(resource, object, options);
        late = () => cluster.create(resource, object, options);
        return Promise.reject(new KubeError("no answer", { code: 0, reason: "Timeout", isOutcomeKnown: false }));
      },
    };
    const { report } = await pass("unanswered", slow);
    expect(report?.tally.problems).toMatchObject([{ message: "is not evicted: no answer" }]);
    expect(await reservations("unanswered")).toBe("");
    expect(report?.tally.fenced).toBe(1);
    await expect(late?.()).rejects.toMatchObject({ code: 409 });
    expect(await uids("unanswered")).toEqual(before);
  });

  test("a pod that was listed as down and is ready again is not evicted without budget", async () => {
    await prepare("come-back");
    const conditions = [{ type: "Ready", status: "False" }];
    const listedDown = (pod: Pod): Pod =>
      pod.metadata?.annotations?.[INJECTED_LIST_ANNOTATION] === undefined
        ? { ...pod, status: { ...pod.status, phase: "Running", conditions } }
        : pod;
    const stale: Cluster = {
      ...cluster,
      list: (resource, options = {}) => {
        const { keep = (item) => item } = options;
        const isPods = resource.plural === PODS.plural;
        return cluster.list(resource, {
          ...options,
          keep: (item) => keep(isPods ? (listedDown(item as unknown as Pod) as unknown as KubernetesObject) : item),
        });
      },
    };
    expect((await pass("come-back", stale)).report?.tally.evicted).toBeUndefined();
    expect((await pass("come-back")).report?.tally.evicted).toBe(1);
  });

  test("a pod that is already terminating is not evicted, and nothing stays reserved for it", async () => {
    await prepare("going");
    const evictions: string[] = [];
    const late: Cluster = {
      ...cluster,
      get: async (resource, key) => {
        const object = await cluster.get(resource, key);
        const isMissed = object.metadata?.annotations?.[INJECTED_LIST_ANNOTATION] === undefined;
        const { uid = "" } = object.metadata ?? {};
        if (resource !== PODS || !isMissed || object.metadata?.deletionTimestamp) return object as never;
        await cluster.delete(PODS, key, { uid });
        return (await cluster.get(resource, key)) as never;
      },
      create: (resource, object, options) => {
        if (options?.subresource === "eviction") evictions.push(object.metadata?.name ?? "");
        return cluster.create(resource, object, options);
      },
    };
    expect((await pass("going", late)).report?.tally).toMatchObject({ problems: [], fenced: 0 });
    expect(evictions).toEqual([]);
  });

  test("a pod that a PodDisruptionBudget blocks does not prevent the eviction of another owner's pod", async () => {
    await prepare("kept");
    const labels = { app: "kept", tier: "other" };
    const template = {
      metadata: { labels },
      spec: { containers: [{ name: "main", image: "registry.example/main:1" }] },
    };
    const spec = { replicas: 1, selector: { matchLabels: labels }, template };
    await cluster.create(REPLICA_SETS, {
      metadata: { namespace: NAMESPACE, name: "zz-kept" },
      spec,
    } as KubernetesObject);
    await eventually(async () => expect(await readyPods("kept")).toHaveLength(5));
    const asked: string[] = [];
    const guarded: Cluster = {
      ...cluster,
      create: (resource, object, options) => {
        const { name = "" } = object.metadata ?? {};
        if (options?.subresource !== "eviction") return cluster.create(resource, object, options);
        asked.push(name);
        if (name.startsWith("zz-kept")) return cluster.create(resource, object, options);
        return Promise.reject(
          new KubeError("the disruption budget needs it", { code: 429, reason: "TooManyRequests" }),
        );
      },
    };
    const problems = [{ message: "is not evicted: the disruption budget needs it" }];
    expect((await pass("kept", guarded)).report?.tally).toMatchObject({ problems, evicted: 1 });
    expect(asked).toEqual([expect.stringMatching(/^kept-/), expect.stringMatching(/^zz-kept-/)]);
  });

  test("a blocked eviction is tried again after two seconds at the earliest, then after twice as long", async () => {
    const name = "again";
    await prepare(name);
    let asked = 0;
    const guarded: Cluster = {
      ...cluster,
      create: (resource, object, options) => {
        if (options?.subresource !== "eviction") return cluster.create(resource, object, options);
        asked++;
        return Promise.reject(
          new KubeError("the disruption budget needs it", { code: 429, reason: "TooManyRequests" }),
        );
      },
    };
    await pass(name, guarded);
    let nowMs = 0;
    const clock = { ...fastClock(20), now: () => nowMs };
    const site = { cluster: guarded, clock, kruiseNamespace: KRUISE_NAMESPACE, settings: DEFAULT_ROLLOUT_SETTINGS };
    const context = { ...site, tally: newTally(), recorded: new Set<string>(), endsAtMs: Number.POSITIVE_INFINITY };
    const round = async () => {
      const before = asked;
      await evictMissed(context, (await observe(context, name)) as Snapshot, []);
      return asked - before;
    };
    expect([await round(), await round()]).toEqual([1, 0]);
    nowMs = 2_100;
    expect([await round(), await round()]).toEqual([1, 0]);
    // The wait doubles each time.
    nowMs = 4_200;
    expect(await round()).toBe(0);
  });

  test("no pod is evicted when another pass wrote the ledger first", async () => {
    await prepare("slower");
    const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-slower" };
    const slower: Cluster = {
      ...cluster,
      patch: async (resource, of, patch, options) => {
        const annotations = { written: "by another" };
        const isReserving = resource === CONFIG_MAPS && JSON.stringify(patch).includes(`${NAMESPACE}/slower-`);
        if (isReserving) await cluster.patch(CONFIG_MAPS, key, { type: "merge", body: { metadata: { annotations } } });
        return await cluster.patch(resource, of, patch, options);
      },
    };
    const { report, calls } = await pass("slower", slower);
    expect([report?.stop, report?.tally.evicted]).toEqual(["oneRound", undefined]);
    expect(calls["CREATE pods/eviction"]).toBeUndefined();
    expect((await pass("slower")).report?.tally.evicted).toBe(1);
  });

  describe("lost ledger answers:", () => {
    const kept = new KubeError("the disruption budget needs it", { code: 429, reason: "TooManyRequests" });
    const lost = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });

    /** Refuses every eviction. The answer to the first write of the ledger for which `isLost` is true does not come. */
    function losing(isLost: (patch: string) => boolean): Cluster {
      let count = 0;
      return {
        ...cluster,
        create: (resource, object, options) =>
          options?.subresource === "eviction" ? Promise.reject(kept) : cluster.create(resource, object, options),
        patch: async (resource, key, patch, options) => {
          const answer = await cluster.patch(resource, key, patch, options);
          if (resource === CONFIG_MAPS && isLost(JSON.stringify(patch)) && count++ === 0) throw lost;
          return answer as never;
        },
      };
    }

    const follow = async (name: string, through: Cluster) => {
      const report = await runPass(through, {
        kruiseNamespace: KRUISE_NAMESPACE,
        deadlineMs: 20_000,
        settings: DEFAULT_ROLLOUT_SETTINGS,
        follow: true,
        sidecarSet: name,
      });
      return report.sidecarSets[0];
    };

    test("a pod whose reservation was freed is not written when the answer to that ledger write is lost", async () => {
      await prepare("freed");
      let isReserved = false;
      const frees = (patch: string) => {
        const isFreeing = isReserved && !patch.includes(`${NAMESPACE}/freed-`);
        isReserved ||= patch.includes(`${NAMESPACE}/freed-`);
        return isFreeing;
      };
      const before = await readPods(cluster, "freed");
      expect(await follow("freed", losing(frees))).toMatchObject({ stop: "settled", tally: { fenced: 0 } });
      expect(await readPods(cluster, "freed")).toEqual(before);
      expect(await reservations("freed")).toBe("");
    });

    test("a reservation is released when the answer to its ledger write is lost", async () => {
      await prepare("reserved");
      const reserves = (patch: string) => patch.includes(`${NAMESPACE}/reserved-`);
      expect(await follow("reserved", losing(reserves))).toMatchObject({ stop: "settled", tally: { fenced: 1 } });
      expect(await reservations("reserved")).toBe("");
    });
  });

  test("a pod that has its sidecars when it is read again is not evicted", async () => {
    await prepare("injected");
    const annotations = { "kruise.io/sidecarset-injected-list": "injected" };
    const later: Cluster = {
      ...cluster,
      get: async (resource, of) => {
        if (resource === PODS) await cluster.patch(PODS, of, { type: "merge", body: { metadata: { annotations } } });
        return await cluster.get(resource, of);
      },
    };
    const { calls } = await pass("injected", later);
    expect([calls["GET pods"], calls["CREATE pods/eviction"]]).toEqual([2, undefined]);
  });

  test("a pod is not evicted when it is no longer selected, or has inject=false, at the second read", async () => {
    await prepare("let-be");
    const changes = [{ labels: { app: "taken-out" } }, { annotations: { "sidecarset.kruise.io/inject": "false" } }];
    const later: Cluster = {
      ...cluster,
      get: async (resource, of) => {
        const metadata = resource === PODS ? changes.shift() : undefined;
        if (metadata) await cluster.patch(PODS, of, { type: "merge", body: { metadata } });
        return await cluster.get(resource, of);
      },
    };
    const { calls } = await pass("let-be", later);
    expect([calls["GET pods"], calls["CREATE pods/eviction"]]).toEqual([2, undefined]);
  });

  test("the place of a pod that is gone at once is not used again before it was recreated", async () => {
    await prepare("at-once");
    const more = { spec: { updateStrategy: { maxUnavailable: 3 } } };
    await cluster.patch(SIDECARSETS, { name: "at-once" }, { type: "merge", body: more });
    const labels = { app: "at-once", tier: "other" };
    const containers = [{ name: "main", image: "registry.example/main:1" }];
    const template = { metadata: { labels }, spec: { containers, terminationGracePeriodSeconds: 0 } };
    const spec = { replicas: 5, selector: { matchLabels: labels }, template };
    await cluster.create(REPLICA_SETS, {
      metadata: { namespace: NAMESPACE, name: "zz-at-once" },
      spec,
    } as KubernetesObject);
    await eventually(async () => expect(await readyPods("at-once")).toHaveLength(9));
    const kept = new KubeError("the disruption budget needs it", { code: 429, reason: "TooManyRequests" });
    const guarded: Cluster = {
      ...cluster,
      create: (resource, object, options) =>
        options?.subresource === "eviction" && !object.metadata?.name?.startsWith("zz-")
          ? Promise.reject(kept)
          : cluster.create(resource, object, options),
    };
    expect((await pass("at-once", guarded)).report?.tally.evicted).toBe(1);
  });

  test("after one forbidden eviction no other eviction is tried in that pass", async () => {
    await prepare("forbidden");
    const more = { spec: { updateStrategy: { maxUnavailable: 2 } } };
    await cluster.patch(SIDECARSETS, { name: "forbidden" }, { type: "merge", body: more });
    const forbidding: Cluster = {
      ...cluster,
      create: (resource, object, options) =>
        options?.subresource === "eviction"
          ? Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }))
          : cluster.create(resource, object, options),
    };
    const { report, calls } = await pass("forbidden", forbidding);
    expect(calls["CREATE pods/eviction"]).toBe(1);
    expect(report?.tally.problems).toMatchObject([
      { message: "is not evicted: no (infra/rbac/optional/eviction.yaml permits it)" },
    ]);
    expect((await pass("forbidden")).report?.tally).toMatchObject({ evicted: 2 });
  });

  test("an eviction leaves no reservation behind, whether it succeeds or is refused", async () => {
    await prepare("tidy");
    const refuse = (error: KubeError): Cluster => ({
      ...cluster,
      create: (resource, object, options) =>
        options?.subresource === "eviction" ? Promise.reject(error) : cluster.create(resource, object, options),
    });
    const kept = new KubeError("the disruption budget needs it", { code: 429, reason: "TooManyRequests" });
    const refused = (await pass("tidy", refuse(kept))).report?.tally;
    const reason = "is not evicted: the disruption budget needs it";
    expect(refused).toMatchObject({ problems: [{ message: reason }], fenced: 0 });
    expect(refused?.evicted).toBeUndefined();
    expect(await reservations("tidy")).toBe("");
    const forbidden = new KubeError("a policy forbids it", { code: 422, reason: "Invalid" });
    expect((await pass("tidy", refuse(forbidden))).report?.tally.problems).toMatchObject([
      { message: "is not evicted: a policy forbids it" },
    ]);
    expect(await reservations("tidy")).toBe("");
    expect((await pass("tidy")).report?.tally).toMatchObject({ evicted: 1, fenced: 0 });
    expect(await reservations("tidy")).toBe("");
  });
});

describe("OpenKruise's definition, which prunes conditions:", () => {
  let other: TestCluster;
  beforeAll(async () => {
    other = await startTestCluster();
    const definition = parse(await readFile("infra/crd/sidecarsets.yaml", "utf8"));
    for (const { schema } of definition.spec.versions) {
      const { properties } = schema.openAPIV3Schema.properties.status;
      delete properties.conditions;
      delete properties.selection;
      delete properties.ledgerNamespace;
      delete properties.observedAnnotations;
    }
    const { versions } = definition.spec;
    const key = { name: "sidecarsets.apps.kruise.io" };
    await other.cluster.patch(DEFINITIONS, key, { type: "merge", body: { spec: { versions } } });
  });
  afterAll(() => other?.close());

  test("with OpenKruise's SidecarSet definition the status is written once and not in every pass", async () => {
    await other.cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("kruise", 1, {}));
    const options = {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 20_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
    };
    const writes: (number | undefined)[] = [];
    for (let round = 0; round < 3; round++)
      writes.push((await runPass(other.cluster, options)).calls["PATCH sidecarsets/status"]);
    expect(writes).toEqual([1, undefined, undefined]);
    const { status } = await readSet(other.cluster, "kruise");
    expect(status).not.toHaveProperty("conditions");
    expect(status?.observedGeneration).toBe(1);
  });
});
