/**
 * Tests new versions of the webhooks behind aliases: the callers of each alias, the rights of each role, and which
 * changes make a version.
 */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ALIAS, WEBHOOKS } from "../../infra/aws/canary/alias.ts";
import { checkerFunction } from "../../infra/aws/canary/resources.ts";
import { type CompiledTemplate, withVersions } from "../../infra/aws/canary/versions.ts";
import { checkParameters } from "../../infra/aws/deploy/parameters.ts";
import { BEHIND_DOOR } from "../../infra/aws/deployed.ts";
import { aliasId, CHECKER, functionId, groupId, roleId } from "../../infra/aws/names.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { template } from "../../infra/aws/template.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { parseCheckedVersions } from "../../shared/settings/checked-versions.ts";
import { pathDigestsOf } from "../../shared/webhook/server/path-secret.ts";

interface Resource {
  readonly Type: string;
  readonly DependsOn?: string | readonly string[];
  readonly UpdatePolicy?: object;
  readonly Properties: Readonly<Record<string, unknown>>;
}
type Resources = Readonly<Record<string, Resource>>;
type Parameters = Readonly<Record<string, string>>;

const settings = (parameters: Parameters) => readSettings("sidecarset", "test", async (name) => parameters[name] ?? "");
const made = async (parameters: Parameters) => template(await settings(parameters)) as CompiledTemplate;
const CANARY = { canary: "true" };

/** Returns the functions in osls' form, with the parts that these tests need. */
function compiled(own: CompiledTemplate, properties: object = {}): CompiledTemplate {
  const functions = [...WEBHOOKS.map(({ name }) => name), "rollout", CHECKER].map((name) => [
    functionId(name),
    {
      Type: "AWS::Lambda::Function",
      Properties: {
        Code: { S3Key: `${Math.random()}` },
        MemorySize: 512,
        Environment: { Variables: {} },
        ...properties,
      },
    },
  ]);
  const outputs = WEBHOOKS.map(({ name }) => [
    `${functionId(name)}Url`,
    { Value: { "Fn::GetAtt": [`${functionId(name)}Url`, "FunctionUrl"] } },
  ]);
  return {
    Resources: { ...own.Resources, ...Object.fromEntries(functions) },
    Outputs: { ...own.Outputs, ...Object.fromEntries(outputs) },
  };
}

const CODE = new Map(WEBHOOKS.map(({ name }) => [name, `code of ${name}`]));
const versioned = async (parameters: Parameters = CANARY, properties: object = {}, code = CODE) =>
  withVersions(compiled(await made(parameters), properties), code);
const versionsIn = ({ Resources }: CompiledTemplate) =>
  Object.entries(Resources).flatMap(([id, { Type }]) => (Type === "AWS::Lambda::Version" ? [id] : []));

test("without --param canary the template has no alias, no version and nothing of CodeDeploy", async () => {
  const plain = compiled(await made({}));
  expect(withVersions(plain, CODE)).toBe(plain);
  expect(JSON.stringify(plain)).not.toMatch(/CodeDeploy|LambdaAlias|LambdaVersion/);
  expect(checkerFunction(await settings({}))).toEqual({});
});

describe("the alias of a webhook:", () => {
  const named = (name: string) => new RegExp(`"Fn::GetAtt":\\["${functionId(name)}","Arn"\\]`);

  test("each webhook's alias has a Function URL, and the outputs print the alias's URL", async () => {
    const { Resources, Outputs } = await versioned();
    for (const { name } of WEBHOOKS) {
      const alias = aliasId(name);
      expect(Resources[`${alias}Url`]?.Properties).toMatchObject({ Qualifier: ALIAS, AuthType: "NONE" });
      const permissions = Object.values(Resources).filter(
        ({ Type, Properties }) =>
          Type === "AWS::Lambda::Permission" && JSON.stringify(Properties["FunctionName"]) === `{"Ref":"${alias}"}`,
      );
      expect(permissions.map(({ Properties }) => Properties["Action"])).toEqual([
        "lambda:InvokeFunctionUrl",
        "lambda:InvokeFunction",
      ]);
      expect(Outputs[`${functionId(name)}Url`]?.Value).toEqual({ "Fn::GetAtt": [`${alias}Url`, "FunctionUrl"] });
    }
  });

  test.each<[string, Parameters]>([
    ["an HTTP API", { "http-api": "true", "function-urls": "false" }],
    [
      "a load balancer",
      {
        "domain-name": "w.example.com",
        "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
        "load-balancer-subnets": "subnet-1,subnet-2",
        "load-balancer-security-groups": "sg-1",
        "function-urls": "false",
      },
    ],
  ])("%s has the permission to call the aliases, and only convert-sidecarset has a Function URL", async (_, door) => {
    const { Resources } = await versioned({ ...CANARY, ...door });
    const ofDoor = Object.entries(Resources).filter(([, { Type }]) =>
      /Integration|TargetGroup|Lambda::Permission/.test(Type),
    );
    for (const { name } of BEHIND_DOOR) {
      const calling = ofDoor.filter(([, one]) => JSON.stringify(one).includes(`{"Ref":"${aliasId(name)}"}`));
      expect(calling).toHaveLength(2);
      for (const [, one] of ofDoor) expect(JSON.stringify(one)).not.toMatch(named(name));
    }
    expect(Object.keys(Resources).filter((id) => id.endsWith("AliasUrl"))).toEqual([
      `${aliasId("convert-sidecarset")}Url`,
    ]);
  });

  test("without Function URLs the outputs print the alias of each webhook", async () => {
    const { Outputs } = await versioned({ ...CANARY, "function-urls": "false" });
    for (const { name } of BEHIND_DOOR) expect(Outputs[aliasId(name)]?.Value).toEqual({ Ref: aliasId(name) });
  });

  test("the rollout function has no alias: the schedule and the queue call the function", async () => {
    const { Resources } = await versioned({ ...CANARY, "rollout-workers": "4" });
    expect(Resources[aliasId("rollout")]).toBeUndefined();
    expect(JSON.stringify(Resources["Schedule"])).toContain('"Fn::GetAtt":["RolloutLambdaFunction","Arn"]');
    expect(Resources["RolloutWorkers"]?.Properties["FunctionName"]).toEqual({ Ref: "RolloutLambdaFunction" });
  });
});

describe("a version of a webhook:", () => {
  const idsFor = async (properties: object, code = CODE) => versionsIn(await versioned(CANARY, properties, code));

  test("a webhook keeps its version when only its tags or its reserved concurrency change", async () => {
    const ids = await idsFor({});
    expect(ids).toHaveLength(WEBHOOKS.length);
    expect(await idsFor({})).toEqual(ids);
    expect(await idsFor({ Tags: [{ Key: "team", Value: "a" }], ReservedConcurrentExecutions: 7 })).toEqual(ids);
  });

  test.each<[string, object, typeof CODE]>([
    ["its code", {}, new Map([...CODE].map(([name, code]) => [name, `${code}, changed`]))],
    ["a variable of its environment", { Environment: { Variables: { LOG_LEVEL: "warn" } } }, CODE],
    ["its memory", { MemorySize: 1024 }, CODE],
    ["its encryption key", { KmsKeyArn: "arn:aws:kms:eu-central-1:123456789012:key/k" }, CODE],
    ["its VPC", { VpcConfig: { SubnetIds: ["subnet-1"], SecurityGroupIds: ["sg-1"] } }, CODE],
  ])("a webhook gets a new version when %s changes", async (_, properties, code) => {
    const before = await idsFor({});
    for (const id of await idsFor(properties, code)) expect(before).not.toContain(id);
  });

  test("CloudFormation deletes a version that a newer one has replaced", async () => {
    const given = await versioned();
    for (const id of versionsIn(given))
      expect(given.Resources[id]).toMatchObject({ DeletionPolicy: "Delete", UpdateReplacePolicy: "Delete" });
  });
});

describe("traffic shifting:", () => {
  test("CodeDeploy calls the checker first, and then shifts a tenth of the traffic for five minutes", async () => {
    const { Resources } = (await versioned()) as unknown as { Resources: Resources };
    for (const { name } of WEBHOOKS) {
      expect(Resources[aliasId(name)]).toMatchObject({
        DependsOn: "RolloutLambdaFunction",
        UpdatePolicy: {
          CodeDeployLambdaAliasUpdate: {
            ApplicationName: { Ref: "CanaryApplication" },
            DeploymentGroupName: { Ref: groupId(name) },
            BeforeAllowTrafficHook: { Ref: functionId(CHECKER) },
          },
        },
      });
      expect(Resources[groupId(name)]?.Properties["DeploymentConfigName"]).toBe(
        "CodeDeployDefault.LambdaCanary10Percent5Minutes",
      );
    }
  });

  test("only the alarms about errors and throttled pods make CodeDeploy shift the traffic back", async () => {
    const alarmsOf = async (more: Parameters) => {
      const { Resources } = await versioned({ ...CANARY, ...more });
      const group = (Resources as unknown as Resources)[groupId("mutate-pod")] as Resource;
      const { Alarms } = group.Properties["AlarmConfiguration"] as { Alarms: { Name: { Ref: string } }[] };
      for (const { Name } of Alarms) expect(Resources[Name.Ref]?.Type).toBe("AWS::CloudWatch::Alarm");
      return Alarms.map(({ Name }) => Name.Ref);
    };
    const always = ["PodErrors", "PodThrottles", "CallersRefused", "SidecarSetErrors", "TickErrors"];
    expect(await alarmsOf({})).toEqual(always);
    expect((await alarmsOf({ "http-api": "true", "function-urls": "false" })).toSorted()).toEqual(
      [...always, "DoorErrors"].toSorted(),
    );
  });

  test("canary=at-once moves all traffic at once without CodeDeploy, and keeps the same resources", async () => {
    const { Resources } = (await versioned({ canary: "at-once" })) as unknown as { Resources: Resources };
    for (const { name } of WEBHOOKS) expect(Resources[aliasId(name)]?.UpdatePolicy).toBeUndefined();
    expect(Object.keys(Resources)).toEqual(Object.keys((await versioned()).Resources));
  });
});

describe("rights for canaries:", () => {
  interface Statement {
    readonly Action: string | readonly string[];
    readonly Resource: unknown;
  }
  const statementsOf = ({ Resources }: CompiledTemplate, id: string) =>
    ((Resources[id] as Resource).Properties["Policies"] as { PolicyDocument: { Statement: Statement[] } }[]).flatMap(
      ({ PolicyDocument }) => PolicyDocument.Statement,
    );

  test("CodeDeploy may move aliases, read alarms and call the checker, and its role has no wildcard", async () => {
    const given = await versioned();
    const statements = statementsOf(given, "CanaryRole");
    expect(statements.map(({ Action }) => Action)).toEqual([
      "cloudwatch:DescribeAlarms",
      ["lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"],
      "lambda:InvokeFunction",
    ]);
    expect(JSON.stringify(statements)).not.toContain("*");
    expect(JSON.stringify(given.Resources["CanaryRole"])).not.toContain("ManagedPolicyArns");
  });

  test("the checker may call the new versions and the aliases and read the secrets, and has no wildcard", async () => {
    const given = await versioned();
    const statements = statementsOf(given, roleId(CHECKER));
    const called = statements.filter(({ Action }) => Action === "lambda:InvokeFunction");
    expect(called.flatMap(({ Resource }) => Resource)).toEqual([
      ...WEBHOOKS.map(({ name }) => ({ "Fn::Sub": `\${${functionId(name)}.Arn}:${ALIAS}` })),
      ...versionsIn(given).map((id) => ({ Ref: id })),
    ]);
    expect(statements.map(({ Action }) => Action)).toContain("ssm:GetParameter");
    expect(JSON.stringify(statements).replace("check-versions:*", "")).not.toContain("*");
    const allowed = Object.values(given.Resources).filter(({ Type }) => Type === "AWS::Lambda::Permission");
    expect(JSON.stringify(allowed)).not.toContain(functionId(CHECKER));
    // The checker has neither a Function URL nor an event of a front door.
    const { [CHECKER]: checker = {} } = checkerFunction(await settings(CANARY));
    expect(Object.keys(checker).toSorted()).toEqual(["environment", "handler", "package", "role", "timeout"]);
  });

  test("with --param path-digests only the checker may read the secrets", async () => {
    const paths = WEBHOOKS.flatMap(({ paths = [] }) => [...paths, "/readyz"]);
    const digests = printPathDigests(pathDigestsOf(["secret"], paths));
    const given = await made({ ...CANARY, "path-digests": digests });
    const readers = Object.entries(given.Resources).filter(
      ([, one]) => one.Type === "AWS::IAM::Role" && JSON.stringify(one).includes("ssm:GetParameter"),
    );
    expect(readers.map(([id]) => id)).toEqual([roleId(CHECKER)]);
  });
});

test("parseCheckedVersions reads the VERSIONS that the template gives to the checker", async () => {
  const { Resources } = await versioned();
  const environment = Resources[functionId(CHECKER)]?.Properties["Environment"] as {
    Variables: { VERSIONS: { "Fn::Join": [string, { "Fn::Join": [string, [string, { Ref: string }]] }[]] } };
  };
  const [comma, pairs] = environment.Variables.VERSIONS["Fn::Join"];
  const text = pairs
    .map(({ "Fn::Join": [equals, [name]] }, at) =>
      [name, `arn:aws:lambda:eu-central-1:123456789012:function:sidecarset-test-${name}:${at + 1}`].join(equals),
    )
    .join(comma);
  expect(parseCheckedVersions(text)).toEqual(
    WEBHOOKS.map(({ name }, at) => ({
      webhook: name,
      functionName: `sidecarset-test-${name}`,
      version: `${at + 1}`,
      region: "eu-central-1",
    })),
  );
  expect(() => parseCheckedVersions("mutate-pod=arn:aws:lambda:eu-central-1:1:function:f")).toThrow(
    'VERSIONS has "mutate-pod=arn:aws:lambda:eu-central-1:1:function:f", which is not WEBHOOK=ARN of a version.',
  );
});

test("deploy:all accepts --param canary and refuses an unknown value", async () => {
  const given = new Map(Object.entries({ ...CANARY, "eks-cluster": "shop" }));
  const place = { stage: "test", region: "eu-central-1" };
  expect(await checkParameters(given, place)).toMatchObject({ canary: "shifted" });
  await expect(checkParameters(new Map([...given, ["canary", "now"]]), place)).rejects.toThrow("canary=now is none of");
});

test.each<[Parameters, string]>([
  [{ canary: "yes" }, "--param canary=yes is none of true, at-once, false."],
  [{ ...CANARY, "canary-labels": "app" }, '--param canary-labels has "app": write NAME=VALUE'],
  [{ canary: "true", clusters: "test/infra/clusters.json" }, "canary and --param clusters do not go together"],
])("readSettings refuses the parameters %j", async (parameters, sentence) => {
  const { clusters, ...rest } = parameters;
  const given = clusters === undefined ? rest : { ...rest, clusters: await tableFile() };
  await expect(settings(given)).rejects.toThrow(sentence);
});

async function tableFile(): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), "sidecarset-canary-")), "clusters.json");
  await writeFile(file, '{"eu":{"EKS_CLUSTER":"shop"}}');
  return file;
}
