/** Tests the pod status updates that a real API server sends to the webhook. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Container, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import { serveWork } from "../../shared/controller/serve-work.ts";
import { initializeLaunchPriority } from "../../shared/core/launch-priority/barriers.ts";
import { launchNews, type Work } from "../../shared/core/rollout/queue/work.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { statusHintsWebhook } from "../../shared/install/webhooks/status-hints.ts";
import { type Cluster, NAMESPACES, PODS, type Resource } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { hints } from "../../shared/webhook/handlers/hints.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { POD_STATUS_PATH } from "../../shared/webhook/server/paths.ts";
import { listedPod, newPod } from "../support/objects.ts";
import { writeTlsFiles } from "../webhook/cluster.ts";
import { controlPlane } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { removeAll } from "./support/installed.ts";
import { recordLaunch } from "./support/launch-times.ts";
import { until } from "./support/until.ts";

const NAMESPACE = "status-hints";
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
const sent: Work[] = [];
let calls = 0;
let cluster: Cluster;
let server: WebhookServer;
let registration: KubernetesObject;
let folder = "";
/** the worker's action when a launch is reported */
let onLaunch = async (): Promise<unknown> => undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "status-hints-"));
  cluster = clusterOf(controlPlane());
  const tls = await writeTlsFiles(folder);
  const log = createLog("error", () => undefined);
  // Each call has another time, so that none is dropped as old.
  let time = 0;
  const now = () => {
    time += 1_000;
    return time;
  };
  const send = async (work: readonly Work[]) => {
    sent.push(...work);
    for (const { kind } of work) if (kind === "launch") void onLaunch();
  };
  const { ofPods } = hints({ send, log, now });
  const admit: typeof ofPods = (request) => {
    calls++;
    return ofPods(request);
  };
  const app = webhookApp({ log, isKnown: async () => true, admissions: { [POD_STATUS_PATH]: admit } });
  server = await serveHttps(app, { ...tls, host: "127.0.0.1", port: 0 });
  const caBundle = Buffer.from(tls.certificate).toString("base64");
  registration = statusHintsWebhook({ url: `https://127.0.0.1:${server.port}`, caBundle });
  await cluster.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  await cluster.create(installedResource(registration), registration);
  const account = { namespace: NAMESPACE, name: "default" };
  await until("service account", async () => Boolean(await cluster.get(SERVICE_ACCOUNTS, account)));
  await createPod("probe");
  await until("the registration is in force", async () => {
    await setStatus("probe", readiness("False"));
    await setStatus("probe", readiness("True"));
    return calls > 0;
  });
});
beforeEach(() => {
  sent.length = 0;
  calls = 0;
  onLaunch = async () => undefined;
});
afterAll(async () => {
  await removeAll(cluster, [registration]);
  await cluster.delete(NAMESPACES, { name: NAMESPACE });
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

const ANNOTATIONS = { [HASH_ANNOTATION]: "{}", [INJECTED_LIST_ANNOTATION]: "one,two" };
const readiness = (status: string) => ({ conditions: [{ type: "Ready", status }] });
const container = (state: object) => ({
  containerStatuses: [{ name: "main", image: "main:1", imageID: "", ready: false, restartCount: 0, state }],
});
const waiting = (reason: string) => container({ waiting: { reason } });

async function createPod(name: string, annotations: Readonly<Record<string, string>> = ANNOTATIONS): Promise<void> {
  const spec = { containers: [{ name: "main", image: "main:1" }], schedulerName: "nobody" };
  const metadata = { name, namespace: NAMESPACE, annotations };
  await cluster.create<Pod>(PODS, newPod(metadata, spec));
}

function setStatus(name: string, status: object, dryRun = false): Promise<Pod> {
  const key = { namespace: NAMESPACE, name };
  return cluster.patch<Pod>(PODS, key, { type: "merge", body: { status } }, { subresource: "status", dryRun });
}

/** Returns the hints after each step; "": the webhook was not called. An API server may repeat a call. */
async function toldAt(name: string, steps: readonly object[]): Promise<readonly string[]> {
  const heard: string[] = [];
  for (const step of steps) {
    calls = 0;
    sent.length = 0;
    await setStatus(name, step);
    const names = new Set(sent.map(({ kind, sidecarSet }) => `${kind} ${sidecarSet}`));
    heard.push(calls === 0 ? "" : [...names].join(", "));
  }
  addFigure("status updates of pods", steps.length);
  return heard;
}

const OF_BOTH = "pods one, pods two";

describe("API servers send only the relevant status updates of pods", () => {
  it("a pod that becomes ready is reported, and again after it was not ready", async () => {
    await createPod("ready");
    const steps = ["False", "True", "True", "False", "True"].map(readiness);
    expect(await toldAt("ready", steps)).toEqual(["", OF_BOTH, "", "", OF_BOTH]);
  });

  it("a pod that begins to fail is reported once, and not again when the failure has another reason", async () => {
    await createPod("failing");
    const steps = [
      waiting("ContainerCreating"),
      waiting("ErrImagePull"),
      waiting("ImagePullBackOff"),
      container({ running: {} }),
      waiting("CrashLoopBackOff"),
      { ...waiting("CrashLoopBackOff"), message: "still" },
    ];
    expect(await toldAt("failing", steps)).toEqual(["", OF_BOTH, "", "", OF_BOTH, ""]);
  });

  it("no change of a pod without sidecars is reported", async () => {
    await createPod("bare", { "example.com/x": "y" });
    expect(await toldAt("bare", ["False", "True"].map(readiness))).toEqual(["", ""]);
  });
});

describe("pods whose containers start in an order", () => {
  const ordered = (name: string, containers: readonly Container[], more: object = {}) => {
    const metadata = { name, namespace: NAMESPACE };
    const pod = initializeLaunchPriority(listedPod(metadata, { containers, ...more }), Math.random);
    if (!("spec" in pod)) throw new Error(pod.message);
    return cluster.create<Pod>(PODS, pod);
  };
  const prioritized = (name: string, value: string) => ({
    name,
    image: `registry.example/${name}:1`,
    env: [{ name: "KRUISE_CONTAINER_PRIORITY", value }],
  });

  it("pods that begin to wait, and pods that turn ready, are reported", async () => {
    await ordered("order", [prioritized("main", "0"), prioritized("first", "1")], { schedulerName: "nobody" });
    const ready = { containerStatuses: [{ ...container({ running: {} }).containerStatuses[0], ready: true }] };
    const held = waiting("CreateContainerConfigError");
    const steps = [waiting("ContainerCreating"), held, held, container({ running: {} }), ready, ready];
    expect(await toldAt("order", steps)).toEqual(["", "launch *", "", "", "launch *", ""]);
  });

  it("with these reports, passes that follow nothing start each priority within 2 seconds", async () => {
    const stepMs = recordLaunch(cluster, NAMESPACE);
    const problems: string[] = [];
    let passes = 0;
    onLaunch = async () => {
      passes++;
      const options = {
        kruiseNamespace: "kruise-system",
        settings: DEFAULT_ROLLOUT_SETTINGS,
        follow: false,
        remainingMs: () => 20_000,
        served: new Map(),
      };
      const report = await serveWork(cluster, launchNews(Date.now()), options);
      problems.push(...(report?.problems ?? []));
    };
    await ordered("chain", [prioritized("last", "-1"), prioritized("first", "5"), prioritized("second", "0")]);
    await until("all containers are ready", async () => {
      const { status } = await cluster.get<Pod>(PODS, { namespace: NAMESPACE, name: "chain" });
      return status?.containerStatuses?.length === 3 && status.containerStatuses.every(({ ready }) => ready);
    });
    expect(problems).toEqual([]);
    const slowest = Math.max(stepMs("first", "p_0"), stepMs("second", "p_-1"));
    expect(slowest).toBeLessThanOrEqual(2_000);
    addFigure("slowest key of a launch that is hinted, in ms", Math.round(slowest));
    addFigure("passes for the hints of a launch of three", passes);
  });
});

it("a dry run is answered, and nothing is reported", async () => {
  await createPod("tried");
  await setStatus("tried", readiness("False"));
  await setStatus("tried", readiness("True"), true);
  expect([calls > 0, sent]).toEqual([true, []]);
});

it("a status is stored while the webhook does not answer", async () => {
  await createPod("alone");
  await server.close();
  await setStatus("alone", readiness("False"));
  const { status } = await setStatus("alone", readiness("True"));
  expect(status?.conditions).toMatchObject([{ type: "Ready", status: "True" }]);
});
