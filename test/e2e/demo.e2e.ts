/** The demo's story on a real control plane. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { controlPlane } from "./support/access.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { imageOf, Scene, setImage } from "./support/scene.ts";

let functions: Functions;
beforeAll(async () => {
  functions = await startFunctions(controlPlane());
});
afterAll(() => functions?.close());

it("20 pods are injected as they are created, and a new image goes out within partition and maxUnavailable", async () => {
  const scene = new Scene(functions);
  await scene.open({ updateStrategy: { type: "RollingUpdate", partition: "50%", maxUnavailable: "20%" } });
  const created = await scene.deploy(20);
  expect(created.map((pod) => imageOf(pod, "agent"))).toEqual(Array(20).fill("agent:v1"));
  await scene.untilSettled();
  const since = await scene.now();

  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(10);
  expect((await scene.untilSettled()).why).toMatch(/partition keeps 10/);
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/partition", value: 0 });
  await scene.untilUpdated(20);
  await scene.untilSettled();

  const record = await scene.record(since);
  expect(record).toEqual({ maxUnavailable: 4, maxUnavailableObserved: 4, appContainerRestarts: 0, podPatches: 20 });
  expect((await scene.set()).status).toMatchObject({ matchedPods: 20, updatedPods: 20, updatedReadyPods: 20 });
  expect(functions.errors).toEqual([]);
  await scene.close();
});
