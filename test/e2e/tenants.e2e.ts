/**
 * Tests one tenant's misbehaving pods on a real API server: other tenants' pods must get what they would get without
 * them.
 */
import { expect, it } from "vitest";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import { PODS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { scenes } from "./support/open-scene.ts";
import { APP, imageOf, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();

it("a new pod that claims to have ended gets its sidecars, because the API server resets its status", async () => {
  const scene = await openScene();
  const metadata = { name: "ended", namespace: scene.name, labels: scene.labels };
  const created = await scene.cluster.create(PODS, {
    ...listedPod(metadata, { containers: [APP] }),
    status: { phase: "Succeeded" },
  });
  expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(scene.name);
  expect((created as { readonly status?: { readonly phase?: string } }).status?.phase).toBe("Pending");
});

it("a pod with 200,000 characters in its records is left out and named, and all other pods are updated", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  await scene.deploy(3);
  await scene.untilSettled();
  const [large] = await scene.pods();
  const name = large?.metadata?.name ?? "";
  const annotations = { "version.sidecarset.kruise.io/any": "x".repeat(200_000) };
  await scene.patchPod(name, { metadata: { annotations } });
  await scene.patchSet(setImage("agent:v2"));
  await eventually(
    async () => (await scene.pods()).map((pod) => `${pod.metadata?.name === name} ${imageOf(pod, "agent")}`).toSorted(),
    (images) => expect(images).toEqual(["false agent:v2", "false agent:v2", "true agent:v1"]),
  );
});
