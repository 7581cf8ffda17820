import { describe, expect, test } from "vitest";
import { type Defaults, fillIn } from "../../../shared/core/sidecarset/defaults/pod-parts.ts";

describe("fillIn:", () => {
  const rows: readonly [sentence: string, value: object, defaults: Defaults, filled: object][] = [
    ["a default sets a missing field", {}, { a: 1 }, { a: 1 }],
    ["a default replaces null", { a: null }, { a: 1 }, { a: 1 }],
    ["a default does not replace a zero or an empty string", { a: 0, b: "" }, { a: 1, b: "x" }, { a: 0, b: "" }],
    ["a default sets a missing field of an existing object", { a: { c: 2 } }, { a: { b: 1 } }, { a: { c: 2, b: 1 } }],
    ["a default does not create a missing object", {}, { a: { b: 1 } }, {}],
    ["a default does not replace null by an object", { a: null }, { a: { b: 1 } }, { a: null }],

    ["a default does not replace null by a list", { a: null }, { a: [{ b: 1 }] }, { a: null }],
  ];
  test.each(rows)("%s", (_, value, defaults, filled) => {
    expect(fillIn(value, defaults)).toStrictEqual(filled);
  });
});
