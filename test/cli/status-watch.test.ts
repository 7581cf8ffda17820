/** `status NAME -w`, on the embedded cluster: it ends where nothing goes on by itself, and says why. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { storedSidecarSet } from "../../functions/library/stored-sidecarset.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  KRUISE_NAMESPACE,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
} from "../controller/fixture.ts";
import { runHere } from "./run-cli.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let test: TestCluster;
let folder: string;

beforeAll(async () => {
  test = await startTestCluster();
  folder = await mkdtemp(join(tmpdir(), "status-watch-"));
  await writeFile(join(folder, "kubeconfig"), test.kubeconfig);
});
afterAll(async () => {
  await test?.close();
  await rm(folder, { recursive: true, force: true });
});

const cli = (...args: readonly string[]) => runHere(["--kubeconfig", join(folder, "kubeconfig"), ...args]);

const pass = () =>
  runPass(test.cluster, {
    deadlineMs: 20_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });

/** More than an image, so that only a new pod has it. */
async function changeEnv(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
  const set = await readSet(test.cluster, name);
  const containers = (set.spec.containers ?? []).map((one) => ({ ...one, env: [{ name: "LEVEL", value: "debug" }] }));
  const metadata = { ...set.metadata, annotations: { ...set.metadata?.annotations, ...annotations } };
  const changed: SidecarSet = { ...set, metadata, spec: { ...set.spec, containers } };
  const { metadata: hashed } = storedSidecarSet(changed);
  const body = { metadata: { annotations: { ...annotations, ...hashed?.annotations } }, spec: { containers } };
  await test.cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
}

it("ends with 3 where pods can only be recreated", async () => {
  await deploy(test.cluster, "fixed", 2, {});
  await pass();
  await changeEnv("fixed");
  await pass();
  const began = performance.now();
  const { code, stdout } = await cli("status", "fixed", "-w", "--timeout", "30s");
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(stdout).toMatch(/2 cannot be upgraded in place, since more than images changed: .*env/);
  expect(code).toBe(3);
});

it("ends with 3 where they are not replaced, and explain says why", async () => {
  await deploy(test.cluster, "kept", 2, {});
  await pass();
  await test.cluster.patch<SidecarSet>(
    SIDECARSETS,
    { name: "kept" },
    { type: "merge", body: { spec: { injectionStrategy: { paused: true } } } },
  );
  await changeEnv("kept", { "sidecarset.kruise.io/replace": "NotUpgradable" });
  await pass();
  const began = performance.now();
  const { code, stdout } = await cli("status", "kept", "-w", "--timeout", "30s");
  expect([code, performance.now() - began < 20_000]).toEqual([3, true]);
  expect(stdout).toContain("none is replaced: ");
  expect((await cli("explain", "sidecarset/kept")).stdout).toMatch(/NotUpgradable: 2 pods .*; none is replaced: /);
});

it("ends with 0 once what is selected is updated, whatever the strategy's selector leaves out", async () => {
  await deploy(test.cluster, "some", 2, {});
  await pass();
  await release(test.cluster, "some", 2, { selector: { matchLabels: { none: "has-this" } } });
  await pass();
  expect((await cli("status", "some", "-w", "--timeout", "30s")).code).toBe(0);
});
