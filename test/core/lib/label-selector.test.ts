import { describe, expect, it } from "vitest";
import type { LabelSelector, Labels } from "../../../shared/api/kubernetes.ts";
import { isEmptySelector, selectorMatches } from "../../../shared/go/label-selector.ts";

function requirement(operator: string, ...values: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key: "app", operator, values }] };
}

describe("selectorMatches", () => {
  const rows: readonly (readonly [string, LabelSelector | undefined, Labels | undefined, boolean])[] = [
    ["a missing selector matches nothing", undefined, {}, false],
    ["an empty selector matches everything", {}, undefined, true],
    ["a selector with empty lists matches everything", { matchLabels: {}, matchExpressions: [] }, { app: "web" }, true],
    [
      "a selector does not match when one of its labels is missing",
      { matchLabels: { app: "web", tier: "x" } },
      { app: "web" },
      false,
    ],
    ["an empty value in the selector does not match a missing label", { matchLabels: { app: "" } }, {}, false],
    [
      "a selector does not match when only its labels match and an expression does not",
      { ...requirement("Exists"), matchLabels: { a: "b" } },
      { a: "b" },
      false,
    ],
    ["In matches any of its values", requirement("In", "db", "web"), { app: "web" }, true],
    ["In without values matches nothing", requirement("In"), { app: "web" }, false],
    ["NotIn matches a missing label", requirement("NotIn", "web"), {}, true],
    ["NotIn does not match its values", requirement("NotIn", "web"), { app: "web" }, false],
    ["Exists matches a label with an empty value", requirement("Exists"), { app: "" }, true],
    ["DoesNotExist does not match a label with an empty value", requirement("DoesNotExist"), { app: "" }, false],
    [
      "a label named like a JavaScript method counts as missing",
      { matchExpressions: [{ key: "toString", operator: "Exists" }] },
      {},
      false,
    ],
  ];
  it.each(rows)("%s", (_sentence, selector, labels, matches) => {
    expect(selectorMatches(selector, labels)).toBe(matches);
  });

  it("a null selector matches nothing", () => {
    expect(selectorMatches(null as unknown as undefined, {})).toBe(false);
  });

  it.each(["Gt", "exists", ""])(
    "the unknown operator %j is an error even when another label does not match",
    (operator) => {
      const selector: LabelSelector = { matchLabels: { a: "b" }, ...requirement(operator, "1") };
      const message = `"${operator}" is not a valid pod selector operator`;
      expect(selectorMatches(selector, {})).toEqual({ kind: "UnknownOperator", message });
    },
  );
});

describe("the error about an unknown operator", () => {
  it("the error quotes the operator as Go does, and a missing operator as empty text", () => {
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
  it("only a selector without requirements is empty", () => {
    expect(isEmptySelector({})).toBe(true);
    expect(isEmptySelector({ matchLabels: { a: "b" } })).toBe(false);
    expect(isEmptySelector(requirement("Exists"))).toBe(false);
  });
});
