/** Tests a tenant whose pods are so large that passes over all pods could run out of memory. */
import { expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { recreateContainers } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { launchPods } from "../../shared/controller/launch-priority/launch-pods.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { SharedParts } from "../../shared/controller/pod-store/shared-parts.ts";
import { observePods } from "../../shared/controller/rollout/observe-pods.ts";
import { openPodFeed } from "../../shared/controller/rollout/rollout.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { terminateSidecars } from "../../shared/controller/sidecar-terminator/terminate-sidecars.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { bareRollout } from "../controller/bare-rollout.ts";
import { KRUISE_NAMESPACE } from "../controller/fixture.ts";
import { serviceOf } from "../controller/service.ts";
import { sharedClock, steppedClock } from "../controller/stepped-clock.ts";
import { addAttacks } from "../support/attacks.ts";

const LONG = "x".repeat(250_000);

/** Ways in which an author can fill the parts of a pod that passes store. */
const WAYS: readonly (readonly [way: string, fill: (pod: Pod) => Pod])[] = [
  ["in the record of its release", (pod) => annotated(pod, "kruise.io/sidecarset-hash")],
  ["in the list of its SidecarSets", (pod) => annotated(pod, "kruise.io/sidecarset-injected-list")],
  ["in an annotation of any version", (pod) => annotated(pod, "version.sidecarset.kruise.io/any")],
  [
    "in the name of an image",
    (pod) => ({ ...pod, spec: { containers: [...pod.spec.containers, { name: "a", image: LONG }] } }),
  ],
  [
    "in labels",
    (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, ...numbered(1_000) } } }),
  ],
  [
    "in the name of an owner",
    (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, ownerReferences: [{ apiVersion: "a/v1", kind: "A", name: LONG, uid: "a" }] },
    }),
  ],
  [
    "in resources",
    (pod) => ({
      ...pod,
      spec: { containers: [...pod.spec.containers, { name: "a", image: "a", resources: { limits: numbered(1_000) } }] },
    }),
  ],
  [
    "in thousands of containers",
    (pod) => ({
      ...pod,
      spec: { containers: Array.from({ length: 5_000 }, (_, at) => ({ name: `c${at}`, image: "a.example/b:1" })) },
    }),
  ],
];

function numbered(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`example.com/n${at}`, "1"]));
}

function annotated(pod: Pod, key: string): Pod {
  const annotations = { ...pod.metadata?.annotations, [key]: `${pod.metadata?.name}${LONG}` };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** Prepares a SidecarSet with six pods and a new release. */
function world() {
  const on = bareRollout("web", undefined, { ...steppedClock(), ...sharedClock() });
  on.deploy(WAYS.length + 1, { maxUnavailable: "100%" });
  on.release(2, { maxUnavailable: "100%" });
  const grow = (index: number, fill: (pod: Pod) => Pod) => on.server.put("tenant", PODS, fill(on.readPod(index)));
  return { ...on, grow };
}

test("pods that are too large are left out and named, and all other pods are updated", async () => {
  const on = world();
  for (const [index, [, fill]] of WAYS.entries()) on.grow(index, fill);
  const report = await runPass(on.cluster, {
    deadlineMs: 55_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    sidecarSet: "web",
    follow: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    clock: on.clock,
    memory: newPassMemory(),
  });
  addAttacks(WAYS.length);
  const [web] = report.sidecarSets;
  expect(web?.tally.upgraded).toBe(1);
  expect(on.versions()).toMatch(/ 2$/);
  const words = "is left out: its labels, its containers and the records about them have more than 65536 characters";
  expect(web?.tally.problems).toEqual(
    WAYS.map((_, index) => ({ namespace: "shop", name: `web-${index}`, message: words })),
  );
});

test("passes keep no pod with more than 65,536 characters of containers and records", async () => {
  const on = world();
  for (const [, fill] of WAYS) {
    on.grow(0, fill);
    const { view } = await observePods(on.cluster, on.readSet());
    expect([...view.records].map(({ metadata }) => metadata?.name)).not.toContain("web-0");
    expect(JSON.stringify([...view.records]).length).toBeLessThan(6 * 64 * 1024);
  }
});

test.each<[string, (pod: Pod) => object]>([
  ["without a spec", ({ spec: _, ...pod }) => pod],
  ["with a container that is null", (pod) => ({ ...pod, spec: { containers: [null] } })],
  ["whose containers are no list", (pod) => ({ ...pod, spec: { containers: "web" } })],
  ["whose states of containers have no names", (pod) => ({ ...pod, status: { containerStatuses: [{}] } })],
])("a pod that no API server sends, %s, is left out and named, and all other pods are read", async (_, spoil) => {
  const on = world();
  on.grow(0, (pod) => spoil(pod) as Pod);
  const { view, leftOut } = await observePods(on.cluster, on.readSet());
  expect([...view.records]).toHaveLength(WAYS.length);
  expect([...leftOut.values()]).toMatchObject([
    { name: "web-0", why: expect.stringMatching(/^is left out: it has no spec, or a container without a name/) },
  ]);
});

test("a pass drops a pod that becomes too large, and takes it back when it becomes small again", async () => {
  const on = world();
  const small = on.readPod(0);
  const observed = await observePods(on.cluster, on.readSet());
  const feed = openPodFeed({ cluster: on.cluster, clock: on.clock }, observed);
  const names = () => [...observed.view.records].map(({ metadata }) => metadata?.name);
  on.server.put("tenant", PODS, annotated(small, "kruise.io/sidecarset-hash"));
  await feed?.wait(1_000);
  feed?.applyToView();
  expect(names()).not.toContain("web-0");
  on.server.put("tenant", PODS, small);
  await feed?.wait(1_000);
  feed?.applyToView();
  feed?.close();
  expect(names()).toContain("web-0");
});

test("a pass forgets known texts beyond 16 Mi characters, also if they are few", () => {
  const parts = new SharedParts();
  const first = parts.share({ text: "first" });
  expect(parts.share({ text: "first" })).toBe(first);
  for (let at = 0; at < 70; at++) parts.share({ text: `${at}${LONG}` });
  expect(parts.share({ text: "first" })).not.toBe(first);
});

const BARRIER = { name: "KRUISE_CONTAINER_BARRIER", valueFrom: { configMapKeyRef: { name: "b", key: "p_0" } } };
const ENDED = { name: "job", image: "a", env: [] };
const TERMINATED = { name: "job", state: { terminated: { exitCode: 0 } } };
const PROXY = { name: "proxy", env: [{ name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" }] };

test.each<[string, (service: Service) => Promise<unknown>, object]>([
  [
    "pods with a launch order",
    (service) => launchPods(service, AbortSignal.abort()),
    { spec: { containers: [{ name: "c", env: [{ ...BARRIER, value: LONG }] }] } },
  ],
  [
    "pods with launch orders in many containers",
    (service) => launchPods(service, AbortSignal.abort()),
    { spec: { containers: Array.from({ length: 5_000 }, (_, at) => ({ name: `c${at}`, env: [BARRIER] })) } },
  ],
  ["requests", recreateContainers, { spec: { podName: "p", containers: [{ name: LONG }] } }],
  [
    "jobs",
    (service) => terminateSidecars(service, AbortSignal.abort()),
    {
      spec: { restartPolicy: "Never", containers: [ENDED, { ...PROXY, image: LONG }] },
      status: { phase: "Running", containerStatuses: [TERMINATED, { name: "proxy", state: { running: {} } }] },
    },
  ],
])("of 40 large %s of one namespace a pass keeps less than 64 KiB each", async (_, serve, large) => {
  let keptCharacters = 0;
  const list: Cluster["list"] = async (_resource, { keep = (one: unknown) => one } = {}) => {
    const items = Array.from({ length: 40 }, (_, at) => ({
      ...large,
      metadata: { namespace: "greedy", name: `g${at}`, uid: `g${at}`, annotations: { text: LONG } },
    }));
    const kept = items.map((one) => keep(one as never)).filter((one) => one !== undefined);
    keptCharacters += JSON.stringify(kept).length;
    return { metadata: { resourceVersion: "1" }, items: [], kept } as never;
  };
  const clock = steppedClock().clock;
  const service = serviceOf({ list } as unknown as Cluster, { clock, isDryRun: true });
  await serve(service);
  expect(keptCharacters).toBeGreaterThan(0);
  expect(keptCharacters).toBeLessThan(40 * 1_024);
});
