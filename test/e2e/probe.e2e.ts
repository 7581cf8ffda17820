/** Tests the probe of each tick on a real API server: a dry run of a status, for which it has to call our webhook. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { probeWebhook } from "../../functions/lambda/rollout.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { VALIDATING_CONFIGURATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type Cluster, SIDECARSETS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { Scene } from "./support/scene.ts";
import { until } from "./support/until.ts";

interface Registration extends KubernetesObject {
  readonly webhooks: readonly { readonly name: string; readonly clientConfig: { readonly url: string } }[];
}

let functions: StartedFunctions;
let scene: Scene;
let reconciler: Cluster;
beforeAll(async () => {
  const admin = controlPlane();
  functions = await startFunctions(admin);
  scene = new Scene(functions);
  await scene.open();
  reconciler = clusterOf(await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler"));
});
afterAll(async () => {
  await scene?.close();
  await functions?.close();
});

/** Returns the lines that a probe by the reconciler's account logs. */
async function probe(): Promise<readonly string[]> {
  const lines: string[] = [];
  await probeWebhook(
    reconciler,
    {},
    createLog("info", (line) => void lines.push(line)),
  );
  return lines;
}

/** Registers another address for the validating webhook of SidecarSets, and returns the earlier one. */
async function moveWebhook(url: string): Promise<string> {
  const cluster = clusterOf(controlPlane());
  const key = { name: VALIDATING_CONFIGURATION };
  const { webhooks } = await cluster.get<Registration>(VALIDATING_WEBHOOK_CONFIGURATIONS, key);
  const at = webhooks.findIndex(({ name }) => name === "vsidecarset.kb.io");
  const operations = [{ op: "replace", path: `/webhooks/${at}/clientConfig/url`, value: url }] as const;
  await cluster.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, key, { type: "json", operations });
  return webhooks[at]?.clientConfig.url ?? "";
}

it("the probe says nothing while the API server can call the webhook, and says so when it cannot", async () => {
  const read = () => reconciler.get<SidecarSet>(SIDECARSETS, { name: scene.name });
  await until("a pass has written the status", async () => (await read()).status?.latestRevision !== undefined);
  const { latestRevision } = (await read()).status ?? {};
  expect(await probe()).toEqual([]);
  const earlier = await moveWebhook("https://127.0.0.1:1/announce-apps-kruise-io-sidecarset");
  let lines: readonly string[] = [];
  await until("the probe fails", async () => {
    lines = await probe();
    return lines.length > 0;
  });
  expect(JSON.parse(lines[0] ?? "{}")).toMatchObject({
    level: "warn",
    unreached: expect.stringMatching(/failed calling webhook "vsidecarset\.kb\.io".*connection refused/),
  });
  expect((await read()).status?.latestRevision).toBe(latestRevision);
  await moveWebhook(earlier);
  await until("the probe says nothing again", async () => (await probe()).length === 0);
});
