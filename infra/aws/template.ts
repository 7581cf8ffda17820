/** What serverless.yml cannot say itself: resources, and what is added to those that osls makes. */
import { alarms } from "./alarms.ts";
import { DEPLOYED } from "./functions.ts";
import { functionId, logGroupId, roleId } from "./names.ts";
import { roles } from "./roles.ts";
import { schedule } from "./schedule.ts";
import type { AwsSettings } from "./settings.ts";

export function template(settings: AwsSettings): object {
  return {
    Description: "SidecarSet without a control plane",
    Resources: { ...roles(settings), ...schedule(), ...alarms(settings) },
    Outputs: roleOutputs(),
    extensions: { ...inVpc(settings), ...encryptedLogs(settings) },
  };
}

/** For whoever lets them into the cluster. */
function roleOutputs(): Readonly<Record<string, object>> {
  const inCluster = DEPLOYED.filter(({ isInCluster }) => isInCluster);
  return Object.fromEntries(
    inCluster.map(({ name }) => [
      roleId(name),
      { Description: `the role of ${name}`, Value: { "Fn::GetAtt": [roleId(name), "Arn"] } },
    ]),
  );
}

function inVpc({ subnets, securityGroups }: AwsSettings): Readonly<Record<string, object>> {
  if (subnets.length === 0) return {};
  const VpcConfig = { SubnetIds: subnets, SecurityGroupIds: securityGroups };
  const inCluster = DEPLOYED.filter(({ isInCluster }) => isInCluster);
  return Object.fromEntries(inCluster.map(({ name }) => [functionId(name), { Properties: { VpcConfig } }]));
}

/** CloudWatch encrypts every log; here with a key of one's own. */
function encryptedLogs({ logKey }: AwsSettings): Readonly<Record<string, object>> {
  if (logKey === undefined) return {};
  return Object.fromEntries(DEPLOYED.map(({ name }) => [logGroupId(name), { Properties: { KmsKeyId: logKey } }]));
}
