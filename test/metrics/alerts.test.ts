/** Tests that the chart's alerts read metrics that `serve` and the passes really print in the alert's state. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createMetrics, type Metrics } from "../../functions/server/metrics.ts";
import { ALERTS } from "../../infra/helm/metrics-template.ts";
import type { PassReport, SidecarSetReport } from "../../shared/controller/rollout/report.ts";

const SET = {
  name: "logs",
  stop: "settled",
  why: "",
  state: "Ready",
  tally: { problems: [], patched: [], conflicts: 0 },
} as unknown as SidecarSetReport;
const PASS = {
  startedAt: "2026-11-26T00:00:00Z",
  durationMs: 1,
  isDryRun: false,
  problems: [],
  notReached: [],
  unread: [],
  calls: {},
  sidecarSets: [SET],
} as unknown as PassReport;

type Tell = (metrics: Metrics) => void;
const pass =
  (changed: Partial<PassReport>): Tell =>
  ({ addPass }) =>
    addPass({ ...PASS, ...changed }, 0);

/** Alert → prints the metrics in the alert's state. */
const STATES: Readonly<Record<string, Tell>> = {
  SidecarSetInTrouble: pass({ sidecarSets: [{ ...SET, state: "Degraded" }] }),
  SidecarSetPodsMissed: pass({ sidecarSets: [{ ...SET, missed: { count: 2, recent: 1, pods: [] } }] }),
  SidecarSetPassesFail: pass({ failure: "SidecarSets cannot be listed", sidecarSets: [] }),
  SidecarSetNoPasses: () => undefined,
  SidecarSetWebhookFails: ({ addRequest }) => addRequest("mutate-pod", 503, 0.01),
  SidecarSetWebhookSlow: ({ addRequest }) => addRequest("mutate-pod", 200, 4),
  SidecarSetCallersRefused: ({ addRequest }) => addRequest("mutate-pod", 401, 0.01),
  SidecarSetUnread: pass({ unread: ["logs"] }),
};

const SELECTOR = /(sidecarset_\w+)(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)(=~|!=|=)"([^"]*)"/g;

/** Returns the sum of a selector's series; undefined: there are none. */
function found(text: string, [, name = "", matchers = ""]: RegExpMatchArray): number | undefined {
  const lines = text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  const isWanted = (line: string) =>
    [...matchers.matchAll(MATCHER)].every(([, label, operator, wanted = ""]) => {
      const value = new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? "";
      if (operator === "=~") return new RegExp(`^(?:${wanted})$`).test(value);
      return (value === wanted) === (operator === "=");
    });
  const own = lines.filter(isWanted);
  return own.length === 0 ? undefined : own.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** Returns the first selector's value minus the second's. */
function measured(text: string, expr: string): number {
  const [first, second] = [...expr.matchAll(SELECTOR)].map((selector) => found(text, selector) ?? 0);
  return (first ?? 0) - (second ?? 0);
}

test("every alert of the chart has a state in this test", () => {
  expect(ALERTS.map(({ alert }) => alert).toSorted()).toEqual(Object.keys(STATES).toSorted());
});

test.each(ALERTS)("the runbook has the section that the alert $alert names", ({ section }) => {
  const sections = [...readFileSync("docs/alarms.md", "utf8").matchAll(/^### (.*)$/gm)];
  expect(sections.map(([, title = ""]) => title.toLowerCase())).toContain(section);
  expect(readFileSync("infra/helm/sidecarset/templates/metrics.yaml", "utf8")).toContain(`docs/alarms.md#${section}\n`);
});

describe.each(ALERTS)("$alert:", ({ alert, expr, summary }) => {
  test(`the expression of the alert ${alert} reads metrics that show its state`, () => {
    const metrics = createMetrics();
    pass({})(metrics);
    metrics.addRequest("mutate-pod", 200, 0.01);
    const before = measured(metrics.text(), expr);
    STATES[alert]?.(metrics);
    const after = measured(metrics.text(), expr);
    // The alert waits until the number of passes stops to grow.
    if (alert === "SidecarSetNoPasses") expect([before, after]).toEqual([1, 1]);
    else expect([before, after > 0]).toEqual([0, true]);
  });

  test(`the summary of the alert ${alert} uses only labels of its expression`, () => {
    const named = [...summary.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    for (const label of named) expect(expr).toContain(`by (${label})`);
  });
});
