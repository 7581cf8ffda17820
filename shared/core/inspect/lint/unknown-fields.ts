/** Decides which fields of an object its type does not have: the API server drops them, mostly without a word. */
import { editDistance } from "../../../go/edit-distance.ts";
import type { GoType } from "../../../go/types/go-type.ts";

export interface UnknownField {
  /** such as spec.containers[0].immage */
  readonly field: string;
  /** the field that was meant, it seems */
  readonly meant?: string;
}

/** More letters than these are another word. */
const MOST_TYPOS = 2;

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
  return members.flatMap(([key, item]) => {
    const field = path === "" ? key : `${path}.${key}`;
    const known = type.fields.get(key);
    return known === undefined ? [unknown(field, key, type.fields.keys())] : unknownFields(known.type, item, field);
  });
}

function unknown(field: string, key: string, names: Iterable<string>): UnknownField {
  const distances = [...names].map((name) => [editDistance(key.toLowerCase(), name.toLowerCase()), name] as const);
  const [nearest] = distances.toSorted(([a], [b]) => a - b);
  return nearest !== undefined && nearest[0] <= MOST_TYPOS ? { field, meant: nearest[1] } : { field };
}
