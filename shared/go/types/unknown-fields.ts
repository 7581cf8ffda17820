/** Finds the fields of an object that its type does not have. Decoding drops them, except the only source of a volume. */
import { editDistance } from "../edit-distance.ts";
import type { GoType, Struct } from "./go-type.ts";

export interface UnknownField {
  /** such as spec.containers[0].immage */
  readonly field: string;
  /** the field that was meant, it seems: a name beside it, or a path such as spec.updateStrategy.partition */
  readonly meant?: string;
  /** the name of the volume whose only source it is */
  readonly sourceOf?: string;
}

/** Names that differ in more letters are different words. */
const MOST_TYPOS = 2;
const DEEPEST = 8;

/** The first `most` of them, and how many there are: a hint takes time, and a hostile object may have any number. */
export function unknownFields(
  type: GoType,
  value: unknown,
  most: number,
): { readonly fields: readonly UnknownField[]; readonly count: number } {
  const all = fieldsIn(type, value, "");
  return { fields: all.slice(0, most).map((one) => hinted(type, one)), count: all.length };
}

/** The first `most` sources of volumes that decoding keeps although it does not know them, and `older` has not. */
export function newSources(type: GoType, value: unknown, older: unknown, most: number): readonly UnknownField[] {
  const had = new Set(sourcesIn(type, older).map(sourceKey));
  const added = sourcesIn(type, value).filter((one) => !had.has(sourceKey(one)));
  return added.slice(0, most).map((one) => hinted(type, one));
}

function sourcesIn(type: GoType, value: unknown): readonly Unknown[] {
  return fieldsIn(type, value, "").filter(({ sourceOf }) => sourceOf !== undefined);
}

const sourceKey = ({ sourceOf, key }: Unknown) => `${sourceOf}/${key}`;

function hinted(type: GoType, { key, names, ...one }: Unknown): UnknownField {
  const meant = nearest(key, names) ?? pathOf(type, key);
  return meant === undefined || meant === one.field ? one : { ...one, meant };
}

interface Unknown extends UnknownField {
  readonly key: string;
  /** that the type has in its place */
  readonly names: readonly string[];
}

function fieldsIn(type: GoType, value: unknown, path: string): readonly Unknown[] {
  if (typeof value !== "object" || value === null) return [];
  if (type.kind === "list")
    return Array.isArray(value) ? value.flatMap((item, index) => fieldsIn(type.of, item, `${path}[${index}]`)) : [];
  if (Array.isArray(value)) return [];
  const members = Object.entries(value);
  if (type.kind === "map") return members.flatMap(([key, item]) => fieldsIn(type.of, item, `${path}[${key}]`));
  if (type.kind !== "struct") return [];
  const isLost = isSourceless(type, members);
  return members.flatMap(([key, item]) => {
    const field = path === "" ? key : `${path}.${key}`;
    const known = type.fields.get(key);
    if (known !== undefined) return fieldsIn(known.type, item, field);
    const sourceOf = isLost && item !== null ? { sourceOf: String(Object.fromEntries(members)["name"]) } : {};
    return [{ field, key, names: [...type.fields.keys()], ...sourceOf }];
  });
}

/** Whether it is a volume without a source that is known. */
function isSourceless({ isUnion, fields }: Struct, members: readonly (readonly [string, unknown])[]): boolean {
  return isUnion === true && members.every(([key, item]) => key === "name" || item === null || !fields.has(key));
}

function nearest(key: string, names: readonly string[]): string | undefined {
  const alike = names.filter((name) => Math.abs(name.length - key.length) <= MOST_TYPOS);
  const distances = alike.map((name) => [editDistance(key.toLowerCase(), name.toLowerCase()), name] as const);
  const [first] = distances.toSorted(([a], [b]) => a - b);
  return first !== undefined && first[0] <= MOST_TYPOS ? first[1] : undefined;
}

/** Where the type has a field of this name: the place nearest to its root. */
function pathOf(type: GoType, key: string): string | undefined {
  let level: readonly (readonly [string, GoType])[] = [["", type]];
  for (let depth = 0; depth < DEEPEST && level.length > 0; depth += 1) {
    const found = level.find(([, one]) => one.kind === "struct" && one.fields.has(key));
    if (found !== undefined) return found[0] === "" ? key : `${found[0]}.${key}`;
    level = level.flatMap(([path, one]) => below(one, path));
  }
  return undefined;
}

function below(type: GoType, path: string): readonly (readonly [string, GoType])[] {
  if (type.kind === "list") return [[`${path}[]`, type.of]];
  if (type.kind !== "struct") return [];
  return [...type.fields].map(([name, { type: of }]) => [path === "" ? name : `${path}.${name}`, of] as const);
}
