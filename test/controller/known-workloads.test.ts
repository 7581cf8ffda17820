/** Tests a snapshot's facts about the workloads that a pass restarts, and the restarts that it decides. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import {
  type KnownWorkloads,
  readWorkload,
  restartingOf,
  workloadVersion,
} from "../../shared/controller/rollout/known-workloads.ts";
import { isResizeServed } from "../../shared/controller/rollout/kubelets.ts";
import { DEPLOYMENTS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { bareCluster, refusal } from "./bare-cluster.ts";
import { steppedClock } from "./stepped-clock.ts";

const key = { namespace: "shop", name: "web" };
const ref = { workload: "Deployment", ...key } as const;
const one = { ...ref, uid: "u" };

function known(): KnownWorkloads {
  return { workloads: new Map() };
}

function stage(refused?: { readonly code: number }) {
  const { cluster, server } = bareCluster(steppedClock(), () => refused && refusal(refused.code, "no"));
  server.put("test", DEPLOYMENTS, { metadata: { ...key, uid: "u" } });
  const { resourceVersion } = server.peek(DEPLOYMENTS, key)?.metadata ?? {};
  return { cluster, resourceVersion };
}

it("the version of a workload is undefined before the workload is read", () => {
  expect(workloadVersion(known(), one)).toBeUndefined();
});

it("the version of a workload that was read is its resourceVersion, or null for another uid", async () => {
  const { cluster, resourceVersion } = stage();
  const snapshot = known();
  await readWorkload(cluster, snapshot, ref);
  expect(workloadVersion(snapshot, one)).toBe(resourceVersion);
  expect(workloadVersion(snapshot, { ...one, uid: "another" })).toBeNull();
});

it.each<[string, string | undefined, boolean]>([
  ["known when the expected uid is its own", "u", true],
  ["unknown when another uid is expected", "another", false],
  ["unknown when no uid is expected", undefined, false],
])("a workload is %s", async (_, uid, isMeant) => {
  const { cluster, resourceVersion } = stage();
  const snapshot = known();
  await readWorkload(cluster, snapshot, ref, async () => uid);
  expect(workloadVersion(snapshot, one)).toBe(isMeant ? resourceVersion : null);
});

it("a workload that does not exist counts as gone", async () => {
  const { cluster } = stage();
  const snapshot = known();
  await readWorkload(cluster, snapshot, { ...ref, name: "absent" }, async () => undefined);
  await readWorkload(cluster, snapshot, { ...ref, name: "absent-too" });
  expect([...snapshot.workloads.values()]).toEqual([null, null]);
});

it("readWorkload fails when the API server answers 503", async () => {
  const snapshot = known();
  await expect(readWorkload(stage({ code: 503 }).cluster, snapshot, ref)).rejects.toThrow("no");
  expect(snapshot.unreadWorkloads).toBeUndefined();
});

describe("restartingOf:", () => {
  const there: Pod = listedPod({ name: "there", uid: "there" });
  const missed = [there, listedPod({ name: "gone", uid: "gone" })];
  const seen = (annotations: Readonly<Record<string, string>>, restarted: readonly (typeof one)[] = []) => ({
    ...known(),
    sidecarSet: { metadata: { name: "set", annotations }, spec: {} } as SidecarSet,
    stored: { ledger: { restarted } },
    missed,
    observed: { view: { get: (uid: string) => (uid === "there" ? there : undefined) } },
    unreadWorkloads: new Map([["StatefulSet shop/db", "no"]]),
    workloadsTurn: 0.5,
  });
  const RESTART = { [REPLACE_ANNOTATION]: "NotUpgradable,Restart" };
  const RESTART_MISSED = { [REPLACE_ANNOTATION]: "Missed,Restart" };

  it("restartingOf returns undefined when no restart is requested or running", () => {
    expect(restartingOf(seen({}))).toBeUndefined();
  });

  it.each([
    ["running restarts", {}, [one], []],
    ["requests for pods that are not upgradable", RESTART, [], []],
    ["requests for pods that missed their sidecars, which still exist", RESTART_MISSED, [], [there]],
  ])("restartingOf returns %s", (_, annotations, restarted, left) => {
    const restarting = restartingOf(seen(annotations, restarted));
    expect(restarting).toEqual({
      restarted,
      missed: left,
      workloads: new Map(),
      unread: new Map([["StatefulSet shop/db", "no"]]),
      turn: 0.5,
    });
  });

  it("restartingOf returns no missed pods when the snapshot has no list of them", () => {
    const { missed: _, ...unlisted } = seen(RESTART_MISSED);
    expect(restartingOf(unlisted)?.missed).toEqual([]);
  });
});

it.each<[boolean, object]>([
  [true, { resources: [{ name: "pods" }, { name: "pods/resize" }] }],
  [false, { resources: [{ name: "pods" }, { name: "pods/status" }] }],
  [false, {}],
])("isResizeServed returns %s when the API server's discovery says %j", async (isServed, discovery) => {
  const { cluster } = bareCluster(steppedClock());
  expect(await isResizeServed({ ...cluster, list: async () => discovery as never })).toBe(isServed);
});
