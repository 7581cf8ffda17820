/** Sets the scene: an embedded cluster, our webhooks and ticks served for it over HTTPS, and everything registered there. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { startServer } from "../../functions/server/serve.ts";
import { type ReadObject, readObjects } from "../../functions/terminal/read-objects.ts";
import { CliError } from "../../functions/terminal/screen.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { POD_WEBHOOK, WEBHOOK_CONFIGURATION } from "../../shared/api/names.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { installation, installedResource } from "../../shared/install/manifests.ts";
import type { WebhookAddress } from "../../shared/install/webhooks/address.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { type LocalCluster, startLocalCluster } from "../local/cluster.ts";
import { imageBehaviour } from "../local/kubelet/kubelet-settings.ts";
import { kubectlFront } from "./front.ts";

export interface Stage {
  /** the demo's own client, counted apart from the functions' */
  readonly client: Cluster;
  readonly local: LocalCluster;
  readonly kubeconfig: string;
  /** whether the kubelets can pull it */
  readonly isPullable: (image: string) => boolean;
  /** the page's address in a browser */
  readonly page: string;
  /** the webhooks' address for the API server */
  readonly address: WebhookAddress;
  /** the reports of all ticks, oldest first */
  readonly reports: readonly PassReport[];
  close(): Promise<void>;
}

const TICK_MS = 1_000;

async function writeCertificate(folder: string) {
  const { cert, private: key } = await generate([{ name: "commonName", value: "sidecarset-webhooks" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
    ],
  });
  const paths = { tlsCert: join(folder, "tls.crt"), tlsKey: join(folder, "tls.key") };
  await writeFile(paths.tlsCert, cert);
  await writeFile(paths.tlsKey, key, { mode: 0o600 });
  return { ...paths, caBundle: Buffer.from(cert).toString("base64") };
}

/** Callers of the webhooks prove themselves by a path that nobody can guess. */
async function writePathSecret(folder: string) {
  const pathSecret = randomBytes(32).toString("base64url");
  const path = join(folder, "path-secrets");
  await writeFile(path, `${pathSecret}\n`, { mode: 0o600 });
  return { pathSecret, authentication: parseAuthentication({ AUTHENTICATION: "secret-path", PATH_SECRETS: path }) };
}

/** Viewers of the page prove themselves by another secret. */
async function writePageSecret(folder: string) {
  const secret = randomBytes(32).toString("base64url");
  const path = join(folder, "page-secrets");
  await writeFile(path, `${secret}\n`, { mode: 0o600 });
  return { pagePath: `/s/${secret}/ui`, uiSecrets: { kind: "file", path } as const };
}

/** Creates them in this order. */
export async function install(client: Cluster, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    await client.create(installedResource(object), object);
  }
}

async function openStage(folder: string, images: readonly string[]): Promise<Stage> {
  const isPullable = (image: string) => isKnownImage(image, images);
  const local = await startLocalCluster({
    front: kubectlFront(),
    imageBehaviour: (image) => (isPullable(image) ? imageBehaviour(image) : "unpullable"),
  });
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, local.kubeconfig(), { mode: 0o600 });
  const { caBundle, ...tls } = await writeCertificate(folder);
  const { pathSecret, authentication } = await writePathSecret(folder);
  const { pagePath, uiSecrets } = await writePageSecret(folder);
  const reports: PassReport[] = [];
  const server = await startServer({
    kubeconfig,
    ...tls,
    authentication,
    uiSecrets,
    host: "127.0.0.1",
    port: 0,
    tickMs: TICK_MS,
    onReport: (report) => reports.push(report),
  });
  const client = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
    userAgent: "sidecarset-demo",
  });
  const url = `https://127.0.0.1:${server.port}`;
  const address = { url, caBundle, pathSecret };
  // Fail, so that a busy machine never shows pods without sidecars.
  await install(client, installation(address, { podFailurePolicy: "Fail" }));
  const close = async () => {
    await server.close();
    await local.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { client, local, kubeconfig, isPullable, page: `${url}${pagePath}`, address, reports, close };
}

/**
 * The demo no longer needs failurePolicy Fail: the webhooks are registered as `sidecarset webhooks` does by default.
 */
export async function mayBeUnavailable({ client }: Stage): Promise<void> {
  const key = { name: WEBHOOK_CONFIGURATION };
  const { webhooks } = await client.get<Registered>(MUTATING_WEBHOOK_CONFIGURATIONS, key);
  const path = `/webhooks/${webhooks.findIndex(({ name }) => name === POD_WEBHOOK)}/failurePolicy`;
  const operations = [{ op: "replace", path, value: "Ignore" }] as const;
  await client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, key, { type: "json", operations });
}

interface Registered extends KubernetesObject {
  readonly webhooks: readonly { readonly name: string }[];
}

/**
 * Everything listens on 127.0.0.1, on free ports, and is gone after `close`.
 * @param images of the manifests: other tags of their repositories cannot be pulled
 */
export async function setStage(images: readonly string[] = []): Promise<Stage> {
  return openStage(await mkdtemp(join(tmpdir(), "sidecarset-demo-")), images);
}

/** Images in the demo's registry: a rollout of any other fails. */
interface Image {
  readonly repository: string;
  /** the tag, with # for each number */
  readonly form: string;
}

function parse(image: string): Image {
  const colon = image.indexOf(":", image.lastIndexOf("/") + 1);
  const tag = colon === -1 ? "" : image.slice(colon + 1);
  return { repository: colon === -1 ? image : image.slice(0, colon), form: tagForm(tag) };
}

/** "4.1.0" → "#.#.#"; a suffix that `nextImage` adds to a tag without a number changes nothing. */
function tagForm(tag: string): string {
  return tag.replace(/\d+/g, "#").replace(/(-next|^next)+$/, "");
}

/**
 * Knows tags that look like the tag in the manifests: 4.2.0 where 4.1.0 is used. For a repository outside of the
 * manifests it knows each digest, and each tag that is "latest" or has a number.
 */
export function isKnownImage(image: string, manifests: readonly string[]): boolean {
  if (image.includes("@")) return true;
  const { repository, form } = parse(image);
  const own = manifests.map(parse).filter((one) => one.repository === repository);
  if (own.length > 0) return own.some((one) => one.form === form);
  return form === "" || form === "latest" || form.includes("#");
}

// Reads the manifest files that the demo applies, and says where in which file something is wrong.

export interface Manifest {
  readonly resource: Resource;
  readonly object: KubernetesObject & { readonly metadata: { readonly name?: string; readonly namespace?: string } };
}

const apps = (plural: string): Resource => ({ group: "apps", version: "v1", plural, namespaced: true });

/** Kinds in the order of their creation: needed ones come first. */
const KINDS: ReadonlyMap<string, Resource> = new Map([
  ["v1 Namespace", NAMESPACES],
  ["v1 ConfigMap", CONFIG_MAPS],
  ["v1 Secret", { group: "", version: "v1", plural: "secrets", namespaced: true }],
  ["apps.kruise.io/v1beta1 SidecarSet", SIDECARSETS],
  ["apps.kruise.io/v1alpha1 SidecarSet", { ...SIDECARSETS, version: "v1alpha1" }],
  ["apps/v1 Deployment", apps("deployments")],
  ["apps/v1 ReplicaSet", apps("replicasets")],
  ["apps/v1 StatefulSet", apps("statefulsets")],
  ["v1 Pod", PODS],
]);

function identify({ object, place }: ReadObject): Manifest {
  const { apiVersion = "(no apiVersion)", kind = "(no kind)", metadata } = object;
  const resource = KINDS.get(`${apiVersion} ${kind}`);
  if (resource === undefined)
    throw new CliError(
      `${place}: ${apiVersion} ${kind} is not a kind that the demo runs; it takes ${[...KINDS.keys()].join(", ")}`,
    );
  if (!metadata?.name && kind !== "Pod") throw new CliError(`${place}: ${kind} has no metadata.name; give it one`);
  return { resource, object: object as Manifest["object"] };
}

/** All objects of all files, with needed ones first. @throws CliError naming file, line and column */
export async function readManifests(files: readonly string[]): Promise<readonly Manifest[]> {
  const manifests = (await readObjects(files)).map(identify);
  const order = [...KINDS.values()];
  return manifests.toSorted((a, b) => order.indexOf(a.resource) - order.indexOf(b.resource));
}
