/** The fields that our tables of Go types know, as paths. */
import type { GoType } from "../../shared/go/types/go-type.ts";
import { POD_TEMPLATE_SPEC } from "../../shared/go/types/pod.ts";

const DEEPEST = 14;

function fieldsOf(type: GoType, path: string, depth = 0): readonly string[] {
  if (depth > DEEPEST) return [];
  if (type.kind === "list" || type.kind === "map") return fieldsOf(type.of, path, depth + 1);
  if (type.kind !== "struct") return [];
  return [...type.fields].flatMap(([name, { type: of }]) => [
    `${path}.${name}`,
    ...fieldsOf(of, `${path}.${name}`, depth + 1),
  ]);
}

const KNOWN: ReadonlySet<string> = new Set(fieldsOf(POD_TEMPLATE_SPEC, "template"));

/** The fields of the API, a line each, that our tables lack. Managed fields are not looked at. */
export function lackingFields(text: string): { readonly looked: number; readonly lacking: readonly string[] } {
  const fields = text
    .trim()
    .split("\n")
    .filter((field) => !field.startsWith("template.metadata.managedFields."));
  return { looked: fields.length, lacking: fields.filter((field) => !KNOWN.has(field)) };
}
