/** Tests that a deployment is refused if a function could not start with its parameters. */
import { describe, expect, it } from "vitest";
import { checkEnvironment } from "../../infra/aws/deploy/parameters.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { environmentOf } from "../../infra/aws/functions.ts";
import { readSettings } from "../../infra/aws/settings.ts";

const COMMON = { AWS_REGION: "eu-central-1", POD_NAMESPACE: "kruise-system", FEATURE_GATES: "", LOG_LEVEL: "info" };
const CA = Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64");
const SECRET = "arn:aws:ssm:eu-central-1:123456789012:parameter/token";
const TOKEN = {
  "cluster-server": "https://10.0.0.1:6443",
  "cluster-token": SECRET,
  "webhooks-token": SECRET,
  "viewer-token": SECRET,
};

/** Returns the sentence about the first function that is refused; undefined: all are accepted. */
async function refusal(
  parameters: Readonly<Record<string, string>>,
  common: Readonly<Record<string, string>> = {},
  isDeployed = true,
): Promise<string | undefined> {
  const settings = await readSettings("sidecarset", "prod", async (name) => parameters[name] ?? "");
  expect(DEPLOYED.length).toBeGreaterThanOrEqual(7);
  for (const deployed of DEPLOYED)
    try {
      checkEnvironment(deployed, environmentOf(deployed, settings), { common: { ...COMMON, ...common }, isDeployed });
    } catch (error) {
      return (error as Error).message;
    }
  return undefined;
}

describe("the check of the environment before a deployment:", () => {
  it.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>>, RegExp]>([
    ["a deployment without a cluster", {}, {}, /^no cluster is named, .*--param eks-cluster/],
    [
      "a freshness-ms with a unit",
      { "eks-cluster": "c", "freshness-ms": "1s" },
      {},
      /not a whole number of milliseconds.*--param freshness-ms/,
    ],
    [
      "an unknown feature gate",
      { "eks-cluster": "c" },
      { FEATURE_GATES: "Unknown=true" },
      /names Unknown.*--param feature-gates/,
    ],
    ["a log level without warnings", { "eks-cluster": "c" }, { LOG_LEVEL: "error" }, /log-level=error .*alarms count/],
    ["an unknown log level", { "eks-cluster": "c" }, { LOG_LEVEL: "loud" }, /LOG_LEVEL=loud.*--param log-level/],
    ["an invalid namespace", { "eks-cluster": "c" }, { POD_NAMESPACE: "Not_One" }, /--param namespace/],
    [
      "a certificate authority that is not a certificate",
      { ...TOKEN, "cluster-ca": "x" },
      {},
      /not a certificate.*--param cluster-ca/,
    ],
    [
      "a certificate authority that is too long",
      { ...TOKEN, "cluster-ca": Buffer.from(`-----BEGIN CERTIFICATE-----\n${"x".repeat(3_500)}`).toString("base64") },
      {},
      /would have \d+ bytes, and Lambda takes 4096: \d+ of them are --param cluster-ca/,
    ],
    ["a request limit that is not a number", { "eks-cluster": "c", "client-qps": "many" }, {}, /--param client-qps/],
    [
      "a keep-registration that is not true or false",
      { "eks-cluster": "c", "keep-registration": "yes" },
      {},
      /--param keep-registration/,
    ],
    ["an unknown kind of metrics", { "eks-cluster": "c", metrics: "statsd" }, {}, /METRICS=statsd.*--param metrics/],
    [
      "a Prometheus server over http",
      { "eks-cluster": "c", "prometheus-server": "http://mimir.example.com" },
      {},
      /--param prometheus-server/,
    ],
    [
      "a Prometheus token without a server",
      { "eks-cluster": "c", "prometheus-token": SECRET },
      {},
      /PROMETHEUS_SERVER/,
    ],
    [
      "an invalid address of a collector",
      { "eks-cluster": "c", "otlp-endpoint": "collector:4318" },
      {},
      /is no address of a collector.* \(OTEL_EXPORTER_OTLP_ENDPOINT is --param otlp-endpoint\)/,
    ],
    ["an invalid address of a gate", { "eks-cluster": "c", "gate-hosts": "http://x/" }, {}, /--param gate-hosts/],
    [
      "a deployment for client certificates without client names",
      { "eks-cluster": "c", authentication: "client-certificate" },
      {},
      /CLIENT_NAMES/,
    ],
  ])("%s is refused in one sentence", async (_, parameters, common, sentence) => {
    const said = await refusal(parameters, common);
    expect(said).toMatch(sentence);
    expect(said?.split("\n")).toHaveLength(1);
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ["a deployment with an EKS cluster", { "eks-cluster": "c" }],
    ["a deployment with the tokens and the address of a cluster", { ...TOKEN, "cluster-ca": CA }],
    ["a deployment with a kubeconfig in the package", { kubeconfig: "kubeconfig" }],
  ])("%s is accepted", async (_, parameters) => {
    expect(await refusal(parameters)).toBeUndefined();
  });

  it("a package without a deployment needs no cluster, but its other parameters are checked", async () => {
    expect(await refusal({}, {}, false)).toBeUndefined();
    expect(await refusal({ "freshness-ms": "1s" }, {}, false)).toContain("--param freshness-ms");
  });
});
