/** Reads test/docs/pins.md, which names the tests of each promise of a document. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Pin {
  readonly title: string;
  readonly path: string;
}

const FOLDER = "test/docs";

/** Returns the first cell of each row below a heading → the tests of that row. */
export function pinsOf(heading: string): ReadonlyMap<string, readonly Pin[]> {
  return pinsIn(readFileSync(join(FOLDER, "pins.md"), "utf8"), heading);
}

export function pinsIn(text: string, heading: string): ReadonlyMap<string, readonly Pin[]> {
  const part = text.split(/^## /m).find((one) => one.startsWith(`${heading}\n`)) ?? "";
  const [, , ...rows] = part.split("\n").filter((line) => line.startsWith("|"));
  return new Map(rows.map((row) => [row.split("|")[1]?.trim() ?? "", linksIn(row)]));
}

function linksIn(row: string): readonly Pin[] {
  return [...row.matchAll(/\[((?:\\.|[^\]])+)\]\(([^)]+)\)/g)].map(([, title = "", link = ""]) => ({
    title: title.replaceAll(/\\(.)/g, "$1"),
    path: join(FOLDER, link),
  }));
}
