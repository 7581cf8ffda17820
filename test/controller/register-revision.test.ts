/** ControllerRevisions of a SidecarSet: a name is looked for, and those that nobody refers to any more go. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type Context, decideOn, observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { decideWithRevision, truncateRevisions } from "../../shared/controller/rollout/register-revision.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONTROLLER_REVISIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { faultyCluster } from "./faults.ts";
import { deploy, fastClock, KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const contextOf = (through: Cluster): Context => ({
  cluster: through,
  clock: fastClock(20),
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  tally: newTally(),
  recorded: new Set(),
  endsAtMs: Number.POSITIVE_INFINITY,
});

const keyOf = (name: string) => ({ namespace: KRUISE_NAMESPACE, name });
const read = (name: string) => cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, keyOf(name));

/** A SidecarSet without pods, and so many revisions of it, as they were looked at. */
async function look(name: string, count = 1): Promise<Snapshot> {
  await deploy(cluster, name, 0, {});
  for (let revision = 1; revision <= count; revision++)
    await cluster.create<ControllerRevision>(CONTROLLER_REVISIONS, {
      metadata: { ...keyOf(`${name}-${revision}`), labels: { "kruise.io/sidecarset-name": name } },
      revision,
      data: {},
    });
  const snapshot = await observe(contextOf(cluster), name);
  if (!snapshot) throw new Error(`there is no SidecarSet ${name}`);
  return snapshot;
}

/** Deletes all that were looked at. Returns the problems that are reported. */
async function truncate(snapshot: Snapshot, context: Context) {
  const actions = snapshot.revisions.map(({ metadata }) => ({
    kind: "DeleteRevision" as const,
    ...keyOf(metadata?.name ?? ""),
    uid: metadata?.uid ?? "",
    resourceVersion: metadata?.resourceVersion ?? "",
  }));
  await truncateRevisions(context, snapshot, { ...decideOn(context, snapshot, []), actions });
  return context.tally.problems;
}

const refuse = (code: number, message: string) => () =>
  Promise.reject(new KubeError(message, { code, reason: "Refused" }));

describe("a revision that nobody refers to any more", () => {
  it("is deleted, and so is one that another pass has deleted since", async () => {
    const snapshot = await look("unused", 2);
    await cluster.delete(CONTROLLER_REVISIONS, keyOf("unused-1"));
    expect(await truncate(snapshot, contextOf(cluster))).toEqual([]);
    expect(snapshot.revisions).toEqual([]);
    await expect(read("unused-2")).rejects.toMatchObject({ code: 404 });
  });

  it("is left as it is now when it was written to since", async () => {
    const snapshot = await look("again", 2);
    const patch = { type: "merge", body: { revision: 7 } } as const;
    const renumbered = await cluster.patch<ControllerRevision>(CONTROLLER_REVISIONS, keyOf("again-1"), patch);
    expect(await truncate(snapshot, contextOf(cluster))).toEqual([]);
    expect(snapshot.revisions).toEqual([renumbered]);
    expect(await read("again-1")).toEqual(renumbered);
  });

  it("is no trouble when it went just after the API server had refused", async () => {
    const snapshot = await look("late");
    const late: Cluster = {
      ...cluster,
      delete: async (...call) => {
        await cluster.delete(...call);
        await refuse(409, "the object has been modified")();
      },
    };
    expect(await truncate(snapshot, contextOf(late))).toEqual([]);
    expect(snapshot.revisions).toEqual([]);
  });

  it.each<[string, Partial<Cluster>, string]>([
    ["forbidden", { delete: refuse(403, "no right to delete") }, "no right to delete"],
    ["held-by-a-policy", { delete: refuse(409, "the policy says no") }, "the policy says no"],
    ["not-readable", { delete: refuse(409, "modified"), get: refuse(403, "no right to read") }, "modified"],
  ])("stays where it is %s, which is told once beside other trouble", async (name, refusing, why) => {
    const snapshot = await look(name, 2);
    const { revisions } = snapshot;
    const context = contextOf({ ...cluster, ...refusing });
    const other = { namespace: "shop", name: "pod", message: "is not written to" };
    context.tally.problems.push(other);
    const message = `the ControllerRevision is not deleted: ${why}`;
    expect(await truncate(snapshot, context)).toEqual([other, { ...keyOf(`${name}-1`), message }]);
    expect(snapshot.revisions).toEqual(revisions);
  });

  it("is tried again by the next pass when no answer came", async () => {
    const snapshot = await look("lost", 2);
    const { revisions } = snapshot;
    const lossy = faultyCluster(cluster, "lostAnswer", (_, call) => call.startsWith("DELETE"));
    expect(await truncate(snapshot, contextOf(lossy))).toEqual([]);
    expect(snapshot.revisions).toEqual(revisions);
  });
});

it("a revision whose every name belongs to another one is given up on", async () => {
  const snapshot = await look("crowded", 0);
  const tried: string[] = [];
  const crowded: Cluster = {
    ...cluster,
    create: async (resource, object, options) => {
      if (resource !== CONTROLLER_REVISIONS) return cluster.create(resource, object, options);
      tried.push(object.metadata?.name ?? "");
      const { labels: _, ...metadata } = object.metadata ?? {};
      await cluster.create<ControllerRevision>(CONTROLLER_REVISIONS, {
        metadata,
        revision: 1,
        data: { of: "another" },
      });
      return await cluster.create(resource, object, options);
    },
  };
  await expect(decideWithRevision(contextOf(crowded), snapshot, [])).rejects.toThrow(
    "no free name for a ControllerRevision after 10 collisions",
  );
  expect(new Set(tried).size).toBe(11);
});

describe("the revision of what is rolled out", () => {
  async function register(refuse?: Refuse) {
    const on = bareRollout("set", refuse);
    on.deploy(0);
    const snapshot = await observe(on.context, "set");
    if (!snapshot) throw new Error("there is no SidecarSet");
    const decide = () => decideWithRevision(on.context, snapshot, []);
    const stored = () => on.server.all<ControllerRevision>(CONTROLLER_REVISIONS).map(({ metadata }) => metadata?.name);
    return { ...on, snapshot, decide, stored };
  }

  it("is there before anything refers to it", async () => {
    const { decide, stored, snapshot } = await register();
    const { status } = await decide();
    expect(stored()).toEqual([status.latestRevision]);
    expect(snapshot.revisions.map(({ metadata }) => metadata?.name)).toEqual([status.latestRevision]);
  });

  it("has another name where its own is another one's", async () => {
    const { decide, stored, server } = await register();
    const first = (await (await register()).decide()).status.latestRevision ?? "";
    server.put("test", CONTROLLER_REVISIONS, { metadata: { ...keyOf(first), uid: "other" } });
    const { status } = await decide();
    expect(status.latestRevision).not.toBe(first);
    expect(status.collisionCount).toBe(1);
    expect(stored().toSorted()).toEqual([first, status.latestRevision].toSorted());
  });

  it("has another name where it is refused, and its own is another one's", async () => {
    const { decide, stored, server } = await register((call, nth) =>
      call === "CREATE controllerrevisions" && nth === 1 ? refusal(422, "Invalid") : undefined,
    );
    const first = (await (await register()).decide()).status.latestRevision ?? "";
    server.put("test", CONTROLLER_REVISIONS, { metadata: { ...keyOf(first), uid: "other" } });
    const { status } = await decide();
    expect(status.collisionCount).toBe(1);
    expect(stored().toSorted()).toEqual([first, status.latestRevision].toSorted());
  });

  it.each<[string, KubeError]>([
    ["no answer came", new KubeError("gone", { code: 504, reason: "Timeout", isOutcomeKnown: false })],
    ["another was faster, and then deleted its own", refusal(409, "AlreadyExists")],
  ])("is created again where %s", async (_, error) => {
    const { decide, stored, calls } = await register((call, nth) =>
      call === "CREATE controllerrevisions" && nth === 1 ? error : undefined,
    );
    const { status } = await decide();
    expect(stored()).toEqual([status.latestRevision]);
    expect(calls.slice(-3).map(([, call]) => call)).toEqual([
      "CREATE controllerrevisions refused",
      "GET controllerrevisions",
      "CREATE controllerrevisions",
    ]);
  });

  it.each<[string, KubeError, string]>([
    ["a policy refuses it", refusal(422, "Invalid"), "no ControllerRevision is written: Invalid"],
    ["rights are missing", refusal(403, "Forbidden"), "no ControllerRevision is written: Forbidden"],
    ["its namespace is not there", refusal(404, "NotFound"), "NotFound"],
  ])("ends the pass where %s", async (_, error, message) => {
    const { decide, stored } = await register((call) => (call === "CREATE controllerrevisions" ? error : undefined));
    await expect(decide()).rejects.toThrow(message);
    expect(stored()).toEqual([]);
  });

  it("is known beside those that there were", async () => {
    const { decide, release, context } = await register();
    await decide();
    release(2);
    const later = await observe(context, "set");
    if (!later) throw new Error("there is no SidecarSet");
    await decideWithRevision(context, later, []);
    expect(later.revisions.map(({ revision }) => revision)).toEqual([1, 2]);
  });

  it("gets the label that its SidecarSet asks for", async () => {
    const { decide, context, server, readSet } = await register();
    await decide();
    const { spec, ...set } = readSet();
    server.put("test", SIDECARSETS, { ...set, spec: { ...spec, customVersion: "blue" } } as SidecarSet);
    const later = await observe(context, "set");
    if (!later) throw new Error("there is no SidecarSet");
    await decideWithRevision(context, later, []);
    const [revision] = server.all<ControllerRevision>(CONTROLLER_REVISIONS);
    expect(revision?.metadata?.labels).toMatchObject({ "apps.kruise.io/sidecarset-custom-version": "blue" });
  });

  it("ends the pass where it cannot be read whose the name is", async () => {
    const { decide } = await register((call) =>
      call.endsWith(" controllerrevisions") && !call.startsWith("LIST")
        ? refusal(call.startsWith("GET") ? 403 : 409, call)
        : undefined,
    );
    await expect(decide()).rejects.toThrow("GET controllerrevisions");
  });

  it("that cannot be given its new number ends the pass", async () => {
    const refused = await register((call) =>
      call === "PATCH controllerrevisions" ? refusal(409, "Conflict") : undefined,
    );
    await refused.decide();
    refused.release(2);
    const later = await observe(refused.context, "set");
    if (!later) throw new Error("there is no SidecarSet");
    await decideWithRevision(refused.context, later, []);
    refused.release(1);
    const back = await observe(refused.context, "set");
    if (!back) throw new Error("there is no SidecarSet");
    await expect(decideWithRevision(refused.context, back, [])).rejects.toThrow(
      "no ControllerRevision is written: Conflict",
    );
  });
});
