/** Tests the report about one SidecarSet if the pass had no time for it or failed. */
import { describe, expect, it } from "vitest";
import { EVICT_MISSED_ANNOTATION } from "../../shared/api/names.ts";
import { deadlineExceeded } from "../../shared/controller/loop/metered.ts";
import { reconcileSidecarSets } from "../../shared/controller/rollout/reconcile.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { missedPod, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";
import { serviceOf } from "./service.ts";

/** Prepares a SidecarSet with a new version 2, and a pass over it. */
function stage(refuse?: Refuse) {
  const on = bareRollout("set", refuse);
  on.deploy(1);
  on.release(2);
  const reconcile = async (more: Partial<Service> = {}) => {
    const service = serviceOf(on.cluster, { clock: on.clock, isRescanning: false, ...more });
    const [report] = await reconcileSidecarSets(service, ["set"]);
    const { problems, notReached, unread } = service;
    return { report, problems, notReached, unread };
  };
  return { ...on, reconcile };
}

describe("unread pods:", () => {
  /** Runs a pass of one minute that reaches the SidecarSet at that time. */
  async function late(beganAtMs: number) {
    const on = stage();
    await on.clock.sleep(beganAtMs);
    const list: Cluster["list"] = async (resource, options) => {
      if (resource !== PODS) return await on.cluster.list(resource, options);
      await on.clock.sleep(60_000 - on.clock.now());
      throw deadlineExceeded("LIST pods", false);
    };
    const limits = { endsAtMs: 60_000, lastsMs: 60_000 };
    return await on.reconcile({ cluster: { ...on.cluster, list }, limits });
  }

  it.each<[number, number]>([
    [0, 60],
    [30_000, 30],
  ])(
    "an unread SidecarSet is a problem if it had at least half of the pass's time, here begun after %i ms",
    async (beganAtMs, seconds) => {
      const { report, ...told } = await late(beganAtMs);
      expect(report).toMatchObject({ name: "set", stop: "deadline", tally: { rounds: 0 } });
      expect(told).toEqual({
        unread: ["set"],
        notReached: [],
        problems: [
          `SidecarSet set: nothing was decided, the time (${seconds} s) was over when 0 pods had been read: give passes more time, or the SidecarSet a narrower selector`,
        ],
      });
    },
  );

  it("an unread SidecarSet is left to the next pass if it had less than half of the pass's time", async () => {
    const { report, ...told } = await late(30_001);
    expect(report?.stop).toBe("deadline");
    expect(told).toEqual({ unread: [], notReached: ["set"], problems: [] });
  });
});

it.each<[string, string, number]>([
  ["before the first round", "LIST controllerrevisions", 1],
  ["while the rollout is followed", "GET sidecarsets", 3],
])("an error %s fails the SidecarSet, and its report says why", async (_, wrong, at) => {
  const { reconcile } = stage((call, nth) => (call === wrong && nth === at ? refusal(403, "out of order") : undefined));
  const { report } = await reconcile();
  expect(report).toMatchObject({ name: "set", stop: "failed", why: expect.stringContaining("out of order") });
});

it("an error at the end of a rollout fails the SidecarSet", async () => {
  const { reconcile } = stage((call, nth) =>
    call === "PATCH configmaps" && nth === 1 ? refusal(403, "no more writes") : undefined,
  );
  const { report } = await reconcile({ isFollowing: false });
  expect(report).toMatchObject({ stop: "failed", why: expect.stringContaining("no more writes") });
});

it("a pass that does not follow does one round and reports its result", async () => {
  const { reconcile, versions } = stage();
  const { report } = await reconcile({ isFollowing: false });
  expect(versions()).toBe("2");
  expect(report).toMatchObject({
    ...{ name: "set", stop: "oneRound", generation: 2 },
    summary: { matched: 1, updated: 1, ready: 0 },
    tally: { upgraded: 1 },
  });
  expect(report?.tally).not.toHaveProperty("evicted");
});

it("the report counts evicted pods that had missed their sidecars", async () => {
  const { put, cluster, clock, beginAt } = rolloutPart();
  const reconcile = () => reconcileSidecarSets(serviceOf(cluster, { clock, isFollowing: false }), [SET]);
  beginAt(Date.UTC(2026, 0, 1));
  put(setOf({ annotations: { [EVICT_MISSED_ANNOTATION]: "true" } }));
  // From now on passes know the selected pods.
  await reconcile();
  const pod = missedPod("a", replicaSet("web"));
  put({ ...pod, metadata: { ...pod.metadata, creationTimestamp: "2026-01-01T03:00:00Z" } });
  const [report] = await reconcile();
  expect(report?.tally.evicted).toBe(1);
  expect(report?.missed).toMatchObject({ count: 1, pods: ["shop/a"] });
});

it("when another pass writes the ledger during evictions, the pods are listed again at once", async () => {
  const { put, cluster, clock, beginAt, calls } = rolloutPart((call, nth) =>
    call === "PATCH configmaps" && nth === 1
      ? new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false })
      : undefined,
  );
  const reconcile = (isFollowing: boolean) =>
    reconcileSidecarSets(serviceOf(cluster, { clock, isFollowing, isRescanning: false }), [SET]);
  beginAt(Date.UTC(2026, 0, 1));
  put(setOf({ annotations: { [EVICT_MISSED_ANNOTATION]: "true" } }));
  await reconcile(false);
  const pod = missedPod("a", replicaSet("web"));
  put({ ...pod, metadata: { ...pod.metadata, creationTimestamp: "2026-01-01T03:00:00Z" } });
  const before = calls.length;
  const [report] = await reconcile(true);
  expect(report?.tally).not.toHaveProperty("evicted");
  expect(calls.slice(before).filter(([, call]) => call === "LIST pods")).toHaveLength(2);
});

it("a pass whose time is over after a round reports no problem and no unread SidecarSet", async () => {
  const { reconcile } = stage();
  const { report, ...told } = await reconcile({ limits: { endsAtMs: 6_000, lastsMs: 6_000 } });
  expect(report).toMatchObject({ stop: "deadline", tally: { upgraded: 1 } });
  expect(told).toEqual({ problems: [], notReached: [], unread: [] });
});
