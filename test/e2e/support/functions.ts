/** Runs the functions beside the real cluster as `serve` does. Each uses the service account that the product ships. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tickUntilAborted } from "../../../functions/server/ticks.ts";
import { createCertificates } from "../../../infra/local/http/https-server.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import type { Gates } from "../../../shared/approval/batch-gates.ts";
import type { PassReport } from "../../../shared/controller/rollout/report.ts";
import { installation } from "../../../shared/install/manifests.ts";
import { accessObjects, kruiseNamespace } from "../../../shared/install/rbac/access.ts";
import { optionalAccess } from "../../../shared/install/rbac/optional-access.ts";
import type { WebhookAddress } from "../../../shared/install/webhooks/address.ts";
import { connect } from "../../../shared/kube/connect.ts";
import { createLog, type Log } from "../../../shared/log.ts";
import { readAwsAccess, readConfig } from "../../../shared/settings/config.ts";
import { allWebhooks } from "../../../shared/webhook/handlers/all-webhooks.ts";
import { authenticator } from "../../../shared/webhook/server/authenticate.ts";
import { serveHttps } from "../../../shared/webhook/server/https-server.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { writePathSecret } from "../../webhook/cluster.ts";
import { webhookHost } from "./access.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./clients.ts";
import { createAll, removeAll, untilInForce } from "./installed.ts";

export interface Functions {
  /** reports of all passes so far, oldest first */
  readonly reports: readonly PassReport[];
  /** errors in the log of our functions */
  readonly errors: readonly string[];
  /** Ends the functions and removes the installed objects. */
  close(): Promise<void>;
}

export interface StartedFunctions extends Functions {
  /** The webhooks' address for the API server. */
  readonly address: WebhookAddress;
}

const LOCAL = "127.0.0.1";
const TICK_MS = 1_000;

/** The annotations that an administrator lets SidecarSets give to pods. */
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

async function writeCertificate(folder: string) {
  const { authority, certificate, key } = await createCertificates(webhookHost());
  const paths = { tlsCert: join(folder, "tls.crt"), tlsKey: join(folder, "tls.key") };
  await writeFile(paths.tlsCert, certificate);
  await writeFile(paths.tlsKey, key, { mode: 0o600 });
  return { ...paths, caBundle: Buffer.from(authority).toString("base64") };
}

/** Makes the secret path in the registration the API server's proof. */
async function pathAuthentication(folder: string, log: Log) {
  const { pathSecret, authentication } = await writePathSecret(folder);
  const { isKnown } = authenticator(authentication, { aws: readAwsAccess, log, now: Date.now });
  return { pathSecret, isKnown };
}

export interface FunctionsOptions {
  /** false: no passes run */
  readonly hasTicks?: boolean;
  /** the webhooks' connection to the API server */
  readonly route?: (target: RawTarget) => RawTarget;
  /** the webhooks' clock, in epoch milliseconds */
  readonly now?: () => number;
  /** true if passes maintain the pod webhook's registration, and both accounts have the rights for it */
  readonly isKeepingRegistration?: boolean;
  /** feature gates that are on; the rights that they need are granted too */
  readonly gates?: readonly Gate[];
  /** additional optional roles */
  readonly roles?: readonly string[];
  /** annotations that SidecarSets may patch into running pods */
  readonly fenceAnnotations?: readonly string[];
  /** the approvers and checks before a batch */
  readonly batchGates?: Gates;
}

/** Feature gate → the role that it needs. */
const ROLES = {
  NativeSidecarInPlaceUpdate: "native-sidecars",
  InPlaceResize: "resize",
  RespectDisruptionBudgets: "disruption-budgets",
} as const;
type Gate = keyof typeof ROLES;

function rolesOf({ gates = [], roles = [] }: FunctionsOptions): readonly KubernetesObject[] {
  const names = new Set<string>([...roles, ...gates.map((gate) => ROLES[gate])]);
  return optionalAccess().flatMap(({ feature, objects }) => (names.has(feature) ? objects : []));
}

const straight = (target: RawTarget) => target;

/** Resolves when pods are injected and, with passes, SidecarSets are rolled out. */
export async function startFunctions(admin: RawTarget, options: FunctionsOptions = {}): Promise<StartedFunctions> {
  const { hasTicks = true, route = straight, now = Date.now, isKeepingRegistration = false, gates = [] } = options;
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-functions-"));
  const cluster = clusterOf(admin);
  const access = [kruiseNamespace(), ...accessObjects()];
  const roles = rolesOf(options);
  await createAll(cluster, [...access, WHITELIST, ...roles]);
  const identify = async (name: string, way = straight) => {
    const target = await asServiceAccount(admin, KRUISE_NAMESPACE, name);
    const file = await writeKubeconfig(join(folder, name), way(target));
    return () => connect(file);
  };
  const { caBundle, ...tls } = await writeCertificate(folder);
  const config = readConfig({ FEATURE_GATES: gates.map((gate) => `${gate}=true`).join(",") });
  const errors: string[] = [];
  const log = createLog("error", (line) => void errors.push(line));
  const connectWebhooks = await identify("sidecarset-webhooks", route);
  const { pathSecret, isKnown } = await pathAuthentication(folder, log);
  const webhooks = { ...config, connect: connectWebhooks, now, log, isKnown, isKeepingRegistration };
  const server = await serveHttps(allWebhooks(webhooks), {
    ...tls,
    port: 0,
    ...(webhookHost() === LOCAL ? { host: LOCAL } : {}),
  });
  const address = { url: `https://${webhookHost()}:${server.port}`, caBundle, pathSecret };
  const { fenceAnnotations = ["example.com/"] } = options;
  const rest = installation(address, { podFailurePolicy: "Fail", fenceAnnotations }).slice(access.length);
  await createAll(cluster, rest);
  await untilInForce(cluster);
  const reports: PassReport[] = [];
  const end = new AbortController();
  const tick = async () =>
    tickUntilAborted({
      connect: await identify("sidecarset-reconciler"),
      kruiseNamespace: config.kruiseNamespace,
      // A readiness gate concerns every pod, so the API server must send every pod to the webhook.
      settings: { ...config.featureGates, SidecarTerminator: true, KruisePodReadinessGate: !isKeepingRegistration },
      gates: options.batchGates,
      isKeepingRegistration,
      tickMs: TICK_MS,
      log,
      onReport: (report) => reports.push(report),
      signal: end.signal,
    });
  const ticks = hasTicks ? tick() : undefined;
  const close = async () => {
    end.abort();
    await ticks;
    await removeAll(cluster, [...rest, ...roles].reverse());
    await server.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { address, reports, errors, close };
}
