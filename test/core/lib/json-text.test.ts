import { describe, expect, test } from "vitest";
import { jsonObjectOf, jsonOf } from "../../../shared/go/json/json-object.ts";
import { elementsOf, isJson, membersOf } from "../../../shared/go/json/json-text.ts";

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("a text", () => {
  test("is JSON up to a depth", () => {
    expect([isJson(nested(1000)), isJson(nested(1001)), isJson("{")]).toEqual([true, false, false]);
  });

  test("of brackets in strings is not deep", () => {
    expect(isJson(JSON.stringify(["[".repeat(2000), '\\"[{'.repeat(2000)]))).toBe(true);
  });
});

describe("an annotation", () => {
  test("is the value that it says, or nothing", () => {
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

  test("may be long, but not deep", () => {
    const long = { a: "x".repeat(3000) };
    expect(jsonOf(JSON.stringify(long))).toEqual(long);
    expect(jsonOf(nested(1001))).toBeUndefined();
  });
});

describe("the parts", () => {
  test("of a list stand alone", () => {
    expect(elementsOf('[ 1 , [2, 3] ,{"a": 4} ]')).toEqual(["1", "[2, 3]", '{"a": 4}']);
    expect([elementsOf("[]"), elementsOf("[ ]")]).toEqual([[], []]);
  });

  test("of an object are pairs, as they are written", () => {
    expect(membersOf('{ "a" : 1 , "\\u0061" :[ 2 ], "b:,": "c,:" }')).toEqual([
      ["a", "1"],
      ["a", "[ 2 ]"],
      ["b:,", '"c,:"'],
    ]);
    expect([membersOf("{}"), membersOf("{ }")]).toEqual([[], []]);
  });
});
