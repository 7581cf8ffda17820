import { describe, expect, it } from "vitest";
import type { LabelSelector, Labels } from "../../../shared/api/kubernetes.ts";
import { isEmptySelector, selectorMatches } from "../../../shared/go/label-selector.ts";

function requirement(operator: string, ...values: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key: "app", operator, values }] };
}

describe("selectorMatches", () => {
  const rows: readonly (readonly [string, LabelSelector | undefined, Labels | undefined, boolean])[] = [
    ["no selector matches nothing", undefined, {}, false],
    ["an empty one matches everything", {}, undefined, true],
    ["so does one with empty lists", { matchLabels: {}, matchExpressions: [] }, { app: "web" }, true],
    ["every label must match", { matchLabels: { app: "web", tier: "x" } }, { app: "web" }, false],
    ["an empty value is not an absent label", { matchLabels: { app: "" } }, {}, false],
    [
      "labels and expressions must both match",
      { ...requirement("Exists"), matchLabels: { a: "b" } },
      { a: "b" },
      false,
    ],
    ["In takes any of its values", requirement("In", "db", "web"), { app: "web" }, true],
    ["In without values matches nothing", requirement("In"), { app: "web" }, false],
    ["NotIn takes an absent label", requirement("NotIn", "web"), {}, true],
    ["NotIn refuses its values", requirement("NotIn", "web"), { app: "web" }, false],
    ["Exists takes any value", requirement("Exists"), { app: "" }, true],
    ["DoesNotExist refuses any value", requirement("DoesNotExist"), { app: "" }, false],
    [
      "a label of an object's own method is absent",
      { matchExpressions: [{ key: "toString", operator: "Exists" }] },
      {},
      false,
    ],
  ];
  it.each(rows)("%s", (_sentence, selector, labels, matches) => {
    expect(selectorMatches(selector, labels)).toBe(matches);
  });

  it("matches nothing by null, as by no selector", () => {
    expect(selectorMatches(null as unknown as undefined, {})).toBe(false);
  });

  it.each(["Gt", "exists", ""])("cannot evaluate the operator %j, whatever else does not match", (operator) => {
    const selector: LabelSelector = { matchLabels: { a: "b" }, ...requirement(operator, "1") };
    const message = `"${operator}" is not a valid pod selector operator`;
    expect(selectorMatches(selector, {})).toEqual({ kind: "UnknownOperator", message });
  });
});

describe("an operator that cannot be evaluated", () => {
  it("is named as Go quotes it, also where there is none", () => {
    const withOperator = (operator: unknown) => ({ matchExpressions: [{ key: "a", operator: operator as string }] });
    expect(selectorMatches(withOperator("\u007f"), {})).toMatchObject({
      message: '"\\x7f" is not a valid pod selector operator',
    });
    expect(selectorMatches(withOperator(undefined), {})).toMatchObject({
      message: '"" is not a valid pod selector operator',
    });
  });
});

describe("isEmptySelector", () => {
  it("is true only without requirements", () => {
    expect(isEmptySelector({})).toBe(true);
    expect(isEmptySelector({ matchLabels: { a: "b" } })).toBe(false);
    expect(isEmptySelector(requirement("Exists"))).toBe(false);
  });
});
