/** Tests that `promote` also ends a canary whose partition is already 0. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, readSet, startHttpsCluster } from "../controller/fixture.ts";
import { runHere } from "./run-cli.ts";

it("promote removes the pinned revision for new pods although the partition is already 0", async () => {
  const { cluster, kubeconfig, close } = await startHttpsCluster();
  const folder = await mkdtemp(join(tmpdir(), "promote-"));
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig);
  await deploy(cluster, "agent", 1, { partition: 0 });
  const revision = { revisionName: "agent-1", policy: "Partial" };
  const body = { spec: { injectionStrategy: { revision } } };
  await cluster.patch(SIDECARSETS, { name: "agent" }, { type: "merge", body });
  expect(await runHere(["--kubeconfig", file, "promote", "agent"])).toMatchObject({ code: 0, stderr: "" });
  expect((await readSet(cluster, "agent")).spec.injectionStrategy?.revision).toBeUndefined();
  expect((await runHere(["--kubeconfig", file, "promote", "agent"])).stdout).toContain("0 already");
  await close();
  await rm(folder, { recursive: true });
});
