import fc from "fast-check";
import { expect, test } from "vitest";
import { mergePatch } from "../../shared/go/json/merge-patch.ts";
import { holds } from "./holds.ts";

/** JSON whose objects keep the order of their keys and whose numbers keep their text. */
type Json = null | boolean | string | NumberText | readonly Json[] | ObjectText;
interface NumberText {
  readonly digits: string;
}
type ObjectText = ReadonlyMap<string, Json>;

const isArray = (value: Json): value is readonly Json[] => Array.isArray(value);
const isObject = (value: Json | undefined): value is ObjectText => value instanceof Map;

function text(value: Json, isSorted = false): string {
  if (isObject(value)) {
    const entries = isSorted
      ? [...value].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      : value;
    return `{${[...entries].map(([key, member]) => `${escaped(key)}:${text(member)}`).join(",")}}`;
  }
  if (isArray(value)) return `[${value.map((element) => text(element)).join(",")}]`;
  if (typeof value === "object" && value !== null) return (value as NumberText).digits;
  return typeof value === "string" ? escaped(value) : JSON.stringify(value);
}

function escaped(value: string): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Returns the text of an added value without nulls in its objects, also within arrays. */
function pruned(value: Json): string {
  if (isArray(value)) return `[${value.map(pruned).join(",")}]`;
  return isObject(value) ? printed(new Map([...value].filter(([, member]) => member !== null)), pruned) : text(value);
}

function printed(members: ObjectText, print: (member: Json, key: string) => string): string {
  const sorted = [...members].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${sorted.map(([key, member]) => `${escaped(key)}:${print(member, key)}`).join(",")}}`;
}

/**
 * Merges by the documented rules of the reference. Objects that the patch touches are sorted, and all others stay as
 * written. An array that replaces an object keeps its nulls.
 */
function merged(document: ObjectText, patch: ObjectText): string {
  const kept = [...document].filter(([key]) => patch.get(key) !== null);
  const added = [...patch].filter(([, member]) => member !== null);
  return printed(new Map([...kept, ...added]), (member, key) => {
    const [before, wanted] = [document.get(key), patch.get(key)];
    if (wanted === undefined) return text(member);
    if (isObject(before)) return isObject(wanted) ? merged(before, wanted) : text(wanted);
    return pruned(wanted);
  });
}

const key = fc.constantFrom("a", "b", "c", "<", "é", "𝒳", "\uffee");
const { object } = fc.letrec<{ value: Json; object: ObjectText }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom<Json>(null, null, true, "", "a<b>&", "é\u2028"),
    fc.constantFrom("0", "-0", "1.0", "1e3", "1E+2", "9007199254740993").map((digits): Json => ({ digits })),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => new Map(entries)),
}));

test("mergePatch prints the same bytes as the rules of OpenKruise", () => {
  const classes = ["removed", "nested", "objects in arrays", "array for an object", "numbers kept"];
  holds(fc.tuple(object, object), classes, ([document, patch], seen) => {
    expect(mergePatch(text(document), text(patch))).toEqual({ kind: "merged", text: merged(document, patch) });
    const both = [...patch].filter(([name]) => document.has(name));
    seen(
      "removed",
      both.some(([, member]) => member === null),
    );
    seen(
      "nested",
      both.some(([name, member]) => isObject(member) && isObject(document.get(name))),
    );
    seen(
      "objects in arrays",
      [...patch.values()].some((member) => member !== null && isArray(member) && member.some(isObject)),
    );
    seen(
      "array for an object",
      both.some(([name, member]) => member !== null && isArray(member) && isObject(document.get(name))),
    );
    seen("numbers kept", text(document).includes("9007199254740993"));
  });
});

test("white space in the documents does not change the result of mergePatch", () => {
  holds(fc.tuple(object, object), ["spaced"], ([document, patch], seen) => {
    const spaced = (json: string) => ` \n${json.replace(/("(?:[^"\\]|\\.)*")|([{}[\],:])/g, "$1$2 \t")}`;
    const [before, change] = [text(document), text(patch)];
    seen("spaced", before.length > 2);
    expect(mergePatch(spaced(before), spaced(change))).toEqual(mergePatch(before, change));
  });
});
