/** Tests that JSON values become CEL literals that Kubernetes can compile. */
import { describe, expect, it } from "vitest";
import { celLiteral, celMap, celText, celTexts } from "../../../shared/go/json/cel-literal.ts";

describe("CEL literals", () => {
  it.each<[string, unknown, string]>([
    ["a text", "plain", '"plain"'],
    ["quotes, backslashes and line ends with the escapes of JSON", 'a"b\\c\nd', '"a\\"b\\\\c\\nd"'],
    ["a vertical bar as an escape, so that conditions can be split at their bars", "a|b", '"a\\u007cb"'],
    ["half a surrogate pair as the replacement character", "\ud800", '"\ufffd"'],
    ["a number", 80, "80"],
    ["a boolean", false, "false"],
    ["undefined as null", undefined, "null"],
    ["an empty list", [], "[]"],
    ["an empty map", {}, "{}"],
    ["a list of one type", ["a", "b"], '["a", "b"]'],
    ["a list of several types with dyn around each item", ["a", 1], '[dyn("a"), dyn(1)]'],
    ["whole numbers and fractions as two types", [1, 1.5], "[dyn(1), dyn(1.5)]"],
    ["a map of one type", { name: "a", value: "b" }, '{"name": "a", "value": "b"}'],
    ["a map of several types with dyn around each value", { name: "a", port: 1 }, '{"name": dyn("a"), "port": dyn(1)}'],
    ["a map without its null members", { name: "a", service: null, other: undefined }, '{"name": "a"}'],
    ["lists of the same type without dyn", [["a"], ["b"]], '[["a"], ["b"]]'],
    ["lists of different types with dyn around each list", [["a"], [1]], '[dyn(["a"]), dyn([1])]'],
    ["maps of different types with dyn around each map", [{ a: "b" }, { a: 1 }], '[dyn({"a": "b"}), dyn({"a": 1})]'],
  ])("celLiteral writes %s", (_what, value, written) => {
    expect(celLiteral(value)).toBe(written);
  });
});

it("celTexts writes each text once and in sorted order", () => {
  expect(celTexts(["b", "a", "b"])).toBe('["a", "b"]');
  expect(celText("x")).toBe('"x"');
});

it("celMap puts dyn around each value, so that the values may have any type", () => {
  expect(celMap({ name: celText("a"), env: "variables.env" })).toBe('{"name": dyn("a"), "env": dyn(variables.env)}');
});
