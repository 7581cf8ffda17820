/** The parts of the template that serverless.yml cannot express: resources, and properties that osls does not make. */

import { ConfigError } from "../../shared/settings/config-error.ts";
import { clusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { secretPath } from "../../shared/webhook/server/paths.ts";
import { alarms } from "./alarms.ts";
import { calledArn } from "./canary/alias.ts";
import { canaryOutputs, canaryResources, checkerExtensions } from "./canary/resources.ts";
import { BEHIND_DOOR, DEPLOYED, type DeployedFunction } from "./deployed.ts";
import { type Domain, sized } from "./door-settings.ts";
import { parametersOutput } from "./given-parameters.ts";
import { loadBalancerOutputs, loadBalancerResources } from "./load-balancer.ts";
import { logFilters } from "./log-filters.ts";
import { functionId, functionName, logGroupId, roleId } from "./names.ts";
import { queue } from "./queue.ts";
import { roles } from "./roles.ts";
import { schedule } from "./schedule.ts";
import type { AwsSettings } from "./settings.ts";

/** @throws ConfigError for a table of clusters that is too large for one stack */
export function template(settings: AwsSettings): object {
  const Resources: Resources = {
    ...roles(settings),
    ...schedule(settings),
    ...queue(settings),
    ...httpApiResources(settings),
    ...loadBalancerResources(settings),
    ...alarms(settings),
    ...canaryResources(settings),
    ...logFilters(settings),
  };
  requireRoom(Resources, settings);
  return {
    Description: "SidecarSet without a control plane",
    Resources,
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

type Resources = Readonly<Record<string, object>>;

/** Source: CloudFormation quotas, resources in a template; IAM quotas, characters of a role's own policies. */
const [MOST_RESOURCES, MOST_OF_POLICIES] = [500, 10_240];
/** Functions, their addresses, permissions and logs, and a bucket: the resources that osls makes without options. */
const MADE_BY_OSLS = 28;
/** Characters for a value that CloudFormation fills in: no ARN of this deployment is longer. */
const FILLED_IN = "x".repeat(100);

/** CloudFormation and IAM refuse a larger one in the middle of a deployment. @throws ConfigError */
function requireRoom(resources: Resources, { clusters }: AwsSettings): void {
  if (clusters === undefined) return;
  const advice = `share the ${clusters.size} clusters out among several stages: a table and --stage for each (docs/several-clusters.md)`;
  const count = Object.keys(resources).length + MADE_BY_OSLS;
  if (count > MOST_RESOURCES)
    throw new ConfigError(
      `--param clusters: the stack would have some ${count} resources, and CloudFormation takes ${MOST_RESOURCES}: ${advice}.`,
    );
  for (const [id, resource] of Object.entries(resources)) {
    const { Policies = [] } = (resource as Partial<RoleResource>).Properties ?? {};
    const isFilledIn = (value: unknown) => typeof value === "object" && /^\{"(?:Fn::|Ref")/.test(JSON.stringify(value));
    const text = JSON.stringify(Policies, (_, value: unknown) => (isFilledIn(value) ? FILLED_IN : value));
    if (text.length > MOST_OF_POLICIES)
      throw new ConfigError(
        `--param clusters: the policy of ${id} would have some ${text.length} characters, and IAM takes ${MOST_OF_POLICIES}: ${advice}.`,
      );
  }
}

interface RoleResource {
  readonly Properties: { readonly Policies?: readonly object[] };
}

/** The roles' ARNs, for the person who gives them access to the cluster. */
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

/** Merges additions, because two may be about the same function. */
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

/** The file beside a function's bundle that calls the function and makes spans of its calls. */
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

// An HTTP API in front of the webhooks: at its own address, or at a domain and there alone, by mutual TLS if asked for.

/** API servers wait 10 seconds at most. */
const TIMEOUT_MS = 10_000;

/** The log's format, without the path, which may hold a secret. */
const LOG_FORMAT = JSON.stringify({
  requestId: "$context.requestId",
  time: "$context.requestTime",
  sourceIp: "$context.identity.sourceIp",
  route: "$context.routeKey",
  status: "$context.status",
  latencyMs: "$context.responseLatency",
  error: "$context.error.message",
  integrationError: "$context.integrationErrorMessage",
});

const API = { Ref: "WebhookApi" };
const STAGE = { Ref: "WebhookApiStage" };

/** The HTTP API's resources; none with another door. */
function httpApiResources(settings: AwsSettings): Readonly<Record<string, object>> {
  const { door, domain } = settings;
  if (door.kind !== "http-api") return {};
  return {
    WebhookApi: {
      Type: "AWS::ApiGatewayV2::Api",
      Properties: {
        Name: functionName("webhooks", settings),
        ProtocolType: "HTTP",
        // With a domain, the default endpoint would be a way around its mutual TLS.
        DisableExecuteApiEndpoint: domain !== undefined,
      },
    },
    WebhookApiLogGroup: {
      Type: "AWS::Logs::LogGroup",
      Properties: {
        LogGroupName: `/aws/vendedlogs/${functionName("webhooks", settings)}`,
        RetentionInDays: Number(settings.logRetentionDays ?? "30"),
        ...(settings.logKey === undefined ? {} : { KmsKeyId: settings.logKey }),
      },
    },
    WebhookApiStage: {
      Type: "AWS::ApiGatewayV2::Stage",
      Properties: {
        ApiId: API,
        StageName: "$default",
        AutoDeploy: true,
        AccessLogSettings: { DestinationArn: { "Fn::GetAtt": ["WebhookApiLogGroup", "Arn"] }, Format: LOG_FORMAT },
        ...throttled(settings),
      },
    },
    ...(domain === undefined ? {} : domainResources(domain)),
    ...Object.assign({}, ...BEHIND_DOOR.map((deployed) => routesTo(deployed, settings))),
  };
}

/** Limits the requests. Bursts may be twice as many, because a cluster calls in bursts. */
function throttled({ requestsPerSecond }: AwsSettings): object {
  if (requestsPerSecond === undefined) return {};
  const limits = { ThrottlingRateLimit: requestsPerSecond, ThrottlingBurstLimit: 2 * requestsPerSecond };
  return { DefaultRouteSettings: limits };
}

/** The address to register, or the target for a DNS record. */
function httpApiOutputs({ door, domain }: AwsSettings): Readonly<Record<string, object>> {
  if (door.kind !== "http-api") return {};
  const output = (Description: string, attribute: readonly [id: string, name: string]) => ({
    Description,
    Value: { "Fn::GetAtt": attribute },
  });
  if (domain === undefined)
    return { WebhookApiUrl: output("where admissions are answered", ["WebhookApi", "ApiEndpoint"]) };
  return {
    WebhookDomainTarget: output(`make ${domain.name} an alias (or CNAME) of it`, [
      "WebhookDomain",
      "RegionalDomainName",
    ]),
    WebhookDomainZone: output("the hosted zone of that name, for an alias in Route 53", [
      "WebhookDomain",
      "RegionalHostedZoneId",
    ]),
  };
}

function domainResources(domain: Domain): Readonly<Record<string, object>> {
  return {
    WebhookDomain: domainName(domain),
    WebhookDomainMapping: {
      Type: "AWS::ApiGatewayV2::ApiMapping",
      Properties: { ApiId: API, DomainName: { Ref: "WebhookDomain" }, Stage: STAGE },
    },
  };
}

function domainName({ name, certificate, truststore, truststoreVersion }: Domain): object {
  const MutualTlsAuthentication = {
    TruststoreUri: truststore,
    ...(truststoreVersion === undefined ? {} : { TruststoreVersion: truststoreVersion }),
  };
  return {
    Type: "AWS::ApiGatewayV2::DomainName",
    Properties: {
      DomainName: name,
      DomainNameConfigurations: [{ CertificateArn: certificate, EndpointType: "REGIONAL", SecurityPolicy: "TLS_1_2" }],
      ...(truststore === undefined ? {} : { MutualTlsAuthentication }),
    },
  };
}

function routesTo({ name, paths = [] }: DeployedFunction, settings: AwsSettings): Readonly<Record<string, object>> {
  const { authentication, clusters } = settings;
  const called = calledArn(name, settings);
  const below = clusters === undefined ? "" : clusterPath("{cluster}");
  const id = functionId(name);
  const integration = `${id}Integration`;
  const routes = paths.map((path, index) => [
    `${id}Route${index}`,
    {
      Type: "AWS::ApiGatewayV2::Route",
      Properties: {
        ApiId: API,
        RouteKey: `POST ${below}${authentication === "secret-path" ? secretPath("{secret}", path) : path}`,
        // The function asks who it is: API servers sign nothing.
        AuthorizationType: "NONE",
        Target: { "Fn::Sub": `integrations/\${${integration}}` },
      },
    },
  ]);
  return {
    [integration]: {
      Type: "AWS::ApiGatewayV2::Integration",
      Properties: {
        ApiId: API,
        IntegrationType: "AWS_PROXY",
        IntegrationUri: called,
        PayloadFormatVersion: "2.0",
        TimeoutInMillis: TIMEOUT_MS,
      },
    },
    [`${id}ByDomain`]: {
      Type: "AWS::Lambda::Permission",
      Properties: {
        Action: "lambda:InvokeFunction",
        FunctionName: called,
        Principal: "apigateway.amazonaws.com",
        SourceArn: {
          "Fn::Sub": `arn:\${AWS::Partition}:execute-api:\${AWS::Region}:\${AWS::AccountId}:\${WebhookApi}/*`,
        },
      },
    },
    ...Object.fromEntries(routes),
  };
}
