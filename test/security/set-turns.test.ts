/** Tests namespaces with many Advanced StatefulSets beside a namespace with one, and many rollouts that wait. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { Clock } from "../../shared/controller/loop/clock.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../shared/core/statefulset/step.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, LEASES, NAMESPACES, PODS, SIDECARSETS, STATEFUL_SETS } from "../../shared/kube/port.ts";
import { bareCluster } from "../controller/bare-cluster.ts";
import { running } from "../controller/bare-rollout.ts";
import { injectedPod, KRUISE_NAMESPACE, sidecarSet } from "../controller/fixture.ts";
import { sharedClock, steppedClock } from "../controller/stepped-clock.ts";
import { setOf } from "../core/ordered-set/fixture.ts";

const MODEST = "zzz";

interface Greedy {
  readonly namespaces: readonly string[];
  readonly sets: number;
  /** called before the set's pods are created */
  readonly onCreate: (clock: Clock) => unknown;
}

/**
 * Prepares greedy namespaces with sets of one replica. The modest namespace has an ordered set of three, whose pods are
 * ready at once.
 */
function world({ namespaces, sets, onCreate }: Greedy) {
  const { clock } = sharedClock();
  const { cluster, server } = bareCluster({ ...steppedClock(), clock });
  for (const name of [...namespaces, MODEST]) server.put("test", NAMESPACES, { metadata: { name, uid: name } });
  const put = (namespace: string, name: string, replicas: number) =>
    server.put("test", STATEFUL_SETS, {
      ...setOf({ replicas }),
      metadata: { namespace, name, uid: `${namespace}-${name}`, generation: 1 },
    });
  for (const namespace of namespaces) for (let nth = 0; nth < sets; nth++) put(namespace, `s-${100 + nth}`, 1);
  put(MODEST, "db", 3);
  const create: Cluster["create"] = async (resource, object, options) => {
    const { namespace = "", name = "" } = object.metadata ?? {};
    if (resource === PODS && namespace !== MODEST) await onCreate(clock);
    const created = await cluster.create(resource, object, options);
    const pod = resource === PODS && namespace === MODEST && server.peek<Pod>(PODS, { namespace, name });
    if (pod) server.put("kubelet", PODS, running(pod));
    return created;
  };
  const pass = async () => {
    await clock.sleep(5_000);
    return await runSetPass(
      { ...cluster, create },
      {
        deadlineMs: 55_000,
        kruiseNamespace: KRUISE_NAMESPACE,
        clock,
        follow: true,
        gates: DEFAULT_STATEFUL_SET_FEATURE_GATES,
        over: new Set(),
      },
    );
  };
  const modestPods = () => server.all<Pod>(PODS).filter(({ metadata }) => metadata?.namespace === MODEST).length;
  return { server, pass, modestPods };
}

const deniedAfter25Seconds = async ({ sleep }: Clock) => {
  await sleep(25_000);
  throw new KubeError("denied", { code: 403, reason: "Forbidden" });
};

it("200 sets of one namespace, whose pods a webhook denies after 25 seconds, do not delay the set of another namespace", async () => {
  const { pass, modestPods } = world({ namespaces: ["aaa"], sets: 200, onCreate: deniedAfter25Seconds });
  await pass();
  expect(modestPods()).toBe(3);
});

it("20 sets of one namespace, whose pods are never ready, do not delay the set of another namespace", async () => {
  const { pass, modestPods } = world({ namespaces: ["aaa"], sets: 20, onCreate: () => undefined });
  await pass();
  expect(modestPods()).toBe(3);
});

it("with slow webhooks in 20 namespaces, the set of another namespace gets its pods within six passes", async () => {
  const namespaces = Array.from({ length: 20 }, (_, nth) => `aaa-${100 + nth}`);
  const { pass, modestPods } = world({ namespaces, sets: 20, onCreate: deniedAfter25Seconds });
  for (let nth = 0; nth < 6; nth++) await pass();
  expect(modestPods()).toBe(3);
});

it("a pass over sets releases its Lease although its time is used up", async () => {
  const { pass, server } = world({ namespaces: ["aaa"], sets: 200, onCreate: deniedAfter25Seconds });
  await pass();
  const lease = server.all(LEASES).find(({ metadata }) => metadata?.name === "sidecarset-ordered-sets");
  expect(lease).toMatchObject({ spec: { holderIdentity: "" } });
});

it("each of 40 SidecarSets whose rollouts wait for their pods is followed within three passes", async () => {
  const { clock } = sharedClock();
  const { cluster, server } = bareCluster({ ...steppedClock(), clock });
  const names = Array.from({ length: 40 }, (_, nth) => `web-${100 + nth}`);
  for (const name of names) {
    const { metadata, ...set } = sidecarSet(name, 2, { maxUnavailable: 1 });
    server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, uid: name, generation: 1 } });
    for (const pod of [1, 2].map((nth) => injectedPod(name, `${name}-${nth}`)))
      server.put("test", PODS, running({ ...pod, metadata: { ...pod.metadata, uid: pod.metadata?.name ?? "" } }));
  }
  const followed = new Set<string>();
  for (let pass = 0; pass < 3; pass++) {
    await clock.sleep(5_000);
    const { sidecarSets } = await runPass(cluster, {
      deadlineMs: 55_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      follow: true,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      clock,
      memory: newPassMemory(),
    });
    for (const { name, stop } of sidecarSets) if (stop !== "oneRound") followed.add(name);
  }
  expect([...followed].sort()).toEqual(names);
});
