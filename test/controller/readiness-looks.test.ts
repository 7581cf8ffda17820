/**
 * Tests the looks at pods that wait for their readiness gate: when a pass looks, to the millisecond, and its retries.
 */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { openReadiness } from "../../shared/controller/pass.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { PODS } from "../../shared/kube/port.ts";
import { callOf } from "../simulation/api-server.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { NAMESPACE } from "./fixture.ts";
import { serviceOf } from "./service.ts";
import { steppedClock } from "./stepped-clock.ts";

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

function stage(refuse?: Refuse) {
  const stepped = steppedClock();
  const { cluster, server, calls, watches, breakWatches } = bareCluster(stepped, refuse);
  const service = serviceOf(cluster, { clock: stepped.clock });
  /** Creates a pod as the pod webhook stores it with feature gate KruisePodReadinessGate. */
  const create = async (name: string) => {
    const containers = [{ name: "app", image: "registry.example/app:1" }];
    const readinessGates = [{ conditionType: "KruisePodReady" }];
    await server.create("test", PODS, newPod(keyOf(name), { containers, readinessGates }));
    await server.patch(
      callOf("kubelet", PODS, keyOf(name), "status"),
      { type: "merge", body: { status: { phase: "Pending" } } },
      "metadata",
    );
  };
  const label = (name: string) =>
    server.patch(
      callOf("test", PODS, keyOf(name)),
      { type: "merge", body: { metadata: { labels: { seen: String(stepped.clock.now()) } } } },
      "metadata",
    );
  const conditions = (name: string) => server.peek<Pod>(PODS, keyOf(name))?.status?.conditions;
  const rest = new AbortController();
  /** Opens gates until the rest of the pass ends. */
  const openUntil = async (atMs: number, more: Partial<Service> = {}) => {
    if (atMs === 0) rest.abort();
    else stepped.plan(atMs, () => rest.abort());
    const report = await openReadiness({ ...service, ...more }, rest.signal);
    return [report, stepped.clock.now()];
  };
  const { problems } = service;
  return { ...stepped, server, calls, watches, breakWatches, problems, create, label, conditions, openUntil };
}

it("a pass opens the gate of present and new pods with one list and one watch until its other work ends", async () => {
  const { plan, create, openUntil, calls, watches, conditions, beginAt } = stage();
  beginAt(Date.UTC(2026, 0, 10));
  await create("there");
  plan(2_500, () => create("new"));
  expect(await openUntil(5_200)).toEqual([{ opened: 2 }, 5_200]);
  expect(calls).toEqual([
    [0, "LIST pods"],
    [0, "PATCH pods/status"],
    [0, "WATCH pods"],
    [2_500, "PATCH pods/status"],
  ]);
  expect(watches).toMatchObject([{ fieldSelector: "status.phase=Pending", signal: { aborted: true } }]);
  expect(watches[0]?.resourceVersion).toMatch(/^\d+$/);
  expect(conditions("there")).toEqual([
    { type: "KruisePodReady", status: "True", lastTransitionTime: "2026-01-10T00:00:00Z" },
  ]);
  expect(conditions("new")).toEqual([
    { type: "KruisePodReady", status: "True", lastTransitionTime: "2026-01-10T00:00:02Z" },
  ]);
});

it.each<[string, Partial<Service>, number]>([
  ["does not follow", { isFollowing: false }, 5_000],
  ["has no other work left", {}, 0],
])("a pass lists waiting pods once when it %s", async (_, more, until) => {
  const { create, openUntil, calls } = stage();
  await create("there");
  expect(await openUntil(until, more)).toEqual([{ opened: 1 }, 0]);
  expect(calls.map(([, call]) => call)).toEqual(["LIST pods", "PATCH pods/status"]);
});

it("a pass lists waiting pods again half a minute after its watch broke", async () => {
  const { plan, create, openUntil, breakWatches, calls } = stage();
  plan(3_000, () => breakWatches(refusal(410, "Expired")));
  plan(10_000, () => create("missed"));
  expect(await openUntil(40_000)).toEqual([{ opened: 1 }, 40_000]);
  expect(calls).toEqual([
    [0, "LIST pods"],
    [0, "WATCH pods"],
    [33_000, "LIST pods"],
    [33_000, "PATCH pods/status"],
    [33_000, "WATCH pods"],
  ]);
});

it("a pass whose watch broke does not list again when it ends within half a minute", async () => {
  const { plan, openUntil, breakWatches, calls } = stage();
  plan(3_000, () => breakWatches(refusal(410, "Expired")));
  expect(await openUntil(20_000)).toEqual([{ opened: 0 }, 20_000]);
  expect(calls.map(([, call]) => call)).toEqual(["LIST pods", "WATCH pods"]);
});

describe("conflicts on a pod:", () => {
  const refuseFirst = (times: number): Refuse => {
    return (call, nth) => (call === "PATCH pods/status" && nth <= times ? refusal(409, "Conflict") : undefined);
  };

  it("a pass tries to open a pod's gate five times after conflicts", async () => {
    const { create, openUntil, calls, problems } = stage(refuseFirst(4));
    await create("busy");
    expect(await openUntil(0)).toEqual([{ opened: 1 }, 0]);
    expect(problems).toEqual([]);
    expect(calls.filter(([, call]) => call === "GET pods")).toHaveLength(4);
  });

  it("a fifth conflict on a pod's gate is a problem", async () => {
    const { create, openUntil, calls, problems } = stage(refuseFirst(5));
    await create("busier");
    expect(await openUntil(0)).toEqual([{ opened: 0 }, 0]);
    expect(problems).toEqual([
      "1 pods such as shop/busier stay unready for want of the condition KruisePodReady: Conflict",
    ]);
    expect(calls.filter(([, call]) => call === "GET pods")).toHaveLength(4);
    expect(calls.filter(([, call]) => call === "PATCH pods/status refused")).toHaveLength(5);
  });

  it.each<[string, string | undefined]>([
    ["deleted", undefined],
    ["replaced by another pod of the same name", "uid of another"],
  ])("a pass does not retry a pod that was %s in the meantime", async (_, uid) => {
    let on: ReturnType<typeof stage> | undefined;
    const staged = stage((call, nth) => {
      if (call !== "PATCH pods/status" || nth > 1) return undefined;
      const pod = on?.server.peek<Pod>(PODS, keyOf("replaced")) as Pod;
      on?.server.remove("test", PODS, pod);
      if (uid) on?.server.put("test", PODS, { ...pod, metadata: { ...pod.metadata, uid } });
      return refusal(409, "Conflict");
    });
    on = staged;
    await staged.create("replaced");
    expect(await staged.openUntil(0)).toEqual([{ opened: 0 }, 0]);
    expect(staged.problems).toEqual([]);
    expect(staged.calls.map(([, call]) => call)).toEqual(["LIST pods", "PATCH pods/status refused", "GET pods"]);
  });

  it("a pass writes a pod once, from the newest of several events", async () => {
    const { plan, create, label, openUntil, calls, problems } = stage();
    plan(2_000, async () => {
      await create("moving");
      await label("moving");
      await label("moving");
    });
    expect(await openUntil(3_500)).toEqual([{ opened: 1 }, 3_500]);
    expect(problems).toEqual([]);
    expect(calls.filter(([, call]) => call.startsWith("PATCH"))).toEqual([[2_000, "PATCH pods/status"]]);
  });
});
