/**
 * A real API server with one namespace for each way to admit a pod: no webhook, an empty one, the product's, a constant
 * patch, a compiled policy.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCertificates, kubeconfigText } from "../../../infra/local/http/https-server.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP, NAMESPACE_NAME_LABEL, SIDECARSET_V1BETA1 } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { compileSidecarSet } from "../../../shared/core/injection/compile/compile.ts";
import { sidecarSetCrd } from "../../../shared/install/crd/sidecarset-crd.ts";
import { installedResource } from "../../../shared/install/manifests.ts";
import { accessObjects, kruiseNamespace } from "../../../shared/install/rbac/access.ts";
import { webhookConfigurations } from "../../../shared/install/webhooks/webhook-configurations.ts";
import type { Cluster, Resource } from "../../../shared/kube/port.ts";
import { registeredPath } from "../../../shared/webhook/server/path-secret.ts";
import { IN_FORCE_MS } from "../../../shared/webhook/view/announcement-trust.ts";
import { type RawTarget, sendRaw } from "../../contract/raw.ts";
import { clusterOf } from "../../e2e/support/clients.ts";
import { startControlPlane } from "../../e2e/support/control-plane.ts";
import { findPrograms } from "../../e2e/support/programs.ts";
import { sidecarSets } from "../fixture.ts";
import { type BenchProcess, startProcess } from "../process/start-process.ts";
import type { LoadPlan } from "../webhook/load-process.ts";
import type { ServerPlan } from "../webhook/server-process.ts";

/** The ways to create a pod. Their number must be prime for the order. */
export const WAYS = [
  "no webhook",
  "no-op webhook",
  "constant patch",
  "ours",
  "ours, kept 1 s",
  "ours, listed",
  "compiled policy",
] as const;
export type Way = (typeof WAYS)[number];

const WEBHOOKS = [
  "no-op webhook",
  "ours",
  "ours, kept 1 s",
  "ours, listed",
  "constant patch",
] as const satisfies readonly Way[];

export interface Stage {
  readonly target: RawTarget;
  /** the process that sends the load, started at its first call */
  readonly load: BenchProcess;
  close(): Promise<void>;
}

const SECRET = "benchmark-path-secret-of-exactly-43-letters";
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
const WARM_MS = 8_000;
const POLL_MS = 50;
const PATIENCE_MS = 60_000;

/** Returns the namespace of this way. */
function namespaceOf(way: Way): string {
  return way.replaceAll(/[ ,]+/g, "-");
}

/** @throws MissingProgram if there is no control plane, and no Go to build one */
export async function openStage(): Promise<Stage> {
  const plane = await startControlPlane(await findPrograms(process.env));
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-bench-"));
  const processes: BenchProcess[] = [];
  const close = async () => {
    for (const process of processes) await process.stop();
    await plane.close();
    await rm(folder, { recursive: true, force: true });
  };
  const begin = (file: string) => {
    const process = startProcess(new URL(file, import.meta.url));
    processes.push(process);
    return process;
  };
  try {
    const cluster = clusterOf(plane.settings, "bench");
    await createAll(cluster, WAYS.map(namespaceObject));
    await createAll(cluster, definition());
    for (const object of policy()) await cluster.create(installedResource(object), object);
    const { authority, plans } = await writePlans(folder, plane.settings);
    const servers = beginAll(() => begin("../webhook/server-process.ts"));
    const urls = await startWebhooks(servers, plans, authority);
    for (const way of WEBHOOKS) await createAll(cluster, [registration(way, urls[way], authority)]);
    await createAll(cluster, announced(urls.ours, authority));
    await untilReady(cluster, plane.settings);
    await plane.stopControllers();
    const load = begin("../webhook/load-process.ts");
    const body = await servers["no-op webhook"].call<string>("lastReview");
    for (const url of Object.values(urls)) await warmUp(load, { url, authority, body });
    return { target: plane.settings, load, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Webhooks<T> = Readonly<Record<(typeof WEBHOOKS)[number], T>>;

function beginAll(begin: () => BenchProcess): Webhooks<BenchProcess> {
  return {
    "no-op webhook": begin(),
    "constant patch": begin(),
    ours: begin(),
    "ours, kept 1 s": begin(),
    "ours, listed": begin(),
  };
}

/** Starts the webhooks and returns their addresses. */
async function startWebhooks(
  servers: Webhooks<BenchProcess>,
  plans: Webhooks<ServerPlan>,
  authority: string,
): Promise<Webhooks<string>> {
  const start = async (way: keyof typeof servers, path: string, more: Partial<ServerPlan> = {}) => {
    const port = await servers[way].call<number>("start", { ...plans[way], ...more });
    return `https://127.0.0.1:${port}${path}`;
  };
  const path = registeredPath(SECRET, "/mutate-pod");
  const ours = await start("ours", path);
  const original = { url: ours, authority };
  return {
    "no-op webhook": await start("no-op webhook", "/mutate-pod"),
    "constant patch": await start("constant patch", "/mutate-pod", { original }),
    ours,
    "ours, kept 1 s": await start("ours, kept 1 s", path),
    "ours, listed": await start("ours, listed", path),
  };
}

/**
 * Sends calls until everything is compiled, because API servers call a webhook all day. The review has the pod that
 * will be created: V8 compiles again for pods with other fields.
 */
async function warmUp(load: BenchProcess, { url, ...plan }: Pick<LoadPlan, "authority" | "body"> & { url: string }) {
  const { port, pathname: path } = new URL(url);
  const whole = { ...plan, port: Number(port), path, callers: 16, milliseconds: WARM_MS } satisfies LoadPlan;
  await load.call("run", whole);
}

async function createAll(cluster: Cluster, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) await cluster.create(installedResource(object), object);
}

function namespaceObject(way: Way): KubernetesObject {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name: namespaceOf(way) } };
}

function definition(): readonly KubernetesObject[] {
  const { spec, ...crd } = sidecarSetCrd({ url: "https://127.0.0.1:1" });
  return [{ ...crd, spec: { ...spec, conversion: { strategy: "None" } } } as KubernetesObject];
}

/** Returns a SidecarSet of one container and one volume, as the webhook stores it. */
function simpleSet(): SidecarSet {
  const [set] = sidecarSets(1);
  if (set === undefined) throw new Error("there is no SidecarSet");
  const { uid: _, ...metadata } = set.metadata ?? {};
  return { ...set, apiVersion: SIDECARSET_V1BETA1, kind: "SidecarSet", metadata } as SidecarSet;
}

function policy(): readonly KubernetesObject[] {
  const set = simpleSet();
  const compiled = compileSidecarSet(
    { ...set, spec: { ...set.spec, namespaceSelector: onlyIn("compiled policy") } },
    {
      kruiseNamespace: "kruise-system",
      revisions: [],
      others: [set],
      now: "2026-03-01T00:00:00Z",
      failurePolicy: "Fail",
      sortContainersByName: false,
      mayDecline: false,
    },
  );
  return compiled.objects as readonly KubernetesObject[];
}

function onlyIn(way: Way) {
  return { matchLabels: { [NAMESPACE_NAME_LABEL]: namespaceOf(way) } };
}

async function writePlans(folder: string, target: RawTarget) {
  const { authority, certificate, key } = await createCertificates();
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const files = {
    certificate: await write("tls.crt", certificate),
    key: await write("tls.key", key),
    pathSecrets: await write("path-secrets", `${SECRET}\n`),
    kubeconfig: await write("kubeconfig", kubeconfigText(target)),
  };
  const plans: Webhooks<ServerPlan> = {
    "no-op webhook": { kind: "no-op", ...files },
    ours: { kind: "ours", ...files },
    "ours, kept 1 s": { kind: "ours", reads: "kept", ...files },
    "ours, listed": { kind: "ours", reads: "listed", ...files },
    "constant patch": { kind: "copy", ...files },
  };
  return { authority, plans };
}

function registration(way: Way, url: string, authority: string): KubernetesObject {
  const name = namespaceOf(way);
  const webhook = {
    name: `${name}.bench.kruise.io`,
    clientConfig: { url, caBundle: Buffer.from(authority).toString("base64") },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    namespaceSelector: onlyIn(way),
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    failurePolicy: "Fail",
    timeoutSeconds: 5,
  };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name },
    webhooks: [webhook],
  } as KubernetesObject;
}

/**
 * Returns the objects that make the webhook use announcements: the ConfigMap, and the registration that announces every
 * write.
 */
function announced(url: string, authority: string): readonly KubernetesObject[] {
  const address = { url: new URL(url).origin, pathSecret: SECRET, caBundle: Buffer.from(authority).toString("base64") };
  const [, validation] = webhookConfigurations(address);
  const notice = accessObjects().filter(({ metadata }) => metadata?.name === ANNOUNCEMENTS_CONFIG_MAP);
  return [kruiseNamespace(), ...notice, ...(validation ? [validation] : [])];
}

/** Returns a pod as a user creates it: one container, and no scheduler. */
export function podBody(): string {
  const resources = { requests: { cpu: "250m", memory: "512Mi" } };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { generateName: "web-", labels: { app: "web" } },
    spec: {
      schedulerName: "nobody",
      containers: [{ name: "web", image: "registry.example/shop/web:1.27.3", args: ["--listen=:8080"], resources }],
    },
  });
}

export function podsPath(way: Way): string {
  return `/api/v1/namespaces/${namespaceOf(way)}/pods`;
}

/** True if a pod gets a sidecar in this way. */
export function isInjecting(way: Way): boolean {
  return way !== "no webhook" && way !== "no-op webhook";
}

/** Waits until everything is in force: pods get their sidecar, and the webhook knows the SidecarSet. */
async function untilReady(cluster: Cluster, target: RawTarget): Promise<void> {
  await createAll(cluster, [simpleSet()]);
  await untilInjecting(cluster, target);
  // After this time the webhooks use announcements.
  await new Promise((resolve) => setTimeout(resolve, IN_FORCE_MS));
  await untilInjecting(cluster, target);
}

async function untilInjecting(cluster: Cluster, target: RawTarget): Promise<void> {
  for (const way of WAYS) {
    const account = { namespace: namespaceOf(way), name: "default" };
    await until(`the service account of ${way}`, async () => Boolean(await cluster.get(SERVICE_ACCOUNTS, account)));
    await until(`pods by ${way}`, async () => {
      const body = podBody();
      const { code, text } = await sendRaw(target, {
        method: "POST",
        path: `${podsPath(way)}?dryRun=All`,
        body,
        headers: JSON_BODY,
      });
      return code === 201 && text.includes("fluent-bit") === isInjecting(way);
    });
  }
}

const JSON_BODY = { "content-type": "application/json" };

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isTrue().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`${what}: not there after ${PATIENCE_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
