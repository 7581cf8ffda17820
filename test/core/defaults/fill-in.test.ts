import { describe, expect, test } from "vitest";
import { type Defaults, fillIn } from "../../../shared/core/sidecarset/defaults/fill-in.ts";

describe("a default", () => {
  const rows: readonly [sentence: string, value: object, defaults: Defaults, filled: object][] = [
    ["is set where nothing is", {}, { a: 1 }, { a: 1 }],
    ["is set where null is", { a: null }, { a: 1 }, { a: 1 }],
    ["leaves what is there, also zeros", { a: 0, b: "" }, { a: 1, b: "x" }, { a: 0, b: "" }],
    ["reaches into an object that is there", { a: { c: 2 } }, { a: { b: 1 } }, { a: { c: 2, b: 1 } }],
    ["makes no object where none is", {}, { a: { b: 1 } }, {}],
    ["makes no object of null", { a: null }, { a: { b: 1 } }, { a: null }],
    ["reaches into every item of a list", { a: [{}, { b: 2 }] }, { a: [{ b: 1 }] }, { a: [{ b: 1 }, { b: 2 }] }],
    ["makes no list of null", { a: null }, { a: [{ b: 1 }] }, { a: null }],
  ];
  test.each(rows)("%s", (_, value, defaults, filled) => {
    expect(fillIn(value, defaults)).toStrictEqual(filled);
  });
});
