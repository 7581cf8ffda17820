/** Runs the demo's commands, which the README shows, with the demo's own manifests on a real control plane. */

import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { type Manifest, readManifests } from "../../infra/demo/stage.ts";
import type { SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { sendRaw } from "../contract/raw.ts";
import { controlPlane } from "./support/access.ts";
import { readAudit } from "./support/audit.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { scenes } from "./support/open-scene.ts";
import { atMost, imageOf, isReady, type Scene, setImage } from "./support/scene.ts";

const openScene = scenes();

const SET = "log-agent";
const MANIFESTS = ["log-agent.yaml", "web.yaml"];
let manifests: readonly Manifest[];
beforeAll(async () => {
  manifests = await readManifests(
    MANIFESTS.map((name) => fileURLToPath(new URL(`../../infra/demo/${name}`, import.meta.url))),
  );
});

async function apply(scene: Scene): Promise<void> {
  for (const { resource, object } of manifests) {
    const { spec } = object as { readonly spec?: SidecarSetSpec };
    if (object.kind === "SidecarSet") await scene.createSet(object.metadata.name ?? "", { ...spec });
    else await scene.cluster.create(resource, { ...object, metadata: { ...object.metadata, namespace: scene.name } });
  }
}

/** Returns the columns that `kubectl get sidecarset` prints. */
async function columns(): Promise<readonly unknown[]> {
  const answer = await sendRaw(controlPlane(), {
    path: `/apis/apps.kruise.io/v1beta1/sidecarsets/${SET}`,
    headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" },
  });
  const { columnDefinitions, rows } = answer.body as {
    readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
    readonly rows: readonly { readonly cells: readonly unknown[] }[];
  };
  return columnDefinitions.flatMap(({ name, priority }, index) =>
    priority === 0 && name !== "AGE" ? [[name, rows[0]?.cells[index]]] : [],
  );
}

/** Runs a dry run as the reconciler, and returns how much it wrote. */
async function dryRun() {
  const userAgent = "dry-run";
  const reconciler = await asServiceAccount(controlPlane(), "kruise-system", "sidecarset-reconciler");
  const { sidecarSets } = await runPass(clusterOf(reconciler, userAgent), {
    kruiseNamespace: "kruise-system",
    deadlineMs: 10_000,
    sidecarSet: SET,
    dryRun: true,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
  });
  const calls = readAudit(controlPlane().auditLog).filter((event) => event.userAgent === userAgent);
  const reads = calls.filter(({ verb }) => ["get", "list", "watch"].includes(verb));
  return { report: sidecarSets[0], reads: reads.length, writes: calls.length - reads.length };
}

it("the demo injects 20 pods, rolls out a new image within partition and maxUnavailable, and stops at an image that cannot be pulled", async () => {
  const none = { selector: { matchLabels: { scene: "none" } }, updateStrategy: { maxUnavailable: 0 } };
  const scene = await openScene(none);
  await apply(scene);
  const created = await scene.untilReady(20);
  expect(created.map((pod) => imageOf(pod, "fluent-bit"))).toEqual(Array(20).fill("fluent/fluent-bit:4.1.0"));
  await scene.untilSettled(SET);
  const since = await scene.now();

  await scene.patchOther(SET, setImage("fluent/fluent-bit:4.1.1"));
  await scene.untilUpdated(10, SET);
  expect((await scene.untilSettled(SET)).why).toBe(
    "10 of 20 pods updated, 10 of them ready; partition keeps 10 at the old revision",
  );
  await scene.patchOther(SET, { op: "replace", path: "/spec/updateStrategy/partition", value: 0 });
  await scene.untilUpdated(20, SET);
  await scene.untilSettled(SET);
  const record = await scene.record(since);
  expect(record).toEqual({
    maxUnavailable: 4,
    maxUnavailableObserved: atMost(4),
    appContainerRestarts: 0,
    podPatches: 20,
  });
  expect((await scene.set(SET)).status).toMatchObject({ matchedPods: 20, updatedPods: 20, updatedReadyPods: 20 });
  expect(await columns()).toEqual([
    ["Name", SET],
    ["MATCHED", 20],
    ["UPDATED", 20],
    ["READY", 20],
    ["STATE", "Ready"],
  ]);

  await scene.patchOther(SET, { op: "replace", path: "/spec/updateStrategy/paused", value: true });
  await scene.patchOther(SET, setImage("fluent/fluent-bit:does-not-exist"));
  await scene.untilSettled(SET);
  await scene.patchOther(SET, { op: "replace", path: "/spec/updateStrategy/paused", value: false });
  await scene.untilTouched(4, SET);
  const { report, reads, writes } = await dryRun();
  expect(report?.why).toMatch(/^4 of 20 pods updated, 0 of them ready; 4 unavailable of at most 4/);
  const patched = report?.planned?.filter((line) => /^\w+ pod /.test(line));
  expect({ reads: reads > 0, writes, patched }).toEqual({ reads: true, writes: 0, patched: [] });
  expect((await scene.pods()).filter(isReady)).toHaveLength(16);
  await scene.patchOther(SET, setImage("fluent/fluent-bit:4.1.2"));
  await scene.untilUpdated(20, SET);
});
