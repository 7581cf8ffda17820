/**
 * Each way in which a function can be down, as docs/deploy.md lists them: the deployed code in that state, and the alarm
 * that its log sets off. A webhook that answers with an error has not failed for Lambda, so the log is all there is.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { logReport } from "../../functions/lambda/rollout-log.ts";
import { alarms } from "../../infra/aws/alarms.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { PassReport, SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { natureOf, ROLLOUT_VERDICTS, type RolloutVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { createLog } from "../../shared/log.ts";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { DEFAULT_FEATURE_GATES } from "../../shared/settings/feature-gates.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import { clusterView } from "../../shared/webhook/view/cluster-view.ts";
import { countedBy, metricOf } from "../support/metric-filter.ts";

const SECRET = "s".repeat(43);
const OTHER = "o".repeat(43);
const REVIEW = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "u",
    operation: "CREATE",
    namespace: "shop",
    resource: { group: "", version: "v1", resource: "pods" },
    object: { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "shop" }, spec: { containers: [] } },
  },
});

let cluster: LocalCluster;
let throttling: Server;
beforeAll(async () => {
  cluster = await startLocalCluster();
  throttling = createServer((_, answer) => {
    answer.writeHead(400, { "content-type": "application/x-amz-json-1.1" });
    answer.end(JSON.stringify({ __type: "ThrottlingException" }));
  });
  await new Promise<void>((listening) => throttling.listen(0, "127.0.0.1", () => listening()));
});
afterAll(async () => {
  await cluster?.close();
  await new Promise<void>((closed) => throttling.close(() => closed()));
});

const settings = () => readSettings("sidecarset", "test", async () => "");

/** The filters of mutate-pod or rollout that count some of these lines, by the metric that they move. */
async function moved(ofFunction: "MutateDashpod" | "Rollout", lines: readonly object[]): Promise<readonly string[]> {
  const group = JSON.stringify({ Ref: `${ofFunction}LogGroup` });
  const own = Object.values(logFilters(await settings())).filter((filter) => JSON.stringify(filter).includes(group));
  expect(own.length).toBeGreaterThan(0);
  return own.filter((filter) => countedBy(filter, lines) > 0).map(metricOf);
}

interface Way {
  readonly server?: string;
  readonly token?: string;
  readonly pathSecrets?: string;
  readonly registered?: string;
}

/** What mutate-pod answers, and logs. */
async function admitted(way: Way) {
  const lines: object[] = [];
  const log = createLog("warn", (line) => void lines.push(JSON.parse(line)));
  const { server = cluster.url, token = cluster.token, pathSecrets, registered = SECRET } = way;
  const endpoint = `http://127.0.0.1:${(throttling.address() as AddressInfo).port}`;
  const digest = `/mutate-pod=${"x".repeat(43)}`;
  const callers = parseAuthentication({
    AUTHENTICATION: pathSecrets === undefined ? "insecure" : "secret-path",
    ...(pathSecrets?.startsWith("arn:") ? { PATH_SECRETS: pathSecrets } : { PATH_DIGESTS: pathSecrets ?? digest }),
  });
  const aws = () => ({ credentials: { accessKeyId: "AKIA", secretAccessKey: "x" }, endpoint });
  const { isKnown } = authenticator(callers, { aws, log: createLog("error", () => undefined), now: Date.now });
  const connect = async () =>
    connectCluster({ server, certificateAuthority: cluster.caCertificate, token: async () => token });
  const options = { kruiseNamespace: "kruise-system", freshnessMs: 0, featureGates: DEFAULT_FEATURE_GATES };
  const view = clusterView({ ...options, connect, now: Date.now });
  const app = webhookApp({ log, isKnown, admissions: { "/mutate-pod": podAdmission({ ...options, view }) } });
  const answer = await app({
    method: "POST",
    path: `/s/${pathSecretOf(registered, "/mutate-pod")}/mutate-pod`,
    query: "timeout=5s",
    headers: { "content-type": "application/json" },
    readBody: async () => REVIEW,
  });
  return { status: answer.status, body: answer.body, lines };
}

describe("mutate-pod", () => {
  const ARN = "arn:aws:ssm:eu-central-1:123456789012:parameter/secrets";
  const ways: readonly [what: string, way: () => Way, status: number, metric: string][] = [
    ["the API server is down", () => ({ server: "https://127.0.0.1:1" }), 500, "PodErrors"],
    ["its token is refused", () => ({ token: "of-yesterday" }), 500, "PodErrors"],
    ["SSM throttles", () => ({ pathSecrets: ARN }), 503, "PodErrors"],
    [
      "it was deployed with another secret than is registered",
      () => ({ pathSecrets: "digests", registered: OTHER }),
      401,
      "Attention",
    ],
  ];
  test.each(ways)("%s", async (_, way, status, metric) => {
    const { pathSecrets, ...rest } = way();
    const { pathDigestOf } = await import("../../shared/webhook/server/path-secret.ts");
    const digests = `/mutate-pod=${pathDigestOf(pathSecretOf(SECRET, "/mutate-pod"))}`;
    const secrets = pathSecrets === "digests" ? { pathSecrets: digests } : pathSecrets ? { pathSecrets } : {};
    const answer = await admitted({ ...rest, ...secrets });
    expect([answer.status, answer.body]).toEqual([status, expect.any(String)]);
    expect(await moved("MutateDashpod", answer.lines)).toEqual([metric]);
  });
});

describe("rollout", () => {
  const report = (sidecarSet: Partial<SidecarSetReport>): PassReport =>
    ({
      startedAt: "2026-11-26T00:00:00Z",
      durationMs: 1,
      isDryRun: false,
      problems: [],
      notReached: [],
      unread: [],
      calls: {},
      sidecarSets: [{ name: "logs", stop: "settled", why: "", tally: { problems: [] }, ...sidecarSet }],
    }) as unknown as PassReport;
  const linesOf = (given: PassReport) => {
    const lines: object[] = [];
    logReport(
      createLog("warn", (line) => void lines.push(JSON.parse(line))),
      given,
    );
    return lines;
  };

  test.each(ROLLOUT_VERDICTS.map((state) => [state]))("in state %s", async (state: RolloutVerdict) => {
    const isTrouble = natureOf(state).isTrouble === true;
    expect(await moved("Rollout", linesOf(report({ state })))).toEqual(isTrouble ? ["Attention"] : []);
  });

  test("missed pods, and SidecarSets that are too large to be read", async () => {
    expect(await moved("Rollout", linesOf(report({ missed: { count: 2, pods: [] } })))).toEqual(["MissedPods"]);
    expect(await moved("Rollout", linesOf({ ...report({}), unread: ["logs"] }))).toEqual(["Attention"]);
  });
});

test("every metric that a filter moves is watched by an alarm, and every alarm says what to think of it", async () => {
  const given = await settings();
  const watched = JSON.stringify(alarms(given));
  const metrics = new Set(Object.values(logFilters(given)).map(metricOf));
  expect([...metrics].toSorted()).toEqual(["Attention", "MissedPods", "PodErrors", "SidecarSetErrors"]);
  expect(alarms(given)["NeedsAttention"]).toMatchObject({ Properties: { EvaluationPeriods: 3, DatapointsToAlarm: 2 } });
  for (const metric of metrics) expect(watched).toContain(`"MetricName":"${metric}"`);
});
