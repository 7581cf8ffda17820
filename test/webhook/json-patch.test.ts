import fc from "fast-check";
import fastJsonPatch from "fast-json-patch";
import { describe, expect, test } from "vitest";
import { parseJson } from "../../shared/go/json/json-number.ts";
import type { JsonPatchOperation } from "../../shared/kube/port.ts";
import { diff } from "../../shared/webhook/review/response.ts";

/** Applies the patch with another implementation of RFC 6902. */
function applied(document: unknown, patch: readonly JsonPatchOperation[]): unknown {
  const [copy, operations] = [structuredClone(document), structuredClone([...patch])];
  return fastJsonPatch.applyPatch(copy, operations, true).newDocument;
}

const container = (name: string, more: object = {}) => ({ name, image: `${name}:1`, ...more });
const pod = (...containers: object[]) => ({ metadata: { name: "p" }, spec: { containers, volumes: [{ name: "v" }] } });

describe("diff:", () => {
  test.each<[string, unknown, unknown, JsonPatchOperation[]]>([
    ["equal documents need no patch", { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, []],
    ["the order of keys makes no difference", { a: 1, b: 2 }, { b: 2, a: 1 }, []],
    ["a new member is added", {}, { a: { b: 1 } }, [{ op: "add", path: "/a", value: { b: 1 } }]],
    ["a missing member is removed", { a: 1, b: 2 }, { b: 2 }, [{ op: "remove", path: "/a" }]],
    ["a member that becomes undefined is removed", { a: 1 }, { a: undefined }, [{ op: "remove", path: "/a" }]],
    ["a member that was undefined needs no patch", { a: undefined, b: 1 }, { b: 1 }, []],
    ["null is replaced as a value", { a: null }, { a: 0 }, [{ op: "replace", path: "/a", value: 0 }]],
    ["a key with / and ~ is escaped", {}, { "a/b~c": 1 }, [{ op: "add", path: "/a~1b~0c", value: 1 }]],
    ["a value of another type is replaced", { a: [] }, { a: {} }, [{ op: "replace", path: "/a", value: {} }]],
    ["a whole document is replaced", 1, 2, [{ op: "replace", path: "", value: 2 }]],
    [
      "a container before the others is one add",
      pod(container("main"), container("other")),
      pod(container("sidecar"), container("main"), container("other")),
      [{ op: "add", path: "/spec/containers/0", value: container("sidecar") }],
    ],
    [
      "containers before and after are two adds at their own indexes",
      pod(container("main")),
      pod(container("a"), container("main"), container("z")),
      [
        { op: "add", path: "/spec/containers/0", value: container("a") },
        { op: "add", path: "/spec/containers/2", value: container("z") },
      ],
    ],
    [
      "a change inside a container after an added one has its new index",
      pod(container("main")),
      pod(container("a"), container("main", { image: "main:2" })),
      [
        { op: "add", path: "/spec/containers/0", value: container("a") },
        { op: "replace", path: "/spec/containers/1/image", value: "main:2" },
      ],
    ],
    [
      "a container with another name is replaced as a whole",
      pod(container("a"), container("main")),
      pod(container("b"), container("main")),
      [{ op: "replace", path: "/spec/containers/0", value: container("b") }],
    ],
    ["a missing element is removed", [1, 2, 3], [1, 3], [{ op: "remove", path: "/1" }]],
    ["one of two equal elements is removed", [1, 1], [1], [{ op: "remove", path: "/1" }]],
    [
      "an element that stays in the middle is not touched",
      [{ name: "x" }, { name: "a" }, { name: "y" }],
      [{ name: "a" }, { name: "z" }],
      [
        { op: "remove", path: "/0" },
        { op: "replace", path: "/1", value: { name: "z" } },
      ],
    ],
    [
      "of two swapped elements one is moved behind the other",
      ["a", "b"],
      ["b", "a"],
      [
        { op: "remove", path: "/0" },
        { op: "add", path: "/1", value: "a" },
      ],
    ],
  ])("diff finds the smallest patch: %s", (_, from, to, patch) => {
    expect(diff(from, to)).toEqual(patch);
    if (from !== 1) expect(applied(from, patch)).toEqual(JSON.parse(JSON.stringify(to)));
  });

  const first = [{ op: "remove", path: "/0" }];
  test.each<[string, readonly unknown[], readonly unknown[]]>([
    ["objects", [{ x: 1 }, { a: 1 }], [{ a: 1 }]],
    ["objects with another order of keys", [{ x: 1 }, { a: 1, b: 2 }], [{ b: 2, a: 1 }]],
    ["objects with undefined members", [{ x: 1 }, { a: 1, b: undefined }], [{ a: 1 }]],
    ["lists", [[1], [2]], [[2]]],
    [
      "lists with similar digits",
      [
        [1, 12],
        [11, 2],
      ],
      [[11, 2]],
    ],
    ["lists of objects with another order of keys", [[3], [{ a: 1, b: 2 }]], [[{ b: 2, a: 1 }]]],
  ])("diff recognizes equal elements without a name: %s", (_, from, to) => {
    expect(diff(from, to)).toEqual(first);
  });

  test("an element that is added next to another with the same name is one add", () => {
    const [a, b, other] = [container("a"), container("b"), container("b", { image: "b:2" })];
    expect(diff([b], [other, b])).toEqual([{ op: "add", path: "/0", value: other }]);
    expect(diff([a, b], [a, other, b])).toEqual([{ op: "add", path: "/1", value: other }]);
    expect(diff([a, b], [a, b, other])).toEqual([{ op: "add", path: "/2", value: other }]);
  });

  test("the common beginning and end of long lists are not touched", () => {
    const list = (middle: string) =>
      [...Array(1_500).keys(), middle, ...Array(1_500).keys()].map((name) => container(`${name}`));
    expect(diff(list("x"), list("y"))).toEqual([{ op: "replace", path: "/1500", value: container("y") }]);
  });

  test.each(["null", "1", '"a"', "{}", "[]"])("an integer beyond 2^53 can become %s, and the reverse", (text) => {
    const [big, value] = [parseJson("9007199254740993"), parseJson(text)];
    expect(diff({ a: big }, { a: value })).toEqual([{ op: "replace", path: "/a", value }]);
    expect(diff({ a: value }, { a: big })).toEqual([{ op: "replace", path: "/a", value: big }]);
  });

  test("integers beyond 2^53 are compared and written digit by digit", () => {
    const from = parseJson('{"a":9007199254740993,"b":[9007199254740993]}');
    expect(diff(from, parseJson('{"a":9007199254740993,"b":[9007199254740993]}'))).toEqual([]);
    const patch = diff(from, parseJson('{"a":9007199254740995,"b":[9007199254740995]}'));
    expect(JSON.stringify(patch)).toBe(
      '[{"op":"replace","path":"/a","value":9007199254740995},{"op":"replace","path":"/b/0","value":9007199254740995}]',
    );
  });

  test("lists that are too long to align are replaced", () => {
    const from = Array.from({ length: 5_000 }, (_, index) => ({ name: `a${index}` }));
    const to = Array.from({ length: 5_000 }, (_, index) => ({ name: `b${index}` }));
    expect(diff({ from }, { from: to })).toEqual([{ op: "replace", path: "/from", value: to }]);
  });
});

describe("diff applied by fast-json-patch:", () => {
  const key = fc.oneof(
    fc.constantFrom("name", "a", "b", "~", "/", "a/b", "~1", "0", "-", ""),
    fc.string({ maxLength: 3 }),
  );
  const leaf = fc.oneof(fc.constantFrom(null, true, false, 0, 1, "", "a", "b", -1.5), fc.string({ maxLength: 3 }));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.array(tie("value"), { maxLength: 5 }),
      fc.dictionary(
        key.filter((name) => name !== "__proto__"),
        tie("value"),
        { maxKeys: 5, noNullPrototype: true },
      ),
    ),
  }));
  const element = fc.record({ name: fc.constantFrom("a", "b", "c", "d"), image: fc.constantFrom("1", "2") });
  const list = fc.array(fc.oneof(element, leaf), { maxLength: 8 });

  test("a patch between any two documents gives exactly the wanted document", () => {
    fc.assert(
      fc.property(value, value, (from, to) => {
        expect(applied({ root: from }, diff({ root: from }, { root: to }))).toEqual({ root: to });
      }),
      { numRuns: 2_000 },
    );
  });

  test("a patch between lists with shared, repeated and reordered elements gives exactly the wanted document", () => {
    fc.assert(
      fc.property(list, list, (from, to) => {
        expect(applied({ list: from }, diff({ list: from }, { list: to }))).toEqual({ list: to });
      }),
      { numRuns: 2_000 },
    );
  });

  test("a list with inserted elements needs one add for each", () => {
    fc.assert(
      fc.property(list, fc.array(fc.tuple(fc.nat(8), fc.integer({ min: 100 })), { maxLength: 4 }), (from, inserted) => {
        const to: unknown[] = [...from];
        for (const [index, number] of inserted) to.splice(Math.min(index, to.length), 0, number);
        const patch = diff({ list: from }, { list: to });
        expect(patch.every(({ op }) => op === "add")).toBe(true);
        expect(patch).toHaveLength(inserted.length);
        expect(applied({ list: from }, patch)).toEqual({ list: to });
      }),
      { numRuns: 1_000 },
    );
  });
});
