import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergePatch } from "../../../shared/go/json/merge-patch.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

function isObject(value: unknown): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** RFC 7386 as its own text has it. */
function rfcMerge(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, rfcMerge(result.get(key), value));
  }
  return Object.fromEntries(result);
}

/** Without arrays that hold objects: there the reference goes its own way. */
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

describe("a merge patch", () => {
  it("does what RFC 7386 says", () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (document, patch) => {
        const result = mergePatch(JSON.stringify(document), JSON.stringify(patch));
        expect(result.kind).toBe("merged");
        expect(result.kind === "merged" && JSON.parse(result.text)).toEqual(rfcMerge(document, patch));
      }),
      { numRuns: 3000 },
    );
  });

  it("changes nothing more when it is applied again", () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (document, patch) => {
        const once = mergePatch(JSON.stringify(document), JSON.stringify(patch));
        expect(once.kind === "merged" && mergePatch(once.text, JSON.stringify(patch))).toEqual(once);
      }),
      { numRuns: 1000 },
    );
  });

  it("answers any two texts", () => {
    const text = fc.oneof(fc.string(), fc.json(), fc.constantFrom("", "{", "[", "null", '"', "{}x", '{"a":1,}'));
    fc.assert(
      fc.property(text, text, (document, patch) => {
        expect(["merged", "refused"]).toContain(mergePatch(document, patch).kind);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("the text that comes of a merge", () => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["has its keys sorted by their bytes", '{"\uffee":1,"a":2}', '{"😀":3}', '{"a":2,"\uffee":1,"😀":3}'],
    ["keeps numbers as they are written", '{"a":1.0}', '{"b":1e3}', '{"a":1.0,"b":1e3}'],
    ["keeps what is not touched in its order, compact", '{"a": {"z": 1, "b": [ ] }}', "{}", '{"a":{"z":1,"b":[]}}'],
    ["keeps untouched escapes", '{"a":"\\u00e9\\/"}', "{}", '{"a":"\\u00e9\\/"}'],
    ["escapes HTML everywhere", '{"<":{"&":">"}}', "{}", '{"\\u003c":{"\\u0026":"\\u003e"}}'],
    ["takes the last of equal keys", '{"a":1,"a":2}', '{"b":1,"b":null}', '{"a":2}'],
    ["keeps the document's nulls", '{"a":null}', '{"b":1}', '{"a":null,"b":1}'],
    ["drops nulls of new objects, also in arrays", "{}", '{"a":[{"b":null},null]}', '{"a":[{},null]}'],
    ["takes an array in place of an object as it is", '{"a":{}}', '{"a":[{"b":null}]}', '{"a":[{"b":null}]}'],
    ["is the patch where the document is no object", "[1]", '{"a":null,"b":2}', '{"b":2}'],
    ["drops nulls in an array that replaces a scalar", '{"a":1}', '{"a":[{"b":null}]}', '{"a":[{}]}'],
    ["drops nulls of an object that replaces null", '{"a":null}', '{"a":{"b":null,"c":1}}', '{"a":{"c":1}}'],
    ["keeps a document with white space around it", ' {"a":1}\n', ' {"b":2} ', '{"a":1,"b":2}'],
    ["is the array that the patch is", "{}", ' [1, {"a":null}] ', "[1,{}]"],
  ];
  it.each(rows)("%s", (_sentence, document, patch, text) => {
    expect(mergePatch(document, patch)).toEqual({ kind: "merged", text });
  });
});

describe("a merge that is refused", () => {
  const deep = `${"[".repeat(1001)}${"]".repeat(1001)}`;
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["the document is no JSON", "x", "{}", "Invalid JSON Document"],
    ["neither is JSON", "x", "x", "Invalid JSON Document"],
    ["the patch is no JSON", "{}", "x", "Invalid JSON Patch"],
    ["the document is null", "null", "{}", "Invalid JSON Document"],
    ["the document is null in white space", " null ", "{}", "Invalid JSON Document"],
    ["the patch is null", "{}", "null", "Invalid JSON Patch"],
    ["the patch is a number", "{}", "1", "Invalid JSON Patch"],
    ["the patch is too deep", "{}", deep, "Invalid JSON Patch"],
  ];
  it.each(rows)("%s", (_sentence, document, patch, message) => {
    expect(mergePatch(document, patch)).toEqual({ kind: "refused", message });
  });
});
