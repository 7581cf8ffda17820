/** A load balancer in front of the webhooks that only a VPC reaches, and its answers at paths of no webhook. */
import { clusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { secretPath } from "../../shared/webhook/server/paths.ts";
import { calledArn } from "./canary/alias.ts";
import { BEHIND_DOOR, type DeployedFunction } from "./deployed.ts";
import type { Domain } from "./door-settings.ts";
import { functionId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

/** TLS 1.2 and 1.3, with forward secrecy. */
const SSL_POLICY = "ELBSecurityPolicy-TLS13-1-2-2021-06";
/** The most paths of one rule. Source: Elastic Load Balancing quotas, condition values per rule. */
const MOST_PATHS = 5;

const BALANCER = { Ref: "WebhookBalancer" };
const LISTENER = { Ref: "WebhookListener" };

/** The load balancer's resources; none with another door. */
export function loadBalancerResources(settings: AwsSettings): Readonly<Record<string, object>> {
  const { door, domain } = settings;
  if (door.kind !== "load-balancer" || domain === undefined) return {};
  const rules = BEHIND_DOOR.flatMap((deployed) =>
    chunked(deployed.paths ?? []).map((paths) => ruleFor(deployed, paths, settings)),
  );
  return {
    WebhookBalancer: {
      Type: "AWS::ElasticLoadBalancingV2::LoadBalancer",
      Properties: {
        Type: "application",
        Scheme: "internal",
        Subnets: door.subnets,
        SecurityGroups: door.securityGroups,
        LoadBalancerAttributes: [{ Key: "routing.http.drop_invalid_header_fields.enabled", Value: "true" }],
      },
    },
    WebhookListener: listener(domain),
    ...Object.assign({}, ...BEHIND_DOOR.map((deployed) => targetFor(deployed, settings))),
    ...Object.fromEntries(
      rules.map((rule, index) => [
        `WebhookRule${index}`,
        {
          Type: "AWS::ElasticLoadBalancingV2::ListenerRule",
          Properties: { ListenerArn: LISTENER, Priority: index + 1, ...rule },
        },
      ]),
    ),
  };
}

/** The target for a DNS record. */
export function loadBalancerOutputs({ door, domain }: AwsSettings): Readonly<Record<string, object>> {
  if (door.kind !== "load-balancer") return {};
  const output = (Description: string, attribute: string) => ({
    Description,
    Value: { "Fn::GetAtt": ["WebhookBalancer", attribute] },
  });
  return {
    WebhookDomainTarget: output(`make ${domain?.name} an alias (or CNAME) of it`, "DNSName"),
    WebhookDomainZone: output("the hosted zone of that name, for an alias in Route 53", "CanonicalHostedZoneID"),
  };
}

function listener({ certificate }: Domain): object {
  return {
    Type: "AWS::ElasticLoadBalancingV2::Listener",
    Properties: {
      LoadBalancerArn: BALANCER,
      Protocol: "HTTPS",
      Port: 443,
      SslPolicy: SSL_POLICY,
      Certificates: [{ CertificateArn: certificate }],
      DefaultActions: [{ Type: "fixed-response", FixedResponseConfig: { StatusCode: "404" } }],
    },
  };
}

function targetGroupId(name: string): string {
  return `${functionId(name)}Target`;
}

function targetFor({ name }: DeployedFunction, settings: AwsSettings): Readonly<Record<string, object>> {
  const arn = calledArn(name, settings);
  const permission = `${functionId(name)}ByBalancer`;
  return {
    [permission]: {
      Type: "AWS::Lambda::Permission",
      Properties: {
        Action: "lambda:InvokeFunction",
        FunctionName: arn,
        Principal: "elasticloadbalancing.amazonaws.com",
        // A wildcard, because the target group takes the function only once this permission exists.
        SourceArn: {
          "Fn::Sub": `arn:\${AWS::Partition}:elasticloadbalancing:\${AWS::Region}:\${AWS::AccountId}:targetgroup/*`,
        },
      },
    },
    [targetGroupId(name)]: {
      Type: "AWS::ElasticLoadBalancingV2::TargetGroup",
      DependsOn: permission,
      // No health checks: each would be a call, and there is no other target to send requests to.
      Properties: { TargetType: "lambda", HealthCheckEnabled: false, Targets: [{ Id: arn }] },
    },
  };
}

function ruleFor({ name }: DeployedFunction, paths: readonly string[], { authentication, clusters }: AwsSettings) {
  const own = (path: string) => (authentication === "secret-path" ? secretPath("*", path) : path);
  // An asterisk matches slashes too, and a rule allows only one for each path.
  const Values = paths.map((path) => (clusters === undefined ? own(path) : clusterPath("*") + path));
  return {
    Conditions: [{ Field: "path-pattern", PathPatternConfig: { Values } }],
    Actions: [{ Type: "forward", TargetGroupArn: { Ref: targetGroupId(name) } }],
  };
}

function chunked(paths: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(paths.length / MOST_PATHS);
  return Array.from({ length: count }, (_, index) => paths.slice(index * MOST_PATHS, (index + 1) * MOST_PATHS));
}
