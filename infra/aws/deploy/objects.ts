/** What the cluster gets: the definition, the rights and, once the functions answer, the webhooks. Applied as kubectl does. */
import { readFile } from "node:fs/promises";
import { printObjects } from "../../../functions/cli/manifests.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { counted } from "../../../shared/go/counted.ts";
import { installation, statefulSetInstallation } from "../../../shared/install/manifests.ts";
import { optionalAccess } from "../../../shared/install/rbac/optional-access.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { DEPLOYED } from "../deployed.ts";
import { functionId } from "../names.ts";
import type { Stack } from "./aws.ts";
import { DeployError, type Deployment, outputOf, type SecretAddress } from "./deployment.ts";
import { type Kubectl, sentenceOf } from "./programs.ts";

/** Of a line of a difference: certificates are long. */
const MOST_CHARACTERS = 200;
/** Of a deployment that is not there yet; .invalid never resolves. */
const UNKNOWN = "https://sidecarset-webhooks.invalid";

/** Each path at the function that answers it. */
export async function addressOf(
  deployment: Deployment,
  stack: Stack | undefined,
  pathSecret: string,
): Promise<SecretAddress> {
  const urlOf = (name: string) =>
    stack === undefined ? UNKNOWN : outputOf(deployment, stack, `${functionId(name)}Url`).replace(/\/+$/, "");
  const urls = DEPLOYED.flatMap(({ name, paths = [] }) => paths.map((path) => [path, urlOf(name)] as const));
  const { caBundle } = deployment.options;
  return {
    url: urlOf("mutate-pod"),
    urls: Object.fromEntries(urls),
    pathSecret,
    ...(caBundle === undefined ? {} : { caBundle: await readAuthority(caBundle) }),
  };
}

/** PEM in base64. @throws ConfigError */
export async function readAuthority(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch(() => "");
  if (text.includes("-----BEGIN CERTIFICATE-----")) return Buffer.from(text).toString("base64");
  throw new ConfigError(`--ca-bundle ${file}: there is no certificate in this file; it must be PEM.`);
}

const isWebhook = ({ kind = "" }: KubernetesObject) => kind.endsWith("WebhookConfiguration");

/** In the order to apply them in. */
function objectsOf({ options, settings }: Deployment, address: SecretAddress): readonly KubernetesObject[] {
  const keeping = settings.keepRegistration === "true" ? "webhook-configuration" : undefined;
  return [
    ...installation(address, { podFailurePolicy: options.failurePolicy ?? "Ignore" }),
    ...optionalAccess().flatMap(({ feature, objects }) => (feature === keeping ? objects : [])),
    ...(settings.isServingStatefulSets ? statefulSetInstallation(address) : []),
  ];
}

/** Namespace, rights and definitions. */
export function applyObjects(deployment: Deployment, address: SecretAddress): Promise<void> {
  return apply(
    deployment,
    objectsOf(deployment, address).filter((one) => !isWebhook(one)),
  );
}

/** To be called once the functions are ready. */
export function registerWebhooks(deployment: Deployment, address: SecretAddress): Promise<void> {
  return apply(deployment, objectsOf(deployment, address).filter(isWebhook));
}

async function apply({ kubectl, changes }: Deployment, objects: readonly KubernetesObject[]): Promise<void> {
  const manifest = printObjects(objects);
  if (changes.isDryRun) return await sayWhatDiffers({ kubectl, changes }, objects, manifest);
  const before = await versionsThere(kubectl, manifest);
  const ended = await kubectl(["apply", "-f", "-", "-o", "json"], manifest);
  const after = versionsIn(ended.stdout);
  // kubectl calls some configured that are what they were: API servers fill in defaults.
  const changed = [...after].filter(([name, version]) => before.get(name) !== version);
  for (const [name] of changed)
    await changes.make(name, async () => changes.said(`${name} ${before.has(name) ? "changed" : "created"}`));
  if (ended.code !== 0) throw new DeployError(`kubectl apply failed: ${sentenceOf({ ...ended, stdout: "" })}`);
  if (after.size > changed.length) changes.said(`${counted(after.size - changed.length, "object")} unchanged`);
}

/** Of objects that are there by `kubectl diff`, which has the API server apply them without storing them. */
async function sayWhatDiffers(
  { kubectl, changes }: Pick<Deployment, "kubectl" | "changes">,
  objects: readonly KubernetesObject[],
  manifest: string,
): Promise<void> {
  const versions = await versionsThere(kubectl, manifest);
  const there = objects.filter((one) => versions.has(nameOf(one)));
  for (const one of objects)
    if (!there.includes(one)) await changes.make(`kubectl apply: create ${nameOf(one)}`, async () => {});
  const differing = await differencesOf(kubectl, there);
  for (const [one, lines] of differing) {
    await changes.make(`kubectl apply: change ${nameOf(one)}`, async () => {});
    for (const line of lines) changes.said(`     ${line}`);
  }
  if (there.length > differing.size) changes.said(`${counted(there.length - differing.size, "object")} unchanged`);
}

async function differencesOf(kubectl: Kubectl, objects: readonly KubernetesObject[]) {
  const found = new Map<KubernetesObject, readonly string[]>();
  if (objects.length === 0 || (await diff(kubectl, objects)) === undefined) return found;
  for (const one of objects) {
    const lines = await diff(kubectl, [one]);
    if (lines !== undefined) found.set(one, lines);
  }
  return found;
}

/** Lines that would go and come, without secrets; undefined: it is the same. @throws DeployError */
async function diff(kubectl: Kubectl, objects: readonly KubernetesObject[]): Promise<readonly string[] | undefined> {
  const ended = await kubectl(["diff", "-f", "-"], printObjects(objects));
  if (ended.code > 1) throw new DeployError(`kubectl diff failed: ${sentenceOf({ ...ended, stdout: "" })}`);
  if (ended.code === 0) return undefined;
  const lines = ended.stdout.split("\n").filter((line) => /^[+-](?![+-]{2} )(?! +generation: )/.test(line));
  return lines.map((line) => withoutSecrets(line).slice(0, MOST_CHARACTERS));
}

async function versionsThere(kubectl: Kubectl, manifest: string): Promise<ReadonlyMap<string, string>> {
  return versionsIn((await kubectl(["get", "-f", "-", "--ignore-not-found", "-o", "json"], manifest)).stdout);
}

/** Of what kubectl prints as JSON: object → resourceVersion. */
function versionsIn(text: string): ReadonlyMap<string, string> {
  if (!text.trim().startsWith("{")) return new Map();
  const answer = JSON.parse(text) as KubernetesObject & { readonly items?: readonly KubernetesObject[] };
  const objects = answer.kind === "List" ? (answer.items ?? []) : [answer];
  return new Map(objects.map((one) => [nameOf(one), one.metadata?.resourceVersion ?? ""]));
}

function nameOf({ kind = "", metadata: { name = "", namespace } = {} }: KubernetesObject): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}
