/** Manifests that register the webhooks with the API server: YAML for kubectl apply. */
import { readFile } from "node:fs/promises";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { listAll } from "../../shared/controller/rollout/observe-pods.ts";
import { callCondition } from "../../shared/core/injection/match/call-condition.ts";
import type { WebhookConfiguration } from "../../shared/core/inspect/check/facts.ts";
import { installation, registrations } from "../../shared/install/manifests.ts";
import type { WebhookAddress } from "../../shared/install/webhooks/address.ts";
import { statusHintsWebhook } from "../../shared/install/webhooks/status-hints.ts";
import { type RegistrationOptions, STATIC_PARTS } from "../../shared/install/webhooks/webhook-configurations.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import { writeYamlDocuments } from "../../shared/kube/yaml.ts";
import { isClusterName } from "../../shared/settings/cluster-table.ts";
import { CliError } from "../terminal/screen.ts";

interface AskedCluster {
  readonly cluster: Cluster;
  /** gate KruisePodReadinessGate, as set here or in the passes */
  readonly gatesEveryPod: boolean;
}

export interface WebhooksOptions {
  /** the webhooks' address */
  readonly url: string;
  /** PATH=URL, for webhooks with an address of their own */
  readonly urlsOf?: readonly string[];
  /** file with the certificate authority in PEM; absent: API servers trust the authority anyway */
  readonly caBundle?: string | undefined;
  /** file whose first line is the secret of the path */
  readonly pathSecrets?: string | undefined;
  /** the cluster's name, if the address serves several clusters */
  readonly cluster?: string | undefined;
  readonly likeOpenKruise: boolean;
  readonly failurePolicy?: string | undefined;
  /** reads the cluster, so that API servers ask only about pods that a SidecarSet or a launch order may concern */
  readonly fromCluster?: (() => Promise<AskedCluster>) | undefined;
  /** registers the webhook also for pods that become ready or fail */
  readonly statusHints: boolean;
  /** the part to print if API servers read the registration from a file: that file, or the objects to apply */
  readonly staticPart: string | undefined;
  /** leaves out the policies that limit the reconciler */
  readonly isUnfenced?: boolean;
  /** keys and prefixes that those policies allow, separated by commas */
  readonly fenceAnnotations?: string | undefined;
}

const ANNOTATION = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;

/** The secret part of a path, as `serve` and the functions accept it. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** Prints the registrations. @throws CliError, or KubeError when the cluster cannot be asked */
export async function printWebhooks(options: WebhooksOptions): Promise<string> {
  const address = await addressOf(options);
  const configurations = registrations(address, await registrationOf(options));
  if (options.staticPart === "file") return writeYamlDocuments(configurations.map(withoutService));
  return writeYamlDocuments([...configurations, ...(options.statusHints ? [statusHintsWebhook(address)] : [])]);
}

/** Refuses a Service in a file for API servers: they do not know the cluster's DNS. @throws CliError */
function withoutService(configuration: KubernetesObject): KubernetesObject {
  const { webhooks = [] } = configuration as WebhookConfiguration;
  if (webhooks.every(({ clientConfig }) => clientConfig?.service === undefined)) return configuration;
  throw new CliError(
    "--static file: API servers call no Service by a file; give --url an address outside of the cluster",
  );
}

/** Every object that a cluster needs, in the order of creation. @throws as `printWebhooks` */
export async function printInstallation(options: WebhooksOptions): Promise<string> {
  if (options.staticPart === "file") return printWebhooks(options);
  const address = await addressOf(options);
  const hints = options.statusHints ? [statusHintsWebhook(address)] : [];
  const fence = { isUnfenced: options.isUnfenced ?? false, fenceAnnotations: listedIn(options.fenceAnnotations) };
  return writeYamlDocuments([...installation(address, { ...(await registrationOf(options)), ...fence }), ...hints]);
}

function listedIn(text = ""): readonly string[] {
  const keys = text.split(",").flatMap((key) => key.trim() || []);
  const odd = keys.find((key) => !ANNOTATION.test(key));
  if (odd === undefined) return keys;
  throw new CliError(
    `--fence-annotations ${odd}: write keys such as example.com/mesh, or prefixes such as example.com/`,
  );
}

async function addressOf(options: WebhooksOptions): Promise<WebhookAddress> {
  const [caBundle, pathSecret] = [await caOf(options.caBundle), await secretOf(options.pathSecrets)];
  return {
    url: urlOf(options.url),
    urls: Object.fromEntries((options.urlsOf ?? []).map(placeOf)),
    ...(caBundle === undefined ? {} : { caBundle }),
    ...(pathSecret === undefined ? {} : { pathSecret }),
    ...(options.cluster === undefined ? {} : { cluster: clusterName(options.cluster) }),
  };
}

/** The name of a cluster. @throws CliError if a table of clusters cannot have the name */
export function clusterName(name: string): string {
  if (isClusterName(name)) return name;
  throw new CliError(`--cluster ${name}: write a name of the table CLUSTERS, such as eu (docs/several-clusters.md)`);
}

function urlOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === "https:" && parsed.search === "" && parsed.hash === "" && !url.includes("@")) return url;
  throw new CliError(`--url ${url}: API servers call https only; write for example https://webhooks.example.com`);
}

function placeOf(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  const [path, url] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
  if (path.startsWith("/")) return [path, urlOf(url)];
  throw new CliError(`--url-of ${text}: write PATH=URL, for example /mutate-pod=https://webhooks.example.com`);
}

async function contentOf(option: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new CliError(`--${option} ${file}: the file cannot be read (${(cause as Error).message.split(",")[0]})`, {
      cause,
    });
  }
}

async function caOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const text = await contentOf("ca-bundle", file);
  if (text.includes("-----BEGIN CERTIFICATE-----")) return Buffer.from(text).toString("base64");
  throw new CliError(`--ca-bundle ${file}: there is no certificate in this file; it must be PEM`);
}

async function secretOf(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : await readPathSecret(file);
}

/** The secret from which the secret of each path is made. @throws CliError */
export async function readPathSecret(file: string): Promise<string> {
  const [secret = ""] = await linesOf(file);
  if (SECRET.test(secret)) return secret;
  throw new CliError(`--path-secrets ${file}: the first line is no secret of 43 characters (docs/authentication.md)`);
}

/** All valid secrets: the new one and the old one. @throws CliError */
export async function readPathSecrets(file: string): Promise<readonly string[]> {
  const secrets = await linesOf(file);
  const bad = secrets.findIndex((secret) => !SECRET.test(secret));
  if (bad >= 0 || secrets.length === 0)
    throw new CliError(
      `--path-secrets ${file}: line ${Math.max(0, bad) + 1} is no secret of 43 characters (docs/authentication.md)`,
    );
  if (secrets.length > 2)
    throw new CliError(
      `--path-secrets ${file}: ${secrets.length} secrets; two are valid at most, the new one and the old one`,
    );
  return secrets;
}

async function linesOf(file: string): Promise<readonly string[]> {
  return (await contentOf("path-secrets", file)).split(/\r?\n/).flatMap((line) => line.trim() || []);
}

async function registrationOf(options: WebhooksOptions): Promise<RegistrationOptions> {
  const { likeOpenKruise, failurePolicy, fromCluster } = options;
  const staticPart = STATIC_PARTS.find((part) => part === options.staticPart);
  if (staticPart && fromCluster)
    throw new CliError(
      "choose one of --static and --from-cluster: no pass can keep the condition in a file up to date, so pods of later SidecarSets would come without sidecars",
    );
  if (failurePolicy !== undefined && failurePolicy !== "Ignore" && failurePolicy !== "Fail")
    throw new CliError(`--failure-policy ${failurePolicy}: write Ignore (the default) or Fail`);
  if (likeOpenKruise && fromCluster)
    throw new CliError("choose one of --like-openkruise and --from-cluster: OpenKruise asks about every pod");
  return {
    likeOpenKruise,
    staticPart,
    ...(failurePolicy === undefined ? {} : { podFailurePolicy: failurePolicy }),
    ...(fromCluster ? { podCondition: await conditionOf(await fromCluster()) } : {}),
  };
}

/**
 * The condition for pods. @throws CliError if it would select every pod: an error is better than a useless condition
 */
async function conditionOf({ cluster, gatesEveryPod }: AskedCluster): Promise<string> {
  if (gatesEveryPod)
    throw new CliError(
      "--from-cluster: FEATURE_GATES, here or of the passes, gives every pod a readiness gate (KruisePodReadinessGate), so every pod has to be asked about; leave the option out",
    );
  const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (sidecarSet) => sidecarSet);
  const condition = callCondition(items);
  if (condition !== undefined) return condition;
  throw new CliError(
    `--from-cluster: the ${items.length} SidecarSets cannot be told from other pods in one condition (too many of them, or one with a selector that the API server cannot evaluate); leave the option out`,
  );
}
