/** Splits a JSON text into parts, and keeps the original text of each. */

/** Depth limit. Deeper texts count as malformed, because reading them would exhaust the stack. */
const DEEPEST = 1000;

const WHITESPACE = /[\t\n\r ]/;
const HTML = /[<>&\u2028\u2029]/g;
/** a string, or one other character */
const PIECE = /"(?:[^"\\]|\\.)*"|[^"]/gs;

/** The change of depth after a piece. */
function stepOf(piece: string): number {
  if (piece === "{" || piece === "[") return 1;
  return piece === "}" || piece === "]" ? -1 : 0;
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [piece] of text.matchAll(PIECE)) {
    depth += stepOf(piece);
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return depthOf(text) <= DEEPEST;
  } catch {
    return false;
  }
}

/** The kind of a value. `text` is valid JSON without white space around it. */
export function kindOf(text: string): "object" | "array" | "scalar" {
  if (text.startsWith("{")) return "object";
  return text.startsWith("[") ? "array" : "scalar";
}

/** The parts between the outermost brackets, cut at the commas and colons of this level. */
function partsOf(text: string): readonly string[] {
  const inner = text.slice(1, -1);
  if (inner.trim() === "") return [];
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  for (const { 0: piece, index } of inner.matchAll(PIECE)) {
    depth += stepOf(piece);
    if (depth === 0 && (piece === "," || piece === ":")) {
      parts.push(inner.slice(start, index).trim());
      start = index + 1;
    }
  }
  return [...parts, inner.slice(start).trim()];
}

/** The texts of the elements of an array's text. */
export function elementsOf(text: string): readonly string[] {
  return partsOf(text);
}

/** Key and text of every member of an object's text, in order, duplicates included. */
export function objectMembers(text: string): readonly (readonly [string, string])[] {
  const parts = partsOf(text);
  const members: (readonly [string, string])[] = [];
  for (let index = 0; index + 1 < parts.length; index += 2) {
    const key = JSON.parse(parts[index] ?? "") as string;
    members.push([key.toWellFormed(), parts[index + 1] ?? ""]);
  }
  return members;
}

export function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The text without white space between its parts and with HTML characters escaped; all else is unchanged. */
export function compactJson(text: string): string {
  const pieces = [...text.matchAll(PIECE)].map(([piece]) => piece);
  return pieces
    .filter((piece) => !WHITESPACE.test(piece) || piece.startsWith('"'))
    .join("")
    .replace(HTML, escapeUnit);
}

/** Writes a key as one step of a JSON pointer. Source: RFC 6901. */
export function pointerStep(key: string): string {
  return key.includes("/") || key.includes("~") ? key.replaceAll("~", "~0").replaceAll("/", "~1") : key;
}
