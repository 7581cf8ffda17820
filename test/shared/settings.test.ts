/** Tests settings whose parser could be wrong unnoticed until a deployment: units, precedence, owners. */
import { expect, test } from "vitest";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { parseGateHosts } from "../../shared/settings/called-services.ts";
import { parseCluster } from "../../shared/settings/cluster-settings.ts";
import { clusterEnvironment, parseClusterTable } from "../../shared/settings/cluster-table.ts";
import { readAwsAccess, readConfig } from "../../shared/settings/config.ts";
import { parseTraceSettings } from "../../shared/settings/trace-settings.ts";

test("VIEW_FRESHNESS_MS may be exactly five minutes", () => {
  expect(readConfig({ VIEW_FRESHNESS_MS: "300000" }).freshnessMs).toBe(300_000);
});

test.each(["yes", "True", "1", "ture"])("KEEP_REGISTRATION=%s is refused", (value) => {
  expect(() => readConfig({ KEEP_REGISTRATION: value })).toThrow(
    `KEEP_REGISTRATION=${value} is neither true nor false.`,
  );
  expect(["true", "false", ""].map((flag) => readConfig({ KEEP_REGISTRATION: flag }).isKeepingRegistration)).toEqual([
    true,
    false,
    false,
  ]);
});

test("the region in the ARN of an EKS cluster wins over AWS_REGION", () => {
  const arn = "arn:aws:eks:us-east-1:123456789012:cluster/prod";
  const far = { kind: "eks", name: "prod", region: "us-east-1" };
  expect(parseCluster({ EKS_CLUSTER: arn, AWS_REGION: "eu-central-1" })).toEqual(far);
  expect(parseCluster({ EKS_CLUSTER: "prod", AWS_REGION: "us-east-1" })).toEqual(far);
});

test("credentials of AWS include the session token, with and without an endpoint", () => {
  const env = { AWS_ACCESS_KEY_ID: "AKIAEXAMPLE", AWS_SECRET_ACCESS_KEY: "key", AWS_SESSION_TOKEN: "session" };
  const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "key", sessionToken: "session" };
  expect(readAwsAccess(env)).toEqual({ credentials });
  const endpoint = "http://127.0.0.1:1";
  expect(readAwsAccess({ ...env, AWS_ENDPOINT_URL: endpoint })).toEqual({ credentials, endpoint });
});

test.each<[string, object]>([
  ["always_on", { share: 1, isParentIgnored: true }],
  ["parentbased_always_on", { share: 1, isParentIgnored: false }],
  ["always_off", { share: 0, isParentIgnored: true }],
  ["traceidratio", { share: 0.25, isParentIgnored: true }],
  ["parentbased_traceidratio", { share: 0.25, isParentIgnored: false }],
])("the sampler %s keeps a share of the traces, and only parentbased_ follows the caller", (sampler, settings) => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318",
    OTEL_TRACES_SAMPLER: sampler,
    OTEL_TRACES_SAMPLER_ARG: "0.25",
  };
  expect(parseTraceSettings(env)).toEqual(settings);
});

test("only =private allows a gate in a private network, also over http", () => {
  expect(parseGateHosts("http://a.example, https://b.example:8443=private, c.example")).toEqual([
    { origin: "http://a.example", isPrivate: false },
    { origin: "https://b.example:8443", isPrivate: true },
    { origin: "https://c.example", isPrivate: false },
  ]);
});

test("names of clients are read without the blanks around them", () => {
  const env = { AUTHENTICATION: "client-certificate", CLIENT_NAMES: " kube-apiserver ,, other" };
  expect(parseAuthentication(env).clientNames).toEqual(["kube-apiserver", "other"]);
});

test("each kind of function of a cluster in a table has its own token", () => {
  const own = { CLUSTER_TOKEN: "/writes", WEBHOOKS_TOKEN: "/webhooks", VIEWER_TOKEN: "/views" };
  const table = parseClusterTable("CLUSTERS", JSON.stringify({ eu: own }));
  const tokenOf = (use: "passes" | "webhooks" | "dry runs") =>
    clusterEnvironment(table, "eu", { env: {}, use })["CLUSTER_TOKEN"];
  expect([tokenOf("passes"), tokenOf("webhooks"), tokenOf("dry runs")]).toEqual(["/writes", "/webhooks", "/views"]);
});

test("a cluster with its own PATH_SECRETS or PATH_DIGESTS uses neither variable of the environment", () => {
  const env = { PATH_SECRETS: "/common", PATH_DIGESTS: "common" };
  const pathsOf = (own: Readonly<Record<string, string>>) => {
    const table = parseClusterTable("CLUSTERS", JSON.stringify({ eu: { EKS_CLUSTER: "eu", ...own } }));
    const { PATH_SECRETS, PATH_DIGESTS } = clusterEnvironment(table, "eu", { env, use: "webhooks" });
    return [PATH_SECRETS, PATH_DIGESTS];
  };
  expect(pathsOf({})).toEqual(["/common", "common"]);
  expect(pathsOf({ PATH_DIGESTS: "own" })).toEqual([undefined, "own"]);
  expect(pathsOf({ PATH_SECRETS: "/own" })).toEqual(["/own", undefined]);
});
