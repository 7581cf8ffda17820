/** What serverless.yml cannot say itself: resources, and what is added to those that osls makes. */
import { alarms } from "./alarms.ts";
import { canaryOutputs, canaryResources, checkerExtensions } from "./canary/resources.ts";
import { DEPLOYED } from "./deployed.ts";
import { parametersOutput } from "./given-parameters.ts";
import { httpApiOutputs, httpApiResources } from "./http-api.ts";
import { loadBalancerOutputs, loadBalancerResources } from "./load-balancer.ts";
import { logFilters } from "./log-filters.ts";
import { functionId, logGroupId, roleId } from "./names.ts";
import { queue } from "./queue.ts";
import { roles } from "./roles.ts";
import { schedule } from "./schedule.ts";
import type { AwsSettings } from "./settings.ts";
import { sized } from "./sizing.ts";

export function template(settings: AwsSettings): object {
  return {
    Description: "SidecarSet without a control plane",
    Resources: {
      ...roles(settings),
      ...schedule(settings),
      ...queue(settings),
      ...httpApiResources(settings),
      ...loadBalancerResources(settings),
      ...alarms(settings),
      ...canaryResources(settings),
      ...logFilters(settings),
    },
    Outputs: {
      ...roleOutputs(),
      ...httpApiOutputs(settings),
      ...loadBalancerOutputs(settings),
      ...canaryOutputs(settings),
      ...parametersOutput(settings),
    },
    extensions: merged([
      inVpc(settings),
      sized(settings),
      traced(settings),
      encryptedLogs(settings),
      checkerExtensions(settings),
    ]),
  };
}

/** For the one who gives them access to the cluster. */
function roleOutputs(): Readonly<Record<string, object>> {
  const inCluster = DEPLOYED.filter(({ isInCluster }) => isInCluster);
  return Object.fromEntries(
    inCluster.map(({ name }) => [
      roleId(name),
      { Description: `the role of ${name}`, Value: { "Fn::GetAtt": [roleId(name), "Arn"] } },
    ]),
  );
}

interface Extension {
  readonly Properties: object;
}

type Extensions = Readonly<Record<string, Extension>>;

/** Two of them may be about the same function. */
function merged(all: readonly Extensions[]): Extensions {
  const ids = new Set(all.flatMap(Object.keys));
  const propertiesOf = (id: string) => Object.assign({}, ...all.map((each) => each[id]?.Properties)) as object;
  return Object.fromEntries([...ids].map((id) => [id, { Properties: propertiesOf(id) }]));
}

function inVpc({ subnets, securityGroups }: AwsSettings): Extensions {
  if (subnets.length === 0) return {};
  const VpcConfig = { SubnetIds: subnets, SecurityGroupIds: securityGroups };
  const inCluster = DEPLOYED.filter(({ isInCluster }) => isInCluster);
  return Object.fromEntries(inCluster.map(({ name }) => [functionId(name), { Properties: { VpcConfig } }]));
}

/** The file beside a function's bundle that calls it and makes spans of that. */
function traced({ otlpEndpoint, otlpLayer }: AwsSettings): Extensions {
  if (otlpEndpoint === undefined) return {};
  const layers = otlpLayer === undefined ? {} : { Layers: [otlpLayer] };
  return Object.fromEntries(
    DEPLOYED.map(({ name }) => [
      functionId(name),
      { Properties: { Handler: `dist/${name}/traced.handler`, ...layers } },
    ]),
  );
}

/** CloudWatch encrypts every log; here with a key of one's own. */
function encryptedLogs({ logKey }: AwsSettings): Extensions {
  if (logKey === undefined) return {};
  return Object.fromEntries(DEPLOYED.map(({ name }) => [logGroupId(name), { Properties: { KmsKeyId: logKey } }]));
}
