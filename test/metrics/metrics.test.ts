/** Tests the metrics of passes and webhooks, and that dashboards show only existing metrics. */
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { request as requestTls } from "node:https";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createMetrics, serveMetrics } from "../../functions/server/metrics.ts";
import { startServer } from "../../functions/server/serve.ts";
import { dashboardFiles, withMetricsTable } from "../../infra/dashboards/generate.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { RolloutVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { embeddedMetrics, PASS_METRICS, prometheusName, SIDECARSET_METRICS } from "../../shared/metrics/catalogue.ts";
import { readEmbedsMetrics } from "../../shared/settings/config.ts";
import { deploy } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";

let served: ServedCluster;
let server: Awaited<ReturnType<typeof startServer>>;
const reports: PassReport[] = [];
beforeAll(async () => {
  served = await startServedCluster();
  const { kubeconfig, authentication, tls } = served;
  const { tlsCert, tlsKey } = tls;
  const address = { host: "127.0.0.1", port: 0, metricsPort: 0, tlsCert, tlsKey };
  const onReport = (report: PassReport) => reports.push(report);
  server = await startServer({ kubeconfig, authentication, ...address, tickMs: 200, onReport });
});
afterAll(async () => {
  await server?.close();
  await served?.close();
});

function get(path: string): Promise<{ readonly code: number; readonly type: string; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`http://127.0.0.1:${server.metricsPort}${path}`, (incoming) => {
      let body = "";
      incoming.setEncoding("utf8").on("data", (chunk) => {
        body += chunk;
      });
      const type = String(incoming.headers["content-type"]);
      incoming.on("end", () => resolve({ code: incoming.statusCode ?? 0, type, body }));
    });
    outgoing.on("error", reject).end();
  });
}

const namesIn = (text: string) => new Set([...text.matchAll(/\bsidecarset_[a-z_]+/g)].map(([name]) => name));
const told = (metrics: readonly { readonly name: string }[]) => metrics.map(({ name }) => name);

describe("the metrics server of serve:", () => {
  test("serve prints every metric that the Grafana dashboard shows, and the label that its variable filters by", async () => {
    await deploy(served.client, "told", 0, {});
    await new Promise<void>((resolve, reject) => {
      const url = `https://127.0.0.1:${server.port}/healthz`;
      const outgoing = requestTls(url, { ca: served.tls.certificate }, (incoming) => {
        incoming.resume().on("end", resolve);
      });
      outgoing.on("error", reject).end();
    });
    // The other server may work on the same SidecarSet. A pass here then ends before it has a state.
    const { code, type, body } = await vi.waitFor(async () => {
      const answer = await get("/metrics");
      expect(answer.body).toMatch(/^sidecarset_state\{.*"told"/m);
      return answer;
    }, PATIENT);
    expect([code, type]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    const shown = namesIn(await readFile("infra/dashboards/grafana.json", "utf8"));
    expect(shown.size).toBeGreaterThan(15);
    const known = namesIn(body);
    expect([...shown].filter((name) => !known.has(name))).toEqual([]);

    const dashboard = JSON.parse(await readFile("infra/dashboards/grafana.json", "utf8"));
    const expressions: readonly string[] = dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
      targets.map(({ expr }) => expr),
    );
    const hasLabel = (name: string) => new RegExp(`^${name}\\{[^}]*sidecarset="told"`, "m").test(body);
    const filtered = (name: string) =>
      expressions.every((one) => !new RegExp(`\\b${name}\\b(?!\\{sidecarset=~"\\$sidecarset"\\})`).test(one));
    const withLabel = [...shown].filter(hasLabel);
    expect(withLabel.length).toBeGreaterThan(8);
    expect([...shown].filter((name) => filtered(name) !== hasLabel(name))).toEqual([]);
    const { query } = dashboard.templating.list.find(({ name }: { name: string }) => name === "sidecarset");
    const [, values = ""] = /^label_values\((\w+), sidecarset\)$/.exec(query.query) ?? [];
    expect(withLabel).toContain(values);
    for (const line of body.trimEnd().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+)$/);
  });

  test("the metrics server answers 404 to other paths, needs no secret and prints none", async () => {
    expect((await get("/healthz")).code).toBe(404);
    expect((await get("/metrics")).body).not.toContain(served.pathSecret);
  });
});

describe("metrics of requests:", () => {
  test("the counter of requests has a label for the webhook and never the secret of a path", async () => {
    const { metered, metrics, server: own } = await serveMetrics(0, "127.0.0.1");
    const app = metered(async () => ({ status: 200, headers: {}, body: "" }));
    const secret = "s3cret".padEnd(43, "x");
    const paths = [
      "/mutate-pod",
      `/s/${secret}/convert`,
      "/healthz",
      "/ui",
      `/s/${secret}/ui/agent/pods/shop/web-0`,
      "/any/thing",
    ];
    for (const path of paths) await app({ method: "POST", path, headers: {} } as never);
    await own.close();
    const labels = [...metrics.text().matchAll(/requests_total\{webhook="([^"]*)"/g)].map(([, name]) => name);
    expect(labels).toEqual(["mutate-pod", "convert", "healthz", "page", "none"]);
    expect(metrics.text()).toContain('sidecarset_webhook_requests_total{webhook="page",code="200"} 2\n');
    expect(metrics.text()).not.toContain("s3cret");
  });
});

describe("CloudWatch metrics in the log:", () => {
  test("log lines have every metric that the CloudWatch dashboard shows", async () => {
    const report = reports.find(({ sidecarSets }) => sidecarSets.length > 0);
    const [ofPass = {}, ofSet = {}] = embeddedMetrics(report as PassReport, 1_000);
    expect(ofSet).toMatchObject({ SidecarSet: "told", MatchedPods: 0, MissedPods: 0 });
    const dashboard = await readFile("infra/dashboards/cloudwatch.json", "utf8");
    const shown = [
      ...[...dashboard.matchAll(/"SidecarSet",\s+"(\w+)"/g)].map(([, name]) => name),
      ...[...dashboard.matchAll(/MetricName=\\"(\w+)\\"/g)].map(([, name]) => name),
    ];
    expect(shown.length).toBeGreaterThan(10);
    expect(shown.filter((name) => !((name ?? "") in { ...ofPass, ...ofSet }))).toEqual([]);
  });

  test("a log line of a pass lists its metrics for CloudWatch", () => {
    const [line] = embeddedMetrics({ ...(reports[0] as PassReport), durationMs: 1_500 }, 1_000);
    expect(line).toMatchObject({ PassDuration: 1.5, Passes: 1, FailedPasses: 0 });
    const directive = { Namespace: "SidecarSet", Dimensions: [[]] };
    expect(line?.["_aws"]).toMatchObject({ Timestamp: 1_000, CloudWatchMetrics: [directive] });
  });

  test("the stage and the cluster are dimensions of the CloudWatch metrics", () => {
    const [line] = embeddedMetrics({ ...(reports[0] as PassReport), sidecarSets: [] }, 0, {
      stage: "prod",
      cluster: "a",
    });
    const directives = [{ Dimensions: [["Stage", "Cluster"]] }];
    expect(line).toMatchObject({ Stage: "prod", Cluster: "a", _aws: { CloudWatchMetrics: directives } });
  });

  test("only METRICS=cloudwatch turns on the metrics in the log", () => {
    expect([readEmbedsMetrics({}), readEmbedsMetrics({ METRICS: "cloudwatch" })]).toEqual([false, true]);
    expect(() => readEmbedsMetrics({ METRICS: "yes" })).toThrow("METRICS=yes is not cloudwatch");
  });
});

describe("Prometheus metrics:", () => {
  const report = (names: readonly string[], rest: Partial<PassReport> = {}): PassReport => ({
    startedAt: "",
    durationMs: 2_000,
    isDryRun: false,
    problems: [],
    notReached: [],
    unread: [],
    calls: { "PATCH pods": 2, "LIST pods": 1 },
    ...rest,
    sidecarSets: names.map((name) => ({
      name,
      stop: "settled",
      why: "",
      tally: { rounds: 1, batches: 1, upgraded: 2, flipped: 0, fenced: 0, conflicts: 0, restarts: 0, problems: [] },
      missed: { count: 3, recent: 0, pods: [] },
    })),
  });

  test("gauges of SidecarSets disappear when another replica makes the passes, and counters stay", () => {
    const metrics = createMetrics();
    metrics.addPass(report(["a"]), 10_000);
    expect(metrics.text()).toContain('sidecarset_missed_pods{sidecarset="a"} 3\n');
    metrics.addPass(report([], { heldBy: "other" }), 12_000);
    expect(metrics.text()).not.toContain("sidecarset_missed_pods{");
    expect(metrics.text()).toContain('sidecarset_upgraded_pods_total{sidecarset="a"} 2\n');
  });

  test("the metrics include every metric that the chart's alerts read", async () => {
    const chart = await readFile("infra/helm/sidecarset/templates/metrics.yaml", "utf8");
    const asked = [...chart.matchAll(/expr: (.*)/g)].flatMap(([, expr = ""]) => [...namesIn(expr)]);
    const metrics = createMetrics();
    const { sidecarSets, ...rest } = report(["a"]);
    metrics.addPass({ ...rest, sidecarSets: sidecarSets.map((one) => ({ ...one, state: "Blocked" })) }, 10_000);
    metrics.addRequest("/mutate-pod", 500, 0.1);
    const known = namesIn(metrics.text());
    expect(asked.length).toBeGreaterThanOrEqual(5);
    expect(asked.filter((name) => !known.has(name))).toEqual([]);
  });

  test("counters add up over passes, and gauges show the last pass", () => {
    const metrics = createMetrics();
    metrics.addPass(report(["a"]), 10_000);
    metrics.addPass(report(["a"]), 12_000);
    const text = metrics.text();
    expect(text).toContain('sidecarset_upgraded_pods_total{sidecarset="a"} 4\n');
    expect(text).toContain("sidecarset_api_calls_total 6\n");
    expect(text).toContain('sidecarset_missed_pods{sidecarset="a"} 3\n');
    expect(text).toContain("sidecarset_last_pass_timestamp_seconds 12\n");
    expect(text).toContain("# TYPE sidecarset_upgraded_pods_total counter\n");
  });

  test("the metrics show the last state of a SidecarSet as a label, and whether the state is a problem", () => {
    const metrics = createMetrics();
    const standing = (state: RolloutVerdict, names = ["a", "b"]) => {
      const { sidecarSets, ...rest } = report(names);
      return { ...rest, sidecarSets: sidecarSets.map((one) => ({ ...one, state })) };
    };
    metrics.addPass(standing("Updating"), 0);
    metrics.addPass(standing("Blocked", ["a"]), 0);
    const lines = metrics
      .text()
      .split("\n")
      .filter((line) => /^sidecarset_(?:state|in_trouble)\{/.test(line));
    expect(lines).toEqual([
      'sidecarset_state{sidecarset="a",state="Blocked"} 1',
      'sidecarset_in_trouble{sidecarset="a"} 1',
    ]);
    const [, ofSet] = embeddedMetrics(standing("Blocked", ["a"]), 0);
    expect(ofSet).toMatchObject({ SidecarSet: "a", State: "Blocked", InTrouble: 1 });
    expect(JSON.stringify(ofSet?.["_aws"])).not.toContain("State");
  });

  test("the state carries the cause that holds the rollout, also the cause of a pass that failed and knows no state", () => {
    const metrics = createMetrics();
    const { sidecarSets, ...rest } = report(["a"]);
    const of = (fields: object) => ({ ...rest, sidecarSets: sidecarSets.map((one) => ({ ...one, ...fields })) });
    metrics.addPass(of({ state: "Updating", cause: "NextInLine" }), 0);
    metrics.addPass(of({ stop: "failed", cause: "PassRefused" }), 0);
    expect(metrics.text()).toContain('sidecarset_state{sidecarset="a",state="Updating",cause="PassRefused"} 1\n');
    const [, ofSet] = embeddedMetrics(of({ stop: "failed", cause: "PassRefused" }), 0);
    expect(ofSet).toMatchObject({ SidecarSet: "a", Cause: "PassRefused" });
    expect(JSON.stringify(ofSet?.["_aws"])).not.toContain("Cause");
  });

  test("docs/metrics.md has the current price of the CloudWatch metrics", async () => {
    const page = await readFile("docs/metrics.md", "utf8");
    const [each, ofPasses] = [SIDECARSET_METRICS.length, PASS_METRICS.length];
    const month = (sets: number) => Math.round((ofPasses + each * sets) * 0.3);
    expect(page).toContain(
      `CloudWatch charges $0.30 a month for each metric: ${ofPasses} for passes and ${each} for each SidecarSet, so about $${month(1)} a month with one and $${month(10)} with ten.`,
    );
  });

  test("the metrics of a deleted SidecarSet disappear, and the metrics of an unreached SidecarSet stay", () => {
    const metrics = createMetrics();
    metrics.addPass(report(["a", "b", "c"]), 0);
    metrics.addPass(report(["a"], { notReached: ["b"] }), 0);
    metrics.addPass(report([], { failure: "nobody answers" }), 0);
    expect(
      ["a", "b", "c"].map((name) => metrics.text().includes(`sidecarset_missed_pods{sidecarset="${name}"}`)),
    ).toEqual([true, true, false]);
  });

  test("a request counts in every bucket that is at least as long as the request", () => {
    const metrics = createMetrics();
    metrics.addRequest("mutate-pod", 200, 0.004);
    metrics.addRequest("mutate-pod", 500, 20);
    const text = metrics.text();
    expect(text).toContain('_requests_total{webhook="mutate-pod",code="500"} 1\n');
    expect(text).toContain('_bucket{webhook="mutate-pod",le="0.0025"} 0\n');
    expect(text).toContain('_bucket{webhook="mutate-pod",le="0.005"} 1\n');
    expect(text).toContain('_bucket{webhook="mutate-pod",le="+Inf"} 2\n');
    expect(text).toContain('_count{webhook="mutate-pod"} 2\n');
  });

  test("metric names are unique, and label values are escaped", () => {
    const names = [...SIDECARSET_METRICS, ...PASS_METRICS].map(prometheusName);
    expect(new Set(names).size).toBe(told(SIDECARSET_METRICS).length + told(PASS_METRICS).length);
    const metrics = createMetrics();
    metrics.addRequest('a"b\\c\nd', 200, 1);
    expect(metrics.text()).toContain('webhook="a\\"b\\\\c\\nd"');
  });
});

test("the checked-in dashboards and the table in docs/metrics.md fit the catalogue of metrics", async () => {
  const files = dashboardFiles();
  expect(files.size).toBe(2);
  for (const [path, content] of files) expect(await readFile(path, "utf8")).toBe(content);
  const document = await readFile("docs/metrics.md", "utf8");
  expect(withMetricsTable(document)).toBe(document);
  expect(document).toContain("- `sidecarset_missed_pods`: ");
});
