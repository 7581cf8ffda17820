/** Tests `status NAME -w` on the embedded cluster: it ends with a reason when no pod can progress without help. */
import { expect, it } from "vitest";
import { storedSidecarSet } from "../../functions/library/pass-input.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, injectedPod, KRUISE_NAMESPACE, readSet, release } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const { cluster, cli } = onCluster();

const pass = () =>
  runPass(cluster(), {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });

/** Watches, and fails if the watch ends only by its timeout of ten minutes. */
async function untilEnded(name: string) {
  const began = performance.now();
  const outcome = await cli("status", name, "-w", "--timeout", "10m");
  expect(performance.now() - began).toBeLessThan(300_000);
  return outcome;
}

/** Changes more than an image, so that pods must be recreated. */
async function changeEnv(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
  const set = await readSet(cluster(), name);
  const containers = (set.spec.containers ?? []).map((one) => ({ ...one, env: [{ name: "LEVEL", value: "debug" }] }));
  const metadata = { ...set.metadata, annotations: { ...set.metadata?.annotations, ...annotations } };
  const changed: SidecarSet = { ...set, metadata, spec: { ...set.spec, containers } };
  const { metadata: hashed } = storedSidecarSet(changed);
  const body = { metadata: { annotations: { ...annotations, ...hashed?.annotations } }, spec: { containers } };
  await cluster().patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
}

it("status -w ends with 3 when pods can only be recreated", async () => {
  await deploy(cluster(), "fixed", 2, {});
  await pass();
  await changeEnv("fixed");
  await pass();
  const { code, stdout } = await untilEnded("fixed");
  expect(stdout).toMatch(/2 cannot be upgraded in place, since more than images changed: .*env/);
  expect(code).toBe(3);
});

it("status -w ends with 3 when pods are not replaced, and explain says why", async () => {
  await deploy(cluster(), "kept", 2, {});
  await pass();
  await cluster().patch<SidecarSet>(
    SIDECARSETS,
    { name: "kept" },
    { type: "merge", body: { spec: { injectionStrategy: { paused: true } } } },
  );
  await changeEnv("kept", { "sidecarset.kruise.io/replace": "NotUpgradable" });
  await pass();
  const { code, stdout } = await untilEnded("kept");
  expect(code).toBe(3);
  expect(stdout).toContain("none is replaced: ");
  expect((await cli("explain", "sidecarset/kept")).stdout).toMatch(/NotUpgradable: 2 pods .*; none is replaced: /);
});

it("status -w ends with 3 and names the pod when a pod of the current wave has failed and later waves wait", async () => {
  const name = "waved";
  await cluster().create(NAMESPACES, { metadata: { name: "first", labels: { stage: "first" } } });
  await deploy(cluster(), name, 1, {});
  const { metadata, ...pod } = injectedPod(name, "waved-first");
  await cluster().create<Pod>(PODS, { ...pod, metadata: { ...metadata, namespace: "first" } });
  await pass();
  const waves = JSON.stringify([{ name: "first", namespaceSelector: { matchLabels: { stage: "first" } } }]);
  const annotations = { "sidecarset.kruise.io/waves": waves };
  await cluster().patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });
  await release(cluster(), name, 2, { image: "registry.example/proxy:does-not-exist", maxUnavailable: 2 });
  await pass();
  const { code, stdout } = await untilEnded(name);
  expect(stdout).toMatch(
    /wave first comes first, 1 of its 1 pod is not updated and ready yet; 1 pod of later waves waits/,
  );
  expect(stdout).toMatch(/not ready: first\/waved-first \(.*ImagePullBackOff.*\)/);
  expect(code).toBe(3);
});

it("status -w ends with 0 when all selected pods are updated, although the strategy's selector excludes others", async () => {
  await deploy(cluster(), "some", 2, {});
  await pass();
  await release(cluster(), "some", 2, { selector: { matchLabels: { none: "has-this" } } });
  await pass();
  expect((await untilEnded("some")).code).toBe(0);
});
