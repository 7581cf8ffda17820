/**
 * Objects for the cluster: the definition, the rights and, once the functions answer, the webhooks. Applied as kubectl
 * does.
 */
import { readFile } from "node:fs/promises";
import type { Screen } from "../../../functions/terminal/screen.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { DEPLOYED_BY_ANNOTATION, NEEDS_WEBHOOK_CONDITION, WEBHOOK_CONFIGURATION } from "../../../shared/api/names.ts";
import { missingFields } from "../../../shared/core/inspect/check/definition.ts";
import type { Definition, WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { someOf } from "../../../shared/core/inspect/check/finding.ts";
import { counted } from "../../../shared/go/counted.ts";
import { installation, statefulSetInstallation } from "../../../shared/install/manifests.ts";
import { optionalAccess } from "../../../shared/install/rbac/optional-access.ts";
import type { WebhookAddress } from "../../../shared/install/webhooks/address.ts";
import { writeYamlDocuments } from "../../../shared/kube/yaml.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { DEPLOYED } from "../deployed.ts";
import { functionId } from "../names.ts";
import type { AwsSettings } from "../settings.ts";
import { type Aws, type EksCluster, type Kubectl, type Stack, sentenceOf } from "./aws.ts";
import type { DeployOptions } from "./options.ts";

/** The longest line of a diff. Certificates are longer. */
const MOST_CHARACTERS = 200;
/** The address of a deployment that does not exist yet. The name .invalid never resolves. */
const UNKNOWN = "https://sidecarset-webhooks.invalid";

/** The address of the function that answers each path. */
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

/** The objects in the order of their creation. */
function objectsOf(deployment: Deployment, address: SecretAddress): readonly KubernetesObject[] {
  const { options, settings } = deployment;
  const annotations = { [DEPLOYED_BY_ANNOTATION]: nameOfDeployment(deployment) };
  const objects = [
    ...installation(address, { podFailurePolicy: options.failurePolicy ?? "Ignore" }),
    ...(settings.keepRegistration === "true" ? keepingAccess() : []),
    ...(settings.isServingStatefulSets ? statefulSetInstallation(address) : []),
  ];
  return objects.map((one) => (isWebhook(one) ? { ...one, metadata: { ...one.metadata, annotations } } : one));
}

function keepingAccess(): readonly KubernetesObject[] {
  return optionalAccess().flatMap(({ feature, objects }) => (feature === "webhook-configuration" ? objects : []));
}

/** Namespace, rights and definitions. */
export async function applyObjects(deployment: Deployment, address: SecretAddress): Promise<void> {
  const objects = objectsOf(deployment, address).filter((one) => !isWebhook(one));
  await apply(deployment, await withoutOlder(deployment, objects));
}

/** Keeps a definition of a newer release: without its fields the API server would drop stored data. */
async function withoutOlder(
  { kubectl, changes }: Deployment,
  objects: readonly KubernetesObject[],
): Promise<readonly KubernetesObject[]> {
  const manifest = writeYamlDocuments(objects.filter(({ kind }) => kind === "CustomResourceDefinition"));
  const there = objectsIn((await kubectl(["get", "-f", "-", "--ignore-not-found", "-o", "json"], manifest)).stdout);
  const dropped = new Map(objects.map((one) => [one, fieldsDropped(one, there)]));
  for (const [one, fields] of dropped)
    if (fields.length > 0) changes.said(`${nameOf(one)} stays, it is of a newer release: it has ${someOf(fields)}`);
  return objects.filter((one) => dropped.get(one)?.length === 0);
}

/**
 * Stored fields that the own definition would drop. None where conversions are asked for elsewhere, or where the own
 * definition also adds fields: then it has to be applied.
 */
function fieldsDropped(own: Definition, there: readonly Definition[]): readonly string[] {
  const stored = there.find((one) => nameOf(one) === nameOf(own));
  const urlOf = ({ spec }: Definition) => spec?.conversion?.webhook?.clientConfig?.url;
  if (stored === undefined || urlOf(stored) !== urlOf(own)) return [];
  return (own.spec?.versions ?? []).flatMap(({ name, schema }) => {
    const before = stored.spec?.versions?.find((one) => one.name === name)?.schema?.openAPIV3Schema;
    const after = schema?.openAPIV3Schema;
    return before && after && missingFields(before, after, "").length === 0 ? missingFields(after, before, "") : [];
  });
}

/** Registers the webhooks; to be called once the functions are ready. */
export async function registerWebhooks(deployment: Deployment, address: SecretAddress): Promise<void> {
  await apply(deployment, objectsOf(deployment, address).filter(isWebhook));
  if (deployment.settings.keepRegistration !== "true") await endKeeping(deployment);
}

/** The condition that passes keep up to date, and the right to: left alone, it would keep pods of new SidecarSets from the webhook. */
async function endKeeping({ kubectl, changes }: Deployment): Promise<void> {
  const rights = writeYamlDocuments(keepingAccess());
  const names = [...(await versionsThere(kubectl, rights)).keys()];
  if (names.length > 0)
    await changes.make(`kubectl delete ${names.join(", ")}: the registration is kept no more`, async () => {
      const ended = await kubectl(["delete", "--ignore-not-found", "-f", "-"], rights);
      if (ended.code !== 0) throw new DeployError(`kubectl delete failed: ${sentenceOf(ended)}`);
    });
  const named = ["mutatingwebhookconfiguration", WEBHOOK_CONFIGURATION];
  const [stored] = objectsIn((await kubectl(["get", ...named, "--ignore-not-found", "-o", "json"])).stdout);
  const { webhooks = [] } = (stored ?? {}) as WebhookConfiguration;
  const at = webhooks.map(({ matchConditions = [] }) =>
    matchConditions.map(({ name }) => name).indexOf(NEEDS_WEBHOOK_CONDITION),
  );
  const index = at.findIndex((place) => place >= 0);
  if (index < 0) return;
  const path = `/webhooks/${index}/matchConditions/${at[index]}`;
  const patch = JSON.stringify([
    { op: "test", path: `${path}/name`, value: NEEDS_WEBHOOK_CONDITION },
    { op: "remove", path },
  ]);
  await changes.make(`remove the condition ${NEEDS_WEBHOOK_CONDITION} of ${WEBHOOK_CONFIGURATION}`, async () => {
    const ended = await kubectl(["patch", ...named, "--type=json", "-p", patch]);
    if (ended.code !== 0) throw new DeployError(`kubectl patch failed: ${sentenceOf(ended)}`);
    changes.said(`condition ${NEEDS_WEBHOOK_CONDITION} removed`);
  });
}

async function apply({ kubectl, changes }: Deployment, objects: readonly KubernetesObject[]): Promise<void> {
  const manifest = writeYamlDocuments(objects);
  if (changes.isDryRun) return await sayWhatDiffers({ kubectl, changes }, objects, manifest);
  const before = await versionsThere(kubectl, manifest);
  const ended = await kubectl(["apply", "-f", "-", "-o", "json"], manifest);
  const after = versionsIn(ended.stdout);
  // kubectl also calls unchanged objects configured, because API servers fill in defaults.
  const changed = [...after].filter(([name, version]) => before.get(name) !== version);
  for (const [name] of changed)
    await changes.make(name, async () => changes.said(`${name} ${before.has(name) ? "changed" : "created"}`));
  if (ended.code !== 0) throw new DeployError(`kubectl apply failed: ${sentenceOf({ ...ended, stdout: "" })}`);
  if (after.size > changed.length) changes.said(`${counted(after.size - changed.length, "object")} unchanged`);
}

/** Prints how existing objects would change, by `kubectl diff`: the API server applies them and stores nothing. */
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
  const ended = await kubectl(["diff", "-f", "-"], writeYamlDocuments(objects));
  if (ended.code > 1) throw new DeployError(`kubectl diff failed: ${sentenceOf({ ...ended, stdout: "" })}`);
  if (ended.code === 0) return undefined;
  const lines = ended.stdout.split("\n").filter((line) => /^[ @+-](?![+-]{2} )/.test(line));
  return lines.map((line) => withoutSecrets(line).slice(0, MOST_CHARACTERS));
}

async function versionsThere(kubectl: Kubectl, manifest: string): Promise<ReadonlyMap<string, string>> {
  return versionsIn((await kubectl(["get", "-f", "-", "--ignore-not-found", "-o", "json"], manifest)).stdout);
}

/** Reads kubectl's JSON: object → resourceVersion. */
function versionsIn(text: string): ReadonlyMap<string, string> {
  return new Map(objectsIn(text).map((one) => [nameOf(one), one.metadata?.resourceVersion ?? ""]));
}

function objectsIn(text: string): readonly KubernetesObject[] {
  if (!text.trim().startsWith("{")) return [];
  const answer = JSON.parse(text) as KubernetesObject & { readonly items?: readonly KubernetesObject[] };
  return answer.kind === "List" ? (answer.items ?? []) : [answer];
}

function nameOf({ kind = "", metadata: { name = "", namespace } = {} }: KubernetesObject): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

// The base of the steps of a deployment. A step looks first, and then changes only what differs.

/** A problem that the operator has to fix: only its message is printed. */
export class DeployError extends Error {
  override readonly name = "DeployError";
}

export interface Tools {
  readonly options: DeployOptions;
  readonly aws: Aws;
  readonly kubectl: Kubectl;
  readonly screen: Screen;
  readonly now: () => number;
}

/** Found out before anything is begun. */
export interface Facts {
  readonly cluster: EksCluster;
  /** valid ones, the new one first; none: they are made */
  readonly secrets: readonly string[];
  readonly stack: Stack | undefined;
  readonly settings: AwsSettings;
}

export interface Deployment extends Tools, Facts {
  readonly stackName: string;
  readonly changes: Changes;
}

/** REGION/STACK, as its registrations have it. */
export function nameOfDeployment({ options, stackName }: Pick<Deployment, "options" | "stackName">): string {
  return `${options.region}/${stackName}`;
}

/** The webhooks' address, with the secret of its paths. */
export type SecretAddress = WebhookAddress & { readonly pathSecret: string };

/** Makes changes, or in a dry run prints them. */
export class Changes {
  readonly #screen: Screen;
  readonly #isDryRun: boolean;
  #count = 0;

  constructor(screen: Screen, isDryRun: boolean) {
    this.#screen = screen;
    this.#isDryRun = isDryRun;
  }

  get count(): number {
    return this.#count;
  }

  get isDryRun(): boolean {
    return this.#isDryRun;
  }

  /** undefined: in a dry run. `isChange`: judges the result */
  async make<T>(
    what: string,
    act: () => Promise<T>,
    isChange: (made: T) => boolean = () => true,
  ): Promise<T | undefined> {
    if (this.#isDryRun) {
      this.#count += 1;
      this.#screen.line("   ", { text: "would: ", color: "yellow" }, what);
      return undefined;
    }
    const made = await act();
    if (isChange(made)) this.#count += 1;
    return made;
  }

  said(text: string): void {
    this.#screen.line("   ", text);
  }
}

/** @throws DeployError where the stack has no such output */
export function outputOf({ stackName }: Deployment, stack: Stack, key: string): string {
  const value = stack.outputs.get(key);
  if (value) return value;
  throw new DeployError(
    `stack ${stackName} has no output ${key}: it was deployed by another release, or is not deployed to its end.`,
  );
}

interface StageSteps {
  /** rejects where the stage cannot be deployed; changes nothing */
  readonly look: (options: DeployOptions) => Promise<unknown>;
  readonly deploy: (options: DeployOptions) => Promise<unknown>;
}

/**
 * Deploys one stage after another. It begins only if all of them can be deployed, and stops at the first failure. A
 * repeated call continues there, because finished steps are left as they are.
 */
export async function throughStages(
  stages: readonly DeployOptions[],
  screen: Screen,
  steps: StageSteps,
): Promise<void> {
  const heading = (stage: string) => screen.line({ text: `Stage ${stage}`, color: "bold" });
  const names = stages.map(({ stage }) => stage);
  for (const [index, options] of stages.entries()) {
    heading(options.stage);
    await steps.look(options).catch((error: unknown) => {
      screen.warn(`Nothing was begun: stage ${names[index]} cannot be deployed.`);
      throw error;
    });
  }
  for (const [index, options] of stages.entries()) {
    heading(options.stage);
    await steps.deploy(options).catch((error: unknown) => {
      const [done, later] = [names.slice(0, index), names.slice(index + 1)];
      const sentences = [
        `Stopped at ${names[index]}; ${done.length} of ${names.length} stages done${done.length > 0 ? `: ${done.join(", ")}` : ""}.`,
        ...(later.length > 0 ? [`Left as they are: ${later.join(", ")}.`] : []),
        "When that is put right, the same command goes on from there.",
      ];
      screen.warn(sentences.join(" "));
      throw error;
    });
  }
}
