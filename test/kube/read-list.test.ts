import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readList } from "../../shared/kube/read-list.ts";
import { MOST_OF_OBJECT } from "../../shared/kube/transport.ts";

/** Splits the text into pieces of `size` bytes. */
function piecesOf(text: string, size: number): Readable {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  return Readable.from(pieces, { objectMode: false });
}

const ITEMS = [
  { metadata: { name: "a" }, items: [1, { items: [] }] },
  { text: 'a quote ", a brace } and a bracket ] in a string\\', last: "\\" },
  { text: "“ü” 😀", nested: { list: [[], {}, "[{"] } },
  {},
];
const METADATA = { resourceVersion: "7", continue: "“next”", annotations: { list: ["x"], items: '"items":[' } };

const SHAPES: readonly (readonly [string, string])[] = [
  [
    "a list as API servers print it",
    JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: METADATA, items: ITEMS }),
  ],
  [
    "a list whose items come first",
    JSON.stringify({ items: ITEMS, kind: "PodList", apiVersion: "v1", metadata: METADATA }),
  ],
  [
    "an indented list",
    JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: METADATA, items: ITEMS }, undefined, 2),
  ],
  ["a list with an empty member name", JSON.stringify({ "": "", items: ITEMS })],
  [
    "a list after another list",
    JSON.stringify({ others: [{ items: [1] }], kind: "PodList", apiVersion: "v1", metadata: METADATA, items: ITEMS }),
  ],
];

describe("readList:", () => {
  it.each(SHAPES)("readList reads %s as JSON.parse does, wherever its pieces end", async (_, text) => {
    const whole = JSON.parse(text);
    for (const size of [1, 2, 3, 7, 16, 64, 1_000_000]) {
      const { rest, kept } = await readList(piecesOf(text, size), (item) => item);
      expect({ ...(rest as object), items: kept }).toStrictEqual(whole);
    }
  });

  it("a list may be larger than one object may be, as long as each of its objects is small", async () => {
    const items = Array.from({ length: 40 }, (_, index) => ({ index, text: "x".repeat(1_000_000) }));
    const text = JSON.stringify({ items });
    expect(text.length).toBeGreaterThan(MOST_OF_OBJECT);
    const { kept } = await readList(piecesOf(text, 700_000), (item) => (item as { readonly index: number }).index);
    expect(kept).toHaveLength(40);
  });

  it("readList keeps only the values that its callback returns", async () => {
    const text = JSON.stringify({ items: [1, 2, 3, 4].map((n) => ({ n })) });
    const { kept } = await readList(piecesOf(text, 5), (item) => {
      const { n } = item as { readonly n: number };
      return n % 2 === 0 ? n : undefined;
    });
    expect(kept).toEqual([2, 4]);
  });

  it.each([
    ["an empty list", '{"items":[],"kind":"PodList"}', { items: [], kind: "PodList" }],
    ["a list whose items are an object", '{"items":{"a":{"b":1}}}', { items: { a: { b: 1 } } }],
    ["a list whose items are null", '{"kind":"PodList","items":null}', { kind: "PodList", items: null }],
  ])("readList keeps no items of %s", async (_, text, rest) => {
    expect(await readList(piecesOf(text, 4), (item) => item)).toEqual({ rest, kept: [] });
  });

  it.each([
    ["a list that is cut off inside an item", '{"items":[{"a":1},{"a"'],
    ["a list that is cut off between items", '{"items":[{"a":1},'],
    ["a list that is cut off after its items", '{"items":[{"a":1}]'],
    ["a list with an item that is not JSON", '{"items":[{"a":1},{"a":}]}'],
    ["an HTML page of a proxy", "<html>no</html>"],
    ["an empty body", ""],
  ])("readList throws a SyntaxError for %s", async (_, text) => {
    await expect(readList(piecesOf(text, 6), (item) => item)).rejects.toThrow(SyntaxError);
  });

  it("readList stops reading at the first invalid JSON", async () => {
    const body = new Readable({ read: () => undefined });
    body.push('{"items":[{"a":}');
    await expect(readList(body, (item) => item)).rejects.toThrow(SyntaxError);
    expect(body.destroyed).toBe(true);
  });

  it("readList starts a paused stream", async () => {
    const { kept } = await readList(piecesOf('{"items":[{}]}', 6).pause(), (item) => item);
    expect(kept).toEqual([{}]);
  });

  it("readList fails when the stream is closed before its end", async () => {
    const body = new Readable({ read: () => undefined });
    const reading = readList(body, (item) => item);
    body.push('{"items":[');
    body.destroy();
    await expect(reading).rejects.toThrow("closed");
  });

  it("readList fails with the error of its stream", async () => {
    const broken = Readable.from(
      (async function* () {
        yield Buffer.from('{"items":[{}');
        throw new Error("reset");
      })(),
      { objectMode: false },
    );
    await expect(readList(broken, (item) => item)).rejects.toThrow("reset");
  });
});
