/** Deploys the functions by osls when no other deployment runs, and gives them access to the cluster. */
import { setTimeout as sleep } from "node:timers/promises";
import { DEPLOYED } from "../deployed.ts";
import { changesOfGiven } from "../given-parameters.ts";
import { roleId } from "../names.ts";
import { runProgram, type Stack } from "./aws.ts";
import { DeployError, type Deployment, outputOf } from "./objects.ts";
import { parametersOf, refuseForgotten } from "./preflight.ts";

const POLL_MS = 5_000;
/** CloudFormation gives up sooner. */
const PATIENCE_MS = 30 * 60_000;
const UNDER_WAY = /_IN_PROGRESS$/;
/** The groups of roles that write, of roles that read, and of the role that keeps the registration. */
const GROUPS = {
  reconciler: "sidecarset:reconciler",
  webhooks: "sidecarset:webhooks",
  dryRun: "sidecarset:viewers",
} as const;
const REGISTRATION = "sidecarset:registration";

/** The outputs of the stack; undefined in a dry run of the first deployment. */
export async function deployFunctions(deployment: Deployment, secrets: readonly string[]): Promise<Stack | undefined> {
  const { options, changes, cluster, stackName, aws, screen } = deployment;
  if (!changes.isDryRun) await untilSettled(deployment);
  else if (deployment.stack !== undefined) return sayWhatIsGiven(deployment, deployment.stack);
  const given = [...parametersOf(deployment, cluster, secrets)].filter(([, value]) => value !== "");
  const parameters = given.map(([name, value]) => `--param=${name}=${value}`);
  const args = ["run", "deploy", "--", "--stage", options.stage, "--region", options.region, ...parameters];
  const shown = args.map((one) => (one.length > 80 ? `${one.slice(0, 40)}…` : one)).join(" ");
  const deploy = async () => {
    const onOutput = (text: string) => {
      for (const line of text.split("\n").filter(Boolean)) screen.line({ text: `      ${line}`, color: "dim" });
    };
    const ended = await runProgram("npm", args, { onOutput });
    if (ended.code !== 0)
      throw new DeployError(
        `osls did not deploy (exit code ${ended.code}); its output is above. ${hintOf(deployment)}Fix that, and run this again.`,
      );
    return !/No changes to deploy/.test(ended.stdout + ended.stderr);
  };
  const isChanged = await changes.make(`npm ${shown}`, deploy, (changed) => changed);
  if (isChanged !== undefined) changes.said(isChanged ? "deployed" : "nothing has changed since they were deployed");
  return changes.isDryRun ? deployment.stack : await aws.describeStack(stackName);
}

/** Reports changed parameters. A changed code shows only when osls runs. */
async function sayWhatIsGiven({ changes, settings }: Deployment, stack: Stack): Promise<Stack> {
  const changed = changesOfGiven(stack, settings);
  for (const line of changed) await changes.make(`npm run deploy: ${line}`, async () => {});
  const same = changed.length === 0 ? "all parameters are what they were; " : "";
  changes.said(`npm run deploy: ${same}whether code differs is seen when it runs`);
  return stack;
}

function hintOf({ options: { region, stage }, settings }: Deployment): string {
  if (settings.canary !== "shifted") return "";
  return `Where a new version was refused, npx osls logs -f check-versions --region ${region} --stage ${stage} --param=canary=true says why. `;
}

/** A run that was killed has left CloudFormation at work. */
async function untilSettled({ aws, options, stackName, changes, now }: Deployment): Promise<void> {
  const endsAt = now() + PATIENCE_MS;
  for (let isSaid = false; ; isSaid = true) {
    const stack = await aws.describeStack(stackName);
    // Compared after the wait, because another run may have given the stack more parameters.
    if (stack === undefined || !UNDER_WAY.test(stack.status)) return refuseForgotten(stack, options);
    if (now() > endsAt) throw new DeployError(`stack ${stackName} has been ${stack.status} for half an hour.`);
    if (!isSaid) changes.said(`stack ${stackName} is ${stack.status}: waiting for what was begun before`);
    await sleep(POLL_MS);
  }
}

/** Output of its ARN → groups that the role needs. */
function groupsByRole({ settings }: Deployment): ReadonlyMap<string, readonly string[]> {
  const served = DEPLOYED.filter(
    ({ name, isInCluster }) => isInCluster && (name !== "ordered-set" || settings.isServingStatefulSets),
  );
  return new Map(
    served.map(({ name, isCalledFor, isKeepingRegistration }) => {
      const ofPasses = name === "dry-run" ? GROUPS.dryRun : GROUPS.reconciler;
      const base = isCalledFor === undefined ? ofPasses : GROUPS.webhooks;
      const isKeeping = settings.keepRegistration === "true" && isKeepingRegistration && isCalledFor !== undefined;
      return [roleId(name), isKeeping ? [base, REGISTRATION] : [base]];
    }),
  );
}

/** Adds each role to its groups, and removes none from others. */
export async function letIn(deployment: Deployment, stack: Stack | undefined): Promise<void> {
  const { changes } = deployment;
  for (const [key, groups] of groupsByRole(deployment)) {
    if (stack === undefined) await changes.make(`let ${key} into the cluster, as ${groups.join(", ")}`, async () => {});
    else await letRoleIn(deployment, outputOf(deployment, stack, key), groups);
  }
}

async function letRoleIn({ aws, options, changes }: Deployment, role: string, groups: readonly string[]) {
  const { cluster } = options;
  const name = role.split("/").at(-1);
  const there = await aws.describeAccessEntry(cluster, role);
  const missing = groups.filter((group) => !there?.includes(group));
  if (there !== undefined && missing.length === 0) return changes.said(`${name} is in ${groups.join(", ")}`);
  const act = () =>
    there === undefined
      ? aws.createAccessEntry(cluster, role, groups)
      : aws.updateAccessEntry(cluster, role, [...there, ...missing]);
  await changes.make(`let ${name} into the cluster, as ${groups.join(", ")}`, act);
  if (!changes.isDryRun) changes.said(`${name} let in, as ${groups.join(", ")}`);
}
