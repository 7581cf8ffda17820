/** Writes to pods that another pass, or the API server, has something against. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { type Context, decideOn, observe, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { writePods } from "../../shared/controller/rollout/write-pods.ts";
import { subjectOf, withReservations } from "../../shared/core/ledger.ts";
import { wantedPods } from "../../shared/core/rollout/replace/plan-replacement.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import {
  deploy,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

const contextOf = (through: Cluster): Context => ({
  cluster: through,
  clock: systemClock,
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  tally: newTally(),
  recorded: new Set(),
  endsAtMs: Number.POSITIVE_INFINITY,
});

async function look(name: string): Promise<Snapshot> {
  const snapshot = await observe(contextOf(cluster), name);
  if (!snapshot) throw new Error(`there is no SidecarSet ${name}`);
  return snapshot;
}

/** A round's writes, of all that it wants. */
function write(context: Context, snapshot: Snapshot) {
  const decision = decideOn(context, snapshot, []);
  const wanted = wantedPods(decision.actions, new Set());
  return writePods(context, snapshot, decision, withReservations([], wanted, subjectOf(snapshot.sidecarSet)));
}

const NOTHING = { done: new Set(), refused: new Map(), notEvicted: new Set(), isOutdated: false };

describe("the patch of a pod", () => {
  it("is carried out", async () => {
    await deploy(cluster, "plain", 1, {});
    await release(cluster, "plain", 2);
    const [pod] = await readPods(cluster, "plain");
    const context = contextOf(cluster);
    expect(await write(context, await look("plain"))).toEqual({ ...NOTHING, done: new Set([pod?.metadata?.uid]) });
    expect(context.tally).toEqual({ ...newTally(), batches: 1, upgraded: 1 });
    expect(versionsOf(await readPods(cluster, "plain"))).toEqual(["2"]);
  });

  it.each<[string, number, boolean, readonly string[]]>([
    ["by-a-policy", 422, false, ["no"]],
    ["as-another-wrote", 422, true, []],
    ["as-if-changed", 409, false, []],
  ])(
    "that is refused is reported, and retried later, only where no other writer was faster: %s",
    async (name, ...given) => {
      const [code, isChanged, problems] = given;
      await deploy(cluster, name, 1, {});
      await release(cluster, name, 2);
      const snapshot = await look(name);
      let tried = 0;
      const refusing: Cluster = {
        ...cluster,
        patch: async (resource, key, ...call) => {
          if (resource !== PODS) return await cluster.patch(resource, key, ...call);
          const body = { metadata: { annotations: { changed: String(tried++) } } };
          if (isChanged) await cluster.patch(PODS, key, { type: "merge", body });
          throw new KubeError("no", { code, reason: "Refused" });
        },
      };
      const context = contextOf(refusing);
      expect(await write(context, snapshot)).toEqual(NOTHING);
      expect(context.tally).toEqual({
        ...newTally(),
        batches: 1,
        conflicts: 1,
        problems: problems.map((message) => ({ ...keyOf(`${name}-0`), message })),
      });
      await write(context, snapshot);
      expect(tried).toBe(problems.length > 0 ? 1 : 2);
    },
  );

  it("is over where the pod is gone", async () => {
    await deploy(cluster, "gone", 1, {});
    await release(cluster, "gone", 2);
    const snapshot = await look("gone");
    const [pod] = snapshot.observed.view.pods;
    const gone: Cluster = {
      ...cluster,
      patch: (resource, ...call) =>
        resource === PODS
          ? Promise.reject(new KubeError("no", { code: 404, reason: "NotFound" }))
          : cluster.patch(resource, ...call),
    };
    const context = contextOf(gone);
    expect(await write(context, snapshot)).toEqual(NOTHING);
    expect(context.tally).toEqual({ ...newTally(), batches: 1 });
    expect(snapshot.observed.view.versionOf(pod?.metadata?.uid ?? "")).toBeNull();
  });
});

it("a pod that is not selected any more is fenced, and no pod of the SidecarSet for that", async () => {
  await deploy(cluster, "fenced", 0, {});
  const spec = { schedulerName: "nobody", containers: [{ name: "main", image: "nginx:1" }] };
  const pod = await cluster.create<Pod>(PODS, newPod({ ...keyOf("elsewhere"), labels: { app: "other" } }, spec));
  const { uid = "", resourceVersion = "" } = pod.metadata ?? {};
  const snapshot = await look("fenced");
  const context = contextOf(cluster);
  const decision = decideOn(context, snapshot, []);
  const reservation = { ...keyOf("elsewhere"), uid, resourceVersion, generation: 1, revision: "hash1" };
  const { ledger } = snapshot.stored;
  expect(await writePods(context, snapshot, decision, { ledger, granted: new Set(), fenced: [reservation] })).toEqual(
    NOTHING,
  );
  const { metadata } = await cluster.get<Pod>(PODS, keyOf("elsewhere"));
  expect(metadata?.annotations).toEqual({ "sidecarset.kruise.io/fence": resourceVersion });
  expect(snapshot.observed.view.versionOf(uid)).toBe(metadata?.resourceVersion);
  expect(Array.from(snapshot.observed.view.pods)).toEqual([]);
  expect(context.tally).toEqual({ ...newTally(), fenced: 1 });
});
