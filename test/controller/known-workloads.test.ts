/** What a snapshot knows of workloads that are restarted, and which restarts it asks for. */
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
import { isResizeServed } from "../../shared/controller/rollout/resize-served.ts";
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

describe("a workload", () => {
  it("is not known before it is read", () => {
    expect(workloadVersion(known(), one)).toBeUndefined();
  });

  it("is known by its version once it is read, whichever has the name", async () => {
    const { cluster, resourceVersion } = stage();
    const snapshot = known();
    await readWorkload(cluster, snapshot, ref);
    expect(workloadVersion(snapshot, one)).toBe(resourceVersion);
    expect(workloadVersion(snapshot, { ...one, uid: "another" })).toBeNull();
  });

  it.each<[string, string | undefined, boolean]>([
    ["the one that is meant", "u", true],
    ["not where another is meant", "another", false],
    ["not where none is meant", undefined, false],
  ])("is %s", async (_, uid, isMeant) => {
    const { cluster, resourceVersion } = stage();
    const snapshot = known();
    await readWorkload(cluster, snapshot, ref, async () => uid);
    expect(workloadVersion(snapshot, one)).toBe(isMeant ? resourceVersion : null);
  });

  it("is gone where there is none of its name, although none was meant", async () => {
    const { cluster } = stage();
    const snapshot = known();
    await readWorkload(cluster, snapshot, { ...ref, name: "absent" }, async () => undefined);
    await readWorkload(cluster, snapshot, { ...ref, name: "absent-too" });
    expect([...snapshot.workloads.values()]).toEqual([null, null]);
  });

  it("that cannot be read for another reason than rights ends the look", async () => {
    const snapshot = known();
    await expect(readWorkload(stage({ code: 500 }).cluster, snapshot, ref)).rejects.toThrow("no");
    expect(snapshot.restartRefusal).toBeUndefined();
  });
});

describe("restarts that are asked for", () => {
  const there: Pod = listedPod({ name: "there", uid: "there" });
  const missed = [there, listedPod({ name: "gone", uid: "gone" })];
  const seen = (annotations: Readonly<Record<string, string>>, restarted: readonly (typeof one)[] = []) => ({
    ...known(),
    sidecarSet: { metadata: { name: "set", annotations }, spec: {} } as SidecarSet,
    stored: { ledger: { restarted } },
    missed,
    observed: { view: { get: (uid: string) => (uid === "there" ? there : undefined) } },
    restartRefusal: "no",
  });
  const RESTART = { [REPLACE_ANNOTATION]: "NotUpgradable,Restart" };
  const RESTART_MISSED = { [REPLACE_ANNOTATION]: "Missed,Restart" };

  it("are none where none is asked for and none is under way", () => {
    expect(restartingOf(seen({}))).toBeUndefined();
  });

  it.each([
    ["under way", {}, [one], []],
    ["for pods that are not upgradable", RESTART, [], []],
    ["for pods that were missed, which are still there", RESTART_MISSED, [], [there]],
  ])("are %s", (_, annotations, restarted, left) => {
    const restarting = restartingOf(seen(annotations, restarted));
    expect(restarting).toEqual({ restarted, missed: left, workloads: new Map(), refusal: "no" });
  });

  it("may ask without a list of pods that were missed", () => {
    const { missed: _, ...unlisted } = seen(RESTART_MISSED);
    expect(restartingOf(unlisted)?.missed).toEqual([]);
  });
});

describe("resources of running pods are changed", () => {
  it.each<[boolean, object]>([
    [true, { resources: [{ name: "pods" }, { name: "pods/resize" }] }],
    [false, { resources: [{ name: "pods" }, { name: "pods/status" }] }],
    [false, {}],
  ])("%s by an API server whose discovery says %j", async (isServed, discovery) => {
    const { cluster } = bareCluster(steppedClock());
    expect(await isResizeServed({ ...cluster, list: async () => discovery as never })).toBe(isServed);
  });
});
