/** The API server's credentials for webhooks: a client certificate or a bearer token, one at a time. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "selfsigned";
import { stringify } from "yaml";

export const CREDENTIALS = ["certificate", "token"] as const;
export type Credential = (typeof CREDENTIALS)[number];

export interface WebhookCredentials {
  /** path of the PEM file with the authority that signed the client certificate */
  readonly clientCa: string;
  /** common name of the client certificate */
  readonly clientName: string;
  readonly client: ClientFiles;
  /** files of a client certificate from the same authority with another name */
  readonly otherClient: ClientFiles;
  readonly token: string;
}

/** PEM files of a client certificate. */
export interface ClientFiles {
  readonly certificate: string;
  readonly key: string;
}

const CLIENT_NAME = "kube-apiserver-of-tests";
const [MUTATING, VALIDATING] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];
const CONFIGURATION = "apiserver.config.k8s.io/v1";

export interface StaticManifests {
  readonly webhooks: string;
  readonly policies: string;
}

/** Returns the file for --admission-control-config-file. */
export function admissionFile(folder: string, credential: Credential): string {
  return join(folder, `admission-by-${credential}.yaml`);
}

const COMMON = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

function createAuthority() {
  const extensions = [{ name: "basicConstraints", cA: true, critical: true }] as const;
  return generate([{ name: "commonName", value: "webhook-clients" }], { ...COMMON, extensions: [...extensions] });
}

/** The user "*" stands for every webhook without its own user. */
function kubeconfig(user: object): string {
  return stringify({ apiVersion: "v1", kind: "Config", users: [{ name: "*", user }] });
}

function admissionConfiguration(kubeConfigFile: string, manifests: StaticManifests | undefined): string {
  const webhooks = { apiVersion: CONFIGURATION, kind: "WebhookAdmissionConfiguration", kubeConfigFile };
  const from = (staticManifestsDir: string) => ({ staticManifestsDir });
  const policies = { apiVersion: CONFIGURATION, kind: "MutatingAdmissionPolicyConfiguration" };
  return stringify({
    apiVersion: CONFIGURATION,
    kind: "AdmissionConfiguration",
    plugins: [
      { name: MUTATING, configuration: { ...webhooks, ...(manifests ? from(manifests.webhooks) : {}) } },
      { name: VALIDATING, configuration: webhooks },
      ...(manifests
        ? [{ name: "MutatingAdmissionPolicy", configuration: { ...policies, ...from(manifests.policies) } }]
        : []),
    ],
  });
}

export async function writeWebhookCredentials(
  folder: string,
  manifests: StaticManifests | undefined,
): Promise<WebhookCredentials> {
  const put = async (name: string, text: string) => {
    await writeFile(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const authority = await createAuthority();
  const issue = async (name: string): Promise<ClientFiles> => {
    const ca = { key: authority.private, cert: authority.cert };
    const extensions = [{ name: "extKeyUsage", clientAuth: true } as const];
    const { cert, private: key } = await generate([{ name: "commonName", value: name }], { ...COMMON, ca, extensions });
    return { certificate: await put(`${name}.crt`, cert), key: await put(`${name}.key`, key) };
  };
  const client = await issue(CLIENT_NAME);
  const token = randomBytes(32).toString("base64url");
  const users: Readonly<Record<Credential, object>> = {
    certificate: { "client-certificate": client.certificate, "client-key": client.key },
    token: { token },
  };
  for (const credential of CREDENTIALS) {
    const file = await put(`webhooks-by-${credential}.kubeconfig`, kubeconfig(users[credential]));
    await writeFile(admissionFile(folder, credential), admissionConfiguration(file, manifests), { mode: 0o600 });
  }
  const clientCa = await put("webhook-client-ca.crt", authority.cert);
  return { clientCa, clientName: CLIENT_NAME, client, otherClient: await issue("somebody-else"), token };
}
