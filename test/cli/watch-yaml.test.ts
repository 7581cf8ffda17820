/** Tests the output of `status -w` for programs. */
import { beforeAll, expect, it } from "vitest";
import { readYaml } from "../../shared/kube/yaml.ts";
import { deploy } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const test = onCluster();
beforeAll(() => deploy(test.cluster(), "agent", 1, { partition: 1 }));

it.each([
  ["of one SidecarSet", ["agent"], { name: "agent" }],
  ["of all SidecarSets", [], [{ name: "agent" }]],
])("status -w %s prints YAML documents with -o yaml, and lines of JSON with -o json", async (_, names, value) => {
  const watch = (form: string) => test.cli("status", ...names, "-w", "--timeout", "1ms", "-o", form);
  const yaml = await watch("yaml");
  expect(yaml.stdout).toMatch(/^---\n[^{[]/);
  expect(readYaml(yaml.stdout).map((one) => one.value)).toMatchObject([value]);
  const json = await watch("json");
  expect(JSON.parse(json.stdout.trim())).toMatchObject(value);
  expect(json.stdout.trim()).not.toContain("\n");
});
