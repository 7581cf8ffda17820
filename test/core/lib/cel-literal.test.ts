/** JSON values in CEL, as Kubernetes compiles it. */
import { describe, expect, it } from "vitest";
import { celLiteral, celMap, celText, celTexts } from "../../../shared/go/json/cel-literal.ts";

describe("a value is written in CEL", () => {
  it.each<[string, unknown, string]>([
    ["a text", "plain", '"plain"'],
    ["quotes, backslashes and line ends as JSON escapes them", 'a"b\\c\nd', '"a\\"b\\\\c\\nd"'],
    ["a bar as an escape, so that expressions can be taken apart at theirs", "a|b", '"a\\u007cb"'],
    ["half of a character as the replacement character", "\ud800", '"\ufffd"'],
    ["a number", 80, "80"],
    ["a boolean", false, "false"],
    ["nothing, as null", undefined, "null"],
    ["an empty list", [], "[]"],
    ["an empty map", {}, "{}"],
    ["a list of one type", ["a", "b"], '["a", "b"]'],
    ["a list of several types, each as dyn", ["a", 1], '[dyn("a"), dyn(1)]'],
    ["whole numbers and fractions, which are two types", [1, 1.5], "[dyn(1), dyn(1.5)]"],
    ["a map of one type", { name: "a", value: "b" }, '{"name": "a", "value": "b"}'],
    ["a map of several types, each as dyn", { name: "a", port: 1 }, '{"name": dyn("a"), "port": dyn(1)}'],
    ["a map without what is null", { name: "a", service: null, other: undefined }, '{"name": "a"}'],
    ["lists of the same type side by side", [["a"], ["b"]], '[["a"], ["b"]]'],
    ["lists of other types, each as dyn", [["a"], [1]], '[dyn(["a"]), dyn([1])]'],
    ["maps of other types, each as dyn", [{ a: "b" }, { a: 1 }], '[dyn({"a": "b"}), dyn({"a": 1})]'],
  ])("%s", (_what, value, written) => {
    expect(celLiteral(value)).toBe(written);
  });
});

it("texts are each given once, sorted", () => {
  expect(celTexts(["b", "a", "b"])).toBe('["a", "b"]');
  expect(celText("x")).toBe('"x"');
});

it("a map of expressions holds values of any type", () => {
  expect(celMap({ name: celText("a"), env: "variables.env" })).toBe('{"name": dyn("a"), "env": dyn(variables.env)}');
});
