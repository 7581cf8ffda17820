/** Reads Kubernetes objects from files and stdin, and says where in which file something is wrong. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_KIND, SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import { readYaml, type YamlDocument, YamlError, type YamlPlace } from "../../shared/kube/yaml.ts";
import { CliError } from "./screen.ts";

export interface ReadObject {
  readonly object: KubernetesObject;
  /** file:line:column */
  readonly place: string;
  /** a field's place, as file:line:column; of the nearest field above it where the file lacks it */
  readonly placeOf: (path: readonly (string | number)[]) => string;
  /** repeated keys of a map in its document, and their places: kubectl takes the last */
  readonly repeatedKeys: readonly { readonly key: string; readonly place: string }[];
}

const STDIN = "-";

/**
 * All objects of all files, in their order; `-` is stdin, a folder is all files below it, a List is its items.
 * @throws CliError naming file, line and column
 */
export async function readObjects(files: readonly string[]): Promise<readonly ReadObject[]> {
  const objects: ReadObject[] = [];
  for (const file of (await Promise.all(files.map(manifestsIn))).flat())
    objects.push(...parse(file === STDIN ? "stdin" : file, await readText(file)));
  if (objects.length === 0)
    throw new CliError(`${files.join(", ")}: no Kubernetes object in there; write at least one`);
  return objects;
}

const MANIFEST = /\.(ya?ml|json)$/;

/** The files of a folder come in the order of their names. @throws CliError for a folder without one */
async function manifestsIn(path: string): Promise<readonly string[]> {
  const isFolder = path !== STDIN && (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder) return [path];
  const names = (await readdir(path, { recursive: true })).filter((name) => MANIFEST.test(name)).toSorted();
  if (names.length === 0) throw new CliError(`${path}: no .yaml, .yml or .json in there; check the path given to -f`);
  return names.map((name) => join(path, name));
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
  const shown = ({ line, column }: YamlPlace) => `${file}:${line}:${column}`;
  try {
    return readYaml(content).flatMap((document) => objectsOf(document, shown));
  } catch (cause) {
    if (!(cause instanceof YamlError)) throw cause;
    const todo = content.includes("{{")
      ? "is this a Helm template? helm template renders it"
      : "correct the YAML there";
    throw new CliError(`${shown(cause.place)}: ${cause.message}; ${todo}`, { cause });
  }
}

function objectsOf({ value, placeOf, repeatedKeys }: YamlDocument, shown: (place: YamlPlace) => string): ReadObject[] {
  if (value === null) return [];
  const { kind, items } = requireObject(value, shown(placeOf([]))) as KubernetesObject & { readonly items?: unknown };
  const isList = kind?.endsWith("List") === true && Array.isArray(items);
  const repeated = repeatedKeys.map(({ key, place }) => ({ key, place: shown(place) }));
  return (isList ? items : [value]).map((item, index) => {
    const above = isList ? ["items", index] : [];
    const placeIn = (path: readonly (string | number)[]) => shown(placeOf([...above, ...path]));
    const object = requireObject(item, placeIn([]));
    requireKnownVersion(object, placeIn(["apiVersion"]));
    const empty = object.kind === SIDECARSET_KIND ? emptyItem(object) : undefined;
    if (empty !== undefined)
      throw new CliError(`${placeIn(empty)}: ${pathText(empty)} is empty; write the item, or leave it out`);
    return { object, place: placeIn([]), placeOf: placeIn, repeatedKeys: index === 0 ? repeated : [] };
  });
}

type Path = readonly (string | number)[];

/** No Kubernetes object nests deeper. */
const MOST_LEVELS = 100;

/** The first item of a list that is null, which no API server takes. */
function emptyItem(value: unknown, path: Path = []): Path | undefined {
  if (typeof value !== "object" || value === null || path.length > MOST_LEVELS) return undefined;
  if (!Array.isArray(value)) return firstOf(Object.entries(value), path);
  const index = value.indexOf(null);
  return index < 0 ? firstOf([...value.entries()], path) : [...path, index];
}

function firstOf(members: readonly (readonly [string | number, unknown])[], path: Path): Path | undefined {
  for (const [key, member] of members) {
    const found = emptyItem(member, [...path, key]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function pathText(path: Path): string {
  return path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .slice(1);
}

function requireKnownVersion({ kind, apiVersion = "" }: KubernetesObject, place: string): void {
  const versions = [SIDECARSET_V1BETA1, SIDECARSET_V1ALPHA1];
  if (kind !== SIDECARSET_KIND || versions.includes(apiVersion)) return;
  throw new CliError(`${place}: there is no SidecarSet of apiVersion ${apiVersion}; write ${versions.join(" or ")}`);
}

function requireObject(value: unknown, place: string): KubernetesObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new CliError(`${place}: not a Kubernetes object; expected apiVersion, kind and metadata`);
}
