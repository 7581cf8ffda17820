/**
 * Tests the rights that docs/deploy.md names for a deployment. They are compared with the template: nobody has tried
 * them in an AWS account.
 */
import { readFile } from "node:fs/promises";
import { beforeAll, expect, test } from "vitest";
import { type Aws, openAws } from "../../infra/aws/deploy/aws.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { template } from "../../infra/aws/template.ts";

interface Statement {
  readonly Sid: string;
  readonly Effect: "Allow";
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}
interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}

/** The most characters of a customer managed policy, without white space. Source: IAM quotas. */
const MOST_CHARACTERS = 6_144;

/**
 * Resource type → the calls that create it, and the calls that delete it in a rollback. Source: handlers in the types'
 * schemas.
 */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  "AWS::ApiGatewayV2::Api": ["apigateway:POST", "apigateway:DELETE"],
  "AWS::ApiGatewayV2::ApiMapping": ["apigateway:POST", "apigateway:DELETE"],
  "AWS::ApiGatewayV2::DomainName": [
    "apigateway:POST",
    "apigateway:DELETE",
    "apigateway:AddCertificateToDomain",
    "apigateway:RemoveCertificateFromDomain",
  ],
  "AWS::ApiGatewayV2::Integration": ["apigateway:POST", "apigateway:DELETE"],
  "AWS::ApiGatewayV2::Route": ["apigateway:POST", "apigateway:DELETE"],
  "AWS::ApiGatewayV2::Stage": ["apigateway:POST", "apigateway:DELETE", "logs:CreateLogDelivery"],
  "AWS::Budgets::Budget": ["budgets:ModifyBudget", "budgets:ViewBudget"],
  "AWS::CloudWatch::Alarm": ["cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"],
  "AWS::CodeDeploy::Application": ["codedeploy:CreateApplication", "codedeploy:DeleteApplication"],
  "AWS::CodeDeploy::DeploymentGroup": ["codedeploy:CreateDeploymentGroup", "codedeploy:DeleteDeploymentGroup"],
  "AWS::ElasticLoadBalancingV2::Listener": [
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:DeleteListener",
  ],
  "AWS::ElasticLoadBalancingV2::ListenerRule": ["elasticloadbalancing:CreateRule", "elasticloadbalancing:DeleteRule"],
  "AWS::ElasticLoadBalancingV2::LoadBalancer": [
    "elasticloadbalancing:CreateLoadBalancer",
    "elasticloadbalancing:DeleteLoadBalancer",
  ],
  "AWS::ElasticLoadBalancingV2::TargetGroup": [
    "elasticloadbalancing:CreateTargetGroup",
    "elasticloadbalancing:DeleteTargetGroup",
    "elasticloadbalancing:RegisterTargets",
  ],
  "AWS::IAM::Role": ["iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:PassRole", "iam:DeleteRole"],
  "AWS::Lambda::Alias": ["lambda:CreateAlias", "codedeploy:CreateDeployment", "lambda:DeleteAlias"],
  "AWS::Lambda::EventInvokeConfig": ["lambda:PutFunctionEventInvokeConfig", "lambda:DeleteFunctionEventInvokeConfig"],
  "AWS::Lambda::EventSourceMapping": ["lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping"],
  "AWS::Lambda::Function": ["lambda:CreateFunction", "lambda:PutFunctionConcurrency", "lambda:DeleteFunction"],
  "AWS::Lambda::Permission": ["lambda:AddPermission", "lambda:RemovePermission"],
  "AWS::Lambda::Url": ["lambda:CreateFunctionUrlConfig", "lambda:DeleteFunctionUrlConfig"],
  "AWS::Lambda::Version": ["lambda:PublishVersion", "lambda:DeleteFunction"],
  "AWS::Logs::LogGroup": ["logs:CreateLogGroup", "logs:PutRetentionPolicy", "logs:DeleteLogGroup"],
  "AWS::Logs::MetricFilter": ["logs:PutMetricFilter", "logs:DeleteMetricFilter"],
  "AWS::S3::Bucket": ["s3:CreateBucket", "s3:PutEncryptionConfiguration", "s3:PutBucketVersioning", "s3:DeleteBucket"],
  "AWS::S3::BucketPolicy": ["s3:PutBucketPolicy", "s3:DeleteBucketPolicy"],
  "AWS::SQS::Queue": ["sqs:CreateQueue", "sqs:DeleteQueue"],
  "AWS::Scheduler::Schedule": ["scheduler:CreateSchedule", "scheduler:DeleteSchedule"],
  "AWS::Scheduler::ScheduleGroup": [
    "scheduler:CreateScheduleGroup",
    "scheduler:TagResource",
    "scheduler:DeleteScheduleGroup",
  ],
};

/** Resource types that osls and infra/aws/canary/versions.ts add to the template. */
const BESIDE = [
  ...["Lambda::Function", "Lambda::Permission", "Lambda::Url", "Lambda::Version"],
  ...["Logs::LogGroup", "S3::Bucket", "S3::BucketPolicy"],
];

/** Calls of osls itself. Source: node_modules/osls/lib/plugins/aws. */
const OSLS = [
  ...["CreateChangeSet", "DescribeChangeSet", "ExecuteChangeSet", "DeleteChangeSet", "DescribeStacks"],
  ...["DescribeStackEvents", "DescribeStackResource", "ListStackResources", "GetTemplate", "ValidateTemplate"],
  "DeleteStack",
]
  .map((call) => `cloudformation:${call}`)
  .concat(["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucketVersions"])
  .concat(["s3:DeleteObjectVersion", "lambda:GetFunction", "sts:GetCallerIdentity"]);

const OWN: Readonly<Record<keyof Aws, string>> = {
  getCallerIdentity: "sts:GetCallerIdentity",
  describeCluster: "eks:DescribeCluster",
  describeAccessEntry: "eks:DescribeAccessEntry",
  createAccessEntry: "eks:CreateAccessEntry",
  updateAccessEntry: "eks:UpdateAccessEntry",
  describeStack: "cloudformation:DescribeStacks",
  getParameter: "ssm:GetParameter",
  putSecret: "ssm:PutParameter",
  getUnreservedConcurrency: "lambda:GetAccountSettings",
};

const ALL = {
  "rollout-workers": "10",
  "ordered-sets": "true",
  "more-alarms": "true",
  "ticket-topic": "arn:aws:sns:eu-central-1:123456789012:t",
  "monthly-budget": "50",
  "function-urls": "false",
  "domain-name": "webhooks.example.com",
  "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
};
const HTTP_API = { canary: "true", "requests-per-second": "500", truststore: "s3://trust/clients.pem" };
const BALANCER = {
  subnets: "subnet-1",
  "security-groups": "sg-1",
  "load-balancer-subnets": "subnet-1, subnet-2",
  "load-balancer-security-groups": "sg-1",
};

let text: string;
let statements: readonly Statement[];
const resources: Resource[] = [];

beforeAll(async () => {
  text = await readFile("infra/aws/deployer-policy.json", "utf8");
  ({ Statement: statements } = JSON.parse(text));
  for (const parameters of [{}, { canary: "true" }, { ...ALL, ...HTTP_API }, { ...ALL, ...BALANCER }]) {
    const given: Readonly<Record<string, string>> = parameters;
    const made = template(await readSettings("sidecarset", "test", async (name) => given[name] ?? ""));
    resources.push(...Object.values((made as { Resources: Readonly<Record<string, Resource>> }).Resources));
  }
});

const listed = (one: string | readonly string[]) => [one].flat();
/** Matches as IAM does: a star matches any text. */
const fits = (name: string, pattern: string) => new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
const refused = (actions: readonly string[]) => {
  const allowed = statements.flatMap(({ Action }) => listed(Action));
  return actions.filter((action) => !allowed.some((pattern) => fits(action, pattern)));
};

test("the deployer's policy allows the creation and deletion of every type of resource in a deployment", () => {
  const beside = BESIDE.map((type) => `AWS::${type}`);
  const types = new Set([...resources.map(({ Type }) => Type), ...beside]);
  expect([...types].toSorted()).toEqual(Object.keys(CALLS).toSorted());
  expect(refused(Object.values(CALLS).flat())).toEqual([]);
});

test("the deployer's policy allows every call of osls and of npm run deploy:all", () => {
  expect(Object.keys(openAws("eu-central-1", undefined)).toSorted()).toEqual(Object.keys(OWN).toSorted());
  expect(refused([...OSLS, ...Object.values(OWN)])).toEqual([]);
});

test("the deployer may pass roles only to the services that the template's roles trust", () => {
  const roles = resources.filter(({ Type }) => Type === "AWS::IAM::Role");
  const services = roles.flatMap(({ Properties }) => JSON.stringify(Properties).match(/[a-z]+\.amazonaws\.com/) ?? []);
  const passing = statements.filter(({ Action }) => listed(Action).includes("iam:PassRole"));
  const [passed] = passing.map(({ Condition }) => Condition?.["StringEquals"]?.["iam:PassedToService"] as string[]);
  expect(passing).toHaveLength(1);
  expect(passed?.toSorted()).toEqual([...new Set(services)].toSorted());
});

test("the deployer's policy covers every named log group, queue and CodeDeploy application of the template", () => {
  const before = {
    LogGroupName: "logs:*:*:log-group",
    QueueName: "sqs:*:*",
    ApplicationName: "codedeploy:*:*:application",
  };
  const named = resources.flatMap(({ Properties }) =>
    Object.entries(before).flatMap(([key, place]) =>
      // A filter refers to its log group.
      typeof Properties[key] === "string" ? [`arn:aws:${place}:${Properties[key]}`] : [],
    ),
  );
  const usable = statements.flatMap(({ Resource }) => listed(Resource)).filter((arn) => arn !== "*");
  expect(new Set(named).size).toBe(4);
  expect(named.filter((arn) => !usable.some((pattern) => fits(arn, pattern)))).toEqual([]);
});

test("the deployer's policy allows no service completely, and roles, secrets and buckets only of this service", () => {
  for (const { Sid, Action, Resource } of statements)
    for (const action of listed(Action)) {
      // The actions of API Gateway are HTTP methods; the policy allows all of them at its own paths.
      expect(action, Sid).not.toMatch(/^(\*|iam:\*.*|(?!apigateway)\w+:\*)$/);
      if (/^(iam|ssm|s3):/.test(action))
        for (const arn of listed(Resource)) expect(arn, Sid).toMatch(/[:/](sidecarset[-/]|aws-service-role\/[a-z])/);
    }
});

test("the deployer's policy is smaller than the limit of IAM", () => {
  expect(text.replaceAll(/\s/g, "").length).toBeLessThan(MOST_CHARACTERS);
});

test("the policy for people on call allows the aws commands of docs/alarms.md, and nothing that writes", async () => {
  const [, sections = ""] = /\n## What to do\n([\s\S]*?)\n## /.exec(await readFile("docs/alarms.md", "utf8")) ?? [];
  const called = [...sections.matchAll(/`aws (\w+) ([\w-]+)/g)].map(([, service = "", command = ""]) => {
    const name = command.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
    return `${service}:${name === "Tail" ? "FilterLogEvents" : name}`;
  });
  expect(new Set(called).size).toBeGreaterThan(7);
  const policy = JSON.parse(await readFile("infra/aws/on-call-policy.json", "utf8")) as { Statement: Statement[] };
  const allowed = policy.Statement.flatMap(({ Action }) => listed(Action));
  expect(called.filter((action) => !allowed.includes(action))).toEqual([]);
  for (const action of allowed) expect(action).toMatch(/:(?:Describe|Get|List|Filter|Receive|StartLiveTail)/);
});
