/**
 * Tests that each part of a template finds the parts that it needs, with every mix of parameters: filters for alarms,
 * permissions for calls.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readSettings } from "../../infra/aws/settings.ts";
import { template } from "../../infra/aws/template.ts";

type Parameters = Readonly<Record<string, string>>;
type Properties = Readonly<Record<string, unknown>>;
type Resources = Readonly<Record<string, { readonly Type: string; readonly Properties: Properties }>>;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "aws-wiring-"));
});
afterAll(() => rm(folder, { recursive: true }));

const secret = (name: string) => `arn:aws:ssm:eu-central-1:123456789012:parameter/${name}`;
const TOKENS = {
  CLUSTER_SERVER: "https://10.0.0.1:6443",
  CLUSTER_CA: Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64"),
  CLUSTER_TOKEN: secret("reconciler"),
  WEBHOOKS_TOKEN: secret("webhooks"),
  VIEWER_TOKEN: secret("viewer"),
};
const EKS = { EKS_CLUSTER: "shop" };

/** One cluster, or several, each with tokens, with roles of EKS, and with both. */
const CLUSTERS: Readonly<Record<string, Parameters | { readonly table: object }>> = {
  "one cluster by a role of EKS": { "eks-cluster": "shop" },
  "one cluster by tokens": {
    "cluster-server": TOKENS.CLUSTER_SERVER,
    "cluster-ca": TOKENS.CLUSTER_CA,
    "cluster-token": TOKENS.CLUSTER_TOKEN,
    "webhooks-token": TOKENS.WEBHOOKS_TOKEN,
    "viewer-token": TOKENS.VIEWER_TOKEN,
  },
  "clusters by roles of EKS": { table: { eu: EKS, us: EKS } },
  "clusters by tokens": { table: { one: TOKENS, two: TOKENS } },
  "clusters by roles and by tokens": { table: { eu: EKS, "on-prem": TOKENS } },
};
const API = { "function-urls": "false", "http-api": "true" };
const BALANCER = {
  "domain-name": "webhooks.example.com",
  "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
  "function-urls": "false",
  "load-balancer-subnets": "subnet-1,subnet-2",
  "load-balancer-security-groups": "sg-1",
};
const DOORS: readonly Parameters[] = [{}, API, BALANCER];
const FLAGS = ["canary", "more-alarms", "ordered-sets"];
const WORKERS = ["", "4"];

/** Every combination of front doors, flags and workers. */
const MIXES: readonly Parameters[] = DOORS.flatMap((door) =>
  WORKERS.flatMap((workers) =>
    Array.from({ length: 2 ** FLAGS.length }, (_, bits) => ({
      ...door,
      "rollout-workers": workers,
      ...Object.fromEntries(FLAGS.map((flag, index) => [flag, String((bits & (1 << index)) > 0)])),
    })),
  ),
);

async function templates(name: string): Promise<readonly (readonly [string, Resources])[]> {
  const { table, ...own } = { table: undefined, ...CLUSTERS[name] };
  const file = join(folder, `${name}.json`);
  await writeFile(file, JSON.stringify(table ?? {}));
  const all: (readonly [string, Resources])[] = [];
  for (const mix of MIXES) {
    const given: Parameters = { ...own, ...(table === undefined ? {} : { clusters: file }), ...mix };
    if (table !== undefined && given["canary"] === "true") continue; // several clusters cannot have a canary
    const settings = await readSettings("sidecarset", "test", async (one) => given[one] ?? "");
    const { Resources } = template(settings) as { readonly Resources: Resources };
    all.push([JSON.stringify(given), Resources]);
  }
  return all;
}

const ofType = (all: Resources, type: string): readonly Properties[] =>
  Object.values(all).flatMap(({ Type, Properties }) => (Type === type ? [Properties] : []));

interface Metric {
  readonly Namespace?: string;
  readonly MetricName?: string;
  readonly Dimensions?: readonly { readonly Name?: string; readonly Key?: string }[];
}
interface Alarm extends Metric {
  readonly Metrics?: readonly { readonly MetricStat?: { readonly Metric: Metric } }[];
}

const nameOf = ({ Namespace, MetricName, Dimensions = [] }: Metric) =>
  [Namespace, MetricName, ...Dimensions.map(({ Name, Key }) => Name ?? Key)].join(" ");

/** Returns the metrics that alarms read from the logs. AWS sends its own metrics without the template. */
function watchedIn(all: Resources): ReadonlySet<string> {
  const metrics = ofType(all, "AWS::CloudWatch::Alarm").flatMap((one) => {
    const { Metrics = [], ...alone } = one as Alarm;
    return [alone, ...Metrics.flatMap(({ MetricStat }) => MetricStat?.Metric ?? [])];
  });
  return new Set(metrics.map(nameOf).filter((name) => name.startsWith("sidecarset-test-logs ")));
}

function fedIn(all: Resources): ReadonlySet<string> {
  const made = ofType(all, "AWS::Logs::MetricFilter").flatMap(
    ({ MetricTransformations }) =>
      MetricTransformations as readonly { MetricNamespace: string; MetricName: string; Dimensions?: [] }[],
  );
  return new Set(made.map(({ MetricNamespace, ...metric }) => nameOf({ Namespace: MetricNamespace, ...metric })));
}

interface Statement {
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

/** True if a role may call the action on exactly this resource: a function's ARN does not cover its alias. */
function may(all: Resources, role: unknown, action: string, resource: unknown): boolean {
  const [id = ""] = (role as { readonly "Fn::GetAtt": readonly string[] })["Fn::GetAtt"];
  const { Policies = [] } = (all[id]?.Properties ?? {}) as {
    readonly Policies?: readonly { readonly PolicyDocument: { readonly Statement: readonly Statement[] } }[];
  };
  const statements = Policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
  return statements.some(
    ({ Action, Resource }) =>
      [Action].flat().includes(action) &&
      [Resource].flat().some((one) => JSON.stringify(one) === JSON.stringify(resource)),
  );
}

interface Target {
  readonly Arn: unknown;
  readonly RoleArn: unknown;
  readonly DeadLetterConfig?: { readonly Arn: unknown };
}

describe.each(Object.keys(CLUSTERS))("with %s,", (name) => {
  test("each alarm about a log has a filter that feeds it, and each filter feeds an alarm", async () => {
    for (const [given, all] of await templates(name)) {
      expect(watchedIn(all).size).toBeGreaterThan(0);
      expect([given, ...[...watchedIn(all)].sort()]).toEqual([given, ...[...fedIn(all)].sort()]);
    }
  });

  test("each schedule may call its target, or its alias, and may store undelivered calls", async () => {
    for (const [given, all] of await templates(name)) {
      const targets = ofType(all, "AWS::Scheduler::Schedule").map(({ Target }) => Target as Target);
      expect(targets.length).toBeGreaterThan(1);
      for (const { Arn, RoleArn, DeadLetterConfig } of targets) {
        expect([given, Arn, may(all, RoleArn, "lambda:InvokeFunction", Arn)]).toEqual([given, Arn, true]);
        if (DeadLetterConfig) expect(may(all, RoleArn, "sqs:SendMessage", DeadLetterConfig.Arn)).toBe(true);
      }
    }
  });

  test("each door may call its function, or its alias", async () => {
    for (const [given, all] of await templates(name)) {
      const permitted = ofType(all, "AWS::Lambda::Permission").map(({ FunctionName }) => JSON.stringify(FunctionName));
      const called = [
        ...ofType(all, "AWS::ApiGatewayV2::Integration").map(({ IntegrationUri }) => IntegrationUri),
        ...ofType(all, "AWS::ElasticLoadBalancingV2::TargetGroup").flatMap(({ Targets }) =>
          (Targets as readonly { readonly Id: unknown }[]).map(({ Id }) => Id),
        ),
      ];
      if (given.includes("function-urls")) expect(called.length).toBeGreaterThan(2);
      for (const one of called)
        expect([given, permitted]).toEqual([given, expect.arrayContaining([JSON.stringify(one)])]);
    }
  });
});
