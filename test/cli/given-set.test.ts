/**
 * Tests that a SidecarSet from a file or from OpenKruise gets the webhook's checks, with everything that the webhook
 * reads.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { storedSidecarSet } from "../../functions/library/pass-input.ts";
import { SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { CONFIG_MAPS, CONTROLLER_REVISIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { fastClock, type HttpsCluster, KRUISE_NAMESPACE, startHttpsCluster } from "../controller/fixture.ts";
import { runHere } from "./run-cli.ts";

const NAME = "agent";
let test: HttpsCluster;
let folder: string;
let revisionName = "";

const manifest = (spec: object = {}) => ({
  apiVersion: SIDECARSET_V1BETA1,
  kind: "SidecarSet",
  metadata: { name: NAME },
  spec: { selector: { matchLabels: { app: NAME } }, containers: [{ name: "agent", image: "agent:1" }], ...spec },
});
const pinned = (name: string) => ({ injectionStrategy: { revision: { revisionName: name, policy: "Always" } } });
const annotating = (key: string) => ({ patchPodMetadata: [{ annotations: { [key]: "x" }, patchPolicy: "Overwrite" }] });

async function cli(spec: object, ...args: readonly string[]) {
  const file = join(folder, "given.yaml");
  await writeFile(file, stringify(manifest(spec)));
  return await runHere([...args, NAME, "-f", file, "--kubeconfig", join(folder, "kubeconfig")]);
}

beforeAll(async () => {
  test = await startHttpsCluster();
  folder = await mkdtemp(join(tmpdir(), "given-"));
  await writeFile(join(folder, "kubeconfig"), test.kubeconfig);
  const { cluster } = test;
  await cluster.create<SidecarSet>(SIDECARSETS, storedSidecarSet(manifest()));
  const options = { deadlineMs: 600_000, kruiseNamespace: KRUISE_NAMESPACE, settings: DEFAULT_ROLLOUT_SETTINGS };
  await runPass(cluster, { ...options, follow: false, dryRun: false, sidecarSet: NAME, clock: fastClock(20) });
  const { items } = await cluster.list(CONTROLLER_REVISIONS, { namespace: KRUISE_NAMESPACE });
  revisionName = items[0]?.metadata?.name ?? "";
  expect(revisionName).toMatch(/^agent-/);
  const rules = [{ allowedAnnotationKeyExprs: ["^allowed/"] }];
  await cluster.create(CONFIG_MAPS, {
    metadata: { namespace: KRUISE_NAMESPACE, name: "kruise-configuration" },
    data: { SidecarSet_PatchPodMetadata_WhiteList: JSON.stringify({ rules }) },
  } as never);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await test.close();
});

describe.each(["diff", "plan"])("%s -f:", (command) => {
  it(`${command} takes the name from a file with one SidecarSet, and asks for the name if the file has two`, async () => {
    const file = join(folder, "chart.yaml");
    const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\n";
    const run = () => runHere([command, "-f", file, "--kubeconfig", join(folder, "kubeconfig")]);
    await writeFile(file, service + stringify(manifest()));
    expect(await run()).toMatchObject({ code: 0, stderr: "" });
    await writeFile(
      file,
      [manifest(), { ...manifest(), metadata: { name: "b" } }].map((one) => stringify(one)).join("---\n"),
    );
    expect(await run()).toMatchObject({
      code: 2,
      stderr: `${file}: it holds ${NAME}, b; say which one: NAME behind the command\n`,
    });
  });

  it(`${command} finds no difference for a file with YAML 1.1 scalars that was just applied`, async () => {
    const file = join(folder, "given.yaml");
    const mode = (text: string) =>
      `${stringify(manifest())}  volumes:\n  - name: v\n    configMap: {name: c, defaultMode: ${text}}\n`;
    await writeFile(file, mode("0644"));
    const outcome = await runHere(["diff", NAME, "-f", file, "-o", "json", "--kubeconfig", join(folder, "kubeconfig")]);
    const changes = (JSON.parse(outcome.stdout) as { changes: { after: unknown }[] }).changes;
    expect(changes).toMatchObject([{ after: [{ configMap: { defaultMode: 420 } }] }]);
  });

  it("a pinned revision is accepted when it exists and refused when it does not", async () => {
    expect(await cli(pinned(revisionName), command)).toMatchObject({ code: 0, stderr: "" });
    expect(await cli(pinned("agent-none"), command)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`"agent-none" not found`),
    });
  });

  it("annotations for pods are accepted only when the whitelist allows them", async () => {
    expect(await cli(annotating("allowed/key"), command)).toMatchObject({ code: 0, stderr: "" });
    expect((await cli(annotating("other/key"), command)).code).toBe(2);
  });
});

it("a SidecarSet that OpenKruise's webhook admits does not block migrate from-kruise", async () => {
  const stored = storedSidecarSet(manifest({ ...pinned(revisionName), ...annotating("allowed/key") }));
  const { metadata, spec } = stored;
  const body = { metadata: { annotations: metadata?.annotations }, spec };
  await test.cluster.patch<SidecarSet>(SIDECARSETS, { name: NAME }, { type: "merge", body });
  const { stdout } = await runHere([
    ...["migrate", "from-kruise", "-o", "json"],
    ...["--url", "https://webhooks.example.com", "--kubeconfig", join(folder, "kubeconfig")],
  ]);
  expect(JSON.parse(stdout).blocks.filter((one: string) => one.includes(NAME))).toEqual([]);
});
