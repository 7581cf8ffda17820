import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatUpgradeRecords,
  parseUpgradeRecords,
  type UpgradeRecords,
} from "../../../shared/core/pod/pod-records.ts";

const RECORD =
  '{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"h","sidecarSetName":"a","sidecarList":["x"],"controllerRevision":"a-1"}';

describe("the hash annotations of a pod:", () => {
  const rows: readonly [sentence: string, text: string | undefined, form: string, written: string][] = [
    ["a pod without the annotation has no records", undefined, "absent", "{}"],
    ["an empty annotation has no records", "", "absent", "{}"],
    ["an annotation that is null has no records", null as unknown as undefined, "absent", "{}"],
    ["a record is written back without a change", `{"a":${RECORD}}`, "current", `{"a":${RECORD}}`],
    [
      "SidecarSet names are sorted and unknown fields are dropped",
      `{"b":${RECORD.replace("}", ',"extra":1}')},"a":${RECORD}}`,
      "current",
      `{"a":${RECORD},"b":${RECORD}}`,
    ],
    [
      "SidecarSet names are sorted by their bytes, even if they are integers",
      '{"9":null,"10":null,"Z":null,"a":null}',
      "current",
      `{${["10", "9", "Z", "a"]
        .map((name) => `"${name}":{"updateTimestamp":null,"hash":"","sidecarSetName":"","sidecarList":null}`)
        .join(",")}}`,
    ],
    [
      "a timestamp is written in UTC and in whole seconds",
      '{"a":{"updateTimestamp":"2024-02-28T23:30:00.75-01:00","hash":"h","sidecarSetName":"a","sidecarList":[]}}',
      "current",
      '{"a":{"updateTimestamp":"2024-02-29T00:30:00Z","hash":"h","sidecarSetName":"a","sidecarList":[]}}',
    ],
    [
      "an annotation with a hash for each name has the legacy form",
      '{"a":"h<"}',
      "legacy",
      '{"a":{"updateTimestamp":null,"hash":"h\\u003c","sidecarSetName":"a","sidecarList":null}}',
    ],
    [
      "a SidecarSet with the name __proto__ gets a record",
      `{"__proto__":"h"}`,
      "legacy",
      '{"__proto__":{"updateTimestamp":null,"hash":"h","sidecarSetName":"__proto__","sidecarList":null}}',
    ],
    [
      "a field with null is read like a missing field",
      '{"a":{"updateTimestamp":null,"hash":null,"sidecarSetName":null,"sidecarList":null}}',
      "current",
      '{"a":{"updateTimestamp":null,"hash":"","sidecarSetName":"","sidecarList":null}}',
    ],
    [
      "the zero time of Go is read as no timestamp",
      '{"a":{"updateTimestamp":"0001-01-01T00:00:00Z","hash":"h"}}',
      "current",
      '{"a":{"updateTimestamp":null,"hash":"h","sidecarSetName":"","sidecarList":null}}',
    ],
    ["a record with a string as sidecarList is malformed", '{"a":{"sidecarList":"x"}}', "malformed", "{}"],
    ["an annotation that is not JSON is malformed", "{bad", "malformed", "{}"],
    ["an annotation with the text null is malformed", "null", "malformed", "{}"],
    ["an annotation with a list is malformed", "[]", "malformed", "{}"],
    [
      "an annotation that mixes the legacy and the current form is malformed",
      '{"a":"str","b":{"hash":"h"}}',
      "malformed",
      "{}",
    ],
    ["a record with a number as hash is malformed", '{"a":{"hash":1}}', "malformed", "{}"],
    [
      "a record with a date that does not exist is malformed",
      '{"a":{"updateTimestamp":"2023-02-29T00:00:00Z"}}',
      "malformed",
      "{}",
    ],
    ["a record with numbers in its sidecarList is malformed", '{"a":{"sidecarList":[1]}}', "malformed", "{}"],
  ];
  test.each(rows)("%s", (_, text, form, written) => {
    const parsed = parseUpgradeRecords(text);
    expect(parsed.form).toBe(form);
    expect(formatUpgradeRecords(parsed.records)).toBe(written);
    expect(parsed.error !== undefined).toBe(form === "malformed");
  });

  const errors: readonly [text: string, error: string][] = [
    ["{bad", "invalid character 'b' looking for beginning of object key string"],
    ['{"a":"str","b":{"hash":"h"}}', "json: cannot unmarshal object into Go value of type string"],
    ['{"a":true}', "json: cannot unmarshal bool into Go value of type string"],
    ['{"a":1}', "json: cannot unmarshal number into Go value of type string"],
    ["[]", "json: cannot unmarshal array into Go value of type map[string]string"],
  ];
  test.each(errors)("parseUpgradeRecords reports for %s the error that Go reports", (text, error) => {
    expect(parseUpgradeRecords(text).error).toBe(error);
  });

  test("parseUpgradeRecords reads back what formatUpgradeRecords writes", () => {
    const time = fc.date({ min: new Date(0), max: new Date("9999-01-01T00:00:00Z"), noInvalidDate: true });
    const record = fc.record(
      {
        updateTimestamp: fc.option(time.map((date) => `${date.toISOString().slice(0, 19)}Z`)),
        hash: fc.string({ unit: "binary" }),
        sidecarSetName: fc.string(),
        sidecarList: fc.option(fc.array(fc.string())),
        controllerRevision: fc.string({ minLength: 1 }),
      },
      { requiredKeys: ["updateTimestamp", "hash", "sidecarSetName", "sidecarList"] },
    );
    const records = fc.dictionary(fc.string({ unit: "binary" }), record, { minKeys: 1 });
    fc.assert(
      fc.property(records, (written) => {
        const parsed = parseUpgradeRecords(formatUpgradeRecords(written as UpgradeRecords));
        expect(parsed.form).toBe("current");
        expect(Object.keys(parsed.records).sort()).toEqual(Object.keys(written).sort());
        for (const [name, record] of Object.entries(written)) expect(parsed.records[name]).toEqual({ ...record });
      }),
      { numRuns: 500 },
    );
  });

  test("a timestamp with any offset is read as the same moment in UTC", () => {
    const offset = fc.integer({ min: -14 * 60, max: 14 * 60 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000 }), offset, (seconds, minutes) => {
        const two = (value: number) => String(value).padStart(2, "0");
        const zone = `${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
        const local = new Date((seconds + minutes * 60) * 1000).toISOString().slice(0, 19);
        const parsed = parseUpgradeRecords(JSON.stringify({ a: { updateTimestamp: local + zone } }));
        const expected = new Date(seconds * 1000).toISOString().replace(".000", "");
        expect(parsed.records["a"]?.updateTimestamp).toBe(expected);
      }),
      { numRuns: 1000 },
    );
  });
});
