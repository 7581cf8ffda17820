/** `diff` of a SidecarSet with waves, on the embedded cluster. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { WAVES_ANNOTATION } from "../../shared/api/names.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, NAMESPACE, readSet, startTestCluster, type TestCluster } from "../controller/fixture.ts";
import { runHere } from "./run-cli.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let test: TestCluster;
let folder: string;

beforeAll(async () => {
  test = await startTestCluster();
  folder = await mkdtemp(join(tmpdir(), "diff-waves-"));
  await writeFile(join(folder, "kubeconfig"), test.kubeconfig);
});
afterAll(async () => {
  await test?.close();
  await rm(folder, { recursive: true, force: true });
});

it("says of each wave what becomes of its pods, and of those of no wave last", async () => {
  await deploy(test.cluster, "agent", 3, {});
  const of = (name: string, values: readonly string[]) => ({
    name,
    namespaceSelector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values }] },
  });
  const { spec } = await readSet(test.cluster, "agent");
  const containers = [{ ...spec.containers?.[0], image: "registry.example/proxy:9" }];
  const file = join(folder, "agent.yaml");
  const diff = async (waves: readonly object[]) => {
    const metadata = { name: "agent", annotations: { [WAVES_ANNOTATION]: JSON.stringify(waves) } };
    const set = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata, spec: { ...spec, containers } };
    await writeFile(file, stringify(set));
    const { stdout } = await runHere(["--kubeconfig", join(folder, "kubeconfig"), "diff", "agent", "-f", file]);
    return stdout;
  };
  expect(await diff([of("dev", ["dev"]), of("production", [NAMESPACE])])).toContain(
    "Waves, one after the other:\n  wave dev: no pods\n  wave production: 3 to be recreated\n",
  );
  expect(await diff([of("dev", ["dev"])])).toContain("  wave dev: no pods\n  no wave: 3 to be recreated\n");
  expect((await test.cluster.list(SIDECARSETS, {})).items).toHaveLength(1);
});
