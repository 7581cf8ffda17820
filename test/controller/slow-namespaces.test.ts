/** Tests a namespace with slow or conflicting writes to its pods, beside another namespace. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DRAIN_ANNOTATION, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, type ObjectKey, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { bareRollout, running } from "./bare-rollout.ts";
import { injectedPod, KRUISE_NAMESPACE } from "./fixture.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

const GREEDY = "aaa-greedy";
const MODEST = "mmm-modest";

interface Wanted {
  readonly greedy: number;
  readonly modest: number;
  /** the namespace of each hostile pod beside the greedy ones; absent: there are none */
  readonly hostile?: readonly string[];
  readonly maxUnavailable: number | string;
  /** annotations of the SidecarSet; absent: none */
  readonly annotations?: Readonly<Record<string, string>>;
  /** labels that each pod has beside its own; absent: none */
  readonly labels?: Readonly<Record<string, string>>;
  /** called before a patch of a pod in the greedy namespace is carried out */
  readonly beforePatch: (on: ReturnType<typeof bareRollout>, key: ObjectKey) => Promise<unknown>;
}

/** Releases version 2 on ready pods, with a kubelet that makes updated pods ready at once. */
function world({ greedy, modest, hostile = [], maxUnavailable, annotations, labels, beforePatch }: Wanted) {
  const on = bareRollout("web", undefined, { ...steppedClock(), ...sharedClock() });
  const release = (version: number) => {
    on.release(version, { maxUnavailable });
    const { metadata, ...set } = on.readSet();
    if (annotations)
      on.server.put("test", SIDECARSETS, {
        ...set,
        metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } },
      });
  };
  const reasons = new Set<string>();
  let patchedAtMs = 0;
  release(1);
  const put = (namespace: string, name: string) => {
    const { metadata, ...pod } = injectedPod("web", name);
    const place = { ...metadata, labels: { ...metadata?.labels, ...labels }, namespace, uid: `${namespace}-${name}` };
    on.server.put("test", PODS, running({ ...pod, metadata: place }));
  };
  for (const name of new Set(["default", GREEDY, MODEST, ...hostile]))
    on.server.put("test", NAMESPACES, { metadata: { name, uid: name } });
  for (let nth = 0; nth < greedy; nth++) put(GREEDY, `g-${nth}`);
  for (const [nth, namespace] of hostile.entries()) put(namespace, `h-${nth}`);
  for (let nth = 0; nth < modest; nth++) put(MODEST, `m-${nth}`);
  release(2);
  const before = async (key: ObjectKey) => {
    if (key.namespace === MODEST) patchedAtMs = on.clock.now();
    else await beforePatch(on, key);
  };
  const patch: Cluster["patch"] = async (resource, key, body, options) => {
    const isPod = resource === PODS && !options?.subresource;
    if (isPod) await before(key);
    const answered = await on.cluster.patch(resource, key, body, options);
    for (const { reason } of on.readSet().status?.conditions ?? []) reasons.add(reason);
    const pod = isPod && on.server.peek<Pod>(PODS, key);
    if (pod) on.server.put("kubelet", PODS, running(pod));
    return answered as never;
  };
  const pass = async () => {
    await on.clock.sleep(5_000);
    return await runPass({ ...on.cluster, patch } as Cluster, {
      deadlineMs: 55_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      sidecarSet: "web",
      follow: true,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      clock: on.clock,
      memory: newPassMemory(),
    });
  };
  const updated = (namespace: string) =>
    on.server
      .all<Pod>(PODS)
      .filter(({ metadata, spec }) => metadata?.namespace === namespace && spec.containers[1]?.image?.endsWith(":2"))
      .length;
  return { ...on, pass, updated, reasons, patchedAtMs: () => patchedAtMs };
}

const allowAfter =
  (ms: number): Wanted["beforePatch"] =>
  ({ clock }) =>
    clock.sleep(ms);

it.each([1, 10, "100%"])(
  "with maxUnavailable %s a webhook that allows each write in one namespace after 25 seconds does not hold the pods of another namespace",
  async (maxUnavailable) => {
    const { pass, updated } = world({ greedy: 100, modest: 50, maxUnavailable, beforePatch: allowAfter(25_000) });
    await pass();
    expect(updated(MODEST)).toBe(50);
  },
);

it("a pass writes to pods of a slow namespace when other namespaces have none left", async () => {
  const { pass, updated } = world({ greedy: 8, modest: 2, maxUnavailable: 2, beforePatch: allowAfter(6_000) });
  await pass();
  expect([updated(MODEST), updated(GREEDY)]).toEqual([2, 8]);
});

it("an API server that answers each write after 6 seconds slows the only namespace down and does not stop it", async () => {
  const { pass, updated } = world({ greedy: 100, modest: 0, maxUnavailable: "100%", beforePatch: allowAfter(6_000) });
  await pass();
  expect(updated(GREEDY)).toBeGreaterThan(60);
});

it("while writes of drains are slow and none is refused, no status says that writes are refused", async () => {
  const { pass, reasons } = world({
    greedy: 3,
    modest: 0,
    maxUnavailable: 3,
    annotations: { [DRAIN_ANNOTATION]: "1s" },
    labels: { [TRAFFIC_LABEL]: "serving" },
    beforePatch: allowAfter(6_000),
  });
  await pass();
  expect(reasons).toContain("RollingOut");
  expect(reasons).not.toContain("Refused");
});

it("a pod that its owner changes before each patch is skipped after five conflicts, and the pass names it", async () => {
  let count = 0;
  const { pass, updated, readSet } = world({
    greedy: 5,
    modest: 20,
    maxUnavailable: 1,
    beforePatch: async ({ server }, key) => {
      const pod = server.peek<Pod>(PODS, key);
      const annotations = { ...pod?.metadata?.annotations, count: String(count++) };
      if (pod) server.put("owner", PODS, { ...pod, metadata: { ...pod.metadata, annotations } });
    },
  });
  await pass();
  expect(updated(MODEST)).toBe(20);
  await pass();
  const blocked = readSet().status?.conditions?.find(({ type }) => type === "Blocked");
  expect([blocked?.status, blocked?.reason]).toEqual(["True", "Refused"]);
});

/** Returns the seconds of virtual time until the last pod of the modest namespace is updated. */
async function secondsOfModest(hostile: readonly string[], wanted: Pick<Wanted, "beforePatch" | "maxUnavailable">) {
  const { pass, updated, patchedAtMs, clock } = world({ greedy: 0, hostile, modest: 12, ...wanted });
  const beganMs = clock.now();
  for (let passes = 0; passes < 20 && updated(MODEST) < 12; passes++) await pass();
  return updated(MODEST) < 12 ? Number.POSITIVE_INFINITY : Math.round((patchedAtMs() - beganMs) / 1_000);
}

const WORDS = 'admission webhook "tenant.example.com" denied the request: no';

it.each([
  ["allowed", undefined],
  ["denied with 401", new KubeError(WORDS, { code: 401, reason: "Unauthorized" })],
  ["denied with 403", new KubeError(WORDS, { code: 403, reason: "Forbidden" })],
  ["denied with 409", new KubeError(WORDS, { code: 409, reason: "Conflict" })],
  ["denied with 429", new KubeError(WORDS, { code: 429, reason: "TooManyRequests", retryAfterSeconds: 5 })],
  ["denied with 500", new KubeError(WORDS, { code: 500, reason: "InternalError" })],
] as const)(
  "three pods whose writes are %s after 29 seconds delay the pods of another namespace by 30 seconds, and pods of three namespaces by 19 minutes at most",
  async (_what, error) => {
    const beforePatch: Wanted["beforePatch"] = async ({ clock }) => {
      await clock.sleep(29_000);
      if (error) throw error;
    };
    for (const maxUnavailable of [1, 3, "100%"]) {
      const wanted = { beforePatch, maxUnavailable };
      const alone = await secondsOfModest([], wanted);
      const beside = await secondsOfModest([GREEDY, GREEDY, GREEDY], wanted);
      const spread = await secondsOfModest([GREEDY, "bbb-greedy", "ccc-greedy"], wanted);
      expect(beside - alone).toBeLessThanOrEqual(30);
      expect(spread - alone).toBeLessThanOrEqual(1_140);
    }
  },
);

it("three pods whose writes are slow and meet a change by their owner delay another namespace by 30 seconds at most", async () => {
  let count = 0;
  const beforePatch: Wanted["beforePatch"] = async ({ server, clock }, key) => {
    await clock.sleep(29_000);
    const pod = server.peek<Pod>(PODS, key);
    const annotations = { ...pod?.metadata?.annotations, count: String(count++) };
    if (pod) server.put("owner", PODS, { ...pod, metadata: { ...pod.metadata, annotations } });
  };
  const wanted = { beforePatch, maxUnavailable: 1 };
  const alone = await secondsOfModest([], wanted);
  expect((await secondsOfModest([GREEDY, GREEDY, GREEDY], wanted)) - alone).toBeLessThanOrEqual(30);
});
