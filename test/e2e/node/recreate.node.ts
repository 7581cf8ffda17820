/** Tests ContainerRecreateRequests on real containerd: each way to write an image, the restarts, and the pulls. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { recreateInstallation } from "../../../shared/install/manifests.ts";
import { CONTAINER_RECREATE_REQUESTS } from "../../../shared/kube/port.ts";
import { apiServer, askedOfRegistry } from "../support/access.ts";
import { clusterOf } from "../support/clients.ts";
import { addFigure } from "../support/figures.ts";
import { type StartedFunctions, startFunctions } from "../support/functions.ts";
import { createAll, removeAll } from "../support/installed.ts";
import { imageOf, Scene } from "../support/scene.ts";
import { eventually } from "../support/until.ts";

let functions: StartedFunctions;
let installed: readonly KubernetesObject[] = [];
beforeAll(async () => {
  functions = await startFunctions(apiServer());
  installed = recreateInstallation(functions.address);
  await createAll(clusterOf(apiServer()), installed);
});
afterAll(async () => {
  await removeAll(clusterOf(apiServer()), [...installed].reverse());
  await functions?.close();
});

const DIGEST = "sha256:…";

/** Rows of docs/container-recreate.md: the image's spelling at first, after the first restart, and after the next. */
const ROWS: readonly (readonly [string, string, string])[] = [
  ["nginx:1.25", `nginx:1.25@${DIGEST}`, `nginx@${DIGEST}`],
  ["acme/app:1", `acme/app:1@${DIGEST}`, `acme/app@${DIGEST}`],
  ["plain", "plain:latest", "plain"],
  ["registry.example/app:1", `registry.example/app:1@${DIGEST}`, `registry.example/app@${DIGEST}`],
];

async function recreate(scene: Scene, name: string): Promise<void> {
  const key = { namespace: scene.name, name };
  await scene.cluster.create(CONTAINER_RECREATE_REQUESTS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: key,
    spec: { podName: "one", containers: [{ name: "log" }] },
  } as KubernetesObject);
  await eventually(
    () => scene.cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, key),
    ({ status }) =>
      expect(status).toMatchObject({ phase: "Completed", containerRecreateStates: [{ phase: "Succeeded" }] }),
  );
}

it.each(ROWS)("%s is written %s, and the next time %s: one container restarts", async (...row) => {
  const scene = new Scene(functions);
  onTestFinished(() => scene.close());
  await scene.createNamespace(scene.name);
  const [first, then, nextTime] = row;
  const others = [then, nextTime];
  const containers = [
    { name: "app", image: "app:1" },
    { name: "log", image: first, imagePullPolicy: "IfNotPresent" },
  ];
  await scene.createPod("one", { containers });
  await scene.untilReady(1);
  const statuses = async () => (await scene.pods())[0]?.status?.containerStatuses ?? [];
  const idOfLog = async () => (await statuses()).find(({ name }) => name === "log")?.imageID ?? "";
  const before = await idOfLog();
  const asked = (await askedOfRegistry()).length;
  for (const [index, image] of others.entries()) {
    await recreate(scene, `again-${index}`);
    await scene.untilReady(1);
    const [pod] = await scene.pods();
    expect((pod && imageOf(pod, "log"))?.replace(/sha256:.*/, DIGEST)).toBe(image);
    expect((await statuses()).map(({ name, restartCount }) => [name, restartCount])).toEqual([
      ["app", 0],
      ["log", index + 1],
    ]);
    expect(await idOfLog()).toBe(before);
  }
  // A kubelet pulls an image again if its name is written differently.
  expect((await askedOfRegistry()).slice(asked)).toEqual([]);
  addFigure("containers recreated on real containerd, by another way to write their image", others.length);
});
