import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonProblem } from "../../../shared/go/json/json-problem.ts";

describe("errors of invalid JSON", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["", "unexpected end of JSON input"],
    ["{bad", "invalid character 'b' looking for beginning of object key string"],
    ['{"a"}', "invalid character '}' after object key"],
    ['{"a":1 "b":2}', "invalid character '\"' after object key:value pair"],
    ["[1 2]", "invalid character '2' after array element"],
    ["{} x", "invalid character 'x' after top-level value"],
    ["nul", "invalid character ' ' in literal null (expecting 'l')"],
    ["'a'", "invalid character '\\'' looking for beginning of value"],
    ['"a\nb"', "invalid character '\\n' in string literal"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
    ["-", "invalid character ' ' in numeric literal"],
    ["1.", "invalid character ' ' after decimal point in numeric literal"],
    ["1e", "invalid character ' ' in exponent of numeric literal"],
    ["01", "invalid character '1' after top-level value"],
    ["{ } x", "invalid character 'x' after top-level value"],
    ["[ ] x", "invalid character 'x' after top-level value"],
    ['"\\u00e9z" x', "invalid character 'x' after top-level value"],
    ['" " x', "invalid character 'x' after top-level value"],
    ["é", "invalid character 'Ã' looking for beginning of value"],
  ];
  it.each(rows)("jsonProblem describes the error in the text %j as Go does", (text, problem) => {
    expect(jsonProblem(text)).toBe(problem);
  });

  it.each(["[", '{"a":', "[{}, "])(
    "jsonProblem reports too many levels when %j is repeated 100,000 times",
    (opening) => {
      expect(jsonProblem(opening.repeat(100_000))).toBe("exceeded max depth");
      expect(jsonProblem(opening.repeat(999))).toBe("unexpected end of JSON input");
    },
  );

  it("jsonProblem finds no error exactly when JSON.parse accepts the text", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.json().map((text) => text.slice(0, -1)),
        ),
        (text) => {
          let isJson = true;
          try {
            JSON.parse(text);
          } catch {
            isJson = false;
          }
          expect(jsonProblem(text) === undefined).toBe(isJson);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
