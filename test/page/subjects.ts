/** Pages about rollouts of several kinds, with their subjects. */

import type { ReportContent } from "../../shared/core/inspect/report/content.ts";
import { renderPage, renderPodPage } from "../../shared/core/inspect/report/page.ts";
import { type ReportSubject, reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import { setRows } from "../../shared/core/inspect/report/rows.ts";
import { ROLLOUT_VERDICTS } from "../../shared/core/rollout/conditions/verdict.ts";
import { CONTEXT, NOW, rolloutOf, type Story } from "./fixture.ts";

export function contentOf(...stories: readonly Story[]): ReportContent {
  const subjects: readonly ReportSubject[] = stories.map(rolloutOf);
  return {
    at: NOW,
    cluster: "production",
    idle: undefined,
    sets: setRows(subjects.map(({ observation }) => observation.sidecarSet)),
    details: subjects.map((subject) => reportOnSidecarSet(subject, CONTEXT)),
  };
}

/** A failing rollout that has content in every part of the page. */
export const TROUBLED: Story = {
  pods: 48,
  updated: 21,
  batch: 5,
  failing: 2,
  fixed: 3,
  strategy: { partition: "25%", maxUnavailable: "10%" },
};

export const STORIES: Readonly<Record<string, Story>> = {
  "in trouble": TROUBLED,
  "half way": { pods: 30, updated: 12, batch: 3, strategy: { maxUnavailable: 3 } },
  done: { pods: 9, updated: 9, batch: 9 },
  "not begun, and paused": { pods: 7, updated: 0, batch: 1, strategy: { paused: true } },
  "wave by wave": {
    pods: 12,
    updated: 6,
    batch: 3,
    namespaces: [
      "dev",
      "dev",
      "dev",
      "dev",
      "dev",
      "dev",
      ...Array<string>(3).fill("staging"),
      ...Array<string>(3).fill("production"),
    ],
    strategy: { maxUnavailable: 3 },
    waves: [{ name: "dev", soakSeconds: 3_600 }, { name: "staging", paused: true }, { name: "production" }],
  },
  "without pods": { pods: 0, updated: 0, batch: 1 },
  "one by one, on many nodes": { pods: 60, updated: 40, batch: 1, nodes: 37, strategy: { maxUnavailable: 1 } },
};

/** Returns a page of many rollouts. The first eight need help, or wait. */
export function fleet(size: number): string {
  const sets = Array.from({ length: size }, (_, index) => {
    const { sidecarSet } = rolloutOf({ ...TROUBLED, name: `log-agent-of-team-${size - index}` }).observation;
    const reason = ROLLOUT_VERDICTS[index] ?? "Ready";
    const message = "3 of at most 3 pods are unavailable; shop/web-6d4cf56db6-xxxxj (ImagePullBackOff), 2 more";
    const conditions = [
      { type: "Ready", status: "False", reason, message, lastTransitionTime: "2026-03-02T09:00:00Z" } as const,
    ];
    return { ...sidecarSet, status: { ...sidecarSet.status, conditions } };
  });
  const content = { at: NOW, cluster: "production", idle: undefined, sets: setRows(sets), details: [] };
  return renderPage(content, { refresh: { seconds: 10, other: "?refresh=off" } });
}

export const explanation = () =>
  renderPodPage(
    {
      sidecarSet: "log-agent",
      namespace: "shop",
      name: "web-6d4cf56db6-xxxxj",
      steps: [
        { reason: "WebhookAsked", verdict: "ok", message: "the webhook is asked about it" },
        { reason: "RevisionPinned", verdict: "note", message: "new pods get log-agent-6f9b5c72" },
        { reason: "BudgetUsed", verdict: "wait", message: "3 of at most 3 pods are unavailable" },
        {
          reason: "StrategyPaused",
          verdict: "stop",
          message: "it is paused",
          hint: "set spec.updateStrategy.paused to false",
        },
      ],
    },
    { at: NOW, cluster: "", up: [["../../../../ui", "All SidecarSets"]] },
  );
