/** Tests that manifests are read and written as kubectl reads and writes them. */
import { describe, expect, it } from "vitest";
import { readYaml, writeYaml, YamlError } from "../../shared/kube/yaml.ts";
import { SCALARS } from "./yaml-scalars.ts";

const KEYS: readonly (readonly [text: string, key: string])[] = [
  ["yes", "true"],
  ["0755", "493"],
  ["1.50", "1.5"],
  ["7E08", "7e+08"],
  ["0.00001", "1e-05"],
  ["9223372036854775807", "9223372036854775807"],
  [".inf", ".inf"],
  ["2024-01-01", "2024-01-01"],
  ["__proto__", "__proto__"],
];

const value = (text: string) => readYaml(text)[0]?.value;

describe("readYaml", () => {
  it.each(SCALARS)("readYaml reads the scalar %s as kubectl does", (text, expected) => {
    expect(value(`v: ${text}`)).toEqual({ v: expected });
    expect(value(`[${text}]`)).toEqual([expected]);
  });

  it.each(KEYS)("readYaml reads the key %s as kubectl does", (text, key) => {
    expect(Object.keys(value(`${text}: 1`) as object)).toEqual([key]);
  });

  it("a merged map replaces keys before it, and keys after it replace the merged keys", () => {
    const text = "a: &a {p: 1, q: 1}\nb: &b {q: 2, r: 2}\nc: {q: 0, <<: [*a, *b], p: 3}\n";
    expect(value(text)).toEqual({ a: { p: 1, q: 1 }, b: { q: 2, r: 2 }, c: { q: 1, r: 2, p: 3 } });
    expect(value("a: <<")).toEqual({ a: "<<" });
    expect(value('"<<": 1')).toEqual({ "<<": 1 });
  });

  it("the last of two equal keys counts, and readYaml reports the places of both", () => {
    const [document] = readYaml("a: 1\nb: {c: 1, c: 2}\na: 3\n");
    expect(document?.value).toEqual({ a: 3, b: { c: 2 } });
    expect(document?.repeatedKeys).toEqual([
      { key: "c", place: { line: 2, column: 11 } },
      { key: "a", place: { line: 3, column: 1 } },
    ]);
  });

  it("placeOf gives line and column of a field, or of the nearest one above it", () => {
    const [, document] = readYaml(
      "a: 1\n---\nspec:\n  list:\n  - name: x\n    image:\n      y\n  - &z {name: w}\n  - *z\n",
    );
    expect(document?.placeOf(["spec", "list", 0, "image"])).toEqual({ line: 6, column: 5 });
    expect(document?.placeOf(["spec", "list", 2, "name"])).toEqual({ line: 8, column: 9 });
    expect(document?.placeOf(["spec", "list", 7, "name"])).toEqual({ line: 4, column: 3 });
    expect(document?.placeOf([])).toEqual({ line: 3, column: 1 });
  });

  it.each([
    ["a: [", "an unclosed list"],
    ["a: .inf", "infinity, which JSON does not have"],
    ["? [a]\n: b", "a list as a key"],
    ["null: b", "null as a key"],
    ["18446744073709551615: b", "a key above 64 bits"],
    ["a: {<<: 5}", "a merge of a number"],
    ["a: &a [*a]", "an alias within itself"],
    [
      `a0: &a0 [x]\n${[...Array(9).keys()].map((n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join()}]`).join("\n")}`,
      "aliases that repeat a billion values",
    ],
  ])("readYaml refuses %j: %s", (text) => {
    expect(() => readYaml(text)).toThrow(YamlError);
  });
});

describe("writeYaml", () => {
  it.each(SCALARS)("writeYaml quotes the text %s if a reader would take it for another value", (text) => {
    const given = { [text]: [text], list: [{ a: text }] };
    expect(value(writeYaml(given))).toEqual(given);
  });

  it("writeYaml quotes texts that only readers of YAML 1.1 take for dates and sexagesimal numbers", () => {
    expect(writeYaml(["2024-01-01", "22:22", "plain"])).toBe('- "2024-01-01"\n- "22:22"\n- plain\n');
  });
});
