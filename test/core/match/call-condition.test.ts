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

describe("a pod is asked about", () => {
  test.each<[string, readonly SidecarSet[], Pod]>([
    ["when a label has the value", [sidecarSet(WEB)], web],
    ["when all labels have", [sidecarSet({ matchLabels: { app: "web", tier: "front" } })], web],
    ["when one of several SidecarSets selects it", [sidecarSet({ matchLabels: { app: "api" } }), sidecarSet(WEB)], web],
    ["when the value is in the list", [sidecarSet(matching("In", ["api", "web"]))], web],
    ["when the value is not in the list", [sidecarSet(matching("NotIn", ["api"]))], web],
    ["when the label is not there", [sidecarSet(matching("NotIn", ["web"]))], pod()],
    ["when a label exists", [sidecarSet(matching("Exists"))], web],
    ["when none may", [sidecarSet(matching("DoesNotExist"))], pod({ labels: { tier: "web" } })],
    ["when it has no labels, and none may", [sidecarSet(matching("DoesNotExist"))], pod()],
    ["when labels of namespaces decide", [sidecarSet(WEB, { matchLabels: { team: "a" } })], web],
    ["when its namespace is named", [sidecarSet(WEB, { matchLabels: { [NAMESPACE_NAME]: "shop" } })], web],
    ["when it starts in order", [], pod({ annotations: { "apps.kruise.io/container-launch-priority": "Ordered" } })],
    ["when a container has a priority", [], pod({}, "A", "KRUISE_CONTAINER_PRIORITY")],
    [
      "when OpenKruise made it",
      [],
      pod({ ownerReferences: [{ apiVersion: "apps.kruise.io/v1beta1", kind: "CloneSet", name: "c", uid: "u" }] }),
    ],
  ])("%s", (_, sidecarSets, object) => {
    expect(isAsked(sidecarSets, object)).toBe(true);
  });
});

describe("a pod is not asked about", () => {
  test.each<[string, readonly SidecarSet[], Pod]>([
    ["without SidecarSets", [], web],
    ["when none has a selector", [sidecarSet(), sidecarSet({})], web],
    ["when the label has another value", [sidecarSet(WEB)], pod({ labels: { app: "api" } })],
    ["when one of the labels is missing", [sidecarSet({ matchLabels: { app: "web", zone: "a" } })], web],
    ["when it has no labels", [sidecarSet(WEB)], pod()],
    ["when the value is not in the list", [sidecarSet(matching("In", ["api"]))], web],
    ["when the list is empty", [sidecarSet(matching("In"))], web],
    ["when the value is in a list of others", [sidecarSet(matching("NotIn", ["web"]))], web],
    ["when the label does not exist", [sidecarSet(matching("Exists"))], pod({ labels: { tier: "x" } })],
    ["when the label may not exist", [sidecarSet(matching("DoesNotExist"))], web],
    ["when another namespace is named", [sidecarSet(WEB, { matchLabels: { [NAMESPACE_NAME]: "lab" } })], web],
    [
      "when it has other annotations, variables and owners",
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
  ])("%s", (_, sidecarSets, object) => {
    expect(isAsked(sidecarSets, object)).toBe(false);
  });
});

describe("every pod is asked about", () => {
  test("when a selector is malformed: the webhook refuses all pods of it", () => {
    expect(callCondition([sidecarSet(WEB), sidecarSet(matching("Like", ["web"]))])).toBeUndefined();
  });

  test("when the condition gets long", () => {
    const many = Array.from({ length: 400 }, (_, index) => sidecarSet({ matchLabels: { app: `app-${index}` } }));
    expect(callCondition(many)).toBeUndefined();
    expect(callCondition(many.slice(0, 100))).toContain('"app-99"');
  });
});

test("the same selector counts once, and the order of SidecarSets changes nothing", () => {
  const api = sidecarSet({ matchLabels: { app: "api" } });
  expect(callCondition([sidecarSet(WEB), api, sidecarSet(WEB)])).toBe(callCondition([api, sidecarSet(WEB)]));
  const values = (list: readonly string[]) => callCondition([sidecarSet(matching("In", list))]);
  expect(values(["b", "a", "b"])).toBe(values(["a", "b"]));
});

describe("a condition that is widened", () => {
  const api = sidecarSet({ matchLabels: { app: "api" } });
  const web = sidecarSet(WEB);
  const notWeb = sidecarSet(matching("NotIn", ["web"]));
  const bars = sidecarSet(matching("In", ['a") || (b', 'a") || (b', "c"]));
  const isTrue = (condition: string | undefined, app: string) =>
    evaluate(condition ?? "", { object: pod({ labels: { app } }), request: { namespace: "shop" } });

  test("is true for the pods of the new SidecarSet too, and for those before", () => {
    const condition = widenedBySidecarSet(callCondition([api]), web);
    expect(["api", "web", "other"].map((app) => isTrue(condition, app))).toEqual([true, true, false]);
  });

  test("is the same text when it says so already", () => {
    const condition = callCondition([api, web, bars]);
    expect(condition).toBeDefined();
    for (const known of [api, web, bars, sidecarSet(), sidecarSet({})])
      expect(widenedBySidecarSet(condition, known)).toBe(condition);
    expect(widenedBy(condition, callCondition([web]))).toBe(condition);
  });

  test("knows a reason from its negation, which has the same text in it", () => {
    const condition = widenedBySidecarSet(callCondition([notWeb]), sidecarSet(matching("In", ["web"])));
    expect(["web", "other"].map((app) => isTrue(condition, app))).toEqual([true, true]);
  });

  test("by another condition is true where either is, whatever users wrote into it", () => {
    const condition = widenedBy(callCondition([bars]), callCondition([web]));
    expect(['a") || (b', "c", "web", "b"].map((app) => isTrue(condition, app))).toEqual([true, true, true, false]);
  });

  test("is none any more where it can't be said, or is too long", () => {
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
