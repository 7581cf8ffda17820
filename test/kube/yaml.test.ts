/** Tests that manifests are read and written as kubectl reads and writes them. Values recorded from sigs.k8s.io/yaml v1.4.0. */
import { describe, expect, it } from "vitest";
import { readYaml, writeYaml, YamlError } from "../../shared/kube/yaml.ts";

const SCALARS: readonly (readonly [text: string, value: unknown])[] = [
  ["0644", 420],
  ["0o644", 420],
  ["0755", 493],
  ["0400", 256],
  ["yes", true],
  ["Yes", true],
  ["on", true],
  ["off", false],
  ["y", true],
  ["n", false],
  ["NO", false],
  ["TRUE", true],
  ["1_000", 1000],
  ["0b11", 3],
  ["-0b11", -3],
  ["0x1F", 31],
  ["0X1f", 31],
  ["2024-01-01", "2024-01-01"],
  ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"],
  ["22:22", "22:22"],
  ["1:30:00", "1:30:00"],
  ["1e3", 1000],
  ["1e+3", 1000],
  ["1E-2", 0.01],
  [".5", 0.5],
  [".5e3", 500],
  ["+5", 5],
  ["-7", -7],
  ["08", 8],
  ["0089", 89],
  ["019", 19],
  ["~", null],
  ["null", null],
  ["NULL", null],
  ["1.0", 1],
  ["1.", 1],
  ["+1.5", 1.5],
  ["12345678901", 12345678901],
  ["9007199254740993", 9007199254740992],
  ["_1", "_1"],
  ["1_", 1],
  ["0x_1", 1],
  ["0x", "0x"],
  ["0b2", "0b2"],
  ["0o8", "0o8"],
  ["1e400", "1e400"],
  ["...", "..."],
  ["=", "="],
  ["!!str 5", "5"],
  ["!!str yes", "yes"],
  ["!!int 5", 5],
  ["'yes'", "yes"],
  ['"5"', "5"],
  ["1.2.3", "1.2.3"],
  ["10m", "10m"],
  ["v1", "v1"],
  ["<none>", "<none>"],
  ["tRue", "tRue"],
  ["Null", null],
  ["nUll", "nUll"],
  ["+.inf5", "+.inf5"],
  ["0_7", 7],
  ["1__0", 10],
  ["infinity", "infinity"],
  ["NaN", "NaN"],
];

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

  it("a merged map replaces keys before it, and keys after it replace the merged ones", () => {
    const text = "a: &a {p: 1, q: 1}\nb: &b {q: 2, r: 2}\nc: {q: 0, <<: [*a, *b], p: 3}\n";
    expect(value(text)).toEqual({ a: { p: 1, q: 1 }, b: { q: 2, r: 2 }, c: { q: 1, r: 2, p: 3 } });
    expect(value("a: <<")).toEqual({ a: "<<" });
    expect(value('"<<": 1')).toEqual({ "<<": 1 });
  });

  it("the last of two equal keys counts, and readYaml says where both stand", () => {
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
  it.each(SCALARS)("writeYaml quotes the text %s where a reader would take it for another value", (text) => {
    const given = { [text]: [text], list: [{ a: text }] };
    expect(value(writeYaml(given))).toEqual(given);
  });

  it("writeYaml quotes texts that only readers of YAML 1.1 take for dates and sexagesimal numbers", () => {
    expect(writeYaml(["2024-01-01", "22:22", "plain"])).toBe('- "2024-01-01"\n- "22:22"\n- plain\n');
  });
});
