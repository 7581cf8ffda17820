import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { alarms, countAlarmMetrics } from "../../infra/aws/alarms.ts";
import { checkNames, checkParameters } from "../../infra/aws/deploy/parameters.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { readTags } from "../../infra/aws/door-settings.ts";
import { environmentOf, secretsOf } from "../../infra/aws/functions.ts";
import { lastGiven } from "../../infra/aws/given-parameters.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { type AwsSettings, readSettings } from "../../infra/aws/settings.ts";
import { template } from "../../infra/aws/template.ts";
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import { parseAuthentication, printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf } from "../../shared/webhook/server/path-secret.ts";
import * as WEBHOOK_PATHS from "../../shared/webhook/server/paths.ts";
import { MAX_RECEIVES, VISIBILITY_MS } from "../simulation/queue/fifo.ts";

const PATHS = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:paths-AbCdEf";
const TOKENS = "arn:aws:ssm:eu-central-1:123456789012:parameter/tokens";
const READING = "arn:aws:ssm:eu-central-1:123456789012:parameter/reading";
const VIEWING = "arn:aws:ssm:eu-central-1:123456789012:parameter/viewing";

function settings(parameters: Readonly<Record<string, string>>): Promise<AwsSettings> {
  return readSettings("sidecarset", "test", async (name) => parameters[name] ?? "");
}

function secretsByFunction(given: AwsSettings) {
  return Object.fromEntries(DEPLOYED.map((deployed) => [deployed.name, secretsOf(deployed, given)]));
}

test("serverless.yml has exactly the functions of the list DEPLOYED", async () => {
  const { functions } = parse(await readFile("serverless.yml", "utf8")) as { functions: [object, string] };
  expect(DEPLOYED.map(({ name }) => name).toSorted()).toEqual(Object.keys(functions[0]).toSorted());
  // The checker function exists only with a canary.
  expect(functions[1]).toContain("serverless.cjs):checker");
});

test("by default callers use a secret path, and an SSM parameter of the deployment stores the secret", async () => {
  const { authentication, pathSecrets } = await settings({});
  expect(authentication).toBe("secret-path");
  expect(JSON.stringify(pathSecrets)).toContain(":parameter/sidecarset/test/path-secrets");
});

test("with bearer tokens only the conversion function reads the secrets of the paths", async () => {
  const given = await settings({ authentication: "bearer-token", "bearer-tokens": TOKENS, "path-secrets": PATHS });
  expect(secretsByFunction(given)).toEqual({
    "mutate-pod": [TOKENS],
    "mutate-sidecarset": [TOKENS],
    "validate-sidecarset": [TOKENS],
    "convert-sidecarset": [PATHS],
    rollout: [],
    "dry-run": [],
    "ordered-set": [],
  });
  const text = JSON.stringify(template(given));
  expect(text).toContain(`"Action":"secretsmanager:GetSecretValue","Resource":"${PATHS}"`);
  expect(text).toContain(`"Action":"ssm:GetParameter","Resource":"${TOKENS}"`);
});

describe("--param path-digests:", () => {
  const REGISTERED = [...Object.values(WEBHOOK_PATHS), ANNOUNCE_SIDECARSET_PATH].filter(
    (path) => typeof path === "string",
  );
  const digests = (paths: readonly string[]) => printPathDigests(pathDigestsOf(["new", "old"], [...paths, "/readyz"]));
  const environments = async (paths: readonly string[]) => {
    const given = await settings({ "path-digests": digests(paths) });
    return DEPLOYED.filter(({ isCalledFor }) => isCalledFor).map((deployed) => environmentOf(deployed, given));
  };

  test("with --param path-digests no function reads the secrets, and each webhook has the digests of its own paths", async () => {
    const given = await settings({ "path-digests": digests(REGISTERED) });
    expect(Object.values(secretsByFunction(given)).flat()).toEqual([]);
    expect(JSON.stringify(template(given))).not.toMatch(/ssm:GetParameter|GetSecretValue/);
    const known = (await environments(REGISTERED)).flatMap((environment) => {
      expect(environment).not.toHaveProperty("PATH_SECRETS");
      const { pathDigests } = parseAuthentication(environment as Readonly<Record<string, string>>);
      return [...(pathDigests ?? [])].map(([path]) => path);
    });
    const ready = Array(4).fill("/readyz");
    expect(known.toSorted()).toEqual([...REGISTERED, ...ready].toSorted());
  });

  test("a missing digest of a registered path is an error", async () => {
    const others = REGISTERED.filter((path) => path !== "/mutate-pod");
    await expect(environments(others)).rejects.toThrow("--param path-digests has none for /mutate-pod");
  });

  test("the digests leave room in the environment for an address and a certificate authority", async () => {
    const sizes = (await environments(REGISTERED)).map((environment) => JSON.stringify(environment).length);
    expect(Math.max(...sizes)).toBeLessThan(1_600);
  });
});

test("with client certificates only the conversion function reads a secret", async () => {
  const given = await settings({ authentication: "client-certificate", "client-names": "kube-apiserver" });
  const readers = Object.entries(secretsByFunction(given)).filter(([, secrets]) => secrets.length > 0);
  expect(readers.map(([name]) => name)).toEqual(["convert-sidecarset"]);
  const [pod] = DEPLOYED.filter(({ name }) => name === "mutate-pod").map((deployed) => environmentOf(deployed, given));
  expect(pod).toMatchObject({ AUTHENTICATION: "client-certificate", CLIENT_NAMES: "kube-apiserver" });
});

test("the limits client-qps, client-burst and client-concurrency apply to passes and not to webhooks", async () => {
  const given = await settings({ "client-qps": "50", "client-burst": "100", "client-concurrency": "8" });
  const limits = { CLIENT_QPS: "50", CLIENT_BURST: "100", CLIENT_CONCURRENCY: "8" };
  const names = ["rollout", "dry-run", "ordered-set"];
  for (const deployed of DEPLOYED) {
    const environment = environmentOf(deployed, given);
    if (names.includes(deployed.name)) expect(environment).toMatchObject(limits);
    else expect(Object.keys(environment).filter((name) => name in limits)).toEqual([]);
  }
  expect(environmentOf({ name: "rollout", isInCluster: true }, await settings({}))).not.toHaveProperty("CLIENT_QPS");
});

test("--param keep-registration reaches only validate-sidecarset, rollout and dry-run", async () => {
  const keepers = async (parameters: Readonly<Record<string, string>>) => {
    const given = await settings(parameters);
    return DEPLOYED.filter((deployed) => "KEEP_REGISTRATION" in environmentOf(deployed, given)).map(({ name }) => name);
  };
  expect(await keepers({ "keep-registration": "true" })).toEqual(["validate-sidecarset", "rollout", "dry-run"]);
  expect(await keepers({})).toEqual([]);
});

test("only the rollout function gets the Prometheus server and its token", async () => {
  const server = "https://mimir.example.com/prometheus";
  const given = await settings({ "prometheus-server": server, "prometheus-token": TOKENS });
  const told = DEPLOYED.filter((deployed) => "PROMETHEUS_SERVER" in environmentOf(deployed, given));
  expect(told.map(({ name }) => name)).toEqual(["rollout"]);
  const [rollout] = told.map((deployed) => environmentOf(deployed, given));
  expect(rollout).toMatchObject({ PROMETHEUS_SERVER: server, PROMETHEUS_TOKEN: TOKENS });
  const readers = Object.entries(secretsByFunction(given)).filter(([, secrets]) => secrets.includes(TOKENS));
  expect(readers.map(([name]) => name)).toEqual(["rollout"]);
  expect(JSON.stringify(template(given))).toContain(`"Action":"ssm:GetParameter","Resource":"${TOKENS}"`);
  expect(JSON.stringify(template(await settings({})))).not.toContain("PROMETHEUS");
});

test("only the rollout function gets --param notifications, and may read that parameter", async () => {
  const given = await settings({ notifications: TOKENS });
  const told = DEPLOYED.filter((deployed) => "NOTIFICATIONS" in environmentOf(deployed, given));
  expect(told.map(({ name }) => name)).toEqual(["rollout"]);
  const readers = Object.entries(secretsByFunction(given)).filter(([, secrets]) => secrets.includes(TOKENS));
  expect(readers.map(([name]) => name)).toEqual(["rollout"]);
});

test("only the rollout function gets --param gate-hosts", async () => {
  const given = await settings({ "gate-hosts": "gate.example.com" });
  const asking = DEPLOYED.filter((deployed) => "GATE_HOSTS" in environmentOf(deployed, given));
  expect(asking.map(({ name }) => name)).toEqual(["rollout"]);
  const [rollout] = asking.map((deployed) => environmentOf(deployed, given));
  expect(rollout).toMatchObject({ GATE_HOSTS: "gate.example.com" });
});

test("--param metrics=cloudwatch gives the rollout function the name of its stage", async () => {
  const rollout = DEPLOYED.find(({ name }) => name === "rollout");
  if (rollout === undefined) throw new Error("no rollout");
  expect(environmentOf(rollout, await settings({ metrics: "cloudwatch" }))).toMatchObject({ STAGE: "test" });
  expect(environmentOf(rollout, await settings({}))).not.toHaveProperty("STAGE");
});

describe("parameters of traces:", () => {
  const LAYER = "arn:aws:lambda:eu-central-1:123456789012:layer:collector:3";
  const handlersOf = async (given: Readonly<Record<string, string>>) => {
    const { extensions } = template(await settings(given)) as {
      extensions: Readonly<Record<string, { Properties: { Handler?: string; Layers?: readonly string[] } }>>;
    };
    return Object.values(extensions).flatMap(({ Properties: { Handler, Layers } }) =>
      Handler ? [[Handler, Layers]] : [],
    );
  };

  test("--param otlp-layer adds the layer to each function, and each function sends its traces to the layer", async () => {
    const given = { "otlp-layer": LAYER };
    expect(await handlersOf(given)).toEqual(DEPLOYED.map(({ name }) => [`dist/${name}/traced.handler`, [LAYER]]));
    for (const deployed of DEPLOYED)
      expect(environmentOf(deployed, await settings(given))).toMatchObject({
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      });
  });

  test("--param otlp-endpoint needs no layer, and without both parameters no function sends traces", async () => {
    const [first] = await handlersOf({ "otlp-endpoint": "http://collector.internal:4318" });
    expect(first).toEqual(["dist/mutate-pod/traced.handler", undefined]);
    expect(await handlersOf({})).toEqual([]);
    for (const deployed of DEPLOYED)
      expect(
        Object.keys(environmentOf(deployed, await settings({}))).filter((name) => name.startsWith("OTEL")),
      ).toEqual([]);
  });

  test("a layer without a version is refused in one sentence", async () => {
    await expect(settings({ "otlp-layer": LAYER.replace(/:3$/, "") })).rejects.toThrow(
      /^--param otlp-layer=.* is not the ARN of a layer's version/,
    );
  });
});

test("with --param eks-cluster the functions that read the cluster may call eks:DescribeCluster for that cluster", async () => {
  const given = await settings({ "eks-cluster": "shop" });
  const text = JSON.stringify(template(given));
  expect(text.match(/"Action":"eks:DescribeCluster"/g)).toHaveLength(5);
  expect(text).toContain(":cluster/shop");
  const known = { "eks-cluster": "shop", "cluster-server": "https://x", "cluster-ca": "Q0E=" };
  expect(JSON.stringify(template(await settings(known)))).not.toContain("eks:");
});

test("webhooks and dry runs get a token that reads, passes get the token that writes, and no function gets two tokens", async () => {
  const tokens = { "cluster-token": TOKENS, "webhooks-token": READING, "viewer-token": VIEWING };
  const given = await settings({ ...tokens, "cluster-server": "https://x", "cluster-ca": "Q0E=" });
  const readersOf = (token: string) =>
    Object.entries(secretsByFunction(given)).flatMap(([name, secrets]) => (secrets.includes(token) ? [name] : []));
  expect(readersOf(TOKENS)).toEqual(["rollout", "ordered-set"]);
  expect(readersOf(VIEWING)).toEqual(["dry-run"]);
  expect(readersOf(READING)).toEqual(["mutate-pod", "validate-sidecarset"]);
  const environments = new Map(DEPLOYED.map((deployed) => [deployed.name, environmentOf(deployed, given)]));
  expect(environments.get("mutate-pod")).toMatchObject({ CLUSTER_TOKEN: READING });
  expect(environments.get("dry-run")).toMatchObject({ CLUSTER_TOKEN: VIEWING });
  const told = Object.keys({ ...logFilters(given), ...alarms(given) });
  expect(told).toEqual(
    expect.arrayContaining(["MutateDashpodLogGroupTokenFilter", "RolloutLogGroupTokenFilter", "TokenEnds"]),
  );
  expect(environments.get("rollout")).toEqual({
    CLUSTER_TOKEN: TOKENS,
    CLUSTER_SERVER: "https://x",
    CLUSTER_CA: "Q0E=",
  });
});

test("only the functions that read the cluster run in the VPC", async () => {
  const given = await settings({ subnets: "subnet-1, subnet-2", "security-groups": "sg-1" });
  const { extensions } = template(given) as { extensions: Record<string, object> };
  expect(Object.keys(extensions)).toHaveLength(5);
  expect(extensions["MutateDashpodLambdaFunction"]).toEqual({
    Properties: { VpcConfig: { SubnetIds: ["subnet-1", "subnet-2"], SecurityGroupIds: ["sg-1"] } },
  });
  expect(JSON.stringify(template(given)).match(/AWSLambdaVPCAccessExecutionRole/g)).toHaveLength(5);
});

test("--param rollout-workers adds a FIFO queue that delivers single messages and has a dead-letter queue", async () => {
  const given = await settings({ "rollout-workers": "10", subnets: "subnet-1", "security-groups": "sg-1" });
  const { Resources, extensions } = template(given) as {
    Resources: Record<string, { Type: string; Properties: Record<string, unknown> }>;
    extensions: Record<string, { Properties: object }>;
  };
  expect(Resources["RolloutQueue"]?.Properties).toMatchObject({
    FifoQueue: true,
    QueueName: "sidecarset-test-rollout.fifo",
    RedrivePolicy: { deadLetterTargetArn: { "Fn::GetAtt": ["FailedWork", "Arn"] }, maxReceiveCount: MAX_RECEIVES },
  });
  expect(Resources["FailedWork"]?.Properties).toMatchObject({ FifoQueue: true });
  const yaml = parse(await readFile("serverless.yml", "utf8")) as { functions: [{ rollout: { timeout: number } }] };
  expect(Resources["RolloutQueue"]?.Properties["VisibilityTimeout"]).toBeGreaterThan(yaml.functions[0].rollout.timeout);
  // The simulation of the queue uses this value.
  expect(Resources["RolloutQueue"]?.Properties["VisibilityTimeout"]).toBe(VISIBILITY_MS / 1_000);
  expect(Resources["RolloutWorkers"]).toMatchObject({
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: { BatchSize: 1, ScalingConfig: { MaximumConcurrency: 10 } },
  });
  expect(Object.keys(Resources)).toContain("FailedWorkWaiting");
  expect(extensions["RolloutLambdaFunction"]?.Properties).toEqual({
    VpcConfig: { SubnetIds: ["subnet-1"], SecurityGroupIds: ["sg-1"] },
  });
});

test("only the rollout and validate-sidecarset functions may use the queue of --param rollout-workers", async () => {
  const given = await settings({ "rollout-workers": "2" });
  const { Resources } = template(given) as { Resources: Record<string, object> };
  const mayUse = (role: string) => JSON.stringify(Resources[role]).match(/sqs:\w+/g) ?? [];
  // The role also sends failed ticks to their own queue.
  expect([...new Set(mayUse("RolloutRole"))].toSorted()).toEqual([
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
  ]);
  expect(mayUse("ValidateSidecarsetRole")).toEqual(["sqs:SendMessage"]);
  expect(["MutatePodRole", "MutateSidecarsetRole", "DryRunRole"].flatMap(mayUse)).toEqual([]);
  const knowing = DEPLOYED.filter((deployed) => "QUEUE_URL" in environmentOf(deployed, given));
  expect(knowing.map(({ name }) => name)).toEqual(["validate-sidecarset", "rollout"]);
});

test("without --param rollout-workers there is no queue", async () => {
  const given = await settings({});
  expect(JSON.stringify(template(given))).not.toMatch(/RolloutQueue|FailedWork|NoValue/);
  expect(DEPLOYED.filter((deployed) => "QUEUE_URL" in environmentOf(deployed, given))).toEqual([]);
});

describe("parameters of all functions:", () => {
  type Functions = Record<string, { readonly Properties: Record<string, unknown> }>;
  const extensionsOf = async (parameters: Readonly<Record<string, string>>) =>
    (template(await settings(parameters)) as { readonly extensions: Functions }).extensions;

  test("without parameters the template reserves no concurrency", async () => {
    expect(await extensionsOf({})).toEqual({});
  });

  test("memory and reserved-concurrency set one function or several, and memory also sets all functions", async () => {
    const some = await extensionsOf({
      memory: "rollout=1769",
      "reserved-concurrency": "mutate-pod=200,rollout=1,dry-run=1",
    });
    expect(some).toEqual({
      DryDashrunLambdaFunction: { Properties: { ReservedConcurrentExecutions: 1 } },
      RolloutLambdaFunction: { Properties: { MemorySize: 1_769, ReservedConcurrentExecutions: 1 } },
      MutateDashpodLambdaFunction: { Properties: { ReservedConcurrentExecutions: 200 } },
    });
    const all = Object.values(await extensionsOf({ memory: "1024" })).map(({ Properties }) => Properties);
    expect(all).toEqual(DEPLOYED.map(() => ({ MemorySize: 1_024 })));
  });

  test("--param function-key encrypts the environment of every function, and every role may decrypt with the key", async () => {
    const key = "arn:aws:kms:eu-central-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef";
    const given = await settings({ "function-key": key });
    const { Resources, extensions } = template(given) as { Resources: Record<string, object>; extensions: Functions };
    expect(Object.values(extensions).map(({ Properties }) => Properties)).toEqual(
      DEPLOYED.map(() => ({ KmsKeyArn: key })),
    );
    const roles = Object.values(Resources).filter((one) =>
      JSON.stringify(one).includes(`"Action":"kms:Decrypt","Resource":"${key}"`),
    );
    expect(roles).toHaveLength(DEPLOYED.length);
  });

  test("--param permissions-boundary sets the boundary of every role", async () => {
    const boundary = "arn:aws:iam::123456789012:policy/bounds";
    const { Resources } = template(await settings({ "permissions-boundary": boundary })) as {
      Resources: Record<string, { readonly Type: string; readonly Properties: object }>;
    };
    const roles = Object.values(Resources).filter(({ Type }) => Type === "AWS::IAM::Role");
    expect(roles.map(({ Properties }) => (Properties as { PermissionsBoundary?: string }).PermissionsBoundary)).toEqual(
      Array(DEPLOYED.length + 1).fill(boundary),
    );
  });

  test("readTags reads NAME=VALUE pairs, and refuses other texts and names that start with aws:", async () => {
    const tags = (text: string) => readTags(async () => text);
    expect(await tags("team=platform,cost-center=4=2")).toEqual({ team: "platform", "cost-center": "4=2" });
    expect(await tags("")).toEqual({});
    await expect(tags("team")).rejects.toThrow('--param tags has "team": write NAME=VALUE');
    await expect(tags("aws:x=y")).rejects.toThrow("--param tags has");
  });
});

test("only --param ordered-sets=true adds a schedule for the ordered-set function", async () => {
  const resources = async (parameters: Readonly<Record<string, string>>) =>
    (template(await settings(parameters)) as { Resources: Record<string, object> }).Resources;
  const { OrderedSetSchedule, OrderedSetInvocation, TickErrors } = await resources({ "ordered-sets": "true" });
  expect(JSON.stringify([OrderedSetSchedule, TickErrors])).toContain("OrderedDashsetLambdaFunction");
  expect(JSON.stringify(TickErrors)).toContain("sidecarset-test-ordered-set");
  expect(OrderedSetInvocation).toMatchObject({ Properties: { MaximumRetryAttempts: 0 } });
  expect(Object.keys(await resources({}))).not.toContain("OrderedSetSchedule");
  await expect(settings({ "ordered-sets": "yes" })).rejects.toThrow("neither true nor false");
});

describe("--param domain-name:", () => {
  const DOMAIN = {
    "domain-name": "webhooks.example.com",
    "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
    "function-urls": "false",
  };
  const MUTUAL = {
    ...DOMAIN,
    truststore: "s3://trust/clients.pem",
    authentication: "client-certificate",
    "client-names": "kube-apiserver",
  };
  type Resources = Record<string, { readonly Type: string; readonly Properties: Record<string, unknown> }>;
  const resourcesOf = async (parameters: Readonly<Record<string, string>>) =>
    (template(await settings(parameters)) as { Resources: Resources }).Resources;
  const routesOf = (resources: Resources) =>
    Object.values(resources).flatMap(({ Type, Properties }) =>
      Type === "AWS::ApiGatewayV2::Route" ? String(Properties["RouteKey"]) : [],
    );

  test("with a truststore the domain requires mutual TLS, and the API has no second address", async () => {
    const resources = await resourcesOf(MUTUAL);
    expect(resources["WebhookApi"]?.Properties).toMatchObject({ DisableExecuteApiEndpoint: true });
    expect(resources["WebhookDomain"]?.Properties).toMatchObject({
      DomainName: "webhooks.example.com",
      DomainNameConfigurations: [{ SecurityPolicy: "TLS_1_2" }],
      MutualTlsAuthentication: { TruststoreUri: "s3://trust/clients.pem" },
    });
  });

  test("the domain has a route for every path except conversions, with a secret only for callers that use one", async () => {
    const paths = [...Object.values(WEBHOOK_PATHS), ANNOUNCE_SIDECARSET_PATH].filter(
      (path) => typeof path === "string" && path !== WEBHOOK_PATHS.CONVERT_PATH,
    );
    expect(paths.length).toBeGreaterThan(8);
    expect(routesOf(await resourcesOf(MUTUAL)).toSorted()).toEqual(paths.map((path) => `POST ${path}`).toSorted());
    const secret = routesOf(await resourcesOf(DOMAIN)).toSorted();
    expect(secret).toEqual(paths.map((path) => `POST /s/{secret}${path}`).toSorted());
  });

  test("the access log of the API contains no path, and only the API may call the functions", async () => {
    const resources = await resourcesOf(MUTUAL);
    expect(JSON.stringify(resources["WebhookApiStage"])).not.toMatch(/context\.path|resourcePath/);
    const permissions = Object.values(resources).filter(({ Type }) => Type === "AWS::Lambda::Permission");
    expect(permissions).toHaveLength(3);
    for (const { Properties } of permissions) expect(JSON.stringify(Properties["SourceArn"])).toContain("WebhookApi");
  });

  test("--param requests-per-second limits the requests of the domain, with twice as many in a burst", async () => {
    const stage = async (parameters: Readonly<Record<string, string>>) =>
      (await resourcesOf({ ...DOMAIN, ...parameters }))["WebhookApiStage"]?.Properties["DefaultRouteSettings"];
    expect(await stage({ "requests-per-second": "500" })).toEqual({
      ThrottlingRateLimit: 500,
      ThrottlingBurstLimit: 1_000,
    });
    expect(await stage({})).toBeUndefined();
  });

  test("without --param domain-name the template has no API Gateway", async () => {
    expect(JSON.stringify(await resourcesOf({}))).not.toContain("ApiGateway");
  });

  test.each([
    ["a domain without its certificate", { "domain-name": "x.example.com" }, "go together"],
    [
      "a domain whose certificate is not of Certificate Manager",
      { ...DOMAIN, "domain-certificate": "x.pem" },
      "Certificate Manager",
    ],
    ["a domain with --param function-urls=true", { ...MUTUAL, "function-urls": "true" }, "function-urls=false"],
    ["a domain without --param function-urls=false", { ...MUTUAL, "function-urls": "" }, "function-urls=false"],
    [
      "a domain for client certificates without a truststore",
      { ...MUTUAL, truststore: "" },
      "needs --param truststore",
    ],
    ["a domain whose truststore is not an object in S3", { ...MUTUAL, truststore: "clients.pem" }, "s3://BUCKET/KEY"],
    [
      "a domain with --param truststore-version and no truststore",
      { ...DOMAIN, "truststore-version": "1" },
      "needs --param truststore",
    ],
    ["a truststore without a domain", { truststore: "s3://trust/clients.pem" }, "go together"],
  ])("%s is refused", async (_, parameters, message) => {
    await expect(settings(parameters)).rejects.toThrow(message);
  });
});

test("alarms of the tier page notify --param alarm-topic, and the others --param ticket-topic", async () => {
  const [pages, tickets] = ["pages", "tickets"].map((name) => `arn:aws:sns:eu-central-1:123456789012:${name}`);
  const given = await settings({ "alarm-topic": pages ?? "", "ticket-topic": tickets ?? "", "more-alarms": "true" });
  for (const alarm of Object.values(alarms(given))) {
    const { AlarmActions, AlarmDescription } = (alarm as { Properties: Record<string, unknown> }).Properties;
    expect(AlarmActions).toEqual([String(AlarmDescription).startsWith("page: ") ? pages : tickets]);
  }
});

test("--param alarm-above sets the thresholds of alarms about numbers that are too large, and of no others", async () => {
  const { PodErrors, PodThrottles } = alarms(await settings({ "alarm-above": "PodErrors=5, PodThrottles=0.5" }));
  expect([PodErrors, PodThrottles]).toMatchObject([
    { Properties: { Threshold: 5 } },
    { Properties: { Threshold: 0.5 } },
  ]);
  const { NoTicks } = alarms(await settings({}));
  expect(NoTicks).toMatchObject({ Properties: { Threshold: 1, ComparisonOperator: "LessThanThreshold" } });
  for (const name of ["NoTicks", "Other"]) {
    const other = await settings({ "alarm-above": `${name}=2` });
    expect(() => alarms(other)).toThrow(`--param alarm-above: ${name} is no alarm that has a threshold.`);
  }
});

test("--param monthly-budget makes a budget of the stack's costs that notifies the ticket topic", async () => {
  const topic = "arn:aws:sns:eu-central-1:123456789012:t";
  const { Budget } = alarms(await settings({ "monthly-budget": "50", "alarm-topic": topic }));
  expect(JSON.stringify(Budget)).toContain('"BudgetLimit":{"Amount":50,"Unit":"USD"}');
  expect(JSON.stringify(Budget)).toContain('"aws:cloudformation:stack-name$sidecarset-test"');
  expect(JSON.stringify(Budget)).toContain(`"Address":"${topic}"`);
  const untold = await settings({ "monthly-budget": "50" });
  expect(() => alarms(untold)).toThrow("--param monthly-budget needs --param ticket-topic or alarm-topic.");
});

test("a tick that fails goes into the queue of ticks, which its function may send to", async () => {
  const { Resources } = template(await settings({ "ordered-sets": "true" })) as { Resources: Record<string, object> };
  const queue = '{"Fn::GetAtt":["UndeliveredTicks","Arn"]}';
  for (const id of ["RolloutInvocation", "OrderedSetInvocation"])
    expect(JSON.stringify(Resources[id])).toContain(`"OnFailure":{"Destination":${queue}}`);
  for (const id of ["RolloutRole", "OrderedSetRole"])
    expect(JSON.stringify(Resources[id])).toContain(`"Action":"sqs:SendMessage","Resource":${queue}`);
});

test("--param log-key encrypts every log, and every alarm notifies the topic of --param alarm-topic", async () => {
  const [key, topic] = ["arn:aws:kms:eu-central-1:123456789012:key/k", "arn:aws:sns:eu-central-1:123456789012:t"];
  const given = await settings({ "log-key": key, "alarm-topic": topic });
  const { extensions } = template(given) as { extensions: Record<string, object> };
  expect(Object.values(extensions)).toEqual(DEPLOYED.map(() => ({ Properties: { KmsKeyId: key } })));
  const all = Object.values(alarms(given));
  expect(all.length).toBeGreaterThan(4);
  for (const alarm of all) expect(alarm).toMatchObject({ Properties: { AlarmActions: [topic] } });
  // A webhook without its cluster answers 500. Lambda counts no error, but the log has an error line.
  const filters = Object.entries(logFilters(given)).filter(([id]) => id.endsWith("ErrorFilter"));
  expect(filters.map(([id]) => id)).toEqual(
    ["MutateDashpod", "MutateDashsidecarset", "ValidateDashsidecarset", "ConvertDashsidecarset"].map(
      (name) => `${name}LogGroupErrorFilter`,
    ),
  );
  const logged = new Set(filters.map(([, one]) => /"MetricName":"(\w+)"/.exec(JSON.stringify(one))?.[1]));
  expect([...logged]).toEqual(["PodErrors", "SidecarSetErrors"]);
  for (const name of logged) expect(JSON.stringify(alarms(given)[name ?? ""])).toContain(`"MetricName":"${name}"`);
  // Most accounts have ten free alarm metrics.
  expect(countAlarmMetrics(given)).toBeLessThanOrEqual(10);
});

test("the price of the alarms in docs/deploy-costs.md fits the number of alarm metrics", async () => {
  const { cost } = JSON.parse(await readFile("test/bench/figures.json", "utf8"));
  expect(cost.measured.alarmMetrics).toBe(countAlarmMetrics(await settings({})));
  expect(cost.idleMonth.parts.alarms).toBeCloseTo(0.1 * cost.measured.alarmMetrics);
  expect(await readFile("docs/deploy-costs.md", "utf8")).toContain(
    `| alarms | $${cost.idleMonth.parts.alarms.toFixed(2)} |`,
  );
});

describe("errors of parameters:", () => {
  test.each<[Record<string, string>, string]>([
    [{ authentication: "password" }, "--param authentication=password is none of client-certificate, bearer-token"],
    [{ authentication: "bearer-token" }, "--param bearer-tokens is missing"],
    [{ "path-digests": "/mutate-pod" }, '--param path-digests has "/mutate-pod", which is not PATH=DIGEST'],
    [
      { "path-digests": `/mutate-pod=${"a".repeat(43)}`, "path-secrets": PATHS },
      "--param path-secrets and --param path-digests are both given",
    ],
    [{ "path-secrets": "hunter2" }, "--param path-secrets names no place of a secret"],
    [{ "path-secrets": "/etc/secrets" }, "--param path-secrets=/etc/secrets is a file, and a function has none"],
    [
      { "cluster-token": TOKENS, "cluster-server": "https://x", "cluster-ca": "Q0E=" },
      "--param cluster-token, webhooks-token and viewer-token go together",
    ],
    [
      { "cluster-token": TOKENS, "webhooks-token": READING, "cluster-server": "https://x", "cluster-ca": "Q0E=" },
      "dry runs by the third, as sidecarset-viewer",
    ],
    [{ "cluster-token": TOKENS }, "--param cluster-token needs --param cluster-server and --param cluster-ca"],
    [{ "cluster-server": "https://x" }, "--param cluster-server and --param cluster-ca go together"],
    [{ "eks-cluster": "shop", kubeconfig: "/opt/k" }, "eks-cluster, cluster-token and kubeconfig: give one of them"],
    [{ memory: "64" }, '--param memory: "64" is no whole number from 128 to 10240'],
    [{ memory: "rollout=big" }, '--param memory: "big" is no whole number from 128 to 10240'],
    [{ memory: "roll=512" }, '--param memory has "roll=512": write FUNCTION=NUMBER'],
    [{ "reserved-concurrency": "5" }, '--param reserved-concurrency has "5": write FUNCTION=NUMBER'],
    [{ "reserved-concurrency": "mutate-pod=0" }, '"0" is no whole number from 1 to 100000'],
    [
      { "reserved-concurrency": "rollout=1", "rollout-workers": "2" },
      "--param reserved-concurrency has rollout, of which --param rollout-workers says how many run",
    ],
    [
      { "requests-per-second": "5" },
      "--param requests-per-second needs an HTTP API, by --param http-api=true or domain-name",
    ],
    [{ "permissions-boundary": "x" }, "--param permissions-boundary=x is not the ARN that is wanted here"],
    [{ "function-key": "alias/x" }, "--param function-key=alias/x is not the ARN that is wanted here"],
    [{ "rollout-workers": "1" }, "--param rollout-workers=1 is no number from 2 to 1000"],
    [{ "rollout-workers": "many" }, "--param rollout-workers=many is no number from 2 to 1000"],
    [{ "alarm-above": "PodErrors" }, '--param alarm-above=PodErrors: "PodErrors" is not ALARM=NUMBER'],
    [{ "monthly-budget": "-1" }, "--param monthly-budget=-1 is no number of US dollars"],
    [{ "alarm-topic": "my-topic" }, "--param alarm-topic=my-topic is not the ARN that is wanted here"],
    [{ "log-key": "alias/x" }, "--param log-key=alias/x is not the ARN that is wanted here"],
    [{ site: "docs.example.com" }, "--param site=docs.example.com is not written as https://docs.example.com"],
    [{ "log-retention-days": "31" }, "--param log-retention-days=31 is none of 1, 3, 5,"],
    [{ subnets: "vpc-1", "security-groups": "sg-1" }, "--param subnets: vpc-1 is no id: write subnet-…"],
    [{ subnets: "subnet-1", "security-groups": "default" }, "--param security-groups: default is no id: write sg-…"],
    [{ "function-urls": "False" }, "--param function-urls=False is neither true nor false"],
    [{ subnets: "subnet-1" }, "--param subnets and --param security-groups go together"],
  ])("readSettings refuses %j", async (parameters, sentence) => {
    await expect(settings(parameters)).rejects.toThrow(sentence);
  });
});

describe("parameter names on the command line of osls:", () => {
  const read = new Set<string>();
  beforeAll(async () => {
    await readSettings("sidecarset", "test", async (name) => {
      read.add(name);
      return "";
    });
  });

  test("checkNames accepts the parameters of the settings, of serverless.yml and of the tags", () => {
    const given = ["deploy", "--param=canary=true", "--param", "alarm-topic=x=y", "--param=tags=a=b", "--stage", "x"];
    expect(() => checkNames([...given, "--param=namespace=kruise"], read)).not.toThrow();
  });

  test("checkNames refuses a parameter that is given twice", () => {
    expect(() => checkNames(["deploy", "--param=memory=512", "--param", "memory=1769"], read)).toThrow(
      "--param memory is given more than once: write it once; lists have commas between their values.",
    );
  });

  test.each([["--param=canari=true"], ["--param", "canari=true"], ['--param="canari=true"']])(
    "checkNames suggests canary for the misspelt parameter canari (case %#)",
    (...given) => {
      expect(() => checkNames(["deploy", ...given], read)).toThrow(
        "--param canari: there is no such parameter, perhaps canary; docs/deploy-parameters.md lists them.",
      );
    },
  );
});

test("deploy:all accepts an unknown parameter only if the last deployment had it and it is now empty", async () => {
  const place = { stage: "prod", region: "eu-central-1" };
  const parameters = new Map([
    ["newer", ""],
    ["eks-cluster", "demo"],
  ]);
  await expect(checkParameters(parameters, place, ["newer"])).resolves.toMatchObject({ eksCluster: "demo" });
  await expect(checkParameters(parameters, place)).rejects.toThrow("--param newer: there is no such parameter");
});

describe("the output Parameters of the stack:", () => {
  async function lastOf(parameters: Readonly<Record<string, string>>) {
    const { Outputs } = template(await settings(parameters)) as { Outputs: { Parameters: { Value: string } } };
    return lastGiven({ outputs: new Map([["Parameters", Outputs.Parameters.Value]]) });
  }

  test("the output has the given parameters, without the cluster's address and with … for a long value", async () => {
    const found = { "eks-cluster": "demo", "cluster-server": "https://x", "cluster-ca": "eA==" };
    const given = { namespace: "sidecars", "log-level": "warn", tags: "team=web", memory: "1769", "more-alarms": "" };
    const labels = Array.from({ length: 50 }, (_, index) => `name-${index}=value`).join(",");
    expect(await lastOf({ ...found, ...given, canary: "true", "canary-labels": labels })).toEqual({
      namespace: "sidecars",
      "log-level": "warn",
      tags: "team=web",
      memory: "1769",
      canary: "true",
      "canary-labels": "…",
      "eks-cluster": "demo",
    });
  });

  test("lastGiven returns no parameters for a stack without parameters or of an earlier release", async () => {
    expect(await lastOf({})).toEqual({});
    expect(lastGiven({ outputs: new Map() })).toEqual({});
  });
});

test("one environment of mutate-pod is pinged every five minutes, through its alias if it has one, unless keep-warm is false", async () => {
  const pingOf = async (parameters: Readonly<Record<string, string>>) => {
    const { Resources } = template(await settings(parameters)) as { Resources: Record<string, { Properties: object }> };
    return Resources["KeepWarm"]?.Properties;
  };
  expect(await pingOf({})).toMatchObject({
    ScheduleExpression: "rate(5 minutes)",
    Target: { Arn: { "Fn::GetAtt": ["MutateDashpodLambdaFunction", "Arn"] }, Input: '{"keepWarm":true}' },
  });
  expect(await pingOf({ canary: "true" })).toMatchObject({ Target: { Arn: { Ref: "MutateDashpodLambdaAlias" } } });
  expect(await pingOf({ "keep-warm": "false" })).toBeUndefined();
});

test("a ping that failed is not repeated, whichever version of mutate-pod it calls", async () => {
  const onceOf = async (parameters: Readonly<Record<string, string>>) => {
    const { Resources } = template(await settings(parameters)) as { Resources: Record<string, { Properties: object }> };
    return Resources["KeepWarmInvocation"];
  };
  const once = { FunctionName: { Ref: "MutateDashpodLambdaFunction" }, MaximumRetryAttempts: 0 };
  expect(await onceOf({})).toMatchObject({ Properties: { ...once, Qualifier: "$LATEST" } });
  expect(await onceOf({ canary: "true" })).toMatchObject({
    DependsOn: "MutateDashpodLambdaAlias",
    Properties: { ...once, Qualifier: "live" },
  });
  expect(await onceOf({ "keep-warm": "false" })).toBeUndefined();
});
