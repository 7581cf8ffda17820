/** Opens connections to the real API server under several identities. */
import { writeFile } from "node:fs/promises";
import { kubeconfigText } from "../../../infra/local/http/https-server.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { type RawTarget, sendRaw } from "../../contract/raw.ts";

export function clusterOf({ url, caCertificate, token }: RawTarget, userAgent = "sidecarset-e2e"): Cluster {
  return connectCluster({ server: url, certificateAuthority: caCertificate, token: async () => token, userAgent });
}

/** Returns the same API server for a service account, with a new token. */
export async function asServiceAccount(admin: RawTarget, namespace: string, name: string): Promise<RawTarget> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
  const answer = await sendRaw(admin, { method: "POST", path, body });
  if (answer.code !== 201) throw new Error(answer.text);
  const { status } = answer.body as { readonly status: { readonly token: string } };
  return { url: admin.url, caCertificate: admin.caCertificate, token: status.token };
}

export async function writeKubeconfig(file: string, target: RawTarget): Promise<string> {
  await writeFile(file, kubeconfigText(target), { mode: 0o600 });
  return file;
}
