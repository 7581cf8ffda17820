import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readList } from "../../shared/kube/read-list.ts";

/** In pieces of so many bytes. */
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
  ["as API servers print it", JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: METADATA, items: ITEMS })],
  ["with its items first", JSON.stringify({ items: ITEMS, kind: "PodList", apiVersion: "v1", metadata: METADATA })],
  ["indented", JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: METADATA, items: ITEMS }, undefined, 2)],
  ["with a member whose name is empty", JSON.stringify({ "": "", items: ITEMS })],
  [
    "with another list before",
    JSON.stringify({ others: [{ items: [1] }], kind: "PodList", apiVersion: "v1", metadata: METADATA, items: ITEMS }),
  ],
];

describe("a list that is read item by item", () => {
  it.each(SHAPES)("%s, is what JSON.parse makes of it, wherever its pieces end", async (_, text) => {
    const whole = JSON.parse(text);
    for (const size of [1, 2, 3, 7, 16, 64, 1_000_000]) {
      const { rest, kept } = await readList(piecesOf(text, size), (item) => item);
      expect({ ...(rest as object), items: kept }).toStrictEqual(whole);
    }
  });

  it("keeps what it is told to", async () => {
    const text = JSON.stringify({ items: [1, 2, 3, 4].map((n) => ({ n })) });
    const { kept } = await readList(piecesOf(text, 5), (item) => {
      const { n } = item as { readonly n: number };
      return n % 2 === 0 ? n : undefined;
    });
    expect(kept).toEqual([2, 4]);
  });

  it.each([
    ["that is empty", '{"items":[],"kind":"PodList"}', { items: [], kind: "PodList" }],
    ["whose items are an object", '{"items":{"a":{"b":1}}}', { items: { a: { b: 1 } } }],
    ["that has none", '{"kind":"PodList","items":null}', { kind: "PodList", items: null }],
  ])("of one %s", async (_, text, rest) => {
    expect(await readList(piecesOf(text, 4), (item) => item)).toEqual({ rest, kept: [] });
  });

  it.each([
    ["is cut within an item", '{"items":[{"a":1},{"a"'],
    ["is cut between items", '{"items":[{"a":1},'],
    ["is cut behind its items", '{"items":[{"a":1}]'],
    ["has an item that is no JSON", '{"items":[{"a":1},{"a":}]}'],
    ["is a page of some proxy", "<html>no</html>"],
    ["is empty", ""],
  ])("that %s is a SyntaxError", async (_, text) => {
    await expect(readList(piecesOf(text, 6), (item) => item)).rejects.toThrow(SyntaxError);
  });

  it("that is no JSON is not read any further", async () => {
    const body = new Readable({ read: () => undefined });
    body.push('{"items":[{"a":}');
    await expect(readList(body, (item) => item)).rejects.toThrow(SyntaxError);
    expect(body.destroyed).toBe(true);
  });

  it("that nobody reads yet begins to flow", async () => {
    const { kept } = await readList(piecesOf('{"items":[{}]}', 6).pause(), (item) => item);
    expect(kept).toEqual([{}]);
  });

  it("that is closed before its end fails", async () => {
    const body = new Readable({ read: () => undefined });
    const reading = readList(body, (item) => item);
    body.push('{"items":[');
    body.destroy();
    await expect(reading).rejects.toThrow("closed");
  });

  it("that breaks off fails as its stream does", async () => {
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
