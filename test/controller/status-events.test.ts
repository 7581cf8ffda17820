/** Tests which Events report a status' conditions: a new obstacle, and the end of a rollout. */
import { expect, it } from "vitest";
import type { SidecarSet, SidecarSetStatus, StatusCondition } from "../../shared/api/sidecarset.ts";
import { transitions } from "../../shared/controller/rollout/status-additions.ts";
import { setOf } from "./rollout-part.ts";

type Word = StatusCondition["status"];

function withCondition(type: string, status: Word | undefined, reason: string): SidecarSet {
  const condition = { type, status: status ?? "Unknown", reason, message: `why ${type}`, lastTransitionTime: "" };
  return { ...setOf(), status: { conditions: status === undefined ? [] : [condition] } as SidecarSetStatus };
}

const warning = (reason: string) => [
  {
    kind: "RecordEvent",
    regarding: { kind: "SidecarSet", name: "proxy", uid: "uid-set" },
    type: "Warning",
    reason,
    message: `why ${reason}`,
  },
];
const finished = [{ ...warning("Progressing")[0], type: "Normal", reason: "RolloutFinished" }];

interface Row {
  readonly of: string;
  readonly type: string;
  readonly before?: Word;
  readonly after: Word;
  readonly reason?: string;
  readonly events?: unknown;
}

const summary = (type: string): Row => ({
  of: `that summarizes others has no Event: ${type}`,
  type,
  before: "False",
  after: "True",
});
const progressing = { type: "Progressing", before: "True", after: "False", reason: "Finished" } as const;

it.each<Row>([
  {
    of: "that becomes True has a Warning Event",
    type: "Halted",
    before: "False",
    after: "True",
    events: warning("Halted"),
  },
  {
    of: "that is True in the first status has a Warning Event",
    type: "Halted",
    after: "True",
    events: warning("Halted"),
  },
  { of: "that stays True has no Event", type: "Halted", before: "True", after: "True" },
  { of: "that becomes False has no Event", type: "Halted", before: "True", after: "False" },
  {
    of: "that has Events of its own on pods has no other Event",
    type: "NotUpgradable",
    before: "False",
    after: "True",
  },
  summary("Ready"),
  summary("Reconciling"),
  summary("Stalled"),
  { ...progressing, of: "of a rollout that begins has no Event", before: "False", after: "True" },
  { ...progressing, of: "of a rollout that finishes has the Event RolloutFinished", events: finished },
  { ...progressing, of: "of a rollout that is paused has no Event", reason: "Paused" },
  { ...progressing, of: "of a rollout that is in progress has no Event", before: "True", after: "True" },
])("a condition $of", ({ type, before, after, reason = "Some", events = [] }) => {
  const next = withCondition(type, after, reason);
  expect(transitions(withCondition(type, before, reason), next)).toEqual(events);
});

function withRevision(latestRevision: string | undefined, updatedPods = 0): SidecarSet {
  const next = withCondition("Progressing", "True", "RollingOut");
  const revision = latestRevision === undefined ? {} : { latestRevision };
  return { ...next, status: { ...next.status, ...revision, updatedPods, matchedPods: 2 } as SidecarSetStatus };
}

it.each([
  ["a new revision that pods do not have yet has the Event RolloutStarted", "r1", withRevision("r2"), 1],
  ["a revision that was recorded before has no Event", "r2", withRevision("r2"), 0],
  ["a first revision has no Event", undefined, withRevision("r2"), 0],
  ["a new revision that every pod already has has no Event", "r1", withRevision("r2", 2), 0],
])("%s", (_, before, after, events) => {
  const told = transitions(withRevision(before), after);
  expect(told.map(({ type, reason, message }) => `${type} ${reason}: ${message}`)).toEqual(
    Array(events).fill("Normal RolloutStarted: revision r2: why Progressing"),
  );
});

it("a status of OpenKruise's definition, which has no conditions, has no Event about a new revision", () => {
  const without = (set: SidecarSet): SidecarSet => {
    const { conditions: _, ...status } = set.status ?? ({} as SidecarSetStatus);
    return { ...set, status: status as SidecarSetStatus };
  };
  expect(transitions(without(withRevision("r1")), without(withRevision("r2")))).toEqual([]);
});

it.each([
  ["Blocked has a Warning Event when something else blocks the rollout than before", "Blocked", 1],
  ["Degraded has no Event when it stays True for another reason", "Degraded", 0],
])("the condition %s", (_, type, events) => {
  const told = transitions(withCondition(type, "True", "MaxUnavailable"), withCondition(type, "True", "GateDown"));
  expect(told).toEqual(Array(events).fill(warning(type)[0]));
});

it.each([
  ["has the Event RolloutFinished when its last old pod is gone", 1, finished],
  ["has no Event when all its pods were updated before", 2, []],
])("a rollout at rest %s", (_, updatedPods, events) => {
  const held = withCondition("Progressing", "False", "Partition");
  const before = { ...held, status: { ...held.status, updatedPods, matchedPods: 2 } as SidecarSetStatus };
  expect(transitions(before, withCondition("Progressing", "False", "Finished"))).toEqual(events);
});

it("a rollout that had finished before the first status has no Event", () => {
  const next = withCondition("Progressing", "False", "Finished");
  expect(transitions(withCondition("Progressing", undefined, ""), next)).toEqual([]);
});

it("a status without conditions has no Events", () => {
  expect(transitions(setOf(), setOf())).toEqual([]);
});

type Wave = NonNullable<SidecarSetStatus["waves"]>["list"][number];
const waveOf = (name: string, more: Partial<Wave> = {}): Wave => ({
  name,
  pods: 2,
  updated: 2,
  updatedReady: 2,
  ...more,
});
const withWaves = (revision: string, ...list: readonly Wave[]): SidecarSet => ({
  ...setOf(),
  status: { conditions: [], waves: { revision, list } } as unknown as SidecarSetStatus,
});
const passed = { passedAt: "2026-01-02T03:04:05Z" };

it.each<readonly [string, SidecarSet, SidecarSet, readonly string[]]>([
  [
    "a wave that is passed has the Event WavePassed, which names the next wave",
    withWaves("h", waveOf("dev"), waveOf("prod")),
    withWaves("h", waveOf("dev", passed), waveOf("prod")),
    ["wave dev is passed, 2 of its 2 pods updated and ready; the next one is prod"],
  ],
  [
    "a wave that was passed before has no Event, and the Event of the last wave says that it is the last",
    withWaves("h", waveOf("dev", passed), waveOf("prod")),
    withWaves("h", waveOf("dev", passed), waveOf("prod", passed)),
    ["wave prod is passed, 2 of its 2 pods updated and ready; it is the last one"],
  ],
  [
    "a wave of a new release has an Event of its own",
    withWaves("h", waveOf("dev", passed)),
    withWaves("next", waveOf("dev", passed)),
    ["wave dev is passed, 2 of its 2 pods updated and ready; it is the last one"],
  ],
  ["a wave without pods has no Event", withWaves("h"), withWaves("h", waveOf("dev", { ...passed, pods: 0 })), []],
  ["waves that are named later have no Event", setOf(), withWaves("h", waveOf("dev", passed)), []],
])("%s", (_of, before, after, messages) => {
  const told = transitions(before, after);
  expect(told.map(({ message }) => message)).toEqual(messages);
  for (const one of told) expect(one).toMatchObject({ type: "Normal", reason: "WavePassed" });
});
