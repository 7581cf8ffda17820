/** Tests ControllerRevisions of a SidecarSet: how a pass finds a name, and how it deletes unused revisions. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import {
  type Context,
  decideOn,
  decideUntilKnown,
  observe,
  type Snapshot,
} from "../../shared/controller/rollout/observe.ts";
import { nameRevision, truncateRevisions } from "../../shared/controller/rollout/register-revision.ts";
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

/** Repeats the decision until the revision has a name. */
const decideNamed = (context: Context, snapshot: Snapshot) =>
  decideUntilKnown(() => decideOn(context, snapshot, []), [nameRevision(context, snapshot)]);

const keyOf = (name: string) => ({ namespace: KRUISE_NAMESPACE, name });
const read = (name: string) => cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, keyOf(name));

/** Returns the snapshot of a SidecarSet without pods and with `count` revisions. */
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

/** Deletes the snapshot's revisions. Returns the problems that are reported. */
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

it("truncateRevisions deletes unused revisions and accepts that another pass has deleted one", async () => {
  const snapshot = await look("unused", 2);
  await cluster.delete(CONTROLLER_REVISIONS, keyOf("unused-1"));
  expect(await truncate(snapshot, contextOf(cluster))).toEqual([]);
  expect(snapshot.revisions).toEqual([]);
  await expect(read("unused-2")).rejects.toMatchObject({ code: 404 });
});

it("a revision that has changed is kept with its new state", async () => {
  const snapshot = await look("again", 2);
  const patch = { type: "merge", body: { revision: 7 } } as const;
  const renumbered = await cluster.patch<ControllerRevision>(CONTROLLER_REVISIONS, keyOf("again-1"), patch);
  expect(await truncate(snapshot, contextOf(cluster))).toEqual([]);
  expect(snapshot.revisions).toEqual([renumbered]);
  expect(await read("again-1")).toEqual(renumbered);
});

it("a revision that disappears right after a refused deletion is not a problem", async () => {
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
])("revisions stay when their deletion fails, and one problem is reported: case %s", async (name, refusing, why) => {
  const snapshot = await look(name, 2);
  const { revisions } = snapshot;
  const context = contextOf({ ...cluster, ...refusing });
  const other = { namespace: "shop", name: "pod", message: "is not written to" };
  context.tally.problems.push(other);
  const message = `the ControllerRevision is not deleted: ${why}`;
  expect(await truncate(snapshot, context)).toEqual([other, { ...keyOf(`${name}-1`), message }]);
  expect(snapshot.revisions).toEqual(revisions);
});

it("a revision whose deletion got no answer stays for the next pass", async () => {
  const snapshot = await look("lost", 2);
  const { revisions } = snapshot;
  const lossy = faultyCluster(cluster, "lostAnswer", (_, call) => call.startsWith("DELETE"));
  expect(await truncate(snapshot, contextOf(lossy))).toEqual([]);
  expect(snapshot.revisions).toEqual(revisions);
});

it("a rollout fails when ten collisions leave no free name for its revision", async () => {
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
  await expect(decideNamed(contextOf(crowded), snapshot)).rejects.toThrow(
    "no free name for a ControllerRevision after 10 collisions",
  );
  expect(new Set(tried).size).toBe(11);
});

describe("nameRevision:", () => {
  async function register(refuse?: Refuse) {
    const on = bareRollout("set", refuse);
    on.deploy(0);
    const snapshot = await observe(on.context, "set");
    if (!snapshot) throw new Error("there is no SidecarSet");
    const decide = () => decideNamed(on.context, snapshot);
    const stored = () => on.server.all<ControllerRevision>(CONTROLLER_REVISIONS).map(({ metadata }) => metadata?.name);
    return { ...on, snapshot, decide, stored };
  }

  it("the revision is created and becomes the latest revision of the status", async () => {
    const { decide, stored, snapshot } = await register();
    const { status } = await decide();
    expect(stored()).toEqual([status.latestRevision]);
    expect(snapshot.revisions.map(({ metadata }) => metadata?.name)).toEqual([status.latestRevision]);
  });

  it("the revision gets another name when the first name belongs to another revision", async () => {
    const { decide, stored, server } = await register();
    const first = (await (await register()).decide()).status.latestRevision ?? "";
    server.put("test", CONTROLLER_REVISIONS, { metadata: { ...keyOf(first), uid: "other" } });
    const { status } = await decide();
    expect(status.latestRevision).not.toBe(first);
    expect(status.collisionCount).toBe(1);
    expect(stored().toSorted()).toEqual([first, status.latestRevision].toSorted());
  });

  it("the revision gets another name when its creation is refused and the first name is taken", async () => {
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
    ["its creation got no answer", new KubeError("gone", { code: 504, reason: "Timeout", isOutcomeKnown: false })],
    ["another pass created and deleted the same name", refusal(409, "AlreadyExists")],
  ])("the revision is created again when %s", async (_, error) => {
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
    ["a policy refuses the revision", refusal(422, "Invalid"), "no ControllerRevision is written: Invalid"],
    ["creating revisions is forbidden", refusal(403, "Forbidden"), "no ControllerRevision is written: Forbidden"],
    ["the namespace does not exist", refusal(404, "NotFound"), "NotFound"],
  ])("the pass ends when %s", async (_, error, message) => {
    const { decide, stored } = await register((call) => (call === "CREATE controllerrevisions" ? error : undefined));
    await expect(decide()).rejects.toThrow(message);
    expect(stored()).toEqual([]);
  });

  it("a new revision is added to the known ones with the next number", async () => {
    const { decide, release, context } = await register();
    await decide();
    release(2);
    const later = await observe(context, "set");
    if (!later) throw new Error("there is no SidecarSet");
    await decideNamed(context, later);
    expect(later.revisions.map(({ revision }) => revision)).toEqual([1, 2]);
  });

  it("the revision gets the custom version of its SidecarSet as a label", async () => {
    const { decide, context, server, readSet } = await register();
    await decide();
    const { spec, ...set } = readSet();
    server.put("test", SIDECARSETS, { ...set, spec: { ...spec, customVersion: "blue" } } as SidecarSet);
    const later = await observe(context, "set");
    if (!later) throw new Error("there is no SidecarSet");
    await decideNamed(context, later);
    const [revision] = server.all<ControllerRevision>(CONTROLLER_REVISIONS);
    expect(revision?.metadata?.labels).toMatchObject({ "apps.kruise.io/sidecarset-custom-version": "blue" });
  });

  it("the pass ends when it cannot read the revision that has the name", async () => {
    const { decide } = await register((call) =>
      call.endsWith(" controllerrevisions") && !call.startsWith("LIST")
        ? refusal(call.startsWith("GET") ? 403 : 409, call)
        : undefined,
    );
    await expect(decide()).rejects.toThrow("GET controllerrevisions");
  });

  it("the pass ends when an old revision cannot get its new number", async () => {
    const refused = await register((call) =>
      call === "PATCH controllerrevisions" ? refusal(409, "Conflict") : undefined,
    );
    await refused.decide();
    refused.release(2);
    const later = await observe(refused.context, "set");
    if (!later) throw new Error("there is no SidecarSet");
    await decideNamed(refused.context, later);
    refused.release(1);
    const back = await observe(refused.context, "set");
    if (!back) throw new Error("there is no SidecarSet");
    await expect(decideNamed(refused.context, back)).rejects.toThrow("no ControllerRevision is written: Conflict");
  });
});
