/** Starts an embedded cluster with everything installed and served, on free ports, for tests that need both ends. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { type Server, startServer } from "../../functions/server/serve.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import { installation, installedResource } from "../../shared/install/manifests.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";

interface TlsFiles {
  readonly tlsCert: string;
  readonly tlsKey: string;
  /** the certificate as PEM */
  readonly certificate: string;
}

export async function writeTlsFiles(folder: string): Promise<TlsFiles> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "webhooks" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
    ],
  });
  const files = { tlsCert: join(folder, "tls.crt"), tlsKey: join(folder, "tls.key"), certificate: cert };
  await writeFile(files.tlsCert, cert);
  await writeFile(files.tlsKey, key);
  return files;
}

/** Writes the path secret by which callers authenticate. */
export async function writePathSecret(folder: string) {
  const pathSecret = randomBytes(32).toString("base64url");
  const pathSecrets = join(folder, "path-secrets");
  await writeFile(pathSecrets, `${pathSecret}\n`);
  const authentication = parseAuthentication({ AUTHENTICATION: "secret-path", PATH_SECRETS: pathSecrets });
  return { pathSecret, pathSecrets, authentication };
}

export interface ServedCluster extends Awaited<ReturnType<typeof writePathSecret>> {
  readonly local: LocalCluster;
  readonly client: Cluster;
  readonly server: Server;
  readonly kubeconfig: string;
  readonly folder: string;
  readonly tls: TlsFiles;
  close(): Promise<void>;
}

export async function startServedCluster(tickMs = 60_000): Promise<ServedCluster> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-test-"));
  const local = await startLocalCluster();
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, local.kubeconfig());
  const tls = await writeTlsFiles(folder);
  const secret = await writePathSecret(folder);
  const { authentication, pathSecret } = secret;
  const server = await startServer({ kubeconfig, ...tls, authentication, host: "127.0.0.1", port: 0, tickMs });
  const client = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
    userAgent: "test",
  });
  const caBundle = Buffer.from(tls.certificate).toString("base64");
  for (const object of installation(
    { url: `https://127.0.0.1:${server.port}`, caBundle, pathSecret },
    { podFailurePolicy: "Fail" },
  )) {
    await client.create(installedResource(object), object);
  }
  const close = async () => {
    await server.close();
    await local.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { local, client, server, kubeconfig, folder, tls, ...secret, close };
}
