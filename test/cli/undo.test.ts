/** Tests that `undo` says if nobody knows whether the target revision ever worked. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SKIP_WAVES_ANNOTATION, UNDONE_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  type HttpsCluster,
  KRUISE_NAMESPACE,
  readSet,
  release,
  startHttpsCluster,
} from "../controller/fixture.ts";
import { runHere } from "./run-cli.ts";

const BROKEN = "proxy:does-not-exist";

let test: HttpsCluster;
let folder: string;

const undo = async (...args: readonly string[]) =>
  (await runHere(["--kubeconfig", join(folder, "kubeconfig"), "undo", "agent", "--dry-run", ...args])).stdout;

async function pass(): Promise<void> {
  await runPass(test.cluster, {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: false,
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });
}

beforeAll(async () => {
  test = await startHttpsCluster();
  folder = await mkdtemp(join(tmpdir(), "undo-"));
  await writeFile(join(folder, "kubeconfig"), test.kubeconfig);
  await deploy(test.cluster, "agent", 4, {});
  await pass();
  await release(test.cluster, "agent", 2, { image: BROKEN });
  await pass();
});
afterAll(async () => {
  await test?.close();
  await rm(folder, { recursive: true, force: true });
});

it("undo has no warning when pods are ready with the target revision", async () => {
  expect(await undo()).not.toContain("not known");
});

it("undo skips a revision that never became ready, and warns when that revision is named", async () => {
  await release(test.cluster, "agent", 3, { image: "proxy:does-not-exist-either", paused: true });
  await pass();
  expect(await undo()).toContain("back to revision 1");
  const said = await undo("--to-revision", "2");
  expect(said).toContain("back to revision 2");
  expect(said).toContain("It is not known whether revision 2 was ever ready. 1 pod runs it, and none is ready.");
  expect(said).toContain("Revision 1 is ready in 3 pods: sidecarset undo agent --to-revision 1.");
  expect(await undo("--to-revision", "1")).not.toContain("not known");
});

it("undo --skip-waves skips the waves for one revision, and undo says when there are no waves to skip", async () => {
  expect(await undo("--skip-waves")).toContain("It has no waves that could be skipped.");
  const waves = JSON.stringify([{ name: "all", namespaceSelector: {}, soakSeconds: 3_600 }]);
  const annotate = (text: string | null) =>
    test.cluster.patch(
      SIDECARSETS,
      { name: "agent" },
      { type: "merge", body: { metadata: { annotations: { [WAVES_ANNOTATION]: text } } } },
    );
  await annotate(waves);
  expect(await undo("--to-revision", "1")).toContain(
    "Pods go back wave by wave; --skip-waves has all go back at once.",
  );
  const cli = ["--kubeconfig", join(folder, "kubeconfig"), "undo", "agent", "--to-revision", "1", "--skip-waves"];
  expect((await runHere(cli)).stdout).toContain("back to revision 1");
  const { metadata, spec } = await readSet(test.cluster, "agent");
  expect(metadata?.annotations?.[SKIP_WAVES_ANNOTATION]).toBe("hash1");
  expect(spec.containers?.[0]?.image).not.toContain("does-not-exist");
  await annotate(null);
  await release(test.cluster, "agent", 3, { image: "proxy:does-not-exist-either", paused: true });
});

it("undo skips a revision that was undone before, and gives the reason when that revision is named", async () => {
  const undone = [
    {
      from: "hash2",
      to: "hash1",
      at: "2026-01-01T00:00:00Z",
      message: "put back to revision 1, since 1 of 1 updated pods fail",
    },
  ];
  const annotations = { [UNDONE_ANNOTATION]: JSON.stringify(undone) };
  await test.cluster.patch(SIDECARSETS, { name: "agent" }, { type: "merge", body: { metadata: { annotations } } });
  expect(await undo()).toContain("back to revision 1");
  expect(await undo("--to-revision", "2")).toContain(
    "Revision 2 was taken back before: put back to revision 1, since 1 of 1 updated pods fail.",
  );
});
