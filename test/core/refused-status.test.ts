/** Tests the Event that is recorded when passes may not write a status. Readers use it while it is current. */
import { expect, it } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { withRefusal } from "../../shared/core/inspect/check/passes.ts";
import { storedVerdict } from "../../shared/core/rollout/conditions/verdict.ts";

const AT = "2026-01-01T00:10:00Z";
const refusal = { uid: "uid", text: "the status is not written: no", at: AT };
const ready = { type: "Ready", status: "True", reason: "Ready", message: "" } as const;

function setOf(lastTransitionTime: string, managedAt?: string): SidecarSet {
  const managedFields = managedAt === undefined ? [] : [{ time: managedAt, fieldsV1: { "f:status": {} } }];
  const metadata = { name: "ss", uid: "uid", generation: 2, managedFields };
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata,
    spec: {},
    status: { observedGeneration: 1, conditions: [{ ...ready, lastTransitionTime }] },
  };
}
const EARLIER = "2026-01-01T00:00:00Z";
const stateOf = (set: SidecarSet, now: string, one = refusal) => storedVerdict(withRefusal(set, [one], now))?.verdict;

it("a SidecarSet whose status was refused a moment ago is Blocked, with the message of the Event", () => {
  const told = withRefusal(setOf(EARLIER), [{ ...refusal, text: "older", at: EARLIER }, refusal], AT);
  expect(told.status?.conditions).toContainEqual(
    expect.objectContaining({ type: "Blocked", status: "True", reason: "PassRefused", message: refusal.text }),
  );
  expect(stateOf(setOf(EARLIER), "2026-01-01T00:12:59Z")).toBe("Blocked");
});

it.each([
  ["it is three minutes old", setOf(EARLIER), "2026-01-01T00:13:00Z", refusal],
  ["its time is far ahead", setOf(EARLIER), AT, { ...refusal, at: "2026-01-01T00:13:00Z" }],
  ["its time cannot be read", setOf(EARLIER), AT, { ...refusal, at: "soon" }],
  ["a condition changed later", setOf("2026-01-01T00:10:01Z"), "2026-01-01T00:10:02Z", refusal],
  ["the managed fields say that the status was written later", setOf(EARLIER, "2026-01-01T00:10:01Z"), AT, refusal],
  ["it is about another SidecarSet of the same name", setOf(EARLIER), AT, { ...refusal, uid: "other" }],
] as const)("a refused status no longer counts if %s", (_, set, now, one) => {
  expect(withRefusal(set, [one], now)).toBe(set);
});
