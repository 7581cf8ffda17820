/** How the API server proves to webhooks who it is: by a client certificate or by a bearer token, one at a time. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "selfsigned";
import { stringify } from "yaml";

export const CREDENTIALS = ["certificate", "token"] as const;
export type Credential = (typeof CREDENTIALS)[number];

export interface WebhookCredentials {
  /** path of the PEM file of who signed the client certificate */
  readonly clientCa: string;
  /** common name of the client certificate */
  readonly clientName: string;
  readonly token: string;
}

const CLIENT_NAME = "kube-apiserver-of-tests";
const PLUGINS = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];

/** For --admission-control-config-file. */
export function admissionFile(folder: string, credential: Credential): string {
  return join(folder, `admission-by-${credential}.yaml`);
}

async function clientCertificate() {
  const common = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;
  const authority = await generate([{ name: "commonName", value: "webhook-clients" }], {
    ...common,
    extensions: [{ name: "basicConstraints", cA: true, critical: true }],
  });
  const client = await generate([{ name: "commonName", value: CLIENT_NAME }], {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [{ name: "extKeyUsage", clientAuth: true }],
  });
  return { authority: authority.cert, certificate: client.cert, key: client.private };
}

/** The user "*" is for every webhook that has none of its own. */
function kubeconfig(user: object): string {
  return stringify({ apiVersion: "v1", kind: "Config", users: [{ name: "*", user }] });
}

function admissionConfiguration(kubeConfigFile: string): string {
  const configuration = { apiVersion: "apiserver.config.k8s.io/v1", kind: "WebhookAdmissionConfiguration" };
  return stringify({
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "AdmissionConfiguration",
    plugins: PLUGINS.map((name) => ({ name, configuration: { ...configuration, kubeConfigFile } })),
  });
}

export async function writeWebhookCredentials(folder: string): Promise<WebhookCredentials> {
  const put = async (name: string, text: string) => {
    await writeFile(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const { authority, certificate, key } = await clientCertificate();
  const token = randomBytes(32).toString("base64url");
  const users: Readonly<Record<Credential, object>> = {
    certificate: {
      "client-certificate": await put("webhook-client.crt", certificate),
      "client-key": await put("webhook-client.key", key),
    },
    token: { token },
  };
  for (const credential of CREDENTIALS) {
    const file = await put(`webhooks-by-${credential}.kubeconfig`, kubeconfig(users[credential]));
    await writeFile(admissionFile(folder, credential), admissionConfiguration(file), { mode: 0o600 });
  }
  return { clientCa: await put("webhook-client-ca.crt", authority), clientName: CLIENT_NAME, token };
}
