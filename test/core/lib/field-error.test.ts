import { describe, expect, it, test } from "vitest";
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFound,
  notSupported,
  printFieldError,
  printFieldErrors,
  quote,
  required,
  tooLong,
} from "../../../shared/go/field-error.ts";

describe("printFieldError", () => {
  const rows: readonly (readonly [string, FieldError, string])[] = [
    ["a text value is printed in quotes", invalid("spec.x", "v", "must be w"), 'spec.x: Invalid value: "v": must be w'],
    [
      "a number is printed without quotes",
      invalid("spec.n", -1, "must be positive"),
      "spec.n: Invalid value: -1: must be positive",
    ],
    [
      "HTML characters in a struct are escaped as in Go's JSON",
      invalid("spec.s", { a: "<" }, "no"),
      'spec.s: Invalid value: {"a":"\\u003c"}: no',
    ],
    ["a struct is printed as JSON", invalid("spec.s", { a: "b" }, "no"), 'spec.s: Invalid value: {"a":"b"}: no'],
    ["a null value is printed as null", invalid("revision", null, "gone"), "revision: Invalid value: null: gone"],
    ["a missing required value is printed without a value", required("spec.x"), "spec.x: Required value"],
    [
      "a missing required value is printed with its reason",
      required("spec.x", "say it"),
      "spec.x: Required value: say it",
    ],
    ["a duplicate value is printed in quotes", duplicate("spec.x[1]", "a"), 'spec.x[1]: Duplicate value: "a"'],
    ["an unknown name is printed as not found", notFound("spec.x", "a"), 'spec.x: Not found: "a"'],
    [
      "an unsupported value is printed with the supported values",
      notSupported("spec.x", "c", ["a", "b"]),
      'spec.x: Unsupported value: "c": supported values: "a", "b"',
    ],
    ["a forbidden field is printed without its value", forbidden("spec.x", "not here"), "spec.x: Forbidden: not here"],
    [
      "a field that is too long is printed without its value",
      tooLong("spec.x", 63),
      "spec.x: Too long: may not be more than 63 bytes",
    ],
  ];
  it.each(rows)("%s", (_sentence, error, text) => {
    expect(printFieldError(error)).toBe(text);
  });
});

test("a field error holds the bad value, or a note that the value is omitted", () => {
  expect(tooLong("a", 1)).toEqual({
    type: "FieldValueTooLong",
    field: "a",
    detail: "may not be more than 1 bytes",
    badValue: "<value omitted>",
  });
  expect(printFieldError(tooLong("a", 1))).toBe("a: Too long: may not be more than 1 bytes");
  expect(printFieldError(invalid("a", "<\u0001>", "no"))).toBe('a: Invalid value: "<\\x01>": no');
  expect(required("a")).toEqual({ type: "FieldValueRequired", field: "a", detail: "", badValue: "" });
  expect(forbidden("a", "b")).toEqual({ type: "FieldValueForbidden", field: "a", detail: "b", badValue: "" });
  expect(notFound("a", "b")).toEqual({ type: "FieldValueNotFound", field: "a", detail: "", badValue: "b" });
  expect(duplicate("a", 1)).toEqual({ type: "FieldValueDuplicate", field: "a", detail: "", badValue: 1 });
});

describe("printFieldErrors", () => {
  it("an empty list of errors is printed as empty text", () => {
    expect(printFieldErrors([])).toBe("");
  });

  it("one error is printed without brackets", () => {
    expect(printFieldErrors([required("a")])).toBe("a: Required value");
  });

  it("several errors are printed in brackets, in their order and without duplicates", () => {
    expect(printFieldErrors([required("b"), required("a"), required("b")])).toBe(
      "[b: Required value, a: Required value]",
    );
  });

  it("equal errors are printed once and without brackets", () => {
    expect(printFieldErrors([required("a"), required("a")])).toBe("a: Required value");
  });
});

describe("quoted texts", () => {
  const rows = [
    ['say "hi"', '"say \\"hi\\""'],
    ["\\u0041\\x41", '"\\\\u0041\\\\x41"'],
    ["\b\f\r\t", '"\\b\\f\\r\\t"'],
    ["\u0080\u00a0\u2028\ufeff", '"\\u0080\\u00a0\\u2028\\ufeff"'],
    ["\u{e0001}😀", '"\\U000e0001😀"'],
    ["a\ud800", '"a\ufffd"'],
    ["a\\b", '"a\\\\b"'],
    ["\u0001\u0007\u000b\n\u007f", '"\\x01\\a\\v\\n\\x7f"'],
    ["é", '"é"'],
  ] as const;
  it.each(rows)("the function quote escapes the text %j as Go does", (text, quoted) => {
    expect(quote(text)).toBe(quoted);
  });
});
