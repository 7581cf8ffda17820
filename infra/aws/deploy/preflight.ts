/** Looks at everything that a deployment needs, and says why it cannot be made before anything is begun. */
import type { Screen } from "../../../functions/terminal/screen.ts";
import {
  DEPLOYED_BY_ANNOTATION,
  POD_WEBHOOK,
  VALIDATING_CONFIGURATION,
  WEBHOOK_CONFIGURATION,
} from "../../../shared/api/names.ts";
import type { Deployment as KubeDeployment, WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { isRunning } from "../../../shared/core/inspect/check/others.ts";
import { type Registered, registered } from "../../../shared/core/inspect/check/webhooks.ts";
import { counted } from "../../../shared/go/counted.ts";
import { type SecretPath, splitPath } from "../../../shared/webhook/server/authenticate.ts";
import { pathSecretOf } from "../../../shared/webhook/server/path-secret.ts";
import { readSizing, type Sizing } from "../door-settings.ts";
import { FOUND_OUT, hasGiven, lastGiven } from "../given-parameters.ts";
import type { AwsSettings } from "../settings.ts";
import { type Aws, type EksCluster, type Kubectl, type Stack, sentenceOf } from "./aws.ts";
import { DeployError, type Facts, nameOfDeployment, readAuthority, type Tools } from "./objects.ts";
import { BY_HAND, type DeployOptions } from "./options.ts";
import { checkParameters, digestsOf, parseSecrets, secretName } from "./parameters.ts";

/** The concurrency that AWS keeps for all functions without a reservation. Source: Lambda, reserved concurrency. */
const UNRESERVED = 100;
/** States of a stack that can neither be updated nor created again. */
const STUCK =
  /^(CREATE_FAILED|ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED|REVIEW_IN_PROGRESS|UPDATE_ROLLBACK_FAILED)$/;

/** @throws DeployError or ConfigError: one sentence that says what is wrong, where, and what to do */
export async function preflight(
  tools: Tools,
  stackName: string,
  reservations: Reservations = new Map(),
): Promise<Facts> {
  const { options, aws } = tools;
  const said = (text: string) => tools.screen.line({ text: "  ✔ ", color: "green" }, text);
  const { account, arn } = await identify(aws);
  said(`AWS account ${account} in ${options.region}, as ${arn}`);
  const cluster = await clusterOf(aws, options);
  checkNetwork(options.cluster, cluster, Boolean(options.parameters.get("subnets")));
  said(`EKS cluster ${options.cluster} is active, ${cluster.endpoint}`);
  await checkApiServer(tools, cluster);
  said("the kubeconfig leads to it, its API server answers, and this user may apply the manifests");
  if (options.caBundle !== undefined) await readAuthority(options.caBundle);
  const secrets = await storedSecrets(tools);
  const stack = await aws.describeStack(stackName);
  const last = Object.keys(lastGiven(stack));
  const settings = await checkParameters(parametersOf(tools, cluster, secrets), options, last);
  checkTopics(settings, options.region);
  said(`${counted(options.parameters.size, "parameter")}, read by the functions' own parsers`);
  checkStack(stackName, stack, options);
  refuseForgotten(stack, options);
  await checkConcurrency(aws, { ...settings, region: options.region, reservations }, stack);
  await checkRegistered(tools, { secrets, settings, stack }, stackName);
  said(stack === undefined ? `stack ${stackName} is not there yet` : `stack ${stackName}: ${stack.status}`);
  warn(tools.screen, settings, stack);
  return { cluster, secrets, settings, stack };
}

function warn(screen: Screen, { alarmTopic, reserved }: AwsSettings, stack: Stack | undefined): void {
  const warnWhere = (isSo: boolean, text: string) => {
    if (isSo) screen.line({ text: "  ! ", color: "yellow" }, text);
  };
  warnWhere(
    alarmTopic === undefined,
    "no alarm notifies you: --param alarm-topic=ARN names the SNS topic that they are sent to",
  );
  warnWhere(
    !reserved.has("mutate-pod"),
    "mutate-pod has no limit of its own: anyone who finds its address can use up the account's concurrency, at your expense; --param reserved-concurrency=mutate-pod=200,dry-run=1 is one, and lets one dry run at a time read the cluster",
  );
  warnWhere(
    stack !== undefined && !hasGiven(stack),
    "the stack does not say which parameters it was deployed with: any that is missing now goes back to its default",
  );
}

/** Parameters from --param, and parameters that were looked up. */
export function parametersOf(
  { options }: Pick<Tools, "options">,
  { endpoint = "", certificateAuthority: { data = "" } = {} }: EksCluster,
  secrets: readonly string[],
): ReadonlyMap<string, string> {
  return new Map([
    ...options.parameters,
    ["eks-cluster", options.cluster],
    ["cluster-server", endpoint],
    ["cluster-ca", data],
    ["path-digests", digestsOf(secrets)],
    ["registered-failure-policy", options.failurePolicy === "Fail" ? "Fail" : ""],
  ]);
}

async function identify(aws: Aws) {
  try {
    return await aws.getCallerIdentity();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new DeployError(
      `the credentials of AWS are missing or have expired (${why}): sign in, for example with aws sso login, or set AWS_PROFILE.`,
      { cause },
    );
  }
}

async function clusterOf(aws: Aws, { cluster: name, region }: Tools["options"]): Promise<EksCluster> {
  const cluster = await aws.describeCluster(name);
  if (cluster === undefined)
    throw new DeployError(`--cluster ${name}: there is no such EKS cluster in this account and region.`);
  if (cluster.status !== "ACTIVE")
    throw new DeployError(`EKS cluster ${name} is ${cluster.status}: wait until it is ACTIVE.`);
  if (cluster.accessConfig?.authenticationMode === "CONFIG_MAP")
    throw new DeployError(
      `EKS cluster ${name} takes no access entries (authentication mode CONFIG_MAP): run aws eks update-cluster-config --region ${region} --name ${name} --access-config authenticationMode=API_AND_CONFIG_MAP first, which cannot be undone.`,
    );
  return cluster;
}

/** Functions outside of a VPC come from any address of AWS. */
function checkNetwork(name: string, { resourcesVpcConfig: network }: EksCluster, isInVpc: boolean): void {
  if (isInVpc || network === undefined) return;
  const { endpointPublicAccess = true, publicAccessCidrs = ["0.0.0.0/0"] } = network;
  if (endpointPublicAccess && publicAccessCidrs.includes("0.0.0.0/0")) return;
  const why = endpointPublicAccess ? `for ${publicAccessCidrs.join(", ")} alone` : "from its VPC alone";
  throw new DeployError(
    `the API server of ${name} can be reached ${why}: give --param subnets and --param security-groups of that VPC.`,
  );
}

async function storedSecrets({ aws, options }: Tools): Promise<readonly string[]> {
  const name = secretName(options.stage);
  const text = await aws.getParameter(name);
  return text === undefined ? [] : parseSecrets(`the parameter ${name} in SSM`, text);
}

/** Functions at once that earlier stages reserve beyond their present reservations, by region. */
export type Reservations = Map<string, number>;

interface Concurrency extends Pick<AwsSettings, "reserved"> {
  readonly region: string;
  readonly reservations: Reservations;
}

/** Counts the stack's present reservations as free. */
export async function checkConcurrency(
  aws: Pick<Aws, "getUnreservedConcurrency">,
  { region, reservations, ...settings }: Concurrency,
  stack: Stack | undefined,
): Promise<void> {
  const sumOf = ({ reserved }: Pick<Sizing, "reserved">) =>
    [...reserved.values()].reduce((sum, count) => sum + count, 0);
  const wanted = sumOf(settings);
  if (wanted === 0) return;
  const last = lastGiven(stack);
  const before = sumOf(await readSizing(async (name) => (name === "reserved-concurrency" ? (last[name] ?? "") : "")));
  const earlier = reservations.get(region) ?? 0;
  reservations.set(region, earlier + Math.max(0, wanted - before));
  const most = ((await aws.getUnreservedConcurrency()) ?? Number.POSITIVE_INFINITY) + before - earlier;
  if (wanted + UNRESERVED <= most) return;
  throw new DeployError(
    `--param reserved-concurrency takes ${wanted} of the ${most} functions that may run at once in this account and are not reserved, and ${UNRESERVED} have to be left: ask AWS for more ("Concurrent executions"), or leave it out.`,
  );
}

/** CloudFormation refuses others, once all else is made. */
export function checkTopics(
  { alarmTopic, ticketTopic }: Pick<AwsSettings, "alarmTopic" | "ticketTopic">,
  region: string,
): void {
  for (const [name, topic] of Object.entries({ "alarm-topic": alarmTopic, "ticket-topic": ticketTopic })) {
    const [, , , where] = (topic ?? "").split(":");
    if (where === undefined || where === region) continue;
    throw new DeployError(`--param ${name}=${topic} is in ${where}: alarms of ${region} need a topic there.`);
  }
}

function checkStack(name: string, stack: Stack | undefined, { region, stage }: Tools["options"]): void {
  if (stack === undefined || !STUCK.test(stack.status)) return;
  const remove = `npx osls remove --region ${region} --stage ${stage}`;
  if (stack.status === "REVIEW_IN_PROGRESS")
    throw new DeployError(
      `stack ${name} is REVIEW_IN_PROGRESS: another run is creating it, so wait a minute; if it stays so, that run was killed: run ${remove} first.`,
    );
  const remedy =
    stack.status === "UPDATE_ROLLBACK_FAILED"
      ? `aws cloudformation continue-update-rollback --region ${region} --stack-name ${name}`
      : remove;
  throw new DeployError(`stack ${name} is ${stack.status}: run ${remedy} first; its events say why.`);
}

// Looks at the cluster before anything is begun: whether it is the right one, and lets this user do all that is to come.

/** @throws DeployError */
async function checkApiServer(tools: Tools, cluster: EksCluster): Promise<void> {
  await checkContext(tools, cluster);
  await checkRights(tools.kubectl);
  await refuseOpenKruise(tools.kubectl);
}

async function checkContext({ kubectl, options }: Tools, { endpoint }: EksCluster): Promise<void> {
  const config = await kubectl(["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"]);
  const update = `aws eks update-kubeconfig --region ${options.region} --name ${options.cluster}`;
  if (config.code !== 0) throw new DeployError(`the kubeconfig cannot be used (${sentenceOf(config)}): run ${update}.`);
  if (!isSameServer(config.stdout, endpoint ?? ""))
    throw new DeployError(
      `the kubeconfig leads to ${config.stdout}, and EKS cluster ${options.cluster} is at ${endpoint}: run ${update}, or choose another --context.`,
    );
  const asked = await kubectl(["get", "--raw", "/version"]);
  if (asked.code !== 0) throw new DeployError(`the API server cannot be asked: ${sentenceOf(asked)}`);
}

/** Refuses before the first pass, because two that roll out the same SidecarSets exceed maxUnavailable together. */
async function refuseOpenKruise(kubectl: Kubectl): Promise<void> {
  const named = ["--field-selector", "metadata.name=kruise-controller-manager"];
  const asked = await kubectl(["get", "deployments.apps", "--all-namespaces", ...named, "-o", "json"]);
  if (asked.code !== 0) throw new DeployError(`the Deployments of the cluster cannot be listed: ${sentenceOf(asked)}`);
  const { items } = JSON.parse(asked.stdout) as { readonly items: readonly KubeDeployment[] };
  const running = items.find(isRunning)?.metadata;
  if (running === undefined) return;
  throw new DeployError(
    `OpenKruise's manager runs in this cluster (Deployment ${running.namespace}/${running.name}): both would roll SidecarSets out, each within a budget of its own. Do not scale it down, since its webhooks would keep pods from being created: sidecarset migrate from-kruise shows the steps.`,
  );
}

function isSameServer(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href;
}

/** Rights that applying needs. Only a user who has a right, or `escalate`, may give it: cluster-admin has. */
const APPLIED = [
  "create namespaces",
  "patch customresourcedefinitions.apiextensions.k8s.io",
  "patch mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "patch validatingwebhookconfigurations.admissionregistration.k8s.io",
  "escalate clusterroles.rbac.authorization.k8s.io",
  "bind clusterroles.rbac.authorization.k8s.io",
];

async function checkRights(kubectl: Kubectl): Promise<void> {
  const answers = await Promise.all(
    APPLIED.map(async (asked) => ({ asked, ended: await kubectl(["auth", "can-i", ...asked.split(" ")]) })),
  );
  const refused = answers.find(({ ended }) => ended.code !== 0);
  if (refused === undefined) return;
  const { asked, ended } = refused;
  const isNo = ended.stdout.trim().startsWith("no");
  throw new DeployError(
    `this user of the cluster ${isNo ? "may not" : "cannot be asked for whether it may"} ${asked}${isNo ? "" : ` (${sentenceOf(ended)})`}: the definition and the rights are applied by a cluster-admin; choose another --context.`,
  );
}

/** Looks at the webhooks that are registered: nothing that API servers ask now may stop being answered, or change because an option was left out. */
const UNREGISTER = `kubectl delete mutatingwebhookconfiguration ${WEBHOOK_CONFIGURATION} and kubectl delete validatingwebhookconfiguration ${VALIDATING_CONFIGURATION}`;
/** Names of our configurations. */
const OURS = /^(?:kruise-)?sidecarset-/;
const STATEFUL_SETS = "sidecarset-stateful-sets-";

/** @throws DeployError */
async function checkRegistered(tools: Tools, facts: Omit<Facts, "cluster">, stackName: string): Promise<void> {
  const configurations = await configurationsOf(tools);
  const all = registered(configurations);
  const openKruise = all.find(({ isOpenKruise }) => isOpenKruise);
  if (openKruise !== undefined)
    throw new DeployError(
      `OpenKruise's webhooks are registered (${openKruise.configuration}) without its manager, so that what they are asked about is refused: kubectl delete mutatingwebhookconfiguration kruise-mutating-webhook-configuration, and validating likewise, first.`,
    );
  refuseUnserved(all, facts);
  const pods = all.find(
    ({ configuration, webhook }) => configuration === WEBHOOK_CONFIGURATION && webhook.name === POD_WEBHOOK,
  );
  refuseOtherPolicy(tools, facts, pods);
  if (pods === undefined) return;
  const named = configurations.find(({ metadata }) => metadata?.name === WEBHOOK_CONFIGURATION);
  const deployedBy = named?.metadata?.annotations?.[DEPLOYED_BY_ANNOTATION];
  refuseOtherDeployment({ ...pods, deployedBy }, tools, facts, stackName);
  refuseOtherSecret(tools, facts, all);
}

async function configurationsOf({ kubectl }: Tools): Promise<readonly WebhookConfiguration[]> {
  const kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
  const asked = await kubectl(["get", kinds, "-o", "json"]);
  if (asked.code !== 0) throw new DeployError(`the registered webhooks cannot be listed: ${sentenceOf(asked)}`);
  return (JSON.parse(asked.stdout) as { readonly items: readonly WebhookConfiguration[] }).items;
}

/** Webhooks of Advanced StatefulSets would refuse every request when their function no longer knows the callers. */
function refuseUnserved(all: readonly Registered[], { settings }: Pick<Facts, "settings">): void {
  const left = all.find(({ configuration }) => configuration.startsWith(STATEFUL_SETS));
  if (left === undefined || settings.isServingStatefulSets) return;
  const both = ["mutating", "validating"].map(
    (kind) => `kubectl delete ${kind}webhookconfiguration ${STATEFUL_SETS}${kind}-webhook-configuration`,
  );
  throw new DeployError(
    `webhooks of Advanced StatefulSets are registered, which would be reconciled no more: give --param ordered-sets=true, or run ${both.join(" and ")} first.`,
  );
}

function refuseOtherPolicy({ options }: Tools, { stack }: Pick<Facts, "stack">, pods: Registered | undefined): void {
  const isFail = pods?.webhook.failurePolicy === "Fail" || lastGiven(stack)["registered-failure-policy"] === "Fail";
  if (options.failurePolicy !== undefined || !isFail) return;
  throw new DeployError(
    "the pod webhook was registered with failurePolicy Fail: give --failure-policy Fail to keep it, or --failure-policy Ignore.",
  );
}

/**
 * `canary` changes the kind of addresses, and both kinds belong to the deployment. `deployedBy`: absent where the
 * webhook was registered by hand; then the address decides.
 */
function refuseOtherDeployment(
  { deployedBy, webhook }: Pick<Registered, "webhook"> & { readonly deployedBy: string | undefined },
  { options }: Tools,
  { stack }: Pick<Facts, "stack">,
  stackName: string,
): void {
  const hostOf = (url = "") => (URL.canParse(url) ? new URL(url).host : undefined);
  const host = hostOf(webhook.clientConfig?.url);
  const own = new Set([...(stack?.outputs.values() ?? [])].map(hostOf));
  const isOurs = deployedBy === undefined ? own.has(host) : deployedBy === nameOfDeployment({ options, stackName });
  if (host !== undefined && isOurs) return;
  throw new DeployError(
    `the pod webhook is registered at ${host ?? "a Service of the cluster"}${deployedBy === undefined ? "" : `, by ${deployedBy}`}, which is not of stack ${stackName} in ${options.region}: perhaps another --stage. If this deployment is to take its place, run ${UNREGISTER} first: new pods get no sidecars then until step 5.`,
  );
}

/** The secret paths in the URLs of our registrations. A Service of the cluster is reached without a secret. */
function secretPathsOf(all: readonly Registered[]): readonly SecretPath[] {
  const urls = all.flatMap(({ configuration, webhook }) =>
    OURS.test(configuration) && URL.canParse(webhook.clientConfig?.url ?? "") ? (webhook.clientConfig?.url ?? "") : [],
  );
  return urls.map((url) => splitPath(new URL(url).pathname)).filter(({ secret }) => secret !== undefined);
}

/** Functions that know other secrets than API servers call by would refuse all pods from step 2 to step 5. */
function refuseOtherSecret(
  { options: { stage } }: Tools,
  { secrets }: Pick<Facts, "secrets">,
  all: readonly Registered[],
): void {
  const paths = secretPathsOf(all);
  const isKnown = ({ path, secret }: SecretPath) => secrets.some((one) => pathSecretOf(one, path) === secret);
  const [place, first] = [secretName(stage), UNREGISTER];
  if (secrets.length === 0)
    throw new DeployError(
      `the webhooks are registered with a secret that is not in SSM any more (${place}): put it back, or, to have another one made, run ${first} first: new pods get no sidecars then until step 5.`,
    );
  if (paths.length === 0 || paths.some(isKnown)) return;
  throw new DeployError(
    `none of the ${paths.length} registered paths is made of a secret in SSM (${place}), so that the functions would refuse every pod until step 5: write the secret that is registered below the new one (docs/deploy-care.md, Rotating the secret), or, where it is lost, run ${first} first.`,
  );
}

// Compares with the last deployment's parameters: a left-out parameter, or another cluster, is taken for a mistake.

/** `parameters`: an empty one is the default, on purpose. @throws DeployError */
export function refuseForgotten(
  stack: Stack | undefined,
  { cluster, stage, parameters }: Pick<DeployOptions, "cluster" | "stage" | "parameters">,
): void {
  const last = lastGiven(stack);
  const served = last["eks-cluster"] ?? cluster;
  if (served !== cluster)
    throw new DeployError(
      `the functions of --stage ${stage} work for EKS cluster ${served}: give --cluster ${served}, or another --stage for ${cluster}.`,
    );
  const names = Object.keys(last).filter((name) => !parameters.has(name) && !FOUND_OUT.includes(name));
  const byHand = names.find((name) => BY_HAND.includes(name));
  if (byHand !== undefined)
    throw new DeployError(
      `the last deployment had --param ${byHand}=${last[byHand]}, which takes steps that deploy:all does not know: docs/deploy-by-hand.md.`,
    );
  if (names.length === 0) return;
  throw new DeployError(
    `the last deployment had ${names.map((name) => shown(name, last[name])).join(" ")}: give that again, or, to go back to the default, --param ${names[0]}= with nothing after it.`,
  );
}

/** The parameter as a shell takes it. */
function shown(name: string, value = ""): string {
  if (value === "…") return `--param ${name}=… (too long to be shown)`;
  const text = `${name}=${value}`;
  return `--param ${/^[\w=.,:/@%+-]*$/.test(text) ? text : `'${text}'`}`;
}
