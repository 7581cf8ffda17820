import { evaluate } from "@marcbachmann/cel-js";
import { describe, expect, test } from "vitest";
import type { LabelSelector, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { callCondition, widenedBy, widenedBySidecarSet } from "../../../shared/core/injection/match/call-condition.ts";
import { listedPod } from "../../support/objects.ts";

const NAMESPACE_NAME = "kubernetes.io/metadata.name";
const WEB: LabelSelector = { matchLabels: { app: "web" } };

function sidecarSet(selector?: LabelSelector, namespaceSelector?: LabelSelector): SidecarSet {
  return { spec: { ...(selector ? { selector } : {}), ...(namespaceSelector ? { namespaceSelector } : {}) } };
}

function pod(metadata: Pod["metadata"] = {}, ...env: readonly string[]): Pod {
  const variables = env.length > 0 ? { env: env.map((name) => ({ name })) } : {};
  return listedPod(metadata, { containers: [{ name: "main" }, { name: "other", ...variables }] });
}

function isAsked(sidecarSets: readonly SidecarSet[], object: Pod, namespace = "shop"): unknown {
  return evaluate(callCondition(sidecarSets) ?? "", { object, request: { namespace } });
}

const web = pod({ labels: { app: "web", tier: "front" } });
const matching = (operator: string, values?: readonly string[]): LabelSelector => ({
  matchExpressions: [{ key: "app", operator, ...(values ? { values } : {}) }],
});

describe("pods that the webhook is called for", () => {
  test.each<[string, readonly SidecarSet[], Pod]>([
    ["whose label has the selected value", [sidecarSet(WEB)], web],
    ["whose labels all have the selected values", [sidecarSet({ matchLabels: { app: "web", tier: "front" } })], web],
    ["that one of several SidecarSets selects", [sidecarSet({ matchLabels: { app: "api" } }), sidecarSet(WEB)], web],
    ["whose label value is in an In list", [sidecarSet(matching("In", ["api", "web"]))], web],
    ["whose label value is not in a NotIn list", [sidecarSet(matching("NotIn", ["api"]))], web],
    ["without the label of a NotIn list", [sidecarSet(matching("NotIn", ["web"]))], pod()],
    ["with the label of an Exists selector", [sidecarSet(matching("Exists"))], web],

    ["without any labels when the selector is DoesNotExist", [sidecarSet(matching("DoesNotExist"))], pod()],

    [
      "with the annotation for an ordered container launch",
      [],
      pod({ annotations: { "apps.kruise.io/container-launch-priority": "Ordered" } }),
    ],
    ["with a container that has a launch priority", [], pod({}, "A", "KRUISE_CONTAINER_PRIORITY")],
    [
      "that a workload of OpenKruise owns",
      [],
      pod({ ownerReferences: [{ apiVersion: "apps.kruise.io/v1beta1", kind: "CloneSet", name: "c", uid: "u" }] }),
    ],
  ])("the webhook is called for a pod %s", (_, sidecarSets, object) => {
    expect(isAsked(sidecarSets, object)).toBe(true);
  });
});

describe("pods that the webhook is not called for", () => {
  test.each<[string, readonly SidecarSet[], Pod]>([
    ["when there are no SidecarSets", [], web],
    ["when no SidecarSet has a selector", [sidecarSet(), sidecarSet({})], web],
    ["whose label has another value", [sidecarSet(WEB)], pod({ labels: { app: "api" } })],
    ["that lacks one of the selected labels", [sidecarSet({ matchLabels: { app: "web", zone: "a" } })], web],
    ["that has no labels", [sidecarSet(WEB)], pod()],
    ["whose label value is not in an In list", [sidecarSet(matching("In", ["api"]))], web],
    ["when the In list is empty", [sidecarSet(matching("In"))], web],
    ["whose label value is in a NotIn list", [sidecarSet(matching("NotIn", ["web"]))], web],
    ["without the label of an Exists selector", [sidecarSet(matching("Exists"))], pod({ labels: { tier: "x" } })],
    ["with the label of a DoesNotExist selector", [sidecarSet(matching("DoesNotExist"))], web],
    [
      "outside of the namespace that the namespaceSelector names",
      [sidecarSet(WEB, { matchLabels: { [NAMESPACE_NAME]: "lab" } })],
      web,
    ],
    [
      "with unrelated annotations, variables and owners",
      [],
      {
        ...pod(
          {
            annotations: { a: "b" },
            ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "u" }],
          },
          "A",
        ),
      },
    ],
  ])("the webhook is not called for a pod %s", (_, sidecarSets, object) => {
    expect(isAsked(sidecarSets, object)).toBe(false);
  });
});

describe("conditions that cannot be written", () => {
  test("callCondition returns no condition when a selector is malformed, because the webhook refuses its pods", () => {
    expect(callCondition([sidecarSet(WEB), sidecarSet(matching("Like", ["web"]))])).toBeUndefined();
  });

  test("callCondition returns no condition when it would be too long", () => {
    const many = Array.from({ length: 400 }, (_, index) => sidecarSet({ matchLabels: { app: `app-${index}` } }));
    expect(callCondition(many)).toBeUndefined();
    expect(callCondition(many.slice(0, 100))).toContain('"app-99"');
  });
});

test("neither duplicate selectors nor the order of SidecarSets and values change the condition", () => {
  const api = sidecarSet({ matchLabels: { app: "api" } });
  expect(callCondition([sidecarSet(WEB), api, sidecarSet(WEB)])).toBe(callCondition([api, sidecarSet(WEB)]));
  const values = (list: readonly string[]) => callCondition([sidecarSet(matching("In", list))]);
  expect(values(["b", "a", "b"])).toBe(values(["a", "b"]));
});

describe("widening a condition", () => {
  const api = sidecarSet({ matchLabels: { app: "api" } });
  const web = sidecarSet(WEB);
  const bars = sidecarSet(matching("In", ['a") || (b', 'a") || (b', "c"]));
  const isTrue = (condition: string | undefined, app: string) =>
    evaluate(condition ?? "", { object: pod({ labels: { app } }), request: { namespace: "shop" } });

  test("a widened condition is true for the pods of the new SidecarSet and of the earlier ones", () => {
    const condition = widenedBySidecarSet(callCondition([api]), web);
    expect(["api", "web", "other"].map((app) => isTrue(condition, app))).toEqual([true, true, false]);
  });

  test("a condition widened by another one is true when either is true, with any label values", () => {
    const condition = widenedBy(callCondition([bars]), callCondition([web]));
    expect(['a") || (b', "c", "web", "b"].map((app) => isTrue(condition, app))).toEqual([true, true, true, false]);
  });

  test("widening returns no condition when a condition is missing, malformed or too long", () => {
    const condition = callCondition([web]);
    const many = callCondition(
      Array.from({ length: 50 }, (_, index) => sidecarSet({ matchLabels: { app: `app-${index}` } })),
    );
    const long = sidecarSet(
      matching(
        "In",
        Array.from({ length: 2_000 }, (_, index) => `value-${index}`),
      ),
    );
    expect([many !== undefined, widenedBySidecarSet(many, long)]).toEqual([true, undefined]);
    expect(widenedBySidecarSet(condition, sidecarSet(matching("Like", ["w"])))).toBeUndefined();
    expect(widenedBySidecarSet(undefined, web)).toBeUndefined();
    expect([widenedBy(undefined, condition), widenedBy(condition, undefined)]).toEqual([undefined, undefined]);
  });
});
