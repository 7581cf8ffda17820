import { expect, test } from "vitest";
import { sizeProblem } from "../../shared/webhook/review/object-size.ts";

const deep = (levels: number, leaf: unknown = "x"): unknown => (levels === 0 ? leaf : { a: deep(levels - 1, leaf) });

test.each<[string, unknown]>([
  ["a missing object", undefined],
  ["null", null],
  ["a string", "x"],
  [
    "an object with a thousand containers",
    { spec: { containers: Array(1_000).fill({ name: "a", image: "b", env: [{ name: "c", value: "d" }] }) } },
  ],
  ["an object with the maximum number of values", { list: Array(19_998).fill(null) }],
  ["an object with the maximum number of levels", deep(100)],
  ["an object with null at the deepest level", deep(100, null)],
  ["an object with a string of the maximum length", { a: "x".repeat(262_144) }],
  ["an object with 100,000 managed fields", { metadata: { managedFields: Array(100_000).fill("x") } }],
])("%s is accepted", (_, object) => {
  expect(sizeProblem(object)).toBeUndefined();
});

test.each<[string, unknown, string]>([
  ["an object with too many values", { list: Array(20_001).fill(null) }, "the object has more than 20000 values"],
  [
    "an object with too many keys",
    Object.fromEntries(Array.from({ length: 20_001 }, (_, key) => [`k${key}`, 1])),
    "more than 20000 values",
  ],
  ["an object with too many branches", Array(200).fill(Array(200).fill({})), "more than 20000 values"],
  ["an object with one level too many", deep(101), "the object nests deeper than 100 levels"],
  [
    "an object with a string that is one character too long",
    { a: ["x".repeat(262_145)] },
    "the object has a text of more than 262144 characters",
  ],
  [
    "an object with too many managedFields outside its metadata",
    { spec: { a: { managedFields: Array(20_001).fill("x") } } },
    "more than 20000 values",
  ],
])("%s is refused", (_, object, problem) => {
  expect(sizeProblem(object)).toContain(problem);
});

const long = "x".repeat(262_145);
const many = Array(20_001).fill(null);

test.each([
  ["a list", [long, ...many]],
  ["a list of lists", [[long], many]],
  ["an object", { a: long, b: many }],
  ["an object with many keys", { a: long, ...Object.fromEntries(many.map((_, key) => [`k${key}`, null])) }],
])("the check of %s stops at the first problem", (_, object) => {
  expect(sizeProblem(object)).toBe("the object has a text of more than 262144 characters");
});
