/**
 * Compares ordered sets with the built-in StatefulSet controller: with equal specs, events and kubelets both must have
 * the same pods in the same order.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { tickSetsUntilAborted } from "../../functions/server/ticks.ts";
import type { ApiObject } from "../../infra/local/storage/json.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../shared/core/statefulset/step.ts";
import { statefulSetInstallation } from "../../shared/install/manifests.ts";
import { CLAIMS, type Cluster, PODS, type Resource } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { follow } from "./support/follow.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { SideBySide, type SideView, type Spec, template } from "./support/side-by-side.ts";
import { eventually } from "./support/until.ts";

const VOLUMES: Resource = { group: "", version: "v1", plural: "persistentvolumes", namespaced: false };

let functions: StartedFunctions;
let cluster: Cluster;
let installed: readonly KubernetesObject[] = [];
const end = new AbortController();
const running: Promise<unknown>[] = [];
const errors: string[] = [];
/** Tests that run at the same time add to one sum. */
const same = { scenarios: 0, steps: 0 };

beforeAll(async () => {
  const admin = controlPlane();
  cluster = clusterOf(admin);
  functions = await startFunctions(admin, { hasTicks: false });
  installed = statefulSetInstallation(functions.address);
  expect(installed).toHaveLength(7);
  await createAll(cluster, installed);
  const reconciler = clusterOf(await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler"));
  const { signal } = end;
  running.push(
    tickSetsUntilAborted({
      connect: async () => reconciler,
      kruiseNamespace: "kruise-system",
      gates: { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, StatefulSetStartOrdinal: true },
      tickMs: 500,
      log: createLog("error", (line) => void errors.push(line)),
      signal,
    }),
    follow({ cluster, resource: CLAIMS, signal, see: (claim, isGone) => void (isGone || provide(claim)) }),
  );
});
afterAll(async () => {
  end.abort();
  await Promise.all(running);
  await removeAll(cluster, [...installed].reverse());
  await functions?.close();
});

/** Creates a volume for each claim, because no provisioner runs here. */
async function provide({ metadata, ...claim }: ApiObject): Promise<void> {
  const { namespace, name, uid } = metadata;
  if ((claim["spec"] as { readonly volumeName?: string }).volumeName || metadata.deletionTimestamp) return;
  const spec = {
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
    hostPath: { path: "/tmp" },
    storageClassName: "",
    persistentVolumeReclaimPolicy: "Retain",
    claimRef: { namespace, name, uid },
  };
  await cluster.create(VOLUMES, { metadata: { name: `pv-${uid}` }, ...{ spec } }).catch(() => undefined);
}

/** Expects this number of ready pods with this image, and a status that agrees. */
function atRest(pods: number, image = "app:1", first = 0): (view: SideView) => void {
  const names = Array.from({ length: pods }, (_, index) => `db-${first + index} ${image} ready`);
  return ({ pods: there, status }) => {
    expect(there).toEqual(names);
    expect(status).toMatchObject({ replicas: pods, readyReplicas: pods, isObserved: true, isCurrent: true });
    expect(status).toMatchObject({ currentReplicas: pods, updatedReplicas: pods, availableReplicas: pods });
  };
}

function seen(pods: readonly string[], status: SideView["status"] = {}): (view: SideView) => void {
  return (view) => {
    expect(view.pods).toEqual(pods);
    expect(view.status).toMatchObject({ isObserved: true, ...status });
  };
}

type Act = (sets: SideBySide) => Promise<void>;

interface Scenario {
  readonly title: string;
  readonly spec: Spec;
  /** the acts in order, after the first pods are ready */
  readonly acts: readonly Act[];
  /** checks the pods of the first spec; absent: expects 3 */
  readonly first?: (view: SideView) => void;
}

const to =
  (spec: Spec, check: (view: SideView) => void): Act =>
  async (sets) => {
    await sets.patchSpec(spec);
    await sets.until(check);
  };
const newImage = (image: string, check: (view: SideView) => void) => to({ template: template(image) }, check);
const deletePod =
  (name: string, check: (view: SideView) => void): Act =>
  async (sets) => {
    await sets.eachPod(name, (on, key) => on.delete(PODS, key));
    await sets.until((view) => {
      expect(view.pods.some((pod) => pod.includes("going"))).toBe(false);
      check(view);
    });
  };
const partition = (count: number): Spec => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: count } },
});
const scale =
  (replicas: number): Act =>
  async (sets) => {
    await sets.scale(replicas);
    await sets.until(atRest(replicas));
  };
const claims = {
  volumeClaimTemplates: [
    {
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests: { storage: "1Gi" } } },
    },
  ],
};
const keeping = (whenScaled: string, whenDeleted = "Retain"): Spec => ({
  ...claims,
  persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
});
const claimsAre =
  (...names: readonly string[]): Act =>
  (sets) =>
    sets.until((view) => expect(view.claims).toEqual(names));

const SCENARIOS: readonly Scenario[] = [
  { title: "three pods in order", spec: { replicas: 3 }, acts: [] },
  { title: "three pods at once", spec: { replicas: 3, podManagementPolicy: "Parallel" }, acts: [] },
  { title: "scaled up in order", spec: { replicas: 1 }, first: atRest(1), acts: [scale(4)] },
  { title: "scaled down in reverse", spec: { replicas: 4 }, first: atRest(4), acts: [scale(1)] },
  { title: "scaled to nothing and back", spec: { replicas: 2 }, first: atRest(2), acts: [scale(0), scale(2)] },
  {
    title: "scaled down at once",
    spec: { replicas: 4, podManagementPolicy: "Parallel" },
    first: atRest(4),
    acts: [to({ replicas: 1 }, atRest(1))],
  },
  { title: "updated from the top", spec: { replicas: 3 }, acts: [newImage("app:2", atRest(3, "app:2"))] },
  {
    title: "updated from the top, all managed at once",
    spec: { replicas: 3, podManagementPolicy: "Parallel" },
    acts: [newImage("app:2", atRest(3, "app:2"))],
  },
  {
    title: "updated as far as the partition",
    spec: { replicas: 3, ...partition(2) },
    acts: [
      newImage("app:2", seen(["db-0 app:1 ready", "db-1 app:1 ready", "db-2 app:2 ready"], { updatedReplicas: 1 })),
      to(partition(0), atRest(3, "app:2")),
    ],
  },
  {
    title: "a pod below the partition is recreated as it was",
    spec: { replicas: 3, ...partition(2) },
    acts: [
      newImage("app:2", seen(["db-0 app:1 ready", "db-1 app:1 ready", "db-2 app:2 ready"], { updatedReplicas: 1 })),
      deletePod("db-0", seen(["db-0 app:1 ready", "db-1 app:1 ready", "db-2 app:2 ready"], { readyReplicas: 3 })),
    ],
  },
  {
    title: "rolled back",
    spec: { replicas: 2 },
    first: atRest(2),
    acts: [newImage("app:2", atRest(2, "app:2")), newImage("app:1", atRest(2))],
  },
  {
    title: "updated when pods are deleted",
    spec: { replicas: 2, updateStrategy: { type: "OnDelete" } },
    first: seen(["db-0 app:1 ready", "db-1 app:1 ready"], { readyReplicas: 2 }),
    acts: [
      newImage("app:2", seen(["db-0 app:1 ready", "db-1 app:1 ready"], { updatedReplicas: 0 })),
      deletePod("db-0", seen(["db-0 app:2 ready", "db-1 app:1 ready"], { readyReplicas: 2, updatedReplicas: 1 })),
    ],
  },
  { title: "a deleted pod comes back", spec: { replicas: 3 }, acts: [deletePod("db-1", atRest(3))] },
  {
    title: "a failed pod is replaced",
    spec: { replicas: 2 },
    first: atRest(2),
    acts: [
      async (sets) => {
        const body = { status: { phase: "Failed" } };
        await sets.eachPod("db-1", (on, key) =>
          on.patch(PODS, key, { type: "merge", body }, { subresource: "status" }),
        );
        for (const side of ["theirs", "ours"] as const)
          await eventually(
            () => sets.sequence(side),
            (steps) => expect(steps).toContain("delete db-1"),
          );
        await sets.until(atRest(2));
      },
    ],
  },
  {
    title: "scaled and updated in one change",
    spec: { replicas: 2 },
    first: atRest(2),
    acts: [to({ replicas: 3, template: template("app:2") }, atRest(3, "app:2"))],
  },
  {
    title: "an image that cannot be pulled stops the update",
    spec: { replicas: 3 },
    acts: [
      newImage(
        "app:does-not-exist",
        seen(["db-0 app:1 ready", "db-1 app:1 ready", "db-2 app:does-not-exist not ready"], {
          readyReplicas: 2,
          updatedReplicas: 1,
          currentReplicas: 2,
        }),
      ),
    ],
  },
  {
    title: "pods have to be ready for a while",
    spec: { replicas: 2, minReadySeconds: 1 },
    first: atRest(2),
    acts: [newImage("app:2", atRest(2, "app:2"))],
  },
  {
    title: "claims stay when the set shrinks",
    spec: { replicas: 2, ...keeping("Retain") },
    first: atRest(2),
    acts: [scale(1), claimsAre("data-db-0", "data-db-1"), scale(2)],
  },
  {
    title: "claims go when the set shrinks",
    spec: { replicas: 2, ...keeping("Delete") },
    first: atRest(2),
    acts: [scale(1), claimsAre("data-db-0"), scale(2), claimsAre("data-db-0", "data-db-1")],
  },
  {
    title: "claims go with the set",
    spec: { replicas: 1, ...keeping("Retain", "Delete") },
    first: atRest(1),
    acts: [(sets) => sets.deleteSets(), claimsAre()],
  },
  { title: "numbered from 5", spec: { replicas: 2, ordinals: { start: 5 } }, first: atRest(2, "app:1", 5), acts: [] },
  {
    title: "as many revisions as the limit says",
    spec: { replicas: 1, revisionHistoryLimit: 1 },
    first: atRest(1),
    acts: [
      newImage("app:2", atRest(1, "app:2")),
      newImage("app:3", atRest(1, "app:3")),
      newImage("app:4", atRest(1, "app:4")),
      (sets) => sets.until((view) => expect(view.revisions).toBe(2)),
    ],
  },
];

it.concurrent.for(SCENARIOS)(
  "the product and the built-in controller do the same: $title",
  async ({ title, spec, acts, first = atRest(3) }, { onTestFinished }) => {
    const name = `ordered-${SCENARIOS.findIndex((scenario) => scenario.title === title)}`;
    const sets = new SideBySide(controlPlane(), name);
    onTestFinished(() => sets.close());
    await sets.create(spec);
    await sets.until(first);
    for (const act of acts) await act(sets);
    const [theirs, ours] = await Promise.all([sets.sequence("theirs"), sets.sequence("ours")]);
    // With policy Parallel no order is promised.
    const isOrdered = spec.podManagementPolicy !== "Parallel";
    const sorted = (lines: readonly string[]) => (isOrdered ? lines : lines.toSorted());
    expect(sorted(ours)).toEqual(sorted(theirs));
    expect(ours.length).toBeGreaterThan(0);
    const [theirView, ourView] = await Promise.all([sets.view("theirs"), sets.view("ours")]);
    expect(ourView).toEqual(theirView);
    same.scenarios++;
    same.steps += ours.length;
  },
);

it("all promised scenarios ran, and the passes reported no error", () => {
  addFigure("ordered sets beside the built-in controller, scenarios", same.scenarios);
  addFigure("pods created or deleted in the same order on both sides", same.steps);
  expect(SCENARIOS.length).toBeGreaterThanOrEqual(20);
  expect(errors).toEqual([]);
});
