import { describe, expect, it } from "vitest";
import { goJson } from "../../../shared/go/json/go-json.ts";
import { parseJson } from "../../../shared/go/json/json-number.ts";
import { decodeGo } from "../../../shared/go/types/decode-go.ts";
import {
  always,
  BOOLEAN,
  each,
  type GoField,
  INT_OR_STRING,
  INT32,
  INT64,
  list,
  map,
  nullable,
  optional,
  pointer,
  QUANTITY,
  RAW,
  STRING,
  struct,
  TIME,
} from "../../../shared/go/types/go-type.ts";
import { SIDECAR_SET } from "../../../shared/go/types/sidecarset.ts";

const INNER = struct({ b: optional(STRING), a: always(INT32) });

/** The JSON text of a struct with the one field `f`, decoded from the JSON text of its value. */
function decoded(field: GoField, text: string): string {
  const result = decodeGo(struct({ f: field }), parseJson(text));
  return result.kind === "Decoded" ? goJson(result.value) : `! ${result.message}`;
}

describe("decodeGo", () => {
  const rows: readonly (readonly [string, GoField, string, string])[] = [
    ["drops what it does not know", optional(STRING), '{"f":"x","g":1}', '{"f":"x"}'],
    ["minds the case of names", optional(STRING), '{"F":"x"}', "{}"],
    ["drops a zero with omitempty", optional(INT32), '{"f":0}', "{}"],
    ["drops an empty string with omitempty", optional(STRING), '{"f":""}', "{}"],
    ["drops false with omitempty", optional(BOOLEAN), '{"f":false}', "{}"],
    ["drops an empty list with omitempty", optional(list(STRING)), '{"f":[]}', "{}"],
    ["drops an empty map with omitempty", optional(map(STRING)), '{"f":{}}', "{}"],
    ["keeps a list of zeros", optional(list(STRING)), '{"f":["",null]}', '{"f":["",""]}'],
    ["prints a string without omitempty", always(STRING), "{}", '{"f":""}'],
    ["prints a struct by value with its own zeros", always(INNER), "{}", '{"f":{"a":0}}'],
    ["prints a list without omitempty as null", always(list(STRING)), "{}", '{"f":null}'],
    ["tells an empty list from none", always(list(STRING)), '{"f":[]}', '{"f":[]}'],
    ["keeps a pointer to a zero", pointer(BOOLEAN), '{"f":false}', '{"f":false}'],
    ["keeps a pointer to an empty struct", pointer(struct({})), '{"f":{}}', '{"f":{}}'],
    ["prints a boolean without omitempty", always(BOOLEAN), "{}", '{"f":false}'],
    ["prints an int64 without omitempty", always(INT64), "{}", '{"f":0}'],
    ["prints an absent port as 0", always(INT_OR_STRING), "{}", '{"f":0}'],
    ["prints a map without omitempty as null", always(map(STRING)), "{}", '{"f":null}'],
    ["prints absent raw JSON as null", always(RAW), "{}", '{"f":null}'],
    ["drops a null pointer", pointer(INT32), '{"f":null}', "{}"],
    ["prints a pointer without omitempty as null", nullable(STRING), "{}", '{"f":null}'],
    ["keeps a pointer to an empty string", nullable(STRING), '{"f":""}', '{"f":""}'],
    ["prints fields in Go's order", always(INNER), '{"f":{"a":1,"b":"x"}}', '{"f":{"b":"x","a":1}}'],
    [
      "sorts maps by their bytes",
      always(map(STRING)),
      '{"f":{"b":"1","B":"2","a":"3"}}',
      '{"f":{"B":"2","a":"3","b":"1"}}',
    ],
    ["takes a key that JavaScript minds", always(map(STRING)), '{"f":{"__proto__":"x"}}', '{"f":{"__proto__":"x"}}'],
    ["makes quantities canonical", always(QUANTITY), '{"f":"1024Mi"}', '{"f":"1Gi"}'],
    ["prints an absent quantity as 0", always(QUANTITY), "{}", '{"f":"0"}'],
    ["reads a quantity from a number", always(QUANTITY), '{"f":0.5}', '{"f":"500m"}'],
    ["reads one from a number beyond 2^53", always(QUANTITY), '{"f":9007199254740993}', '{"f":"9007199254740993"}'],
    ["keeps a number as a number", always(INT_OR_STRING), '{"f":80}', '{"f":80}'],
    ["keeps a port's name", always(INT_OR_STRING), '{"f":"80"}', '{"f":"80"}'],
    ["prints timestamps in UTC", always(TIME), '{"f":"2026-01-02T03:04:05.6+01:00"}', '{"f":"2026-01-02T02:04:05Z"}'],
    ["prints an absent timestamp as null", always(TIME), "{}", '{"f":null}'],
    ["prints the zero time as null", pointer(TIME), '{"f":"0001-01-01T01:00:00+01:00"}', '{"f":null}'],
    ["keeps the zero time where omitempty cannot see it", optional(TIME), '{"f":"0001-01-01T00:00:00Z"}', '{"f":null}'],
    ["carries an int64 beyond 2^53", always(INT64), '{"f":-9223372036854775808}', '{"f":-9223372036854775808}'],
    ["leaves raw JSON alone", pointer(RAW), '{"f":{"z":[null],"a":0}}', '{"f":{"z":[null],"a":0}}'],

    ["refuses a number for a string", optional(STRING), '{"f":1}', "! f must be a string, not the number 1"],
    ["refuses a text for a number", optional(INT32), '{"f":"1"}', "! f must be a 32-bit integer, not a string"],
    ["refuses a fraction", optional(INT32), '{"f":1.5}', "! f must be a 32-bit integer, not the number 1.5"],
    [
      "refuses what int32 cannot hold",
      optional(INT32),
      '{"f":2147483648}',
      "! f must be a 32-bit integer, not the number 2147483648",
    ],
    [
      "refuses what int64 cannot hold",
      always(INT64),
      '{"f":9223372036854775808}',
      "! f must be a 64-bit integer, not the number 9223372036854775808",
    ],
    ["refuses a text for true", optional(BOOLEAN), '{"f":"true"}', "! f must be true or false, not a string"],
    ["refuses an object for a list", optional(list(INNER)), '{"f":{}}', "! f must be a list, not an object"],
    ["refuses a list for a map", optional(map(STRING)), '{"f":[]}', "! f must be an object, not a list"],
    [
      "refuses a fraction for a port",
      always(INT_OR_STRING),
      '{"f":1.5}',
      "! f must be a 32-bit integer, not the number 1.5",
    ],
    [
      "refuses what is no timestamp",
      always(TIME),
      '{"f":"yesterday"}',
      "! f must be an RFC 3339 timestamp, not a string",
    ],
    [
      "refuses what is no quantity, in its words",
      always(QUANTITY),
      '{"f":"1K"}',
      "! f: unable to parse quantity's suffix",
    ],
    [
      "refuses a list of one timestamp",
      always(TIME),
      '{"f":["2026-01-02T03:04:05Z"]}',
      "! f must be an RFC 3339 timestamp, not a list",
    ],
    [
      "refuses a raw number for a text",
      always(STRING),
      '{"f":9007199254740993}',
      "! f must be a string, not the number 9007199254740993",
    ],
    ["refuses true for a quantity", always(QUANTITY), '{"f":true}', "! f must be a quantity, not a boolean"],
    ["names the path", optional(list(INNER)), '{"f":[{},{"b":2}]}', "! f[1].b must be a string, not the number 2"],
    [
      "names the key of a map",
      optional(map(STRING)),
      '{"f":{"k":null,"l":1}}',
      "! f[l] must be a string, not the number 1",
    ],
  ];
  it.each(rows)("%s", (_sentence, field, text, expected) => expect(decoded(field, text)).toBe(expected));

  it("refuses what is no object at all", () => {
    expect(decodeGo(INNER, "x")).toEqual({
      kind: "DecodeError",
      message: "the object must be an object, not a string",
    });
  });

  it("has no member for what is dropped", () => {
    expect(decodeGo(INNER, { a: 1 })).toStrictEqual({ kind: "Decoded", value: { a: 1 } });
  });

  it("takes nothing for an empty object", () => {
    expect(decodeGo(INNER, undefined)).toEqual({ kind: "Decoded", value: { a: 0 } });
  });

  it("is told types in a vocabulary of its own", () => {
    expect([list(STRING), map(INT32)]).toEqual([
      { kind: "list", of: STRING },
      { kind: "map", of: INT32 },
    ]);
    expect([always, optional, pointer, nullable].map((field) => field(STRING))).toEqual(
      ["zero", "omitted", "pointer", "null"].map((absent) => ({ type: STRING, absent })),
    );
    expect(struct({ a: always(STRING) })).toEqual({ kind: "struct", fields: new Map([["a", always(STRING)]]) });
  });

  it("names several fields of one kind", () => {
    expect(Object.keys(each("a b", always(STRING)))).toEqual(["a", "b"]);
  });

  it("is done with what it has decoded once", () => {
    const raw = { spec: { containers: [{ name: "c", env: [], resources: { limits: { cpu: "0.5" } } }] } };
    const once = decodeGo(SIDECAR_SET, raw);
    expect(once).toMatchObject({ kind: "Decoded" });
    if (once.kind !== "Decoded") return;
    expect(once.value.spec.containers?.[0]).toEqual({
      name: "c",
      resources: { limits: { cpu: "500m" } },
      upgradeStrategy: {},
      shareVolumePolicy: {},
    });
    expect(decodeGo(SIDECAR_SET, once.value)).toEqual(once);
  });
});
