/** Looks at everything that a deployment needs, and says why it cannot be made before anything is begun. */
import { DEPLOYED } from "../deployed.ts";
import { lastGiven } from "../given-parameters.ts";
import type { AwsSettings } from "../settings.ts";
import { checkApiServer } from "./api-server.ts";
import type { Aws, EksCluster, Stack } from "./aws.ts";
import { DeployError, type Facts, type Tools } from "./deployment.ts";
import { readAuthority } from "./objects.ts";
import { BY_HAND } from "./options.ts";
import { checkParameters } from "./parameters.ts";
import { digestsOf, parseSecrets, secretName } from "./path-secrets.ts";

/** That AWS keeps for all functions without a reservation. Source: Lambda, reserved concurrency. */
const UNRESERVED = 100;
/** In which a stack can neither be updated nor created again. */
const STUCK = /^(CREATE_FAILED|ROLLBACK_COMPLETE|ROLLBACK_FAILED|DELETE_FAILED|UPDATE_ROLLBACK_FAILED)$/;

/** @throws DeployError or ConfigError: one sentence that says what is wrong, where, and what to do */
export async function preflight(tools: Tools, stackName: string): Promise<Facts> {
  const { options, aws } = tools;
  const said = (text: string) => tools.screen.line({ text: "  ✔ ", color: "green" }, text);
  const { account, arn } = await identify(aws);
  said(`AWS account ${account} in ${options.region}, as ${arn}`);
  const cluster = await clusterOf(aws, options.cluster);
  checkNetwork(options.cluster, cluster, options.parameters.has("subnets"));
  said(`EKS cluster ${options.cluster} is active, ${cluster.endpoint}`);
  await checkApiServer(tools, cluster);
  said("the kubeconfig leads to it, its API server answers, and what is to be applied may be");
  if (options.caBundle !== undefined) await readAuthority(options.caBundle);
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
  if (stack !== undefined) refuseForgotten(stack, options.parameters);
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
    ...[...options.parameters].filter(([, value]) => value !== ""),
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

/** @param given in this run; an empty one is the default, on purpose. */
function refuseForgotten({ outputs }: Stack, given: ReadonlyMap<string, string>): void {
  const last = lastGiven(outputs);
  const names = Object.keys(last).filter((name) => !given.has(name));
  const [first, list] = [names[0], names.map((name) => `--param ${name}=${last[name]}`).join(" ")];
  if (first === undefined) return;
  const byHand = names.find((name) => BY_HAND.includes(name));
  throw new DeployError(
    byHand === undefined
      ? `the last deployment had ${list}: give that again, or, to go back to the default, --param ${first}= with nothing after it.`
      : `the last deployment had --param ${byHand}=${last[byHand]}, which takes steps that deploy:all does not know: docs/deploy-by-hand.md.`,
  );
}
