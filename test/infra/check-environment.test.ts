/** Parameters with which a function would not start are refused before a deployment begins. */
import { describe, expect, it } from "vitest";
import { checkEnvironment } from "../../infra/aws/check-environment.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { environmentOf } from "../../infra/aws/functions.ts";
import { readSettings } from "../../infra/aws/settings.ts";

const COMMON = { AWS_REGION: "eu-central-1", POD_NAMESPACE: "kruise-system", FEATURE_GATES: "", LOG_LEVEL: "info" };
const CA = Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64");
const SECRET = "arn:aws:ssm:eu-central-1:123456789012:parameter/token";
const TOKEN = { "cluster-server": "https://10.0.0.1:6443", "cluster-token": SECRET, "webhooks-token": SECRET };

/** The sentence of the first function that is refused; undefined: all are taken. */
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

describe("before a deployment", () => {
  it.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>>, RegExp]>([
    ["no cluster", {}, {}, /^no cluster is named, .*--param eks-cluster/],
    [
      "a freshness with a unit",
      { "eks-cluster": "c", "freshness-ms": "1s" },
      {},
      /not a whole number of milliseconds.*--param freshness-ms/,
    ],
    [
      "an unknown gate",
      { "eks-cluster": "c" },
      { FEATURE_GATES: "Unknown=true" },
      /names Unknown.*--param feature-gates/,
    ],
    ["a level that there is not", { "eks-cluster": "c" }, { LOG_LEVEL: "loud" }, /LOG_LEVEL=loud.*--param log-level/],
    ["a namespace that is none", { "eks-cluster": "c" }, { POD_NAMESPACE: "Not_One" }, /--param namespace/],
    ["a CA that is none", { ...TOKEN, "cluster-ca": "x" }, {}, /not a certificate.*--param cluster-ca/],
    [
      "a CA that is too long",
      { ...TOKEN, "cluster-ca": Buffer.from(`-----BEGIN CERTIFICATE-----\n${"x".repeat(3_500)}`).toString("base64") },
      {},
      /would have \d+ bytes, and Lambda takes 4096: \d+ of them are --param cluster-ca/,
    ],
    ["limits that are no number", { "eks-cluster": "c", "client-qps": "many" }, {}, /--param client-qps/],
    ["a flag that is none", { "eks-cluster": "c", "keep-registration": "yes" }, {}, /--param keep-registration/],
    ["metrics for nobody", { "eks-cluster": "c", metrics: "statsd" }, {}, /METRICS=statsd.*--param metrics/],
    [
      "a server of metrics over http",
      { "eks-cluster": "c", "prometheus-server": "http://mimir.example.com" },
      {},
      /--param prometheus-server/,
    ],
    [
      "a token of metrics without its server",
      { "eks-cluster": "c", "prometheus-token": SECRET },
      {},
      /PROMETHEUS_SERVER/,
    ],
    [
      "an address of a collector that is none",
      { "eks-cluster": "c", "otlp-endpoint": "collector:4318" },
      {},
      /is no address of a collector.* \(OTEL_EXPORTER_OTLP_ENDPOINT is --param otlp-endpoint\)/,
    ],
    ["an address of a gate that is none", { "eks-cluster": "c", "gate-hosts": "http://x/" }, {}, /--param gate-hosts/],
    ["callers without names", { "eks-cluster": "c", authentication: "client-certificate" }, {}, /CLIENT_NAMES/],
  ])("%s is refused in a sentence", async (_, parameters, common, sentence) => {
    const said = await refusal(parameters, common);
    expect(said).toMatch(sentence);
    expect(said?.split("\n")).toHaveLength(1);
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ["an EKS cluster", { "eks-cluster": "c" }],
    ["a token", { ...TOKEN, "cluster-ca": CA }],
    ["a kubeconfig in the package", { kubeconfig: "kubeconfig" }],
  ])("%s is taken", async (_, parameters) => {
    expect(await refusal(parameters)).toBeUndefined();
  });

  it("a package may be looked at without a cluster", async () => {
    expect(await refusal({}, {}, false)).toBeUndefined();
    expect(await refusal({ "freshness-ms": "1s" }, {}, false)).toContain("--param freshness-ms");
  });
});
