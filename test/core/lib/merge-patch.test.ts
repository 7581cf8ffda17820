import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergePatch } from "../../../shared/go/json/merge-patch.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

function isObject(value: unknown): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Applies the algorithm in the text of RFC 7386. */
function rfcMerge(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, rfcMerge(result.get(key), value));
  }
  return Object.fromEntries(result);
}

/** Arrays hold no objects, because the reference differs from RFC 7386 there. */
const { value: jsonValue } = fc.letrec<{ value: Json; object: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom<Json>(null, true, 0, 1.5, "", "a<b>&", "é"),
    fc.array(fc.integer(), { maxLength: 3 }) as fc.Arbitrary<Json>,
    tie("object"),
  ),
  object: fc.dictionary(fc.constantFrom("a", "b", "<", "é", "𝒳", "\uffee"), tie("value"), { maxKeys: 4 }) as never,
}));
const jsonObject = fc.dictionary(fc.constantFrom("a", "b", "c", "é"), jsonValue, { maxKeys: 5 });

describe("mergePatch", () => {
  it("a merge patch gives the result that RFC 7386 defines", () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (document, patch) => {
        const result = mergePatch(JSON.stringify(document), JSON.stringify(patch));
        expect(result.kind).toBe("merged");
        expect(result.kind === "merged" && JSON.parse(result.text)).toEqual(rfcMerge(document, patch));
      }),
      { numRuns: 3000 },
    );
  });

  it("applying the same merge patch twice changes nothing more", () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (document, patch) => {
        const once = mergePatch(JSON.stringify(document), JSON.stringify(patch));
        expect(once.kind === "merged" && mergePatch(once.text, JSON.stringify(patch))).toEqual(once);
      }),
      { numRuns: 1000 },
    );
  });

  it("mergePatch merges or refuses any two texts without an exception", () => {
    const text = fc.oneof(fc.string(), fc.json(), fc.constantFrom("", "{", "[", "null", '"', "{}x", '{"a":1,}'));
    fc.assert(
      fc.property(text, text, (document, patch) => {
        expect(["merged", "refused"]).toContain(mergePatch(document, patch).kind);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("the text of a merged document", () => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["keys are sorted by their bytes", '{"\uffee":1,"a":2}', '{"😀":3}', '{"a":2,"\uffee":1,"😀":3}'],
    ["numbers stay as they are written", '{"a":1.0}', '{"b":1e3}', '{"a":1.0,"b":1e3}'],
    [
      "an untouched value keeps its key order and loses its white space",
      '{"a": {"z": 1, "b": [ ] }}',
      "{}",
      '{"a":{"z":1,"b":[]}}',
    ],
    ["escapes in an untouched value stay as they are", '{"a":"\\u00e9\\/"}', "{}", '{"a":"\\u00e9\\/"}'],
    ["HTML characters are escaped in keys and values", '{"<":{"&":">"}}', "{}", '{"\\u003c":{"\\u0026":"\\u003e"}}'],
    ["the last of duplicate keys counts", '{"a":1,"a":2}', '{"b":1,"b":null}', '{"a":2}'],
    ["a null in the document is kept", '{"a":null}', '{"b":1}', '{"a":null,"b":1}'],
    ["an array in the patch loses the null members of its objects", "{}", '{"a":[{"b":null},null]}', '{"a":[{},null]}'],
    ["an array that replaces an object keeps its nulls", '{"a":{}}', '{"a":[{"b":null}]}', '{"a":[{"b":null}]}'],
    ["a patch replaces a document that is not an object", "[1]", '{"a":null,"b":2}', '{"b":2}'],
    [
      "an array that replaces a scalar loses the null members of its objects",
      '{"a":1}',
      '{"a":[{"b":null}]}',
      '{"a":[{}]}',
    ],
    ["an object that replaces null loses its null members", '{"a":null}', '{"a":{"b":null,"c":1}}', '{"a":{"c":1}}'],
    ["white space around the document and the patch is ignored", ' {"a":1}\n', ' {"b":2} ', '{"a":1,"b":2}'],
    ["a patch that is an array replaces the document", "{}", ' [1, {"a":null}] ', "[1,{}]"],
  ];
  it.each(rows)("%s", (_sentence, document, patch, text) => {
    expect(mergePatch(document, patch)).toEqual({ kind: "merged", text });
  });
});

describe("invalid documents and patches", () => {
  const deep = `${"[".repeat(1001)}${"]".repeat(1001)}`;
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["a document that is not JSON is refused", "x", "{}", "Invalid JSON Document"],
    ["the document is reported when neither the document nor the patch is JSON", "x", "x", "Invalid JSON Document"],
    ["a patch that is not JSON is refused", "{}", "x", "Invalid JSON Patch"],
    ["a null document is refused", "null", "{}", "Invalid JSON Document"],
    ["a null document with white space around it is refused", " null ", "{}", "Invalid JSON Document"],
    ["a null patch is refused", "{}", "null", "Invalid JSON Patch"],
    ["a patch that is a number is refused", "{}", "1", "Invalid JSON Patch"],
    ["a patch with more than 1,000 levels is refused", "{}", deep, "Invalid JSON Patch"],
  ];
  it.each(rows)("%s", (_sentence, document, patch, message) => {
    expect(mergePatch(document, patch)).toEqual({ kind: "refused", message });
  });
});
