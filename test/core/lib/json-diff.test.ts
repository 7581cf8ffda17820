import { assert, jsonValue, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { diffJson } from "../../../shared/go/json/json-diff.ts";

describe("diffJson", () => {
  test("a value and its copy have no differences", () => {
    assert(
      property(jsonValue(), (value) => {
        expect(diffJson(value, structuredClone(value))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("two values have a difference exactly when they are not equal", () => {
    assert(
      property(jsonValue(), jsonValue(), (a, b) => {
        const isEqual = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        expect(diffJson(a, b).length > 0).toBe(!isEqual);
      }),
      { numRuns: 300 },
    );
  });

  test("each difference names its operation, its path and its new value", () => {
    const before = { kept: 1, gone: 2, changed: { deep: [1, 2] }, kind: [] };
    const after = { kept: 1, added: { a: 1 }, changed: { deep: [1, 3, 4] }, kind: {} };
    expect(diffJson(before, after)).toEqual([
      { op: "add", path: ["added"], value: { a: 1 } },
      { op: "replace", path: ["changed", "deep", "1"], value: 3 },
      { op: "add", path: ["changed", "deep", "2"], value: 4 },
      { op: "replace", path: ["kind"], value: {} },
      { op: "remove", path: ["gone"] },
    ]);
  });
});

/** Sorts the keys, and keeps -0 distinct from 0, because JSON writes both as 0. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}
