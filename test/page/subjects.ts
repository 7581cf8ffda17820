/** Pages about rollouts of several kinds, with what they are made from. */

import type { ReportContent } from "../../shared/core/inspect/report/content.ts";
import { type ReportSubject, reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import { setRows } from "../../shared/core/inspect/report/set-row.ts";
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

/** One in trouble: it has something in every part of the page. */
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
