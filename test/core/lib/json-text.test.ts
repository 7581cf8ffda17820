import { describe, expect, test } from "vitest";
import { jsonObjectOf, jsonOf } from "../../../shared/go/json/json-object.ts";
import { elementsOf, isJson, objectMembers } from "../../../shared/go/json/json-text.ts";

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("isJson", () => {
  test("JSON is valid up to 1,000 levels and no deeper", () => {
    expect([isJson(nested(1000)), isJson(nested(1001)), isJson("{")]).toEqual([true, false, false]);
  });

  test("brackets inside strings do not count as levels", () => {
    expect(isJson(JSON.stringify(["[".repeat(2000), '\\"[{'.repeat(2000)]))).toBe(true);
  });
});

describe("jsonOf and jsonObjectOf", () => {
  test("jsonOf returns undefined for invalid JSON, and jsonObjectOf for any JSON that is not an object", () => {
    expect([jsonOf(undefined), jsonOf("{"), jsonOf("null"), jsonOf('{"a":1}')]).toEqual([
      undefined,
      undefined,
      null,
      { a: 1 },
    ]);
    expect([jsonObjectOf("null"), jsonObjectOf("[]"), jsonObjectOf("1"), jsonObjectOf("{}")]).toEqual([
      undefined,
      undefined,
      undefined,
      {},
    ]);
  });

  test("a long annotation is parsed, and an annotation with too many levels is not", () => {
    const long = { a: "x".repeat(3000) };
    expect(jsonOf(JSON.stringify(long))).toEqual(long);
    expect(jsonOf(nested(1001))).toBeUndefined();
  });
});

describe("elementsOf and objectMembers", () => {
  test("elementsOf returns the text of each element of a list", () => {
    expect(elementsOf('[ 1 , [2, 3] ,{"a": 4} ]')).toEqual(["1", "[2, 3]", '{"a": 4}']);
    expect([elementsOf("[]"), elementsOf("[ ]")]).toEqual([[], []]);
  });

  test("membersOf returns each member of an object as its key and its text", () => {
    expect(objectMembers('{ "a" : 1 , "\\u0061" :[ 2 ], "b:,": "c,:" }')).toEqual([
      ["a", "1"],
      ["a", "[ 2 ]"],
      ["b:,", '"c,:"'],
    ]);
    expect([objectMembers("{}"), objectMembers("{ }")]).toEqual([[], []]);
  });
});
