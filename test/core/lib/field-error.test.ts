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

describe("a field error prints as apimachinery prints it", () => {
  const rows: readonly (readonly [string, FieldError, string])[] = [
    ["text in quotes", invalid("spec.x", "v", "must be w"), 'spec.x: Invalid value: "v": must be w'],
    ["a number bare", invalid("spec.n", -1, "must be positive"), "spec.n: Invalid value: -1: must be positive"],
    ["a struct as Go's JSON", invalid("spec.s", { a: "<" }, "no"), 'spec.s: Invalid value: {"a":"\\u003c"}: no'],
    ["a struct as JSON", invalid("spec.s", { a: "b" }, "no"), 'spec.s: Invalid value: {"a":"b"}: no'],
    ["nothing as null", invalid("revision", null, "gone"), "revision: Invalid value: null: gone"],
    ["a missing value without it", required("spec.x"), "spec.x: Required value"],
    ["a missing value with its reason", required("spec.x", "say it"), "spec.x: Required value: say it"],
    ["a repeated value", duplicate("spec.x[1]", "a"), 'spec.x[1]: Duplicate value: "a"'],
    ["an unknown name", notFound("spec.x", "a"), 'spec.x: Not found: "a"'],
    [
      "a value that is none of the known ones",
      notSupported("spec.x", "c", ["a", "b"]),
      'spec.x: Unsupported value: "c": supported values: "a", "b"',
    ],
    ["what is forbidden without its value", forbidden("spec.x", "not here"), "spec.x: Forbidden: not here"],
    ["what is too long without its value", tooLong("spec.x", 63), "spec.x: Too long: may not be more than 63 bytes"],
  ];
  it.each(rows)("%s", (_sentence, error, text) => {
    expect(printFieldError(error)).toBe(text);
  });
});

test("a field error carries the value, or says that it is left out", () => {
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

describe("several field errors", () => {
  it("are nothing when there is none", () => {
    expect(printFieldErrors([])).toBe("");
  });

  it("stand alone when there is one", () => {
    expect(printFieldErrors([required("a")])).toBe("a: Required value");
  });

  it("stand in brackets, each text once, in their order", () => {
    expect(printFieldErrors([required("b"), required("a"), required("b")])).toBe(
      "[b: Required value, a: Required value]",
    );
  });

  it("are one without brackets when all say the same", () => {
    expect(printFieldErrors([required("a"), required("a")])).toBe("a: Required value");
  });
});

describe("a quoted text", () => {
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
  it.each(rows)("%j", (text, quoted) => {
    expect(quote(text)).toBe(quoted);
  });
});
