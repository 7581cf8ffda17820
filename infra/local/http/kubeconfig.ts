/** A kubeconfig for one cluster and one token. */
import { stringify } from "yaml";

export interface Access {
  readonly url: string;
  /** PEM */
  readonly caCertificate: string;
  readonly token: string;
}

/** YAML text. */
export function kubeconfigText(access: Access): string {
  const name = "local";
  const authority = Buffer.from(access.caCertificate).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: access.url, "certificate-authority-data": authority } }],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}
