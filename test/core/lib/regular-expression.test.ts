import { describe, expect, it } from "vitest";
import { compileRegularExpression } from "../../../shared/go/regular-expression.ts";

function isMatch(pattern: string, text: string): boolean {
  const compiled = compileRegularExpression(pattern);
  if (compiled.kind === "malformed") throw new Error(compiled.message);
  return compiled.matches(text);
}

describe("a user's pattern", () => {
  const rows: readonly (readonly [string, string, string, boolean])[] = [
    ["matches anywhere in the text", "oom", "my-oom-score", true],
    ["can be tied to both ends", "^oom$", "oom-score", false],
    ["matches everything when it is empty", "", "x", true],
    ["knows Go's flags", "(?i)OOM", "oom", true],
    ["knows Go's classes", "[[:alpha:]]{3}", "123", false],
  ];
  it.each(rows)("%s", (_sentence, pattern, text, matches) => {
    expect(isMatch(pattern, text)).toBe(matches);
  });

  it("takes linear time where backtracking would take for ever", () => {
    expect(isMatch("^(a+)+$", `${"a".repeat(50_000)}!`)).toBe(false);
  });
});

describe("a malformed pattern says what Go says", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["[", "error parsing regexp: missing closing ]: `[`"],
    ["(?!x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"],
    ["a**", "error parsing regexp: invalid nested repetition operator: `**`"],
    ["\\", "error parsing regexp: trailing backslash at end of expression: ``"],
    ["x{1001}", "error parsing regexp: invalid repeat count: `{1001}`"],
  ];
  it.each(rows)("%s", (pattern, message) => {
    expect(compileRegularExpression(pattern)).toEqual({ kind: "malformed", message });
  });
});
