/**
 * Tests what docs/gitops.md promises about server-side apply: defaults make no difference, and fields that Git does not
 * name stay unchanged.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { stringify } from "yaml";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { runCli } from "../cli/run-cli.ts";
import { apiServer } from "./support/access.ts";
import { writeKubeconfig } from "./support/clients.ts";
import { scenes } from "./support/open-scene.ts";

const openScene = scenes();
let folder: string;
let kubeconfig: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gitops-e2e-"));
  kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), apiServer());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it("a GitOps tool that applies a SidecarSet again changes nothing, not even the fields that people steer", async () => {
  const { cluster, name: scene } = await openScene();
  const name = `${scene}-git`;
  onTestFinished(() => cluster.delete(SIDECARSETS, { name }).then(() => undefined));
  const inGit = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name },
    spec: { selector: { matchLabels: { git: scene } }, containers: [{ name: "git-agent", image: "agent:v1" }] },
  };
  const file = join(folder, "set.yaml");
  await writeFile(file, stringify(inGit));
  const apply = (...more: readonly string[]) =>
    promisify(execFile)("kubectl", [
      ...["--kubeconfig", kubeconfig, "apply", "--server-side", "--field-manager", "kustomize-controller"],
      ...[...more, "-f", file],
    ]);
  const stored = () => cluster.get<SidecarSet>(SIDECARSETS, { name });

  await apply();
  const first = await stored();
  expect(first.spec.containers?.[0]).toMatchObject({ terminationMessagePolicy: "File" });
  const { stdout } = await apply("--dry-run=server", "-o", "json");
  expect(JSON.parse(stdout)).toMatchObject({ metadata: { generation: first.metadata?.generation }, spec: first.spec });

  expect(await runCli(["pause", name], { KUBECONFIG: kubeconfig })).toMatchObject({ code: 0 });
  await apply();
  expect((await stored()).spec.updateStrategy?.paused).toBe(true);
});
