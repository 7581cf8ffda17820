/** Which Events tell of conditions that a status has got: what begins to be in the way, and what ends well. */
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

const summary = (type: string): Row => ({ of: `that sums up others: ${type}`, type, before: "False", after: "True" });
const progressing = { type: "Progressing", before: "True", after: "False", reason: "Finished" } as const;

it.each<Row>([
  { of: "that begins", type: "Halted", before: "False", after: "True", events: warning("Halted") },
  { of: "that is there with the first status", type: "Halted", after: "True", events: warning("Halted") },
  { of: "that stays", type: "Halted", before: "True", after: "True" },
  { of: "that is over", type: "Halted", before: "True", after: "False" },
  { of: "that pods have Events of their own for", type: "NotUpgradable", before: "False", after: "True" },
  summary("Ready"),
  summary("Reconciling"),
  summary("Stalled"),
  { ...progressing, of: "of a rollout that begins", before: "False", after: "True" },
  { ...progressing, of: "of a rollout that is through", events: finished },
  { ...progressing, of: "of a rollout that waits", reason: "Paused" },
  { ...progressing, of: "of a rollout that is under way", before: "True", after: "True" },
])("a condition $of", ({ type, before, after, reason = "Some", events = [] }) => {
  const next = withCondition(type, after, reason);
  expect(transitions(withCondition(type, before, reason), next)).toEqual(events);
});

it("a rollout that was through before the first status has no Event", () => {
  const next = withCondition("Progressing", "False", "Finished");
  expect(transitions(withCondition("Progressing", undefined, ""), next)).toEqual([]);
});

it("a status without conditions has no Events", () => {
  expect(transitions(setOf(), setOf())).toEqual([]);
});
