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

/** Decodes a struct with the one field `f` from the JSON text of its value, and returns the struct's JSON text. */
function decoded(field: GoField, text: string): string {
  const result = decodeGo(struct({ f: field }), parseJson(text));
  return result.kind === "Decoded" ? goJson(result.value) : `! ${result.message}`;
}

describe("decodeGo", () => {
  const rows: readonly (readonly [string, GoField, string, string])[] = [
    ["an unknown field is dropped", optional(STRING), '{"f":"x","g":1}', '{"f":"x"}'],
    ["a field name in another case is dropped", optional(STRING), '{"F":"x"}', "{}"],
    ["omitempty drops a zero", optional(INT32), '{"f":0}', "{}"],
    ["omitempty drops an empty string", optional(STRING), '{"f":""}', "{}"],
    ["omitempty drops false", optional(BOOLEAN), '{"f":false}', "{}"],
    ["omitempty drops an empty list", optional(list(STRING)), '{"f":[]}', "{}"],
    ["omitempty drops an empty map", optional(map(STRING)), '{"f":{}}', "{}"],
    ["omitempty keeps a list of empty strings", optional(list(STRING)), '{"f":["",null]}', '{"f":["",""]}'],
    ["an absent string without omitempty is printed as an empty string", always(STRING), "{}", '{"f":""}'],
    ["an absent struct without omitempty is printed with its zero values", always(INNER), "{}", '{"f":{"a":0}}'],
    ["an absent list without omitempty is printed as null", always(list(STRING)), "{}", '{"f":null}'],
    ["an empty list without omitempty stays an empty list", always(list(STRING)), '{"f":[]}', '{"f":[]}'],
    ["a pointer to false is kept", pointer(BOOLEAN), '{"f":false}', '{"f":false}'],
    ["a pointer to an empty struct is kept", pointer(struct({})), '{"f":{}}', '{"f":{}}'],
    ["an absent boolean without omitempty is printed as false", always(BOOLEAN), "{}", '{"f":false}'],
    ["an absent int64 without omitempty is printed as 0", always(INT64), "{}", '{"f":0}'],
    ["an absent port is printed as 0", always(INT_OR_STRING), "{}", '{"f":0}'],
    ["an absent map without omitempty is printed as null", always(map(STRING)), "{}", '{"f":null}'],
    ["absent raw JSON is printed as null", always(RAW), "{}", '{"f":null}'],
    ["a null pointer is dropped", pointer(INT32), '{"f":null}', "{}"],
    ["a null pointer without omitempty is printed as null", nullable(STRING), "{}", '{"f":null}'],
    ["a pointer to an empty string is kept", nullable(STRING), '{"f":""}', '{"f":""}'],
    [
      "fields are printed in the order of the Go struct",
      always(INNER),
      '{"f":{"a":1,"b":"x"}}',
      '{"f":{"b":"x","a":1}}',
    ],
    [
      "the keys of a map are sorted by their bytes",
      always(map(STRING)),
      '{"f":{"b":"1","B":"2","a":"3"}}',
      '{"f":{"B":"2","a":"3","b":"1"}}',
    ],
    ["a map key named __proto__ is kept", always(map(STRING)), '{"f":{"__proto__":"x"}}', '{"f":{"__proto__":"x"}}'],
    ["a quantity is printed in its canonical form", always(QUANTITY), '{"f":"1024Mi"}', '{"f":"1Gi"}'],
    ["an absent quantity is printed as 0", always(QUANTITY), "{}", '{"f":"0"}'],
    ["a quantity is read from a number", always(QUANTITY), '{"f":0.5}', '{"f":"500m"}'],
    [
      "a quantity is read from a number beyond 2^53",
      always(QUANTITY),
      '{"f":9007199254740993}',
      '{"f":"9007199254740993"}',
    ],
    ["a port number stays a number", always(INT_OR_STRING), '{"f":80}', '{"f":80}'],
    ["a port name stays a string", always(INT_OR_STRING), '{"f":"80"}', '{"f":"80"}'],
    [
      "a timestamp is printed in UTC",
      always(TIME),
      '{"f":"2026-01-02T03:04:05.6+01:00"}',
      '{"f":"2026-01-02T02:04:05Z"}',
    ],
    ["an absent timestamp is printed as null", always(TIME), "{}", '{"f":null}'],
    [
      "a pointer to Go's zero time is printed as null",
      pointer(TIME),
      '{"f":"0001-01-01T01:00:00+01:00"}',
      '{"f":null}',
    ],
    ["omitempty does not drop Go's zero time", optional(TIME), '{"f":"0001-01-01T00:00:00Z"}', '{"f":null}'],
    ["an int64 beyond 2^53 keeps its value", always(INT64), '{"f":-9223372036854775808}', '{"f":-9223372036854775808}'],
    ["raw JSON is left unchanged", pointer(RAW), '{"f":{"z":[null],"a":0}}', '{"f":{"z":[null],"a":0}}'],

    ["a number is refused for a string", optional(STRING), '{"f":1}', "! f must be a string, not the number 1"],
    ["a string is refused for a number", optional(INT32), '{"f":"1"}', "! f must be a 32-bit integer, not a string"],
    [
      "a fraction is refused for an integer",
      optional(INT32),
      '{"f":1.5}',
      "! f must be a 32-bit integer, not the number 1.5",
    ],
    [
      "a number that does not fit into int32 is refused",
      optional(INT32),
      '{"f":2147483648}',
      "! f must be a 32-bit integer, not the number 2147483648",
    ],
    [
      "a number that does not fit into int64 is refused",
      always(INT64),
      '{"f":9223372036854775808}',
      "! f must be a 64-bit integer, not the number 9223372036854775808",
    ],
    ["a string is refused for a boolean", optional(BOOLEAN), '{"f":"true"}', "! f must be true or false, not a string"],
    ["an object is refused for a list", optional(list(INNER)), '{"f":{}}', "! f must be a list, not an object"],
    ["a list is refused for a map", optional(map(STRING)), '{"f":[]}', "! f must be an object, not a list"],
    [
      "a fraction is refused for a port",
      always(INT_OR_STRING),
      '{"f":1.5}',
      "! f must be a 32-bit integer, not the number 1.5",
    ],
    [
      "an invalid timestamp is refused",
      always(TIME),
      '{"f":"yesterday"}',
      "! f must be an RFC 3339 timestamp, not a string",
    ],
    [
      "an invalid quantity is refused with the error of the quantity parser",
      always(QUANTITY),
      '{"f":"1K"}',
      "! f: unable to parse quantity's suffix",
    ],
    [
      "a list is refused for a timestamp",
      always(TIME),
      '{"f":["2026-01-02T03:04:05Z"]}',
      "! f must be an RFC 3339 timestamp, not a list",
    ],
    [
      "a raw number is refused for a string",
      always(STRING),
      '{"f":9007199254740993}',
      "! f must be a string, not the number 9007199254740993",
    ],
    ["a boolean is refused for a quantity", always(QUANTITY), '{"f":true}', "! f must be a quantity, not a boolean"],
    [
      "the error names the path of the field",
      optional(list(INNER)),
      '{"f":[{},{"b":2}]}',
      "! f[1].b must be a string, not the number 2",
    ],
    [
      "the error names the key of a map",
      optional(map(STRING)),
      '{"f":{"k":null,"l":1}}',
      "! f[l] must be a string, not the number 1",
    ],
  ];
  it.each(rows)("%s", (_sentence, field, text, expected) => expect(decoded(field, text)).toBe(expected));

  it("a value that is not an object is refused", () => {
    expect(decodeGo(INNER, "x")).toEqual({
      kind: "DecodeError",
      message: "the object must be an object, not a string",
    });
  });

  it("a dropped field has no member in the result", () => {
    expect(decodeGo(INNER, { a: 1 })).toStrictEqual({ kind: "Decoded", value: { a: 1 } });
  });

  it("undefined is decoded as an empty object", () => {
    expect(decodeGo(INNER, undefined)).toEqual({ kind: "Decoded", value: { a: 0 } });
  });

  it("the functions of go-type describe lists, maps, structs and absent fields", () => {
    expect([list(STRING), map(INT32)]).toEqual([
      { kind: "list", of: STRING },
      { kind: "map", of: INT32 },
    ]);
    expect([always, optional, pointer, nullable].map((field) => field(STRING))).toEqual(
      ["zero", "omitted", "pointer", "null"].map((absent) => ({ type: STRING, absent })),
    );
    expect(struct({ a: always(STRING) })).toEqual({ kind: "struct", fields: new Map([["a", always(STRING)]]) });
  });

  it("the function each gives the same type to several fields", () => {
    expect(Object.keys(each("a b", always(STRING)))).toEqual(["a", "b"]);
  });

  it("decoding a decoded SidecarSet again changes nothing", () => {
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
