import { describe, expect, it } from "vitest";
import { compileRegularExpression } from "../../../shared/go/regular-expression.ts";

function isMatch(pattern: string, text: string): boolean {
  const compiled = compileRegularExpression(pattern);
  if (compiled.kind === "malformed") throw new Error(compiled.message);
  return compiled.matches(text);
}

describe("regular expressions of users", () => {
  const rows: readonly (readonly [string, string, string, boolean])[] = [
    ["a pattern matches anywhere in the text", "oom", "my-oom-score", true],
    ["a pattern with ^ and $ matches only the whole text", "^oom$", "oom-score", false],
    ["an empty pattern matches everything", "", "x", true],
    ["a pattern may use the flags of Go", "(?i)OOM", "oom", true],
    ["a pattern may use the character classes of Go", "[[:alpha:]]{3}", "123", false],
  ];
  it.each(rows)("%s", (_sentence, pattern, text, matches) => {
    expect(isMatch(pattern, text)).toBe(matches);
  });

  it("a pattern that needs exponential time with backtracking is matched in linear time", () => {
    expect(isMatch("^(a+)+$", `${"a".repeat(50_000)}!`)).toBe(false);
  });
});

describe("malformed regular expressions", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["[", "error parsing regexp: missing closing ]: `[`"],
    ["(?!x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"],
    ["a**", "error parsing regexp: invalid nested repetition operator: `**`"],
    ["\\", "error parsing regexp: trailing backslash at end of expression: ``"],
    ["x{1001}", "error parsing regexp: invalid repeat count: `{1001}`"],
  ];
  it.each(rows)("the malformed pattern %s is refused with the error of Go", (pattern, message) => {
    expect(compileRegularExpression(pattern)).toEqual({ kind: "malformed", message });
  });
});
