/** Tests `diff` of a SidecarSet with waves, on the embedded cluster. */
import { writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { WAVES_ANNOTATION } from "../../shared/api/names.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, NAMESPACE, readSet } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const { cluster, cli, file } = onCluster();

it("diff says for each wave what happens to its pods, and lists pods without a wave last", async () => {
  await deploy(cluster(), "agent", 3, {});
  const of = (name: string, values: readonly string[]) => ({
    name,
    namespaceSelector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values }] },
  });
  const { spec } = await readSet(cluster(), "agent");
  const containers = [{ ...spec.containers?.[0], image: "registry.example/proxy:9" }];
  const diff = async (waves: readonly object[]) => {
    const metadata = { name: "agent", annotations: { [WAVES_ANNOTATION]: JSON.stringify(waves) } };
    const set = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata, spec: { ...spec, containers } };
    await writeFile(file("agent.yaml"), stringify(set));
    const { stdout } = await cli("diff", "agent", "-f", file("agent.yaml"));
    return stdout;
  };
  expect(await diff([of("dev", ["dev"]), of("production", [NAMESPACE])])).toContain(
    "Waves, one after the other:\n  wave dev: no pods\n  wave production: 3 to be recreated\n",
  );
  expect(await diff([of("dev", ["dev"])])).toContain("  wave dev: no pods\n  no wave: 3 to be recreated\n");
  expect((await cluster().list(SIDECARSETS, {})).items).toHaveLength(1);
});
