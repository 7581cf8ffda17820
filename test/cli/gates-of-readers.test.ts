/** Tests that commands use the feature gates of the passes, and ignore the terminal's environment. */
import { writeFile } from "node:fs/promises";
import { beforeAll, expect, it } from "vitest";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { deploy, KRUISE_NAMESPACE } from "../controller/fixture.ts";
import { newPod } from "../support/objects.ts";
import { onCluster } from "./on-cluster.ts";

const { cluster, cli, file } = onCluster();

async function passWith(PodOptOut: boolean): Promise<void> {
  const settings = { ...DEFAULT_ROLLOUT_SETTINGS, PodOptOut };
  await runPass(cluster(), { deadlineMs: 60_000, kruiseNamespace: KRUISE_NAMESPACE, settings, follow: false });
}

beforeAll(async () => {
  await deploy(cluster(), "agent", 1, {});
  const labels = { app: "agent", "sidecarset.kruise.io/inject": "false" };
  const pod = newPod({ name: "p", namespace: "shop", labels }, { containers: [{ name: "main", image: "main:1" }] });
  await writeFile(file("pod.json"), JSON.stringify({ apiVersion: "v1", kind: "Pod", ...pod }));
});

it("preview injects no sidecars into a pod that declines them when passes run with PodOptOut", async () => {
  await passWith(true);
  expect((await cli("preview", "-f", file("pod.json"))).stdout).not.toContain("name: proxy");
});

it("preview injects sidecars into a pod that declines them when passes run without PodOptOut", async () => {
  await passWith(false);
  expect((await cli("preview", "-f", file("pod.json"))).stdout).toContain("name: proxy");
});

it("the policy that compile prints lets pods decline sidecars only when passes run with PodOptOut", async () => {
  const compiled = async () => (await cli("compile", "--to", "map", "agent")).stdout;
  expect(await compiled()).not.toContain("sidecarset.kruise.io/inject");
  await passWith(true);
  expect(await compiled()).toContain("sidecarset.kruise.io/inject");
});
