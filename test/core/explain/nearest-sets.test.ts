import { describe, expect, it } from "vitest";
import type { LabelSelector, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { nearestSets } from "../../../shared/core/inspect/explain/explain.ts";
import { editDistance } from "../../../shared/go/unseen.ts";
import { listedPod } from "../../support/objects.ts";

const POD: Pod = listedPod({ name: "web-0", namespace: "shop", labels: { app: "webb", tier: "front" } });
const SHOP = { metadata: { name: "shop", labels: { "kubernetes.io/metadata.name": "shop", team: "red" } } };
const setOf = (name: string, spec: SidecarSetSpec): SidecarSet => ({ metadata: { name }, spec });
const byLabels = (name: string, matchLabels: LabelSelector["matchLabels"]) =>
  setOf(name, { selector: { matchLabels: matchLabels ?? {} } });
const told = (sets: readonly SidecarSet[]) =>
  nearestSets(POD, SHOP, sets).map(({ sidecarSet, steps }) => [sidecarSet, ...steps.map(({ message }) => message)]);

describe("nearestSets for a pod that no SidecarSet selects:", () => {
  it("nearestSets returns at most three SidecarSets, and the ones with the fewest unmet requirements come first", () => {
    const sets = [
      byLabels("both", { app: "x", tier: "y" }),
      byLabels("one", { app: "x", tier: "front" }),
      byLabels("three", { app: "x", tier: "y", zone: "z" }),
      byLabels("four", { app: "x", tier: "y", zone: "z", more: "m" }),
    ];
    expect(told(sets).map(([name]) => name)).toEqual(["one", "both", "three"]);
  });

  it("equal SidecarSets are sorted: first a value with a typo, then another value, then an absent label", () => {
    const sets = [
      byLabels("absent", { zone: "a" }),
      byLabels("other", { app: "kafka" }),
      byLabels("typo", { app: "web" }),
    ];
    expect(told(sets).map(([name]) => name)).toEqual(["typo", "other", "absent"]);
  });

  it.each<readonly [string, SidecarSetSpec, readonly RegExp[]]>([
    ["a label's value", { selector: { matchLabels: { app: "web" } } }, [/: app is webb, wanted web$/]],
    [
      "several labels",
      { selector: { matchLabels: { app: "web", zone: "a" } } },
      [/: app is webb, wanted web; zone is absent, wanted a$/],
    ],
    [
      "an expression",
      { selector: { matchExpressions: [{ key: "tier", operator: "NotIn", values: ["front", "edge"] }] } },
      [/: tier is front, wanted NotIn front, edge$/],
    ],
    [
      "the namespace",
      { selector: { matchLabels: { app: "webb" } }, namespaceSelector: { matchLabels: { team: "blue" } } },
      [/^namespaceSelector does not select the namespace shop: team is red, wanted blue$/],
    ],
    [
      "the labels and the namespace",
      { selector: { matchLabels: { app: "web" } }, namespaceSelector: { matchLabels: { team: "blue" } } },
      [/pod's labels: app is/, /namespace shop: team is/],
    ],
    ["the missing selector", {}, [/has no selector/]],
  ])("nearestSets names %s as the reason", (_, spec, messages) => {
    const [[name, ...texts] = []] = told([setOf("a", spec)]);
    expect(name).toBe("a");
    expect(texts).toEqual(messages.map((one) => expect.stringMatching(one)));
  });

  it("nearestSets says that the labels of the namespace cannot be read", () => {
    const spec = { selector: { matchLabels: { app: "webb" } }, namespaceSelector: { matchLabels: { team: "blue" } } };
    const [near] = nearestSets(POD, undefined, [setOf("a", spec)]);
    expect(near?.steps.map(({ message }) => message)).toEqual([expect.stringMatching(/its labels cannot be read$/)]);
  });
});

describe("editDistance:", () => {
  it.each([
    ["web", "web", 0],
    ["web", "webb", 1],
    ["web", "wob", 1],
    ["", "abc", 3],
    ["kitten", "sitting", 3],
  ])('editDistance of "%s" and "%s" is %i', (a, b, distance) => {
    expect([editDistance(a, b), editDistance(b, a)]).toEqual([distance, distance]);
  });
});
