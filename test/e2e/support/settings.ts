/** Files and arguments of a control plane's processes. */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { createCertificates, kubeconfigText } from "../../../infra/local/http/https-server.ts";
import { flagsOn, isVersionKnown, readsFiles } from "./versions.ts";
import {
  admissionFile,
  type Credential,
  type StaticManifests,
  type WebhookCredentials,
  writeWebhookCredentials,
} from "./webhook-credentials.ts";

export interface Settings {
  readonly folder: string;
  readonly url: string;
  readonly etcdUrl: string;
  /** PEM text */
  readonly caCertificate: string;
  /** a cluster administrator's token */
  readonly token: string;
  readonly auditLog: string;
  readonly webhookCredentials: WebhookCredentials;
  /** folders from which the API server reads registrations and policies; undefined: this version does not */
  readonly staticManifests: StaticManifests | undefined;
}

export interface Ports {
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
}

/** Audits the product's calls. */
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts:kruise-system"] }, { level: "None" }],
};

const IDENTITIES = {
  admin: { username: "kubernetes-admin", groups: "system:masters" },
  "kube-controller-manager": { username: "system:kube-controller-manager", groups: "" },
  "kube-scheduler": { username: "system:kube-scheduler", groups: "" },
} as const;

type Identity = keyof typeof IDENTITIES;

async function writeKeys(folder: string): Promise<string> {
  const { authority, certificate, key } = await createCertificates();
  const account = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const files = {
    "ca.crt": authority,
    "tls.crt": certificate,
    "tls.key": key,
    "sa.pub": account.publicKey.export({ type: "spki", format: "pem" }),
    "sa.key": account.privateKey.export({ type: "pkcs8", format: "pem" }),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o600 });
  return authority;
}

/** Writes all files to `folder`, which no other user can read. */
export async function writeSettings(folder: string, ports: Ports): Promise<Settings> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const caCertificate = await writeKeys(folder);
  const url = `https://127.0.0.1:${ports.apiServer}`;
  const tokens = Object.fromEntries(
    Object.keys(IDENTITIES).map((name) => [name, randomBytes(16).toString("hex")]),
  ) as Record<Identity, string>;
  const lines = Object.entries(IDENTITIES).map(
    ([name, { username, groups }]) => `${tokens[name as Identity]},${username},${name},"${groups}"`,
  );
  const put = (name: string, text: string) => writeFile(join(folder, name), text, { mode: 0o600 });
  await put("tokens.csv", `${lines.join("\n")}\n`);
  await put("audit-policy.yaml", stringify(AUDIT_POLICY));
  for (const [name, token] of Object.entries(tokens))
    await put(`${name}.kubeconfig`, kubeconfigText({ url, caCertificate, token }));
  const clientConnection = { kubeconfig: join(folder, "kube-scheduler.kubeconfig"), qps: 500, burst: 500 };
  await put(
    "kube-scheduler.yaml",
    stringify({
      apiVersion: "kubescheduler.config.k8s.io/v1",
      kind: "KubeSchedulerConfiguration",
      clientConnection,
      leaderElection: { leaderElect: false },
    }),
  );
  const staticManifests = readsFiles()
    ? { webhooks: join(folder, "static-webhooks"), policies: join(folder, "static-policies") }
    : undefined;
  for (const path of Object.values(staticManifests ?? {})) await mkdir(path);
  const etcdUrl = `http://127.0.0.1:${ports.etcd}`;
  return {
    folder,
    url,
    etcdUrl,
    caCertificate,
    token: tokens.admin,
    auditLog: join(folder, "audit.log"),
    webhookCredentials: await writeWebhookCredentials(folder, staticManifests),
    staticManifests,
  };
}

function flags(values: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

export function etcdArguments({ folder, etcdUrl }: Settings, { etcdPeer }: Ports): readonly string[] {
  const peer = `http://127.0.0.1:${etcdPeer}`;
  return flags({
    "data-dir": join(folder, "etcd"),
    "listen-client-urls": etcdUrl,
    "advertise-client-urls": etcdUrl,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
    "unsafe-no-fsync": "true",
    "log-level": "warn",
  });
}

export function apiServerArguments(
  settings: Settings,
  { apiServer }: Ports,
  credential: Credential,
): readonly string[] {
  const file = (name: string) => join(settings.folder, name);
  return flags({
    "etcd-servers": settings.etcdUrl,
    "bind-address": "127.0.0.1",
    "advertise-address": "127.0.0.1",
    "endpoint-reconciler-type": "none",
    "secure-port": String(apiServer),
    "cert-dir": settings.folder,
    "tls-cert-file": file("tls.crt"),
    "tls-private-key-file": file("tls.key"),
    "client-ca-file": file("ca.crt"),
    "token-auth-file": file("tokens.csv"),
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-account-key-file": file("sa.pub"),
    "service-account-signing-key-file": file("sa.key"),
    "service-cluster-ip-range": "10.96.0.0/16",
    "authorization-mode": "RBAC",
    // This plugin of strict clusters checks who may block an owner's deletion.
    "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",
    "admission-control-config-file": admissionFile(settings.folder, credential),
    "audit-policy-file": file("audit-policy.yaml"),
    "audit-log-path": settings.auditLog,
    "allow-privileged": "true",
    ...(isVersionKnown() ? flagsOn() : {}),
  });
}

/** Time without a heartbeat until a node counts as lost. It allows for a busy machine. */
export const NODE_GRACE_SECONDS = 20;

/**
 * Returns the arguments. Nodes that never send heartbeats are ignored; others are lost after NODE_GRACE_SECONDS without
 * one.
 */
export function controllerManagerArguments({ folder }: Settings, haveHeartbeats: boolean): readonly string[] {
  const file = (name: string) => join(folder, name);
  return flags({
    kubeconfig: file("kube-controller-manager.kubeconfig"),
    "root-ca-file": file("ca.crt"),
    "service-account-private-key-file": file("sa.key"),
    "use-service-account-credentials": "true",
    "leader-elect": "false",
    "secure-port": "0",
    "cert-dir": folder,
    controllers: haveHeartbeats ? "*" : "*,-node-lifecycle-controller",
    "node-monitor-period": "1s",
    "node-monitor-grace-period": `${NODE_GRACE_SECONDS}s`,
    "kube-api-qps": "500",
    "kube-api-burst": "500",
  });
}

export function schedulerArguments({ folder }: Settings): readonly string[] {
  return flags({ config: join(folder, "kube-scheduler.yaml"), "secure-port": "0" });
}
