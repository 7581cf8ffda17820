/** Writes the dashboards that are checked in, and the table of metrics in docs/metrics.md: `node infra/dashboards/generate.ts`. */
import { readFile, writeFile } from "node:fs/promises";
import { NAMESPACE, PASS_METRICS, prometheusName, SIDECARSET_METRICS } from "../../shared/metrics/catalogue.ts";
import { DEPLOYED } from "../aws/deployed.ts";
import { functionName } from "../aws/names.ts";

interface Question {
  readonly title: string;
  /** names from the catalogue */
  readonly metrics: readonly string[];
}

const OF_SIDECARSETS: readonly Question[] = [
  {
    title: "Rollouts: pods that have the sidecars, the latest, and are ready",
    metrics: ["MatchedPods", "UpdatedPods", "UpdatedReadyPods"],
  },
  { title: "Rollouts that need attention", metrics: ["InTrouble"] },
  { title: "Unavailable pods, and how many may be", metrics: ["UnavailablePods", "MaxUnavailablePods"] },
  {
    title: "Pods that cannot be upgraded in place, or missed their sidecars",
    metrics: ["NotUpgradablePods", "MissedPods"],
  },
  { title: "Pods that were given new images, and writes that came too late", metrics: ["UpgradedPods", "Conflicts"] },
];

const OF_PASSES: readonly Question[] = [
  { title: "Passes, and what went wrong", metrics: ["Passes", "FailedPasses", "Problems", "NotReached"] },
  { title: "How long a pass takes", metrics: ["PassDuration"] },
  { title: "Calls to the API server", metrics: ["ApiCalls"] },
];

const ALL = [...SIDECARSET_METRICS, ...PASS_METRICS];
const WINDOW = "[5m]";

function prometheusQuery(
  name: string,
  legend: string,
  filter = "",
): { readonly expr: string; readonly legendFormat: string } {
  const metric = ALL.find((one) => one.name === name);
  if (metric === undefined) throw new Error(`there is no metric ${name}`);
  const own = prometheusName(metric);
  return {
    expr: metric.kind === "counter" ? `sum by (sidecarset) (increase(${own}${filter}${WINDOW}))` : `${own}${filter}`,
    legendFormat: legend,
  };
}

/** The SidecarSets that are chosen above the panels; at first all of them. */
const CHOSEN = '{sidecarset=~"$sidecarset"}';
const SIDECARSET_VARIABLE = {
  name: "sidecarset",
  type: "query",
  label: "SidecarSet",
  datasource: { type: "prometheus", uid: "$datasource" },
  query: { query: "label_values(sidecarset_matched_pods, sidecarset)", refId: "sidecarset" },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  allValue: ".*",
  current: { selected: true, text: "All", value: "$__all" },
};

const STATE_PANEL = {
  title: "Where each rollout stands",
  targets: [{ expr: `sidecarset_state${CHOSEN}`, legendFormat: "{{sidecarset}} {{state}}" }],
};

const WEBHOOK_PANELS = [
  {
    title: "Requests to webhooks a second",
    targets: [
      {
        expr: `sum by (webhook, code) (rate(sidecarset_webhook_requests_total${WINDOW}))`,
        legendFormat: "{{webhook}} {{code}}",
      },
    ],
  },
  {
    title: "How long webhooks take: 99 of 100 requests",
    targets: [
      {
        expr: `histogram_quantile(0.99, sum by (webhook, le) (rate(sidecarset_webhook_request_duration_seconds_bucket${WINDOW})))`,
        legendFormat: "{{webhook}}",
      },
    ],
  },
  {
    title: "Seconds since the last pass",
    targets: [{ expr: "time() - sidecarset_last_pass_timestamp_seconds", legendFormat: "seconds" }],
  },
];

/** A dashboard to import in Grafana 10 or later. */
function grafanaDashboard(): object {
  const panels = [
    STATE_PANEL,
    ...OF_SIDECARSETS.map(({ title, metrics }) => ({
      title,
      targets: metrics.map((name) => prometheusQuery(name, `{{sidecarset}} ${name}`, CHOSEN)),
    })),
    ...OF_PASSES.map(({ title, metrics }) => ({ title, targets: metrics.map((name) => prometheusQuery(name, name)) })),
    ...WEBHOOK_PANELS,
  ];
  const datasource = { type: "prometheus", uid: "$datasource" };
  return {
    title: "SidecarSet",
    uid: "sidecarset",
    schemaVersion: 39,
    time: { from: "now-3h", to: "now" },
    refresh: "30s",
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
        SIDECARSET_VARIABLE,
      ],
    },
    panels: panels.map(({ title, targets }, index) => ({
      id: index + 1,
      type: "timeseries",
      title,
      datasource,
      gridPos: { x: 12 * (index % 2), y: 8 * Math.floor(index / 2), w: 12, h: 8 },
      targets: targets.map((target, at) => ({ ...target, datasource, refId: String.fromCharCode(65 + at) })),
    })),
  };
}

const REGION = "REGION";
const DEPLOYMENT = { service: "sidecarset", stage: "prod" };

/** A dashboard for put-dashboard, after replacing REGION. */
function cloudWatchDashboard(): object {
  const lambda = (MetricName: string, stat: string) =>
    DEPLOYED.map(({ name }) => ["AWS/Lambda", MetricName, "FunctionName", functionName(name, DEPLOYMENT), { stat }]);
  const widgets = [
    { title: "Calls of each function", metrics: lambda("Invocations", "Sum") },
    { title: "Errors of each function", metrics: lambda("Errors", "Sum") },
    { title: "How long each function takes: 99 of 100 calls, ms", metrics: lambda("Duration", "p99") },
    ...OF_SIDECARSETS.map(({ title, metrics }) => ({ title, metrics: metrics.map(searched) })),
    ...OF_PASSES.map(({ title, metrics }) => ({
      title,
      metrics: metrics.map((name) => [NAMESPACE, name, "Stage", DEPLOYMENT.stage, { stat: statOf(name) }]),
    })),
  ];
  return {
    widgets: widgets.map((properties, index) => ({
      type: "metric",
      x: 12 * (index % 2),
      y: 6 * Math.floor(index / 2),
      width: 12,
      height: 6,
      properties: { region: REGION, period: 60, view: "timeSeries", ...properties },
    })),
  };
}

/** The expression that finds a metric of every SidecarSet. */
function searched(name: string, index: number): readonly object[] {
  const expression = `SEARCH('{${NAMESPACE},SidecarSet,Stage} Stage="${DEPLOYMENT.stage}" MetricName="${name}"', '${statOf(name)}', 60)`;
  return [{ expression, id: `e${index}` }];
}

function statOf(name: string): string {
  return ALL.find((one) => one.name === name)?.kind === "counter" ? "Sum" : "Maximum";
}

/** For docs/metrics.md. */
function metricsTable(): string {
  const state =
    "- `sidecarset_state{state=…,cause=…}`: 1 for the state that its condition `Ready` names, and for its cause: [what holds the rollout](reasons.md#what-holds-a-rollout), or `PodsFail` with `Degraded`";
  const line = (one: Parameters<typeof prometheusName>[0] & { readonly help: string }) =>
    `- \`${prometheusName(one)}\`: ${one.help}`;
  const lines = [state, ...SIDECARSET_METRICS.map(line), "\nOf passes:\n", ...PASS_METRICS.map(line)];
  return `Of each SidecarSet:\n\n${lines.join("\n")}`;
}

const DOCUMENT = new URL("../../docs/metrics.md", import.meta.url);
const TABLE = /(<!-- metrics: [^>]*-->\n)[\s\S]*?(<!-- metrics end -->)/;

/** Relative path → content. */
export function dashboardFiles(): ReadonlyMap<string, string> {
  const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;
  return new Map([
    ["infra/dashboards/grafana.json", json(grafanaDashboard())],
    ["infra/dashboards/cloudwatch.json", json(cloudWatchDashboard())],
  ]);
}

export function withMetricsTable(document: string): string {
  return document.replace(TABLE, (_, begin: string, end: string) => `${begin}${metricsTable()}\n${end}`);
}

if (import.meta.main) {
  for (const [path, content] of dashboardFiles()) await writeFile(new URL(`../../${path}`, import.meta.url), content);
  await writeFile(DOCUMENT, withMetricsTable(await readFile(DOCUMENT, "utf8")));
}
