import { describe, expect, it } from "vitest";
import type { LabelSelector } from "../../shared/api/kubernetes.ts";
import { selectorText } from "../../shared/controller/loop/selector-text.ts";

const expression = (operator: string, values?: string[]): LabelSelector => ({
  matchExpressions: [{ key: "tier", operator, ...(values ? { values } : {}) }],
});

describe("a selector as a query", () => {
  it.each([
    { name: "empty selects everything", selector: {}, text: "" },
    {
      name: "labels and expressions together",
      selector: { matchLabels: { app: "web", "a.b/c": "" }, ...expression("Exists") },
      text: "app in (web),a.b/c in (),tier",
    },
    { name: "In", selector: expression("In", ["a", "b"]), text: "tier in (a,b)" },
    { name: "NotIn", selector: expression("NotIn", ["a"]), text: "tier notin (a)" },
    { name: "DoesNotExist", selector: expression("DoesNotExist"), text: "!tier" },
    { name: "In without values cannot be sent", selector: expression("In", []), text: undefined },
    { name: "an unknown operator cannot be sent", selector: expression("Gt", ["1"]), text: undefined },
    { name: "a value no label can have cannot be sent", selector: { matchLabels: { app: "a,b" } }, text: undefined },
    { name: "a key no label can have cannot be sent", selector: { matchLabels: { "a b": "c" } }, text: undefined },
  ])("$name", ({ selector, text }) => {
    expect(selectorText(selector)).toBe(text);
  });
});
