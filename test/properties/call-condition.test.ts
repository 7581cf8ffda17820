/** Tests the pods that the API server does not send: the webhook would not change them. */
import { evaluate } from "@marcbachmann/cel-js";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { LabelSelector, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { callCondition, isCalledFor } from "../../shared/core/injection/match/call-condition.ts";
import { matches } from "../../shared/core/injection/match/matches.ts";
import { admission } from "./admission.ts";
import { NAMESPACE, scenes } from "./arbitraries.ts";
import { holds } from "./holds.ts";
import { pick } from "./pods.ts";

const NAMESPACE_NAME = "kubernetes.io/metadata.name";

const key = pick("app", "tier", "example.com/env");
const value = pick("a", "b", "", 'it\'s \\ "c"');
const requirement = fc.record({
  key,
  operator: pick("In", "NotIn", "Exists", "DoesNotExist", "In", "NotIn", "Like"),
  values: fc.array(value, { maxLength: 3 }),
});
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  { matchLabels: fc.dictionary(key, value), matchExpressions: fc.array(requirement, { maxLength: 2 }) },
  { requiredKeys: [] },
);
const namespaceSelector: fc.Arbitrary<LabelSelector> = fc.oneof(
  selector,
  fc.array(pick("n1", "n2"), { maxLength: 2 }).map((values) => ({
    matchExpressions: [{ key: NAMESPACE_NAME, operator: "In", values }],
  })),
);
const sidecarSet: fc.Arbitrary<SidecarSet> = fc.record({
  spec: fc.record({ selector, namespaceSelector }, { requiredKeys: [] }),
});
const pods: fc.Arbitrary<Pod> = fc
  .record({ labels: fc.dictionary(key, value), annotations: fc.dictionary(key, value) }, { requiredKeys: [] })
  .map((metadata) => ({ metadata, spec: { containers: [{ name: "main" }] } }));

function isCalled(expression: string | undefined, pod: Pod, namespace: string): boolean {
  return expression === undefined || evaluate(expression, { object: pod, request: { namespace } }) === true;
}

function namespaceOf(name: string): Namespace {
  return { metadata: { name, labels: { [NAMESPACE_NAME]: name } } };
}

/** True if the API server can evaluate all selectors of the SidecarSet. */
function isVisible({ spec: { namespaceSelector } }: SidecarSet): boolean {
  return namespaceSelector === undefined || NAMESPACE_NAME === namespaceSelector.matchExpressions?.[0]?.key;
}

test("callCondition is true for every pod that a SidecarSet matches, and false for other pods if possible", () => {
  let pairs = 0;
  let cases = 0;
  const scenes = fc.record({
    sidecarSets: fc.array(sidecarSet, { maxLength: 4 }),
    candidates: fc.array(pods, { minLength: 4, maxLength: 4 }),
    name: pick("n1", "n2"),
  });
  holds(scenes, ["matched", "malformed", "spared"], ({ sidecarSets, candidates, name }, seen) => {
    cases++;
    const expression = callCondition(sidecarSets);
    for (const pod of candidates) {
      pairs += sidecarSets.length;
      const subject = { namespace: namespaceOf(name), podLabels: pod.metadata?.labels };
      const outcomes = sidecarSets.map((one) => matches(one, subject));
      const isMatched = outcomes.some((outcome) => outcome !== false);
      const called = isCalled(expression, pod, name);
      seen("matched", isMatched);
      seen(
        "malformed",
        outcomes.some((outcome) => typeof outcome === "object"),
      );
      seen("spared", !called);
      if (isMatched) expect(called).toBe(true);
      else if (expression !== undefined && sidecarSets.every(isVisible)) expect(called).toBe(false);
    }
  });
  process.stdout.write(`call condition: ${pairs} pairs of pod and SidecarSet\n`);
  expect(pairs).toBeGreaterThan(cases);
});

test("the webhook would not change a pod for which callCondition is false", () => {
  holds(scenes, ["spared", "asked about"], (scene, seen) => {
    const called = isCalled(callCondition(scene.sidecarSets), scene.pod, NAMESPACE.metadata?.name ?? "");
    seen(called ? "asked about" : "spared");
    if (!called) expect(admission(scene)).toEqual({ kind: "allowed" });
  });
});

test("callCondition returns no condition for 400 SidecarSets and a condition for 50", () => {
  const many = Array.from({ length: 400 }, (_, index) => ({
    spec: { selector: { matchLabels: { app: `app-${index}` } } },
  }));
  expect(callCondition(many)).toBeUndefined();
  expect(callCondition(many.slice(0, 50))).toContain('"app-49"');
});

test("explain reads a condition as the API server evaluates it, or says that it does not know", () => {
  const scenes = fc.record({
    registered: fc.array(sidecarSet, { maxLength: 3 }),
    added: fc.array(sidecarSet, { maxLength: 2 }),
    isOneGone: fc.boolean(),
    pod: pods,
    name: pick("n1", "n2"),
  });
  holds(scenes, ["asked", "not asked", "unknown"], ({ registered, added, isOneGone, pod, name }, seen) => {
    const expression = callCondition(registered);
    if (expression === undefined) return;
    const own = { ...pod, metadata: { ...pod.metadata, namespace: name } };
    const read = isCalledFor(expression, own, [...registered.slice(isOneGone ? 1 : 0), ...added]);
    seen(read === undefined ? "unknown" : read ? "asked" : "not asked", true);
    expect(read ?? isCalled(expression, own, name)).toBe(isCalled(expression, own, name));
  });
});
