/** Finds the fields of an object that its type does not have. Decoding drops them, except the only source of a volume. */
import { editDistance } from "../edit-distance.ts";
import type { GoType } from "./go-type.ts";

export interface UnknownField {
  /** such as spec.containers[0].immage */
  readonly field: string;
  readonly key: string;
  /** that the type has in its place */
  readonly names: readonly string[];
  /** the name of the volume whose only source it is */
  readonly sourceOf?: string;
}

/** Names that differ in more letters are different words. */
const MOST_TYPOS = 2;
const DEEPEST = 8;

/** The field that was meant, it seems: a name beside it, or a path such as spec.updateStrategy.partition. Takes time. */
export function fieldMeant(type: GoType, { field, key, names }: UnknownField): string | undefined {
  const meant = nearest(key, names) ?? pathOf(type, key);
  return meant === field ? undefined : meant;
}

export function unknownFields(type: GoType, value: unknown, path = ""): readonly UnknownField[] {
  if (typeof value !== "object" || value === null) return [];
  if (type.kind === "list")
    return Array.isArray(value)
      ? value.flatMap((item, index) => unknownFields(type.of, item, `${path}[${index}]`))
      : [];
  if (Array.isArray(value)) return [];
  const members = Object.entries(value);
  if (type.kind === "map") return members.flatMap(([key, item]) => unknownFields(type.of, item, `${path}[${key}]`));
  if (type.kind !== "struct") return [];
  // A volume without a source that is known.
  const isKept =
    type.isUnion && members.every(([key, item]) => key === "name" || item === null || !type.fields.has(key));
  return members.flatMap(([key, item]) => {
    const field = path === "" ? key : `${path}.${key}`;
    const known = type.fields.get(key);
    if (known !== undefined) return unknownFields(known.type, item, field);
    const sourceOf = isKept && item !== null ? { sourceOf: String((value as { name?: unknown }).name) } : {};
    return [{ field, key, names: [...type.fields.keys()], ...sourceOf }];
  });
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
