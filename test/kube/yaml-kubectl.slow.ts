/** Tests that kubectl itself reads manifests as we do. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import { readYaml, writeYaml } from "../../shared/kube/yaml.ts";
import { SCALARS } from "./yaml-scalars.ts";

const run = promisify(execFile);
const hasKubectl = await run("kubectl", ["version", "--client"]).then(
  () => true,
  () => false,
);
if (!hasKubectl) process.stdout.write("manifests are not compared with kubectl: there is none on the PATH\n");

const HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";

describe.skipIf(!hasKubectl)("kubectl:", () => {
  let cluster: LocalCluster;
  let directory: string;

  beforeAll(async () => {
    cluster = await startLocalCluster({});
    directory = await mkdtemp(join(tmpdir(), "kubectl-"));
    await writeFile(join(directory, "config"), cluster.kubeconfig());
  });
  afterAll(async () => {
    await cluster.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Returns the object that kubectl would send. */
  async function sent(manifest: string): Promise<unknown> {
    const file = join(directory, "x.yaml");
    await writeFile(file, manifest);
    const args = ["create", "-f", file, "--dry-run=client", "--validate=false", "-o", "json"];
    const environment = { ...process.env, KUBECONFIG: join(directory, "config"), HOME: directory };
    return (JSON.parse((await run("kubectl", args, { env: environment })).stdout) as { x: unknown }).x;
  }

  it("kubectl sends the values that readYaml reads", async () => {
    const manifest = `${HEAD}x:\n${SCALARS.map(([text], index) => `  k${index}: ${text}\n`).join("")}  merged: {<<: {p: 1}, q: yes}\n`;
    const [document] = readYaml(manifest);
    const { x } = (document?.value ?? {}) as { x: Record<string, unknown> };
    expect(Object.keys(x)).toHaveLength(SCALARS.length + 1);
    expect(await sent(manifest)).toEqual(x);
  });

  it("kubectl reads the texts that writeYaml writes as the same texts", async () => {
    const x = Object.fromEntries(SCALARS.map(([text], index) => [`k${index}`, text]));
    expect(await sent(HEAD + writeYaml({ x }))).toEqual(x);
  });
});
