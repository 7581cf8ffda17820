/** Looks at everything that a deployment needs, and says why it cannot be made before anything is begun. */
import type { Screen } from "../../../functions/terminal/screen.ts";
import { counted } from "../../../shared/go/counted.ts";
import { hasGiven, lastGiven } from "../given-parameters.ts";
import type { AwsSettings } from "../settings.ts";
import { readSizing, type Sizing } from "../sizing.ts";
import { checkApiServer } from "./api-server.ts";
import type { Aws, EksCluster, Stack } from "./aws.ts";
import { DeployError, type Facts, type Tools } from "./deployment.ts";
import { refuseForgotten } from "./last-deployment.ts";
import { readAuthority } from "./objects.ts";
import { checkParameters } from "./parameters.ts";
import { digestsOf, parseSecrets, secretName } from "./path-secrets.ts";
import { checkRegistered } from "./registered.ts";

/** That AWS keeps for all functions without a reservation. Source: Lambda, reserved concurrency. */
const UNRESERVED = 100;
/** In which a stack can neither be updated nor created again. */
const STUCK =
  /^(CREATE_FAILED|ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED|REVIEW_IN_PROGRESS|UPDATE_ROLLBACK_FAILED)$/;

/** @throws DeployError or ConfigError: one sentence that says what is wrong, where, and what to do */
export async function preflight(tools: Tools, stackName: string): Promise<Facts> {
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
  checkTopic(settings, options.region);
  said(`${counted(options.parameters.size, "parameter")}, read by the functions' own parsers`);
  checkStack(stackName, stack, options);
  refuseForgotten(stack, options);
  await checkConcurrency(aws, settings, stack);
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
    "mutate-pod has no limit of its own: anyone who finds its address can use up the account's concurrency, at your expense; --param reserved-concurrency=mutate-pod=200 is one",
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

/** What the stack has reserved before is given back to it. */
async function checkConcurrency(aws: Aws, settings: AwsSettings, stack: Stack | undefined): Promise<void> {
  const sumOf = ({ reserved }: Pick<Sizing, "reserved">) =>
    [...reserved.values()].reduce((sum, count) => sum + count, 0);
  const wanted = sumOf(settings);
  if (wanted === 0) return;
  const last = lastGiven(stack);
  const before = sumOf(await readSizing(async (name) => (name === "reserved-concurrency" ? (last[name] ?? "") : "")));
  const most = ((await aws.getUnreservedConcurrency()) ?? Number.POSITIVE_INFINITY) + before;
  if (wanted + UNRESERVED <= most) return;
  throw new DeployError(
    `--param reserved-concurrency takes ${wanted} of the ${most} functions that may run at once in this account and are not reserved, and ${UNRESERVED} have to be left: ask AWS for more ("Concurrent executions"), or leave it out.`,
  );
}

/** CloudFormation refuses others, once all else is made. */
function checkTopic({ alarmTopic }: AwsSettings, region: string): void {
  const [, , , where] = (alarmTopic ?? "").split(":");
  if (where === undefined || where === region) return;
  throw new DeployError(`--param alarm-topic=${alarmTopic} is in ${where}: alarms of ${region} need a topic there.`);
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
