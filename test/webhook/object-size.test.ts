import { expect, test } from "vitest";
import { sizeProblem } from "../../shared/webhook/review/object-size.ts";

const deep = (levels: number, leaf: unknown = "x"): unknown => (levels === 0 ? leaf : { a: deep(levels - 1, leaf) });

test.each<[string, unknown]>([
  ["nothing", undefined],
  ["null", null],
  ["a text", "x"],
  [
    "a thousand containers",
    { spec: { containers: Array(1_000).fill({ name: "a", image: "b", env: [{ name: "c", value: "d" }] }) } },
  ],
  ["as many values as may be", { list: Array(19_998).fill(null) }],
  ["as many levels as may be", deep(100)],
  ["null at the last level", deep(100, null)],
  ["a text as long as may be", { a: "x".repeat(262_144) }],
  ["any number of managed fields", { metadata: { managedFields: Array(100_000).fill("x") } }],
])("%s is decided on", (_, object) => {
  expect(sizeProblem(object)).toBeUndefined();
});

test.each<[string, unknown, string]>([
  ["a value too many", { list: Array(20_001).fill(null) }, "the object has more than 20000 values"],
  [
    "keys too many",
    Object.fromEntries(Array.from({ length: 20_001 }, (_, key) => [`k${key}`, 1])),
    "more than 20000 values",
  ],
  ["branches too many", Array(200).fill(Array(200).fill({})), "more than 20000 values"],
  ["a level too many", deep(101), "the object nests deeper than 100 levels"],
  ["a character too many", { a: ["x".repeat(262_145)] }, "the object has a text of more than 262144 characters"],
  ["managed fields elsewhere", { spec: { a: { managedFields: Array(20_001).fill("x") } } }, "more than 20000 values"],
])("%s is refused", (_, object, problem) => {
  expect(sizeProblem(object)).toContain(problem);
});

const long = "x".repeat(262_145);
const many = Array(20_001).fill(null);

test.each([
  ["a list", [long, ...many]],
  ["lists in a list", [[long], many]],
  ["an object", { a: long, b: many }],
  ["an object of many keys", { a: long, ...Object.fromEntries(many.map((_, key) => [`k${key}`, null])) }],
])("in %s, what is found first is said, and nothing behind it is looked at", (_, object) => {
  expect(sizeProblem(object)).toBe("the object has a text of more than 262144 characters");
});
