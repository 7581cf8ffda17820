import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { UNDONE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { SetDetail } from "../../shared/core/inspect/report/content.ts";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import { idleness, type ReportSubject, reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import { setRows } from "../../shared/core/inspect/report/rows.ts";
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

describe("reportOnSidecarSet:", () => {
  const rows: readonly (readonly [string, SetDetail, string, readonly string[]])[] = [
    ["an unfinished rollout", report(), "Updating", []],
    ["a finished rollout", report({ updated: 20 }), "Ready", []],
    ["a SidecarSet without pods", report({ pods: 0, updated: 0 }), "Ready", []],
    ["a paused rollout", report({ strategy: { paused: true } }), "Paused", ["held: Paused"]],
    [
      "a SidecarSet with the type NotUpdate",
      report({ strategy: { type: "NotUpdate" } }),
      "Paused",
      ["held: The update strategy is NotUpdate"],
    ],
    [
      "a rollout that has reached its partition",
      report({ strategy: { partition: 12, maxUnavailable: 2 } }),
      "HeldByPartition",
      ["held: The partition keeps 12 pods"],
    ],
    [
      "a rollout with pods that are starting",
      report({ failing: 2, reason: "ContainerCreating" }),
      "Updating",
      ["wait: 2 of at most 2 pods are unavailable", "wait: 2 pods not ready yet"],
    ],
    [
      "a rollout with an image that cannot be pulled",
      report({ failing: 1, strategy: { maxUnavailable: 1 } }),
      "Blocked",
      ["trouble: 1 pod cannot start the current version", "wait: 1 of at most 1 pod is unavailable"],
    ],
    [
      "a rollout with some pods that cannot be updated in place",
      report({ fixed: 3 }),
      "Updating",
      ["trouble: 3 pods cannot be updated in place"],
    ],
    [
      "a rollout with only pods that cannot be updated in place",
      report({ fixed: 12 }),
      "NotUpgradable",
      ["trouble: 12 pods cannot be updated in place"],
    ],
    [
      "a rollout whose selector leaves out the other pods",
      report({ strategy: { selector: { matchLabels: { logs: "no" } } } }),
      "Paused",
      ["held: 12 pods not selected"],
    ],
    [
      "a SidecarSet with a change that no pass has seen",
      report({}, withSet({ status: { observedGeneration: 6 } })),
      "Updating",
      ["wait: The last change was not taken up yet"],
    ],
  ];

  it.each(rows)("the report has the right verdict and reasons for %s", (_, detail, verdict, reasons) => {
    expect(detail.verdict).toBe(verdict);
    expect(titles(detail)).toEqual(reasons);
  });

  it("the report counts every pod exactly once", () => {
    const detail = report({ failing: 1, fixed: 2 });
    expect(detail.counts).toEqual({ updated: 7, failing: 1, waiting: 10, notUpgradable: 2 });
    for (const groups of [detail.nodes, detail.workloads])
      expect(groups.reduce((sum, { total }) => sum + total, 0)).toBe(20);
  });

  it("an updated pod whose container cannot run is failing, and the report says which container", () => {
    const [pod] = report({ failing: 1 }).pods.filter(({ standing }) => standing === "failing");
    expect(pod).toMatchObject({ isReady: false, why: expect.stringContaining("ImagePullBackOff") });
  });

  it("the report leaves out pods that have finished", () => {
    const detail = report(
      {},
      withPods((pod, index) => (index < 5 ? { ...pod, status: { ...pod.status, phase: "Succeeded" } } : pod)),
    );
    expect(detail.pods).toHaveLength(15);
  });

  const bare = (created: string) => (pod: Pod, index: number) =>
    index < 3 ? { ...pod, metadata: { ...pod.metadata, annotations: {}, creationTimestamp: created } } : pod;

  it("the report distinguishes missed pods, pods older than the SidecarSet, and exempt pods", () => {
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

  it("the report has one command for each workload that recreates older pods", () => {
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "u", controller: true };
    const older = withPods((pod, index) => {
      const { metadata, ...rest } = bare("2025-02-01T00:00:00Z")(pod, index);
      return { ...rest, metadata: { ...metadata, ownerReferences: [owner] } };
    });
    const [reason] = report({ namespaces: ["shop"] }, older).reasons;
    expect(reason).toMatchObject({
      text: "Sidecars come with the creation of a pod.",
      next: "recreate them: kubectl -n shop rollout restart statefulset/db",
    });
  });

  it("the report says that no pass has run, unless the rollout is finished", () => {
    const idle = (subject: ReportSubject) => ({ ...subject, lastPass: "2026-03-02T10:00:00Z" });
    expect(report({}, idle)).toMatchObject({
      verdict: "Blocked",
      reasons: [{ kind: "trouble", title: "No pass has run since 2026-03-02T10:00:00Z" }],
    });
    expect(report({ updated: 20 }, idle)).toMatchObject({ verdict: "Ready", reasons: [] });
    expect(report({}, (subject) => ({ ...subject, lastPass: undefined })).reasons).toEqual([]);
  });

  it("the report says that injection is paused", () => {
    const { sidecarSet } = rolloutOf(HALF_WAY).observation;
    const paused = withSet({ spec: { ...sidecarSet.spec, injectionStrategy: { paused: true } } });
    expect(titles(report({}, paused))).toEqual(["held: Injection is paused"]);
  });
});

/** Returns pods that became ready again at the given times, as the kubelet reports them. */
function readySince(times: readonly string[]) {
  return withPods((pod, index) => {
    const time = times[index];
    if (time === undefined) return pod;
    const conditions = [{ type: "Ready", status: "True", lastTransitionTime: `2026-03-02T10:${time}Z` }];
    return { ...pod, status: { ...pod.status, conditions } };
  });
}

describe("the number of down pods over time in a report:", () => {
  it("a pod counts as down from its update until it is ready again, or until now", () => {
    // Batches of two start at 00:30, 02:00, 03:30 and 05:00. The last two pods are not ready again.
    const times = ["00:40", "00:50", "02:10", "02:10", "03:29", "03:40"];
    const { progress } = report({ failing: 2 }, readySince(times));
    expect(progress?.down).toEqual([
      { atSeconds: 30, down: 2 },
      { atSeconds: 40, down: 1 },
      { atSeconds: 50, down: 0 },
      { atSeconds: 120, down: 2 },
      { atSeconds: 130, down: 0 },
      // The fifth pod never went down.
      { atSeconds: 210, down: 1 },
      { atSeconds: 220, down: 0 },
      { atSeconds: 300, down: 2 },
    ]);
  });

  it("batches in one second are separate if pods that became ready allowed the next batch", () => {
    const times = ["00:30", "00:31", "00:30", "00:31", "00:30", "00:30"];
    const { progress, batches } = report({ updated: 6, batch: 6 }, readySince(times));
    expect(batches.map(({ at, pods }) => [at, pods.length])).toEqual([
      ["2026-03-02T10:00:30Z", 2],
      ["2026-03-02T10:00:30Z", 2],
      ["2026-03-02T10:00:30Z", 2],
    ]);
    expect(Math.max(...(progress?.down ?? []).map(({ down }) => down))).toBe(2);
    // All pods were written to together, before maxUnavailable was lowered.
    expect(report({ updated: 6, batch: 6 }, readySince(Array(6).fill("00:31"))).batches).toHaveLength(1);
  });

  it("a shortened curve keeps the highest number of pods that were down", () => {
    const { progress } = report({ pods: 3000, updated: 2000, batch: 1, failing: 2000 });
    expect(progress?.down.length).toBeLessThanOrEqual(500);
    expect(Math.max(...(progress?.down ?? []).map(({ down }) => down))).toBe(2000);
  });
});

describe("the time of a rollout in a report:", () => {
  const REVISIONS = (times: readonly [string, string]) =>
    (({ observation, ...rest }) => {
      const revisions = observation.revisions.map((one, index) => ({
        ...one,
        metadata: { ...one.metadata, creationTimestamp: times[index] ?? "" },
      }));
      return { ...rest, observation: { ...observation, revisions } };
    }) satisfies (subject: ReportSubject) => ReportSubject;
  const written = (time: string) => ({
    managedFields: [{ manager: "kubectl", operation: "Update", time, fieldsV1: { "f:spec": { "f:containers": {} } } }],
  });
  const begin = (...changes: readonly ((subject: ReportSubject) => ReportSubject)[]) =>
    report({}, (subject) => changes.reduce((one, change) => change(one), subject)).progress?.from;
  const withMetadata = (more: object) => (subject: ReportSubject) =>
    withSet({ metadata: { ...subject.observation.sidecarSet.metadata, ...more } })(subject);

  it("the rollout begins with the write of the change, not with the pass that recorded it", () => {
    expect(begin(withMetadata(written("2026-03-02T09:59:10Z")))).toBe("2026-03-02T09:59:10Z");
  });

  it("the rollout begins with its revision if the last write is about another change", () => {
    expect(begin(withMetadata(written("2026-03-02T10:15:00Z")))).toBe("2026-03-02T10:00:00Z");
    expect(begin(withMetadata(written("2025-12-01T00:00:00Z")))).toBe("2026-03-02T10:00:00Z");
  });

  it("the rollout begins with its first pod if the revision is an old one", () => {
    const back = REVISIONS(["2026-03-02T10:01:00Z", "2026-01-01T00:00:00Z"]);
    const { progress } = report({}, back);
    expect(progress).toMatchObject({ from: "2026-03-02T10:02:00Z", seconds: 1080 });
    expect(progress?.points[0]).toEqual({ atSeconds: 0, updated: 2 });
    expect(progress?.points.at(-1)?.updated).toBe(8);
  });

  it("the rollout begins with the undo if the previous release was undone", () => {
    const at = "2026-03-02T10:01:30Z";
    const undone = JSON.stringify([{ from: "hash1", to: "hash2", at, message: "undone" }]);
    const back = REVISIONS(["2026-03-02T10:01:00Z", "2026-01-01T00:00:00Z"]);
    const annotations = {
      ...rolloutOf(HALF_WAY).observation.sidecarSet.metadata?.annotations,
      [UNDONE_ANNOTATION]: undone,
    };
    expect(begin(back, withMetadata({ annotations }))).toBe(at);
  });

  it("the rollout ends with the condition Progressing, or else with its last pod", () => {
    const done = { updated: 20 };
    expect(report(done).progress).toMatchObject({ to: "2026-03-02T10:14:00Z", seconds: 840, isOver: true });
    const conditions = [
      {
        type: "Progressing",
        status: "False",
        reason: "Finished",
        message: "",
        lastTransitionTime: "2026-03-02T10:14:20Z",
      },
    ];
    const told = withSet({ status: { ...rolloutOf(HALF_WAY).observation.sidecarSet.status, conditions } });
    expect(report(done, told).progress).toMatchObject({ to: "2026-03-02T10:14:20Z", seconds: 860, isOver: true });
    expect(report().progress).toMatchObject({ to: CONTEXT.now, isOver: false });
  });
});

describe("the progress in a report:", () => {
  it("the curve of updated pods rises batch by batch from the release on", () => {
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

  it("a shortened curve keeps its first and its last point", () => {
    const { progress } = report({ pods: 3000, updated: 2000, batch: 1 });
    expect(progress?.points).toHaveLength(500);
    expect(progress?.points.at(-1)?.updated).toBe(2000);
  });

  it("there is no progress while no pod is updated", () => {
    expect(report({ updated: 0 }).progress).toBeUndefined();
  });

  it("the report predicts the next batches within maxUnavailable", () => {
    const { next } = report();
    expect(next.map(({ pods }) => pods.length)).toEqual([2, 2, 2, 2, 2]);
    expect(new Set(next.flatMap(({ pods }) => pods)).size).toBe(10);
  });

  it("the report lists the revisions with their pods, newest first", () => {
    expect(
      report().revisions.map(({ revision, pods, isCurrent, images }) => [revision, pods, isCurrent, images]),
    ).toEqual([
      [2, 8, true, ["fluent-bit registry.example/fluent-bit:4.1.2"]],
      [1, 12, false, ["fluent-bit registry.example/fluent-bit:4.1.1"]],
    ]);
  });
});

describe("setRows, the list of SidecarSets:", () => {
  const at = "2026-03-02T10:00:00Z";
  const ready = (reason: string) => ({
    type: "Ready",
    status: "False",
    reason,
    message: `why ${reason}`,
    lastTransitionTime: at,
  });
  const stored = (name: string, status: object) => ({
    ...rolloutOf({ ...HALF_WAY, name }).observation.sidecarSet,
    status,
  });
  const counts = { observedGeneration: 7, matchedPods: 20, updatedPods: 4, readyPods: 16 };

  it("the list has the worst SidecarSet first, each with its verdict, its reason and the time", () => {
    const words = ["Ready", "Updating", "Blocked", "HeldByPartition", "Halted"];
    const sets = words.map((word) => stored(word.toLowerCase(), { ...counts, conditions: [ready(word)] }));
    const rows = setRows([...sets, stored("unseen", { ...counts, observedGeneration: 6 })]);
    expect(rows.map(({ name, verdict, since, reason }) => [name, verdict, since, reason])).toEqual([
      ["halted", "Halted", at, "why Halted"],
      ["blocked", "Blocked", at, "why Blocked"],
      ["unseen", undefined, undefined, "no pass has seen its last change yet"],
      ["updating", "Updating", at, "why Updating"],
      ["heldbypartition", "HeldByPartition", at, "why HeldByPartition"],
      ["ready", "Ready", at, "why Ready"],
    ]);
    expect(rows[0]).toMatchObject({
      images: ["fluent-bit registry.example/fluent-bit:4.1.2"],
      matched: 20,
      updated: 4,
      ready: 16,
    });
  });

  it("the verdict comes from the counts if the status has no conditions", () => {
    expect(setRows([stored("one", counts)])).toMatchObject([
      { verdict: "Updating", reason: "4 of 20 pods updated, 0 of them ready" },
    ]);
  });
});

describe("renderPage for the list of SidecarSets:", () => {
  const { sidecarSet } = rolloutOf({ ...HALF_WAY }).observation;
  const said = (name: string, reason: string, message = ""): SidecarSet => {
    const ready = { type: "Ready", status: "False", reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" };
    const status = { ...sidecarSet.status, observedGeneration: 1, conditions: [ready] } as NonNullable<
      SidecarSet["status"]
    >;
    return { ...sidecarSet, metadata: { ...sidecarSet.metadata, name, generation: 1 }, status };
  };

  it("the page counts the verdicts and shows for each SidecarSet the time and the reason", () => {
    const unseen = { ...sidecarSet, metadata: { ...sidecarSet.metadata, name: "unseen", generation: 9 } };
    const sets = setRows([
      said("a", "Ready"),
      unseen,
      said("z", "Blocked", "1 of at most 1"),
      said("b", "HeldByPartition"),
    ]);
    expect(sets.map(({ name }) => name)).toEqual(["z", "unseen", "b", "a"]);
    const page = renderPage({ at: "2026-01-02T00:00:00Z", cluster: "", idle: undefined, sets, details: [] });
    expect(page).toContain("4 SidecarSets: 1 Blocked, 1 not seen yet, 1 HeldByPartition, 1 Ready</caption>");
    expect(page).toMatch(/<strong [^>]*>Blocked<\/strong> <small [^>]*>for 1 d<\/small><small [^>]*>1 of at most 1</);
    expect(page).toContain("no pass has seen its last change yet");
  });

  it.each([
    ["Degraded", "failing"],
    ["Updating", "down"],
  ] as const)("the list draws updated pods of a %s SidecarSet that are not ready as %s", (verdict, standing) => {
    const { status, ...rest } = said("a", verdict);
    const set = { ...rest, status: { ...status, matchedPods: 4, updatedPods: 3, updatedReadyPods: 1, readyPods: 2 } };
    const page = renderPage({
      at: "2026-01-02T00:00:00Z",
      cluster: "",
      idle: undefined,
      sets: setRows([set]),
      details: [],
    });
    expect(page).toContain(
      `<rect class="updated" x="0" width="25" height="1"/><rect class="${standing}" x="25" width="50"`,
    );
  });

  it("the page says before the list that no pass runs", () => {
    const idle = idleness("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    const page = renderPage({
      at: "2026-01-02T00:00:00Z",
      cluster: "",
      idle,
      sets: setRows([said("a", "Ready")]),
      details: [],
    });
    const notice = page.indexOf("No pass has run since 2026-01-01T00:00:00Z");
    expect(notice).toBeGreaterThan(0);
    expect(notice).toBeLessThan(page.indexOf("<caption>"));
  });

  it("the page says that the cluster has no SidecarSets", () => {
    const page = renderPage({ at: "2026-01-02T00:00:00Z", cluster: "", idle: undefined, sets: [], details: [] });
    expect(page).toContain("The cluster has no SidecarSets.");
    expect(page).not.toContain("<table");
  });
});

describe("the workloads in a report:", () => {
  const owned = withPods((pod, index) => ({
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...pod.metadata?.labels, "pod-template-hash": "abc" },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          name: index < 4 ? "web-abc" : "api-abc",
          uid: "u",
          controller: true,
        },
      ],
    },
  }));

  it("the workloads are Deployments instead of ReplicaSets, and workloads with failing pods come first", () => {
    const { workloads } = report({ namespaces: ["shop"], updated: 4, batch: 4, failing: 1 }, owned);
    expect(workloads.map(({ name, total, counts: { failing } }) => [name, total, failing])).toEqual([
      ["shop/deployment/web", 4, 1],
      ["shop/deployment/api", 16, undefined],
    ]);
  });

  it("pods without a workload are in a group of their own", () => {
    expect(report({ namespaces: ["shop"] }).workloads.map(({ name }) => name)).toEqual([
      "shop/pods without a workload",
    ]);
  });
});
