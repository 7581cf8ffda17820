/** Looks at everything that a deployment needs, and says why it cannot be made before anything is begun. */
import type { Deployment as KubeDeployment } from "../../../shared/core/inspect/check/facts.ts";
import { isRunning } from "../../../shared/core/inspect/check/others.ts";
import { DEPLOYED } from "../deployed.ts";
import type { AwsSettings } from "../settings.ts";
import type { Aws, EksCluster, Stack } from "./aws.ts";
import { DeployError, type Facts, type Tools } from "./deployment.ts";
import { checkParameters } from "./parameters.ts";
import { digestsOf, parseSecrets, secretName } from "./path-secrets.ts";
import { type Kubectl, sentenceOf } from "./programs.ts";

/** That AWS keeps for all functions without a reservation. Source: Lambda, reserved concurrency. */
const UNRESERVED = 100;
/** In which a stack can neither be updated nor created again. */
const STUCK = /^(CREATE_FAILED|ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED|UPDATE_ROLLBACK_FAILED)$/;

/** @throws DeployError or ConfigError: one sentence that says what is wrong, where, and what to do */
export async function preflight(tools: Tools, stackName: string): Promise<Facts> {
  const { options, aws, kubectl } = tools;
  const said = (text: string) => tools.screen.line({ text: "  ✔ ", color: "green" }, text);
  const { account, arn } = await identify(aws);
  said(`AWS account ${account} in ${options.region}, as ${arn}`);
  const cluster = await clusterOf(aws, options.cluster);
  checkNetwork(options.cluster, cluster, options.parameters.has("subnets"));
  said(`EKS cluster ${options.cluster} is active, ${cluster.endpoint}`);
  await checkContext(kubectl, cluster, tools);
  said("the kubeconfig leads to it, and its API server answers");
  await refuseOpenKruise(kubectl);
  const secrets = await storedSecrets(tools);
  const settings = await checkParameters(parametersOf(tools, cluster, secrets), options);
  await checkConcurrency(aws, settings);
  said(`${options.parameters.size} parameters, read by the functions' own parsers`);
  const warn = (text: string) => tools.screen.line({ text: "  ! ", color: "yellow" }, text);
  if (settings.alarmTopic === undefined)
    warn("no alarm notifies you: --param alarm-topic=ARN names the SNS topic that they are sent to");
  if (!settings.reserved.has("mutate-pod"))
    warn(
      "mutate-pod has no limit of its own: anyone who finds its address can use up the account's concurrency, at your expense; --param reserved-concurrency=mutate-pod=200 is one",
    );
  const stack = await aws.describeStack(stackName);
  checkStack(stackName, stack, options);
  said(stack === undefined ? `stack ${stackName} is not there yet` : `stack ${stackName}: ${stack.status}`);
  return { cluster, secrets, settings, stack };
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
  ]);
}

async function identify(aws: Aws) {
  try {
    return await aws.getCallerIdentity();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new DeployError(
      `AWS does not know who asks (${why}): sign in, for example with aws sso login, or set AWS_PROFILE.`,
      { cause },
    );
  }
}

async function clusterOf(aws: Aws, name: string): Promise<EksCluster> {
  const cluster = await aws.describeCluster(name);
  if (cluster === undefined)
    throw new DeployError(`--cluster ${name}: there is no such EKS cluster in this account and region.`);
  if (cluster.status !== "ACTIVE")
    throw new DeployError(`EKS cluster ${name} is ${cluster.status}: wait until it is ACTIVE.`);
  if (cluster.accessConfig?.authenticationMode === "CONFIG_MAP")
    throw new DeployError(
      `EKS cluster ${name} takes no access entries (authentication mode CONFIG_MAP): run aws eks update-cluster-config --name ${name} --access-config authenticationMode=API_AND_CONFIG_MAP first.`,
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

async function checkContext(kubectl: Kubectl, { endpoint }: EksCluster, { options }: Tools): Promise<void> {
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

/** Two that roll out the same SidecarSets exceed maxUnavailable together: before the first pass, not after it. */
async function refuseOpenKruise(kubectl: Kubectl): Promise<void> {
  const named = ["--field-selector", "metadata.name=kruise-controller-manager"];
  const asked = await kubectl(["get", "deployments.apps", "--all-namespaces", ...named, "-o", "json"]);
  if (asked.code !== 0) throw new DeployError(`the Deployments of the cluster cannot be listed: ${sentenceOf(asked)}`);
  const { items } = JSON.parse(asked.stdout) as { readonly items: readonly KubeDeployment[] };
  const running = items.find(isRunning)?.metadata;
  if (running === undefined) return;
  throw new DeployError(
    `OpenKruise's manager runs in this cluster (Deployment ${running.namespace}/${running.name}): both would roll SidecarSets out, each within a budget of its own. sidecarset migrate from-kruise tells the steps.`,
  );
}

function isSameServer(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href;
}

async function storedSecrets({ aws, options }: Tools): Promise<readonly string[]> {
  const name = secretName(options.stage);
  const text = await aws.getParameter(name);
  return text === undefined ? [] : parseSecrets(`the parameter ${name} in SSM`, text);
}

async function checkConcurrency(aws: Aws, { reserved }: AwsSettings): Promise<void> {
  const wanted = DEPLOYED.reduce((sum, { name }) => sum + (reserved.get(name) ?? 0), 0);
  if (wanted === 0) return;
  const most = (await aws.getConcurrency()) ?? Number.POSITIVE_INFINITY;
  if (wanted + UNRESERVED <= most) return;
  throw new DeployError(
    `--param reserved-concurrency takes ${wanted} of the ${most} functions that may run at once in this account, and ${UNRESERVED} have to be left: ask AWS for more ("Concurrent executions"), or leave it out.`,
  );
}

function checkStack(name: string, stack: Stack | undefined, { region, stage }: Tools["options"]): void {
  if (stack === undefined || !STUCK.test(stack.status)) return;
  const remedy =
    stack.status === "UPDATE_ROLLBACK_FAILED"
      ? `aws cloudformation continue-update-rollback --region ${region} --stack-name ${name}`
      : `npx osls remove --region ${region} --stage ${stage}`;
  throw new DeployError(`stack ${name} is ${stack.status}: run ${remedy} first; its events say why.`);
}
