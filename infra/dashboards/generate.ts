/** Writes the dashboards that are checked in, and the table of metrics in docs/metrics.md: `node infra/dashboards/generate.ts`. */
import { readFile, writeFile } from "node:fs/promises";
import { cloudWatchDashboard, grafanaDashboard, metricsTable } from "./dashboards.ts";

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
