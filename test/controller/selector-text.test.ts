import { expect, it } from "vitest";
import type { LabelSelector } from "../../shared/api/kubernetes.ts";
import { selectorText } from "../../shared/controller/loop/pages.ts";

const expression = (operator: string, values?: string[]): LabelSelector => ({
  matchExpressions: [{ key: "tier", operator, ...(values ? { values } : {}) }],
});

it.each([
  { name: "an empty selector becomes an empty text", selector: {}, text: "" },
  {
    name: "labels and expressions become one text",
    selector: { matchLabels: { app: "web", "a.b/c": "" }, ...expression("Exists") },
    text: "app in (web),a.b/c in (),tier",
  },
  { name: 'the operator In becomes "in"', selector: expression("In", ["a", "b"]), text: "tier in (a,b)" },
  { name: 'the operator NotIn becomes "notin"', selector: expression("NotIn", ["a"]), text: "tier notin (a)" },
  { name: 'the operator DoesNotExist becomes "!"', selector: expression("DoesNotExist"), text: "!tier" },
  { name: "the operator In without values has no text", selector: expression("In", []), text: undefined },
  { name: "an unknown operator has no text", selector: expression("Gt", ["1"]), text: undefined },
  { name: "a value that no label can have has no text", selector: { matchLabels: { app: "a,b" } }, text: undefined },
  { name: "a key that no label can have has no text", selector: { matchLabels: { "a b": "c" } }, text: undefined },
])("selectorText writes a selector as a query: $name", ({ selector, text }) => {
  expect(selectorText(selector)).toBe(text);
});
