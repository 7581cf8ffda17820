/** Reads Kubernetes objects from files and stdin, and says where in which file something is wrong. */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { LineCounter, parseAllDocuments } from "yaml";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { CliError } from "../error.ts";

export interface ReadObject {
  readonly object: KubernetesObject;
  /** file:line:column */
  readonly place: string;
}

const STDIN = "-";

/**
 * All objects of all files, in their order; `-` is stdin, a List is its items.
 * @throws CliError naming file, line and column
 */
export async function readObjects(files: readonly string[]): Promise<readonly ReadObject[]> {
  const objects: ReadObject[] = [];
  for (const file of files) objects.push(...parse(file === STDIN ? "stdin" : file, await readText(file)));
  if (objects.length === 0)
    throw new CliError(`${files.join(", ")}: no Kubernetes object in there; write at least one`);
  return objects;
}

async function readText(file: string): Promise<string> {
  if (file === STDIN) return text(process.stdin);
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CliError(`${file}: cannot be read (${code}); check the path given to -f`, { cause });
  }
}

function parse(file: string, content: string): readonly ReadObject[] {
  const lines = new LineCounter();
  return [parseAllDocuments(content, { lineCounter: lines, prettyErrors: false })].flat().flatMap((document) => {
    const placeOf = (offset: number) => `${file}:${lines.linePos(offset).line}:${lines.linePos(offset).col}`;
    const [error] = document.errors;
    if (error)
      throw new CliError(`${placeOf(error.pos[0])}: ${error.message.replace(/\s+/g, " ")}; correct the YAML there`);
    const value: unknown = document.toJS();
    if (value === null) return [];
    const place = placeOf(document.contents?.range?.[0] ?? 0);
    return itemsOf(value, place).map((item) => ({ object: requireObject(item, place), place }));
  });
}

function itemsOf(value: unknown, place: string): readonly unknown[] {
  const { kind, items } = requireObject(value, place) as KubernetesObject & { readonly items?: unknown };
  return kind?.endsWith("List") && Array.isArray(items) ? items : [value];
}

function requireObject(value: unknown, place: string): KubernetesObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new CliError(`${place}: not a Kubernetes object; expected apiVersion, kind and metadata`);
}
