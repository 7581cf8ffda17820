/** Our functions beside the real cluster, as `serve` runs them, but each with the service account we ship for it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tickUntilAborted } from "../../../functions/ticker.ts";
import { createCertificates } from "../../../infra/local/certificates.ts";
import { installation } from "../../../infra/manifests.ts";
import { accessObjects, kruiseNamespace } from "../../../infra/rbac/access.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import { readAwsAccess, readConfig } from "../../../shared/config.ts";
import type { PassReport } from "../../../shared/controller/report.ts";
import { connect } from "../../../shared/kube/connect.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, type Resource, SIDECARSETS } from "../../../shared/kube/port.ts";
import { createLog, type Log } from "../../../shared/log.ts";
import { allWebhooks } from "../../../shared/webhook/all-webhooks.ts";
import { authenticator } from "../../../shared/webhook/authenticate.ts";
import { serveHttps } from "../../../shared/webhook/https-server.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { writePathSecret } from "../../webhook/cluster.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./clients.ts";
import { until } from "./until.ts";

export interface Functions {
  /** one for each pass so far, oldest first */
  readonly reports: readonly PassReport[];
  /** Our functions' errors. */
  readonly errors: readonly string[];
  /** Ends them and takes away what was installed. */
  close(): Promise<void>;
}

const TICK_MS = 1_000;

/** Which annotations SidecarSets may give to pods is the administrator's to say. */
const WHITELIST = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "kruise-configuration", namespace: KRUISE_NAMESPACE },
  data: {
    SidecarSet_PatchPodMetadata_WhiteList: JSON.stringify({
      rules: [{ allowedAnnotationKeyExprs: ["^example\\.com/.*$"] }],
    }),
  },
};

/** Every kind that we install has a regular plural. */
function resourceOf({ apiVersion = "", kind = "", metadata }: KubernetesObject): Resource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { group, version, plural: `${kind.toLowerCase()}s`, namespaced: metadata?.namespace !== undefined };
}

/** What an earlier file of tests left is the same. */
async function createAll(cluster: Cluster, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    await cluster.create(resourceOf(object), object).catch((error: unknown) => {
      if (!isKubeError(error, 409)) throw error;
    });
  }
}

/** A definition goes after all of its objects. */
async function removeAll(cluster: Cluster, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    const key = { name: object.metadata?.name ?? "" };
    const isGone = () =>
      cluster.get(resourceOf(object), key).then(
        () => false,
        (error: unknown) => isKubeError(error, 404),
      );
    await cluster.delete(resourceOf(object), key);
    await until(`${key.name} is gone`, isGone);
  }
}

/** Registrations take a moment to be in force: a SidecarSet that is only tried gets its hash then. */
async function untilInForce(cluster: Cluster): Promise<void> {
  const probe = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "probe" },
    spec: { selector: { matchLabels: { probe: "x" } }, containers: [{ name: "probe", image: "probe:1" }] },
  };
  const hash = async () => {
    const { metadata } = await cluster.create<KubernetesObject>(SIDECARSETS, probe, { dryRun: true });
    return metadata?.annotations?.[HASH_ANNOTATION];
  };
  await until("webhooks in force", async () => (await hash()) !== undefined);
}

async function writeCertificate(folder: string) {
  const { authority, certificate, key } = await createCertificates();
  const paths = { tlsCert: join(folder, "tls.crt"), tlsKey: join(folder, "tls.key") };
  await writeFile(paths.tlsCert, certificate);
  await writeFile(paths.tlsKey, key, { mode: 0o600 });
  return { ...paths, caBundle: Buffer.from(authority).toString("base64") };
}

/** The API server proves who it is by the path that it is told. */
async function pathAuthentication(folder: string, log: Log) {
  const { pathSecret, authentication } = await writePathSecret(folder);
  const { isKnown } = authenticator(authentication, { aws: readAwsAccess, log, now: Date.now });
  return { pathSecret, isKnown };
}

/** Resolves when pods are injected and, unless there are no ticks, SidecarSets are rolled out. */
export async function startFunctions(admin: RawTarget, { hasTicks = true } = {}): Promise<Functions> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-functions-"));
  const cluster = clusterOf(admin);
  const access = [kruiseNamespace(), ...accessObjects()];
  await createAll(cluster, [...access, WHITELIST]);
  const identify = async (name: string) => {
    const target = await asServiceAccount(admin, KRUISE_NAMESPACE, name);
    const file = await writeKubeconfig(join(folder, name), target);
    return () => connect(file);
  };
  const { caBundle, ...tls } = await writeCertificate(folder);
  const config = readConfig({});
  const errors: string[] = [];
  const log = createLog("error", (line) => void errors.push(line));
  // Scenes create pods right after their SidecarSets.
  const connectWebhooks = await identify("sidecarset-webhooks");
  const { pathSecret, isKnown } = await pathAuthentication(folder, log);
  const webhooks = { ...config, freshnessMs: 0, connect: connectWebhooks, now: Date.now, log, isKnown };
  const server = await serveHttps(allWebhooks(webhooks), { ...tls, host: "127.0.0.1", port: 0 });
  const address = { url: `https://127.0.0.1:${server.port}`, caBundle, pathSecret };
  const rest = installation(address).slice(access.length);
  await createAll(cluster, rest);
  await untilInForce(cluster);
  const reports: PassReport[] = [];
  const end = new AbortController();
  const tick = async () =>
    tickUntilAborted({
      connect: await identify("sidecarset-reconciler"),
      kruiseNamespace: config.kruiseNamespace,
      tickMs: TICK_MS,
      log,
      onReport: (report) => reports.push(report),
      signal: end.signal,
    });
  const ticks = hasTicks ? tick() : undefined;
  const close = async () => {
    end.abort();
    await ticks;
    await removeAll(cluster, [...rest].reverse());
    await server.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { reports, errors, close };
}
