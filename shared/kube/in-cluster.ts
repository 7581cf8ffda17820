/** The way to the API server of the cluster that we run in, as the pod's own service account. */
import { readFile } from "node:fs/promises";
import { KubeError } from "./error.ts";
import { renewableToken } from "./token-access.ts";
import type { ClusterAccess } from "./transport.ts";

const FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";
/** Kubernetes renews the file after four fifths of the token's life of an hour. */
const FRESHNESS_MS = 60_000;

/** @throws KubeError NoCredentials when the pod has no service account */
export async function inClusterAccess(server: string, folder = FOLDER): Promise<ClusterAccess> {
  const certificateAuthority = await readPart(folder, "ca.crt");
  const tokens = renewableToken({ read: () => readPart(folder, "token"), freshnessMs: FRESHNESS_MS, now: Date.now });
  await tokens.token();
  return { server, certificateAuthority, ...tokens };
}

async function readPart(folder: string, name: string): Promise<string> {
  try {
    return await readFile(`${folder}/${name}`, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new KubeError(
      `${folder}/${name} cannot be read (${code}): give the pod a service account and mount its token, or set KUBECONFIG`,
      { code: 0, reason: "NoCredentials", isOutcomeKnown: true, cause },
    );
  }
}
