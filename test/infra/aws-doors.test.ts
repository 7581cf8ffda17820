/** Tests front doors other than Function URLs: an HTTP API with its own address, and a load balancer inside a VPC. */
import { describe, expect, test } from "vitest";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { template } from "../../infra/aws/template.ts";

interface Template {
  readonly Resources: Readonly<Record<string, { readonly Type: string; readonly Properties: Record<string, unknown> }>>;
  readonly Outputs: Readonly<Record<string, object>>;
}

type Parameters = Readonly<Record<string, string>>;

const settings = (parameters: Parameters) => readSettings("sidecarset", "test", async (name) => parameters[name] ?? "");
const made = async (parameters: Parameters) => template(await settings(parameters)) as Template;
const ofType = ({ Resources }: Template, type: string) =>
  Object.values(Resources).flatMap(({ Type, Properties }) => (Type === type ? [Properties] : []));

const ADMISSIONS = DEPLOYED.flatMap(({ isCalledFor, paths = [] }) => (isCalledFor === "admission" ? paths : []));
const API = { "http-api": "true", "function-urls": "false" };
const BALANCER = {
  "domain-name": "webhooks.example.com",
  "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
  "load-balancer-subnets": "subnet-1, subnet-2",
  "load-balancer-security-groups": "sg-1",
  "function-urls": "false",
};

describe("an HTTP API at its own address:", () => {
  test("the HTTP API has a route for each admission path, prints its address and needs no domain", async () => {
    const given = await made(API);
    expect(ofType(given, "AWS::ApiGatewayV2::Api")).toMatchObject([{ DisableExecuteApiEndpoint: false }]);
    expect(ofType(given, "AWS::ApiGatewayV2::DomainName")).toEqual([]);
    const routes = ofType(given, "AWS::ApiGatewayV2::Route").map(({ RouteKey }) => RouteKey);
    expect(routes.toSorted()).toEqual(ADMISSIONS.map((path) => `POST /s/{secret}${path}`).toSorted());
    expect(given.Outputs["WebhookApiUrl"]).toMatchObject({ Value: { "Fn::GetAtt": ["WebhookApi", "ApiEndpoint"] } });
  });

  test("--param requests-per-second limits the requests of the HTTP API, with twice as many in a burst", async () => {
    const [stage] = ofType(await made({ ...API, "requests-per-second": "50" }), "AWS::ApiGatewayV2::Stage");
    expect(stage).toMatchObject({ DefaultRouteSettings: { ThrottlingRateLimit: 50, ThrottlingBurstLimit: 100 } });
  });
});

describe("a load balancer inside a VPC:", () => {
  const patternsOf = ({ Conditions }: Record<string, unknown>) =>
    (Conditions as { PathPatternConfig: { Values: string[] } }[])[0]?.PathPatternConfig.Values ?? [];

  test("the load balancer is internal, accepts only TLS, and answers 404 unless the path is an admission path", async () => {
    const given = await made(BALANCER);
    expect(ofType(given, "AWS::ElasticLoadBalancingV2::LoadBalancer")).toMatchObject([
      { Scheme: "internal", Subnets: ["subnet-1", "subnet-2"], SecurityGroups: ["sg-1"] },
    ]);
    expect(ofType(given, "AWS::ElasticLoadBalancingV2::Listener")).toMatchObject([
      {
        Protocol: "HTTPS",
        Port: 443,
        Certificates: [{ CertificateArn: BALANCER["domain-certificate"] }],
        DefaultActions: [{ Type: "fixed-response", FixedResponseConfig: { StatusCode: "404" } }],
      },
    ]);
    const rules = ofType(given, "AWS::ElasticLoadBalancingV2::ListenerRule");
    expect(rules.flatMap(patternsOf).toSorted()).toEqual(ADMISSIONS.map((path) => `/s/*${path}`).toSorted());
    expect(ofType(given, "AWS::ApiGatewayV2::Api")).toEqual([]);
    expect(given.Outputs["WebhookDomainTarget"]).toMatchObject({
      Value: { "Fn::GetAtt": ["WebhookBalancer", "DNSName"] },
    });
  });

  test("each rule of the load balancer has at most five paths and a priority of its own", async () => {
    const rules = ofType(await made(BALANCER), "AWS::ElasticLoadBalancingV2::ListenerRule");
    expect(rules.length).toBeGreaterThan(3);
    for (const rule of rules) {
      expect(patternsOf(rule).length).toBeGreaterThan(0);
      expect(patternsOf(rule).length).toBeLessThanOrEqual(5);
    }
    expect(new Set(rules.map(({ Priority }) => Priority)).size).toBe(rules.length);
  });

  test("each path leads to its own function, and only target groups of this account may call the functions", async () => {
    const given = await made(BALANCER);
    for (const rule of ofType(given, "AWS::ElasticLoadBalancingV2::ListenerRule")) {
      const [action] = rule["Actions"] as { TargetGroupArn: { Ref: string } }[];
      const target = given.Resources[action?.TargetGroupArn.Ref ?? ""];
      expect(target).toMatchObject({ Properties: { TargetType: "lambda" } });
      const named = JSON.stringify(target?.Properties["Targets"]);
      const own = DEPLOYED.find(({ paths = [] }) => paths.some((path) => patternsOf(rule).includes(`/s/*${path}`)));
      expect(named.toLowerCase()).toContain(`${own?.name.replace("-", "dash")}lambdafunction`);
    }
    const permissions = ofType(given, "AWS::Lambda::Permission");
    expect(permissions).toHaveLength(3);
    for (const { SourceArn } of permissions)
      expect(JSON.stringify(SourceArn)).toContain("AWS::AccountId}:targetgroup/");
  });

  test("the paths of the load balancer contain no secret when callers use bearer tokens", async () => {
    const tokens = {
      authentication: "bearer-token",
      "bearer-tokens": "arn:aws:ssm:eu-central-1:123456789012:parameter/t",
    };
    const rules = ofType(await made({ ...BALANCER, ...tokens }), "AWS::ElasticLoadBalancingV2::ListenerRule");
    expect(rules.flatMap(patternsOf).toSorted()).toEqual(ADMISSIONS.toSorted());
  });
});

describe("parameters of front doors that contradict each other:", () => {
  const MUTUAL = { authentication: "client-certificate", "client-names": "kube-apiserver" };
  const { "domain-name": _, "domain-certificate": __, ...withoutDomain } = BALANCER;
  test.each<[Parameters, string]>([
    [{ "http-api": "yes" }, "--param http-api=yes is neither true nor false"],
    [{ "http-api": "true" }, "--param http-api needs --param function-urls=false: they would be a way around the HTTP"],
    [{ ...API, ...MUTUAL }, "at its own address an HTTP API asks for no certificate"],
    [
      { ...API, "domain-name": "x.example.com", "domain-certificate": BALANCER["domain-certificate"] },
      "--param domain-name brings an HTTP API along: leave --param http-api out",
    ],
    [{ ...BALANCER, "load-balancer-subnets": "a,b" }, "--param load-balancer-subnets: a is no id: write subnet-…"],
    [{ ...BALANCER, "load-balancer-subnets": "subnet-1" }, "two subnets or more, in different zones"],
    [{ ...BALANCER, "load-balancer-security-groups": "" }, "go together: two subnets"],
    [withoutDomain, "--param load-balancer-subnets needs --param domain-name and domain-certificate"],
    [{ ...BALANCER, "http-api": "true" }, "takes neither --param http-api nor --param truststore"],
    [{ ...BALANCER, truststore: "s3://b/k" }, "takes neither --param http-api nor --param truststore"],
    [{ ...BALANCER, ...MUTUAL }, "the load balancer of this template verifies none"],
    [{ ...BALANCER, "function-urls": "true" }, "--param domain-name needs --param function-urls=false"],
    [{ ...BALANCER, "requests-per-second": "5" }, "--param requests-per-second needs an HTTP API"],
  ])("readSettings refuses %j", async (parameters, sentence) => {
    await expect(settings(parameters)).rejects.toThrow(sentence);
  });
});
