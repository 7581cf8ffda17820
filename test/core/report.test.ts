import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { SetDetail } from "../../shared/core/inspect/report/content.ts";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import { listSidecarSets, type ReportSubject, reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import { CONTEXT, rolloutOf, type Story } from "../page/fixture.ts";

const HALF_WAY: Story = { pods: 20, updated: 8, batch: 2, strategy: { maxUnavailable: 2 } };

function report(
  story: Partial<Story> = {},
  change: (subject: ReportSubject) => ReportSubject = (one) => one,
): SetDetail {
  return reportOnSidecarSet(change(rolloutOf({ ...HALF_WAY, ...story })), CONTEXT);
}

function withPods(change: (pod: Pod, index: number) => Pod) {
  return ({ observation, ...rest }: ReportSubject): ReportSubject => ({
    ...rest,
    observation: { ...observation, pods: Array.from(observation.pods, change) },
  });
}

function withSet(change: object) {
  return ({ observation, ...rest }: ReportSubject): ReportSubject => ({
    ...rest,
    observation: { ...observation, sidecarSet: { ...observation.sidecarSet, ...change } },
  });
}

const titles = ({ reasons }: SetDetail) => reasons.map(({ kind, title }) => `${kind}: ${title}`);

describe("where a SidecarSet stands", () => {
  const rows: readonly (readonly [string, SetDetail, string, readonly string[]])[] = [
    ["half way", report(), "Rolling out", []],
    ["all updated", report({ updated: 20 }), "Done", []],
    ["no pods", report({ pods: 0, updated: 0 }), "No pods", []],
    ["paused", report({ strategy: { paused: true } }), "Held", ["held: Paused"]],
    ["NotUpdate", report({ strategy: { type: "NotUpdate" } }), "Held", ["held: The update strategy is NotUpdate"]],
    [
      "the partition is reached",
      report({ strategy: { partition: 12, maxUnavailable: 2 } }),
      "Held",
      ["held: The partition keeps 12 pods"],
    ],
    [
      "pods that start",
      report({ failing: 2, reason: "ContainerCreating" }),
      "Rolling out",
      ["wait: 2 of at most 2 pods are unavailable", "wait: 2 pods not ready yet"],
    ],
    [
      "an image that cannot be pulled",
      report({ failing: 1, strategy: { maxUnavailable: 1 } }),
      "Blocked",
      ["trouble: 1 pod cannot start the current version", "wait: 1 of at most 1 pod is unavailable"],
    ],
    [
      "pods that only new ones can replace",
      report({ fixed: 3 }),
      "Degraded",
      ["trouble: 3 pods cannot be updated in place"],
    ],
    [
      "left out by a selector",
      report({ strategy: { selector: { matchLabels: { logs: "no" } } } }),
      "Held",
      ["held: 12 pods not selected"],
    ],
    [
      "a change that no pass has seen",
      report({}, withSet({ status: { observedGeneration: 6 } })),
      "Rolling out",
      ["wait: The last change was not taken up yet"],
    ],
  ];

  it.each(rows)("%s", (_, detail, verdict, reasons) => {
    expect(detail.verdict).toBe(verdict);
    expect(titles(detail)).toEqual(reasons);
  });

  it("counts every pod that is there in exactly one place", () => {
    const detail = report({ failing: 1, fixed: 2 });
    expect(detail.counts).toEqual({ updated: 7, down: 1, waiting: 10, notUpgradable: 2 });
    for (const groups of [detail.nodes, detail.namespaces])
      expect(groups.reduce((sum, { total }) => sum + total, 0)).toBe(20);
  });

  it("leaves out pods that are finished or on their way out", () => {
    const detail = report(
      {},
      withPods((pod, index) => (index < 5 ? { ...pod, status: { ...pod.status, phase: "Succeeded" } } : pod)),
    );
    expect(detail.pods).toHaveLength(15);
  });

  const bare = (created: string) => (pod: Pod, index: number) =>
    index < 3 ? { ...pod, metadata: { ...pod.metadata, annotations: {}, creationTimestamp: created } } : pod;

  it("tells pods that were missed from those that are older than the SidecarSet, and from those that are let be", () => {
    const missed = new Set(["uid-0", "uid-1"]);
    const later = withPods(bare("2026-02-01T00:00:00Z"));
    expect(titles(report({}, (subject) => later({ ...subject, missed })))).toEqual([
      "trouble: 2 pods without the sidecars",
    ]);
    expect(report({}, later).pods).toHaveLength(17);
    expect(titles(report({}, withPods(bare("2025-02-01T00:00:00Z"))))).toEqual([
      "held: 3 pods older than the SidecarSet",
    ]);
  });

  it("says that nobody is at work, unless all is done", () => {
    const idle = (subject: ReportSubject) => ({ ...subject, lastPass: "2026-03-02T10:00:00Z" });
    expect(report({}, idle)).toMatchObject({
      verdict: "Blocked",
      reasons: [{ kind: "trouble", title: "No pass has run since 2026-03-02T10:00:00Z" }],
    });
    expect(report({ updated: 20 }, idle)).toMatchObject({ verdict: "Done", reasons: [] });
    expect(report({}, (subject) => ({ ...subject, lastPass: undefined })).reasons).toEqual([]);
  });

  it("says that injection is paused", () => {
    const { sidecarSet } = rolloutOf(HALF_WAY).observation;
    const paused = withSet({ spec: { ...sidecarSet.spec, injectionStrategy: { paused: true } } });
    expect(titles(report({}, paused))).toEqual(["held: Injection is paused"]);
  });
});

describe("how it went", () => {
  it("rises batch by batch from the release on", () => {
    const { progress, batches } = report();
    expect(progress).toMatchObject({ from: "2026-03-02T10:00:00Z", to: CONTEXT.now, seconds: 1200 });
    expect(progress?.points).toEqual([
      { atSeconds: 0, updated: 0 },
      { atSeconds: 30, updated: 2 },
      { atSeconds: 120, updated: 4 },
      { atSeconds: 210, updated: 6 },
      { atSeconds: 300, updated: 8 },
    ]);
    expect(batches.map(({ at, pods, ready }) => [at, pods.length, ready])).toEqual([
      ["2026-03-02T10:05:00Z", 2, 2],
      ["2026-03-02T10:03:30Z", 2, 2],
      ["2026-03-02T10:02:00Z", 2, 2],
      ["2026-03-02T10:00:30Z", 2, 2],
    ]);
  });

  it("keeps first and last of a curve that is finer than a chart", () => {
    const { progress } = report({ pods: 3000, updated: 2000, batch: 1 });
    expect(progress?.points).toHaveLength(500);
    expect(progress?.points.at(-1)?.updated).toBe(2000);
  });

  it("says nothing of a curve while no pod is updated", () => {
    expect(report({ updated: 0 }).progress).toBeUndefined();
  });

  it("foresees the next batches within the limit, the first of which is what a pass would do", () => {
    const { next } = report();
    expect(next.map(({ pods }) => pods.length)).toEqual([2, 2, 2, 2, 2]);
    expect(new Set(next.flatMap(({ pods }) => pods)).size).toBe(10);
  });

  it("names the revisions, newest first, with the pods of each", () => {
    expect(
      report().revisions.map(({ revision, pods, isCurrent, images }) => [revision, pods, isCurrent, images]),
    ).toEqual([
      [2, 8, true, ["fluent-bit registry.example/fluent-bit:4.1.2"]],
      [1, 12, false, ["fluent-bit registry.example/fluent-bit:4.1.1"]],
    ]);
  });
});

describe("the list of SidecarSets", () => {
  const rows = [
    ["partition", { partition: "50%" }, "Updating", "partition 50%"],
    ["paused", { paused: true }, "Paused", ""],
    ["NotUpdate", { type: "NotUpdate" }, "Paused", "NotUpdate"],
    ["nothing", { partition: 0 }, "Updating", ""],
  ] as const;

  it.each(rows)("remarks on %s", (_, strategy, verdict, remark) => {
    const { sidecarSet } = rolloutOf({ ...HALF_WAY, strategy }).observation;
    expect(listSidecarSets([sidecarSet])).toEqual([
      {
        name: "log-agent",
        images: ["fluent-bit registry.example/fluent-bit:4.1.2"],
        matched: 20,
        updated: 4,
        ready: 16,
        verdict,
        remark,
      },
    ]);
  });

  it("has those first that need somebody, with since when and why, and says which no pass has seen", () => {
    const { sidecarSet } = rolloutOf({ ...HALF_WAY }).observation;
    const said = (name: string, reason: string, message = ""): SidecarSet => {
      const ready = { type: "Ready", status: "False", reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" };
      const status = { ...sidecarSet.status, observedGeneration: 1, conditions: [ready] } as NonNullable<
        SidecarSet["status"]
      >;
      return { ...sidecarSet, metadata: { ...sidecarSet.metadata, name, generation: 1 }, status };
    };
    const unseen = { ...sidecarSet, metadata: { ...sidecarSet.metadata, name: "unseen", generation: 9 } };
    const sets = [said("a", "Ready"), unseen, said("z", "Blocked", "1 of at most 1"), said("b", "HeldByPartition")];
    const rows = listSidecarSets(sets).map(({ name, verdict, since, remark }) => [name, verdict, since, remark]);
    expect(rows).toEqual([
      ["z", "Blocked", "2026-01-01T00:00:00Z", "1 of at most 1"],
      ["unseen", undefined, undefined, "not taken up yet"],
      ["b", "HeldByPartition", "2026-01-01T00:00:00Z", ""],
      ["a", "Ready", "2026-01-01T00:00:00Z", ""],
    ]);
    const page = renderPage({ at: "2026-01-02T00:00:00Z", cluster: "", sets: listSidecarSets(sets), details: [] });
    expect(page).toContain('4 SidecarSets; somebody is needed for <a href="#main">z</a> (Blocked)</caption>');
    expect(page).toMatch(/<strong>Blocked<\/strong> since <time [^>]*>2026-01-01 00:00:00<\/time>: 1 of at most 1/);
  });
});
