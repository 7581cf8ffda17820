/**
 * Tests a deployment for several clusters: each function's part of the table, its rights, and the resources of each
 * cluster.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { alarms, countAlarmMetrics } from "../../infra/aws/alarms.ts";
import { parseStages } from "../../infra/aws/deploy/options.ts";
import { checkEnvironment } from "../../infra/aws/deploy/parameters.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { environmentOf, secretsOf } from "../../infra/aws/functions.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { template } from "../../infra/aws/template.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf } from "../../shared/webhook/server/path-secret.ts";

const COMMON = { AWS_REGION: "eu-central-1", POD_NAMESPACE: "kruise-system", FEATURE_GATES: "", LOG_LEVEL: "info" };
const CA = Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64");
const arn = (name: string) => `arn:aws:ssm:eu-central-1:123456789012:parameter/${name}`;
const TABLE_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:clusters-AbCdEf";
const US = "arn:aws:eks:us-east-1:123456789012:cluster/us-shop";
const ON_PREM = {
  CLUSTER_SERVER: "https://10.0.0.1:6443",
  CLUSTER_CA: CA,
  CLUSTER_TOKEN: arn("reconciler"),
  WEBHOOKS_TOKEN: arn("webhooks"),
  VIEWER_TOKEN: arn("viewer"),
  PATH_SECRETS: arn("on-prem-secrets"),
  CLIENT_QPS: "20",
};
const TABLE = { eu: { EKS_CLUSTER: "shop" }, us: { EKS_CLUSTER: US }, "on-prem": ON_PREM };

type Parameters = Readonly<Record<string, string>>;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "aws-clusters-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function settings(table: object | string, parameters: Parameters = {}) {
  const file = join(folder, "clusters.json");
  await writeFile(file, typeof table === "string" ? table : JSON.stringify(table));
  const given: Parameters = { clusters: file, ...parameters };
  return readSettings("sidecarset", "test", async (name) => given[name] ?? "");
}

/** Returns the packaged environments, as the functions' own parsers read them. */
async function packaged(table: object | string, parameters: Parameters = {}) {
  const given = await settings(table, parameters);
  const environments = DEPLOYED.map((deployed) => {
    const own = environmentOf(deployed, given);
    checkEnvironment(deployed, own, { common: COMMON, isDeployed: true, clusters: given.clusters });
    return [deployed.name, own as Parameters] as const;
  });
  const { Resources } = template(given) as { Resources: Readonly<Record<string, { readonly Properties: object }>> };
  return { given, Resources, environments: new Map(environments) };
}

const tableOf = (environment: Parameters | undefined): Readonly<Record<string, Parameters>> =>
  JSON.parse(environment?.["CLUSTERS"] ?? "");

/** Returns `count` EKS clusters, each with its own secret. */
function manyClusters(count: number) {
  const names = Array.from({ length: count }, (_, index) => `c${index}`);
  const eks = (name: string) => `arn:aws:eks:eu-central-1:123456789012:cluster/${name}`;
  return Object.fromEntries(
    names.map((name) => [name, { EKS_CLUSTER: eks(name), PATH_SECRETS: arn(`${name}/secrets`) }]),
  );
}

test("a table of clusters that is too large for a stack or for a policy is refused with the number, before anything is packaged", async () => {
  const from = { "clusters-from": TABLE_ARN };
  await expect(packaged(manyClusters(50), from)).resolves.toBeDefined();
  await expect(packaged(manyClusters(80), from)).rejects.toThrow(
    /--param clusters: the stack would have some [67]\d\d resources, and CloudFormation takes 500: share the 80 clusters out/,
  );
});

describe("the table of clusters of a function:", () => {
  test("the table of a function has only the settings of each cluster that the function needs", async () => {
    const { environments } = await packaged(TABLE);
    const ofCluster = (name: string) => tableOf(environments.get(name))["on-prem"];
    const { CLUSTER_SERVER, CLUSTER_TOKEN, PATH_SECRETS, CLIENT_QPS } = ON_PREM;
    const address = { CLUSTER_SERVER, CLUSTER_CA: CA };
    // Webhooks get the token that only reads, in the variable CLUSTER_TOKEN.
    expect(ofCluster("mutate-pod")).toEqual({ ...address, CLUSTER_TOKEN: arn("webhooks"), PATH_SECRETS });
    expect(ofCluster("convert-sidecarset")).toEqual({ CLUSTER_TOKEN: arn("webhooks"), PATH_SECRETS });
    expect(ofCluster("rollout")).toEqual({ ...address, CLUSTER_TOKEN, CLIENT_QPS });
    expect(ofCluster("dry-run")).toEqual({ ...address, VIEWER_TOKEN: arn("viewer"), CLIENT_QPS });
    for (const environment of environments.values())
      expect(tableOf(environment)).toMatchObject({ eu: TABLE.eu, us: TABLE.us });
  });

  test("the table of a webhook has the digests of its own paths, and each path starts with the cluster's name", async () => {
    const paths = [...new Set(DEPLOYED.flatMap(({ paths = [] }) => paths)), "/readyz"];
    const digests = (of: readonly string[]) => printPathDigests(pathDigestsOf(["new"], of));
    const below = paths.map((path) => `/clusters/eu${path}`);
    const table = (of: readonly string[]) => ({ eu: { EKS_CLUSTER: "shop", PATH_DIGESTS: digests(of) } });
    const { given, environments } = await packaged(table(below));
    const own = tableOf(environments.get("mutate-pod"))["eu"]?.["PATH_DIGESTS"] ?? "";
    expect(own.split(" ").map((entry) => entry.split("=")[0])).toEqual([
      "/clusters/eu/mutate-pod",
      "/clusters/eu/readyz",
    ]);
    expect(tableOf(environments.get("rollout"))["eu"]).toEqual({ EKS_CLUSTER: "shop" });
    expect(DEPLOYED.flatMap((deployed) => secretsOf(deployed, given))).toEqual([]);
    await expect(packaged(table(paths))).rejects.toThrow(
      "cluster eu: PATH_DIGESTS has none for /clusters/eu/mutate-pod: take what sidecarset path-secrets --digests --cluster eu",
    );
  });
});

test("a role may read only the secrets and EKS clusters that its function's table names", async () => {
  const { Resources } = await packaged(TABLE);
  const resourcesOf = (role: string, action: string) => {
    const text = JSON.stringify(Resources[role]);
    const statements = JSON.parse(/"Statement":(\[\{"Effect":"Allow","Action":\[.*?\])\}\}\]/.exec(text)?.[1] ?? "[]");
    return (statements as { readonly Action: unknown; readonly Resource: unknown }[])
      .filter(({ Action }) => Action === action)
      .flatMap(({ Resource }) => Resource);
  };
  const common = { "Fn::Sub": expect.stringContaining("parameter/sidecarset/test/path-secrets") };
  expect(resourcesOf("MutatePodRole", "ssm:GetParameter")).toEqual([common, arn("on-prem-secrets"), arn("webhooks")]);
  expect(resourcesOf("ConvertSidecarsetRole", "ssm:GetParameter")).toEqual([common, arn("on-prem-secrets")]);
  expect(resourcesOf("RolloutRole", "ssm:GetParameter")).toEqual([arn("reconciler")]);
  expect(resourcesOf("DryRunRole", "ssm:GetParameter")).toEqual([arn("viewer")]);
  expect(resourcesOf("RolloutRole", "eks:DescribeCluster")).toEqual([
    { "Fn::Sub": expect.stringMatching(/:cluster\/shop$/) },
    US,
  ]);
  const roles = Object.entries(Resources).filter(([id]) => id.endsWith("Role"));
  expect(roles).toHaveLength(DEPLOYED.length + 1);
  // The only wildcard is at the end of the role's own log streams.
  for (const [, role] of roles) expect(JSON.stringify(role).replaceAll(/log-group:[^"]*:\*/g, "")).not.toContain("*");
});

test("each cluster has its own schedule, and similar names of clusters do not collide", async () => {
  const clusters = { "a-b": TABLE.eu, adashb: TABLE.eu, ab: TABLE.eu };
  const { Resources } = await packaged(clusters, { "ordered-sets": "true" });
  const inputs = (prefix: string) =>
    Object.entries(Resources).flatMap(([id, { Properties }]) =>
      id.startsWith(`${prefix}Of`) ? [JSON.parse((Properties as { Target: { Input: string } }).Target.Input)] : [],
    );
  const scheduledTime = "<aws.scheduler.scheduled-time>";
  const wanted = Object.keys(clusters).map((cluster) => ({ cluster, scheduledTime }));
  expect(inputs("Schedule")).toEqual(wanted);
  expect(inputs("OrderedSetSchedule")).toEqual(wanted);
  expect(Resources).not.toHaveProperty("Schedule");
});

test("--param alarm-above may name the alarm of one cluster", async () => {
  const { Resources } = await packaged(TABLE, { "alarm-above": "PodErrorsOfOnDashprem=7,TickErrors=2" });
  const ids = ["PodErrorsOfOnDashprem", "PodErrors", "TickErrors", "TickErrorsOfOnDashprem"];
  expect(ids.map((id) => Resources[id]?.Properties)).toMatchObject([
    { Threshold: 7 },
    { Threshold: 0 },
    { Threshold: 2 },
    { Threshold: 0 },
  ]);
});

test("each cluster has its own alarms on the log lines that name the cluster", async () => {
  const { given, Resources } = await packaged(TABLE);
  const ofCluster = Object.keys(alarms(given)).filter((id) => id.endsWith("OfOnDashprem"));
  expect(ofCluster).toEqual(
    ["NoTicks", "PodErrors", "CallersRefused", "PodsMissed", "NeedsAttention", "TickErrors"].map(
      (id) => `${id}OfOnDashprem`,
    ),
  );
  for (const id of ofCluster) {
    const alarm = Resources[id]?.Properties;
    expect(alarm).toMatchObject({ AlarmDescription: expect.stringMatching(/^\w+: cluster on-prem: [a-z]/) });
    const [, metric] = /"MetricName":"(\w+)"/.exec(JSON.stringify(alarm)) ?? [];
    if (id.startsWith("NoTicks")) {
      expect(JSON.stringify(alarm)).toContain('"Value":{"Ref":"ScheduleGroupOfOnDashprem"}');
      expect(JSON.stringify(Resources)).toContain('"GroupName":{"Ref":"ScheduleGroupOfOnDashprem"}');
      continue;
    }
    expect(JSON.stringify(alarm)).toContain('"Dimensions":[{"Name":"Cluster","Value":"on-prem"}]');
    const filters = Object.values(logFilters(given)).map((filter) => JSON.stringify(filter));
    const byCluster = filters.filter(
      (filter) => filter.includes(`"${metric}"`) && filter.includes('[{"Key":"Cluster","Value":"$.cluster"}]'),
    );
    expect(byCluster.length, metric).toBeGreaterThan(0);
    // CloudWatch accepts a dimension only if the pattern matches nothing except its field.
    for (const filter of byCluster) expect(filter).toContain('"FilterPattern":"{ ($.cluster = \\"*\\") && (');
  }
  const alone = await readSettings("sidecarset", "test", async () => "");
  const { TokenEnds } = alarms(given);
  expect(TokenEnds).toBeDefined();
  expect(countAlarmMetrics(given) - countAlarmMetrics(alone)).toBe(6 * 3 + 1 + 1 - 1);
});

test("an HTTP API and a load balancer have only routes that start with the name of a cluster", async () => {
  const api = await packaged(TABLE, { "http-api": "true", "function-urls": "false" });
  const routes = JSON.stringify(api.Resources).match(/"RouteKey":"[^"]+"/g) ?? [];
  expect(routes).toContain('"RouteKey":"POST /clusters/{cluster}/s/{secret}/mutate-pod"');
  expect(routes.filter((route) => !route.includes("/clusters/"))).toEqual([]);
  const balanced = await packaged(TABLE, {
    "function-urls": "false",
    "domain-name": "webhooks.example.com",
    "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
    "load-balancer-subnets": "subnet-1,subnet-2",
    "load-balancer-security-groups": "sg-1",
  });
  const patterns = JSON.stringify(balanced.Resources).match(/"Values":\[[^\]]+\]/g) ?? [];
  expect(patterns.length).toBeGreaterThan(2);
  expect(patterns[0]).toBe('"Values":["/clusters/*/mutate-pod"]');
});

test("with --param clusters-from the functions read a large table from a secret", async () => {
  const many = Object.fromEntries(Array.from({ length: 53 }, (_, index) => [`c${index}`, { EKS_CLUSTER: US }]));
  await expect(packaged(many)).rejects.toThrow(
    /^the environment of mutate-pod would have \d+ bytes, and Lambda takes 4096: \d+ of them are --param clusters: keep that file in a secret/,
  );
  const { given, environments } = await packaged(many, { "clusters-from": TABLE_ARN });
  for (const environment of environments.values()) expect(environment["CLUSTERS"]).toBe(TABLE_ARN);
  for (const deployed of DEPLOYED) expect(secretsOf(deployed, given)).toContain(TABLE_ARN);
});

test("with bearer tokens each cluster needs its own BEARER_TOKENS, and the webhook for pods may read them", async () => {
  const table = {
    eu: { ...TABLE.eu, BEARER_TOKENS: arn("eu-tokens") },
    us: { ...TABLE.us, BEARER_TOKENS: arn("us-tokens") },
  };
  const { given } = await packaged(table, { authentication: "bearer-token" });
  const [pod] = DEPLOYED.filter(({ name }) => name === "mutate-pod").map((deployed) => secretsOf(deployed, given));
  expect(pod).toEqual([arn("eu-tokens"), arn("us-tokens")]);
  await expect(packaged(TABLE, { authentication: "bearer-token" })).rejects.toThrow("has no BEARER_TOKENS of its own");
});

describe("errors of --param clusters:", () => {
  test.each<[string, object | string, Parameters, string]>([
    ["a table that is not JSON", "eu: shop", {}, '--param clusters is no table: write JSON such as {"eu"'],
    ["a table without clusters", {}, {}, "--param clusters has 0 clusters"],
    ["an invalid name of a cluster", { "EU West": TABLE.eu }, {}, '--param clusters has the cluster "EU West"'],
    [
      "a misspelt setting of a cluster",
      { eu: { EKS_CLUSTR: "shop" } },
      {},
      "--param clusters, cluster eu: cluster eu has EKS_CLUSTR",
    ],
    ["a cluster without an address", { eu: { CLIENT_QPS: "1" } }, {}, "cluster eu says nothing of how it is reached"],
    [
      "a cluster with two addresses",
      { eu: { ...ON_PREM, EKS_CLUSTER: "shop" } },
      {},
      "EKS_CLUSTER and CLUSTER_TOKEN are both set",
    ],
    [
      "a cluster without the webhooks' token",
      { eu: { ...ON_PREM, WEBHOOKS_TOKEN: "" } },
      {},
      "cluster eu: CLUSTER_TOKEN, WEBHOOKS_TOKEN and VIEWER_TOKEN go",
    ],
    [
      "a cluster without the token of dry runs",
      { eu: { ...ON_PREM, VIEWER_TOKEN: "" } },
      {},
      "and dry runs by the third, as sidecarset-viewer",
    ],
    [
      "a file in place of a secret's ARN",
      { eu: { ...TABLE.eu, PATH_SECRETS: "/etc/s" } },
      {},
      "PATH_SECRETS=/etc/s is a file",
    ],
    [
      "a secret in place of its ARN",
      { eu: { ...TABLE.eu, PATH_SECRETS: "hunter2" } },
      {},
      "PATH_SECRETS names no place of a secret",
    ],
    [
      "a certificate authority that is not a certificate",
      { eu: { ...ON_PREM, CLUSTER_CA: "eA==" } },
      {},
      "cluster eu: CLUSTER_CA is not a certificate",
    ],
    [
      "a request limit that is not a number",
      { eu: { ...TABLE.eu, CLIENT_QPS: "many" } },
      {},
      "--param clusters, cluster eu: CLIENT_QPS=many",
    ],
    [
      "an unknown feature gate of a cluster",
      { eu: { ...TABLE.eu, FEATURE_GATES: "Un=true" } },
      {},
      "--param clusters, cluster eu: FEATURE_GATES",
    ],
    [
      "a table together with --param eks-cluster",
      TABLE,
      { "eks-cluster": "x" },
      "--param clusters and --param eks-cluster are both",
    ],
    [
      "a file that does not exist",
      TABLE,
      { clusters: "/none.json" },
      "--param clusters=/none.json cannot be read: there is no such file.",
    ],
    ["an ARN in place of the file", TABLE, { clusters: TABLE_ARN }, "is an ARN: give the table as a file"],
    [
      "--param clusters-from without --param clusters",
      TABLE,
      { clusters: "", "clusters-from": TABLE_ARN },
      "--param clusters-from needs --param clusters",
    ],
    [
      "a file in --param clusters-from",
      TABLE,
      { "clusters-from": "/x" },
      "--param clusters-from=/x is a file, and a function has none",
    ],
  ])("%s is refused in one sentence", async (_, table, parameters, sentence) => {
    const said = await packaged(table, parameters).then(
      () => "",
      (error: Error) => `${error.name}: ${error.message}`,
    );
    expect(said).toContain(sentence);
    expect(said).toMatch(/^ConfigError: [^\n]+$/);
  });

  test("deploy:all refuses --param clusters", () => {
    const args = ["--region", "eu-central-1", "--cluster", "shop", "--param", "clusters=clusters.json"];
    expect(() => parseStages(args, () => "")).toThrow("--param clusters takes steps that deploy:all does not know");
  });
});

describe("the concurrency of the account:", () => {
  const Canary = createRequire(import.meta.url)("../../infra/aws/canary/plugin.cjs");

  let askedAs: string | undefined;

  /** Returns what osls' plugin prints before it sends a template, in an account with this concurrency. */
  async function saidBefore(UnreservedConcurrentExecutions: number, table: object | undefined, profile?: string) {
    const given =
      table === undefined ? await readSettings("sidecarset", "test", async () => "") : await settings(table);
    const { Resources } = template(given) as { Resources: object };
    const server = createServer(({ headers }, answer) => {
      [, askedAs] = /Credential=(\w+)/.exec(headers.authorization ?? "") ?? [];
      answer.end(JSON.stringify({ AccountLimit: { UnreservedConcurrentExecutions } }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    vi.stubEnv("AWS_ENDPOINT_URL", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIA");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "x".repeat(40));
    const provider = { compiledCloudFormationTemplate: { Resources } };
    const aws = { getRegion: () => "eu-central-1", getProfile: () => profile };
    const { hooks } = new Canary({ service: { provider }, getProvider: () => aws });
    try {
      return (await hooks["before:aws:deploy:deploy:createStack"]().then(() => "", String)) as string;
    } finally {
      vi.unstubAllEnvs();
      server.closeAllConnections();
      server.close();
    }
  }

  const tableOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`c${index}`, { EKS_CLUSTER: `shop-${index}` }]));

  test("the deployment reads the account's limits with the profile that osls is given", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sidecarset-profile-"));
    const file = join(folder, "credentials");
    await writeFile(file, `[ops]\naws_access_key_id = OPSKEY\naws_secret_access_key = ${"y".repeat(40)}\n`);
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", file);
    await saidBefore(1_000, tableOf(6), "ops");
    expect(askedAs).toBe("OPSKEY");
    await saidBefore(1_000, tableOf(6));
    expect(askedAs).toBe("AKIA");
    await rm(folder, { recursive: true });
  });

  test("a table whose passes would leave no functions for webhooks is refused before anything is sent", async () => {
    expect(await saidBefore(10, tableOf(6))).toMatch(
      /^ConfigError: --param clusters: 6 passes a minute may run at the same time, .* this account may run 10 /,
    );
    expect(await saidBefore(10, tableOf(5))).toBe("");
    expect(await saidBefore(1_000, tableOf(40))).toBe("");
    expect(await saidBefore(1, undefined)).toBe("");
  });
});
