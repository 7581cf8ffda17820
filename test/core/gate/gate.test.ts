import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { GATE_ANNOTATION, OWNER_BUDGET_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { reportOnSidecarSet } from "../../../shared/core/inspect/report/report.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { asLastAnswered } from "../../../shared/core/rollout/narrow.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { gateAnswer, gateRequest, lastRefusal, newlyWanted } from "../../../shared/core/rollout/rules/gate/approval.ts";
import { NOTHING_RESERVED } from "../../../shared/core/rollout/select/reserved.ts";
import { NOW, podOf, reservedFor, sidecarSetOf, takenDown, UNTOUCHED } from "../../support/rollout-fixture.ts";

const CONTEXT = { now: NOW, kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };
const FREEZE = "the gate at gate.example says no: freeze";

function setWith(annotations: Readonly<Record<string, string>>, refusal?: string): SidecarSet {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: 2 } });
  const condition = { type: "Blocked", status: "True", reason: "Gate", lastTransitionTime: NOW };
  return {
    ...set,
    metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations, ...annotations } },
    status: { observedGeneration: 2, ...(refusal ? { conditions: [{ ...condition, message: refusal }] } : {}) },
  } as SidecarSet;
}
const gated = (refusal?: string) => setWith({ [GATE_ANNOTATION]: "https://gate.example/batch?token=s3cret" }, refusal);
const PODS = ["a", "b", "c"].map((name) => podOf({ name }));
const observe = (sidecarSet: SidecarSet, pods: readonly Pod[] = PODS, reserved: readonly string[] = []) => ({
  sidecarSet,
  pods,
  revisions: [],
  ...UNTOUCHED,
  reserved: reservedFor(reserved),
});

test.each([
  ["https://gate.example/batch", true],
  ["http://gate.example:8080", true],
  [" https://gate.example ", true],
  ["ftp://gate.example", false],
  ["file:///etc/passwd", false],
  ["gate.example", false],
  ["https://me:s3cret@gate.example", false],
  ["", false],
])("steeringOf accepts %j as the address of a gate: %s", (text, isAddress) => {
  const set = setWith({ [GATE_ANNOTATION]: text });
  const { gate, problems } = steeringOf(set);
  expect([gate !== undefined, problems.length === 0]).toEqual([isAddress, isAddress]);
  expect(JSON.stringify(problems)).not.toContain("s3cret");
});

test.each([
  [200, '{"allow":true}', undefined],
  [200, '{"allow":true,"reason":"fine"}', undefined],
  [200, '{"allow":false,"reason":"a\\u0007b\\nc"}', "says no: a b c"],
  [200, '{"allow":false,"reason":5}', "says no"],
  [200, `{"allow":false,"reason":"${"x".repeat(300)}"}`, `says no: ${"x".repeat(200)}…`],
  [200, "[]", "did not answer with JSON that says allow: true or false"],
  [200, '{"allow":1}', "did not answer with JSON that says allow: true or false"],
  [204, "", "answered 204 rather than 200"],
  [202, '{"allow":true}', "answered 202 rather than 200"],
  [200, '{"allow":"false"}', "did not answer with JSON that says allow: true or false"],
])("gateAnswer reads the status code %i with the body %s", (code, body, did) => {
  const no = { allow: false, reason: `the gate at h ${did}` };
  expect(gateAnswer("h", code, body)).toEqual(did === undefined ? { allow: true } : no);
});

describe("newlyWanted:", () => {
  test("newlyWanted contains the pods of the batch that are not reserved", () => {
    const decision = decide(observe(gated(), PODS, ["uid-a"]), CONTEXT);
    expect(newlyWanted(decision, new Set(["uid-a"])).map(({ name }) => name)).toEqual(["b"]);
  });
});

test("a gate is told how many pods are unavailable, not how many are not updated", () => {
  const pods = [takenDown(podOf({ name: "down", hash: "new", image: "reg/sc:v2", isReady: false })), ...PODS];
  const decision = decide(observe(gated(), pods), CONTEXT);
  expect(gateRequest(gated(), "web-1", decision, newlyWanted(decision, new Set())).counts).toEqual({
    matched: 4,
    updated: 1,
    updatedReady: 0,
    unavailable: 1,
    maxUnavailable: 2,
  });
});

test.each([
  ["Gate", true],
  ["GateDown", true],
  ["Refused", false],
])("a stored condition Blocked with the reason %s is a refusal of the gate: %s", (reason, isRefusal) => {
  const conditions = [{ type: "Blocked", status: "True", reason, message: FREEZE, lastTransitionTime: NOW }] as const;
  const set = { ...gated(), status: { conditions } } as unknown as SidecarSet;
  expect(lastRefusal(set) !== undefined).toBe(isRefusal);
});

describe("asLastAnswered and the page:", () => {
  test.each([
    ["keeps the batch back if the last answer of the gate was no", gated(FREEZE), "gate", 0],
    ["shows the batch if the gate has not refused it", gated(), "budget", 2],
    ["ignores the last answer of a gate that was removed", setWith({}, FREEZE), "budget", 2],
  ])("asLastAnswered %s", (_what, set, hold, selected) => {
    const observation = observe(set);
    const { summary, actions } = asLastAnswered(observation, decide(observation, CONTEXT), NOW);
    expect([summary.hold, summary.selected]).toEqual([hold, selected]);
    expect(actions.filter(({ kind }) => kind === "PatchPod")).toHaveLength(selected);
  });

  test("asLastAnswered clears the number of pods without room if the gate said no", () => {
    const set = gated(FREEZE);
    const decision = decide({ ...observe(set), reserved: { ...NOTHING_RESERVED, room: 1 } }, CONTEXT);
    expect(decision.summary).toMatchObject({ selected: 2, beyondRoom: 1 });
    const { summary, actions } = asLastAnswered(observe(set), decision, NOW);
    expect([summary.hold, summary.selected, summary.beyondRoom]).toEqual(["gate", 0, undefined]);
    expect(actions.filter(({ kind }) => kind === "PatchPod")).toEqual([]);
  });

  const broken = podOf({ name: "x", hash: "new", image: "reg/sc:v2", isReady: false });
  const crashing = takenDown({
    ...broken,
    status: {
      ...broken.status,
      containerStatuses: [
        { name: "sc", image: "reg/sc:v2", ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } },
      ],
    },
  } as Pod);
  const owned = ["p0", "p1"].map((name) => {
    const pod = podOf({ name, isReady: name === "p1" });
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "o", controller: true }];
    return { ...pod, metadata: { ...pod.metadata, ownerReferences } };
  });
  test.each<[string, SidecarSet, readonly Pod[], string, string, RegExp]>([
    [
      "a gate says no",
      gated(FREEZE),
      PODS,
      "WaitingForApproval",
      "A gate has not allowed the next batch",
      /says no: freeze\. Next: it is asked again/,
    ],
    [
      "a gate cannot be called",
      gated("the gate at gate.example cannot be asked: ECONNREFUSED"),
      PODS,
      "Blocked",
      "The gate gives no answer",
      /ECONNREFUSED/,
    ],
    [
      "the rollout was halted",
      setWith({ "sidecarset.kruise.io/halt-on": "0" }),
      [crashing, ...PODS],
      "Halted",
      "The rollout was stopped",
      /: 1 of 1 updated pods fail.* Next: set another image/,
    ],
    [
      "an annotation is invalid",
      setWith({ [OWNER_BUDGET_ANNOTATION]: "some" }),
      PODS,
      "Blocked",
      "An annotation cannot be read",
      /says some/,
    ],
    [
      "the budget of an owner is used up",
      setWith({ [OWNER_BUDGET_ANNOTATION]: "1" }),
      owned,
      "Updating",
      "1 pod waits for others of the same owner",
      /StatefulSet default\/db: 1 of at most 1 down or on their way \(p0\)/,
    ],
  ])("the page says why the rollout waits if %s", (_what, set, pods, ...[verdict, title, text]) => {
    const subject = { observation: observe(set, pods), events: [], missed: new Set<string>(), lastPass: NOW };
    const detail = reportOnSidecarSet(subject, CONTEXT);
    const reason = detail.reasons.find((one) => one.title === title);
    expect(`${reason?.text} Next: ${reason?.next}`).toMatch(text);
    expect(detail.verdict).toBe(verdict);
    expect(JSON.stringify(detail)).not.toContain("s3cret");
  });
});
