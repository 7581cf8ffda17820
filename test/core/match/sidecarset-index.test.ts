import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LabelSelector } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { matches, namespaceKeys } from "../../../shared/core/injection/match/matches.ts";
import { candidates, indexSidecarSets } from "../../../shared/core/injection/match/sidecarset-index.ts";
import { compareUtf8 } from "../../../shared/go/json/go-json.ts";

const NAMESPACE_NAME = "kubernetes.io/metadata.name";

function sidecarSet(name: string, selector?: LabelSelector, namespaceSelector?: LabelSelector): SidecarSet {
  return {
    metadata: { name },
    spec: { ...(selector ? { selector } : {}), ...(namespaceSelector ? { namespaceSelector } : {}) },
  };
}

function names(sidecarSets: readonly SidecarSet[]): readonly (string | undefined)[] {
  return sidecarSets.map(({ metadata }) => metadata?.name);
}

const key = fc.constantFrom("app", "tier", "env");
const value = fc.constantFrom("a", "b", "c");
const expression = fc.record({
  key,
  operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist", "Unknown"),
  values: fc.array(value, { maxLength: 3 }),
});
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  { matchLabels: fc.dictionary(key, value), matchExpressions: fc.array(expression, { maxLength: 2 }) },
  { requiredKeys: [] },
);
const namespaceSelector: fc.Arbitrary<LabelSelector> = fc.oneof(
  selector,
  fc.constant({ matchLabels: { [NAMESPACE_NAME]: "n1" } }),
  fc.array(fc.constantFrom("n1", "n2"), { maxLength: 3 }).map((values) => ({
    matchExpressions: [{ key: NAMESPACE_NAME, operator: "In", values }],
  })),
);
const sidecarSets = fc.uniqueArray(
  fc
    .tuple(fc.string({ maxLength: 3 }), fc.option(selector), fc.option(namespaceSelector))
    .map(([name, pods, namespaces]) => sidecarSet(name, pods ?? undefined, namespaces ?? undefined)),
  { selector: ({ metadata }) => metadata?.name, maxLength: 12 },
);

describe("the index of SidecarSets", () => {
  test("the index finds every SidecarSet that matches or has an error, sorted by name, with the namespace's own first", () => {
    const labels = fc.dictionary(key, value);
    fc.assert(
      fc.property(sidecarSets, labels, labels, (all, podLabels, namespaceLabels) => {
        const namespace = { metadata: { name: "n1", labels: { ...namespaceLabels, [NAMESPACE_NAME]: "n1" } } };
        const isRelevant = (candidate: SidecarSet) => matches(candidate, { namespace, podLabels }) !== false;
        const byName = all.toSorted((a, b) => compareUtf8(a.metadata?.name ?? "", b.metadata?.name ?? ""));
        const expected = [
          ...byName.filter((candidate) => namespaceKeys(candidate)?.includes("n1")),
          ...byName.filter((candidate) => namespaceKeys(candidate) === undefined),
        ].filter(isRelevant);
        const found = candidates(indexSidecarSets(all), "n1", podLabels);
        expect(names(found.filter(isRelevant))).toEqual(names(expected));
        expect(new Set(found).size).toBe(found.length);
      }),
      { numRuns: 1000 },
    );
  });

  test("among 20,000 SidecarSets that share a label, the index finds the one with the pod's own label", () => {
    const all = Array.from({ length: 20_000 }, (_, index) =>
      sidecarSet(`s${index}`, { matchLabels: { team: "all", app: `app-${index}` } }),
    );
    const found = candidates(indexSidecarSets(all), "default", { team: "all", app: "app-7" });
    expect(names(found)).toEqual(["s7"]);
  });

  const rows: readonly [
    sentence: string,
    selector: LabelSelector | undefined,
    namespaces: readonly string[] | undefined,
  ][] = [
    ["a SidecarSet without a namespaceSelector names no namespace", undefined, undefined],
    ["a namespaceSelector with another label names no namespace", { matchLabels: { env: "prod" } }, undefined],
    ["a namespace name in matchLabels is the only namespace", { matchLabels: { [NAMESPACE_NAME]: "n" } }, ["n"]],
    [
      "only the first In with namespace names is used",
      {
        matchExpressions: [
          { key: NAMESPACE_NAME, operator: "NotIn", values: ["x"] },
          { key: NAMESPACE_NAME, operator: "In", values: ["a", "b"] },
          { key: NAMESPACE_NAME, operator: "In", values: ["c"] },
        ],
      },
      ["a", "b"],
    ],
  ];
  test.each(rows)("%s", (_, namespaces, expected) => {
    expect(namespaceKeys(sidecarSet("s", { matchLabels: { a: "b" } }, namespaces))).toEqual(expected);
  });

  test("the error about a selector that cannot be evaluated names its SidecarSet", () => {
    const broken = sidecarSet("broken", { matchExpressions: [{ key: "app", operator: "Bad" }] });
    const found = candidates(indexSidecarSets([broken]), "default", {});
    expect(found).toEqual([broken]);
    expect(matches(broken, { namespace: undefined, podLabels: {} })).toEqual({
      kind: "UnknownOperator",
      message: '"Bad" is not a valid pod selector operator',
      sidecarSet: "broken",
    });
  });
});
