/** Lists the fields in the tables of Go types as paths, and the fields that newer versions of Kubernetes added. */
import { readFile } from "node:fs/promises";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newerFields } from "../../shared/core/sidecarset/validate/newer-fields.ts";
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

const pathsOf = (text: string) => text.trim().split("\n");

/** Returns the output of `main.go` for a version of Kubernetes. */
export const fieldsOfVersion = (version: string) =>
  readFile(new URL(`api-fields/${version}.txt`, import.meta.url), "utf8");

const KNOWN: ReadonlySet<string> = new Set(fieldsOf(POD_TEMPLATE_SPEC, "template"));

/** Returns the API's fields, one on each line, that our tables lack. Managed fields do not count. */
export function lackingFields(text: string): { readonly looked: number; readonly lacking: readonly string[] } {
  const fields = pathsOf(text).filter((field) => !field.startsWith("template.metadata.managedFields."));
  return { looked: fields.length, lacking: fields.filter((field) => !KNOWN.has(field)) };
}

/** Returns a value of the type in which the field at the end of the path is set. */
function valueWith(type: GoType | undefined, [name, ...rest]: readonly string[]): unknown {
  if (type?.kind === "list") return [name === undefined ? "set" : valueWith(type.of, [name, ...rest])];
  if (type?.kind !== "struct" || name === undefined) return "set";
  return { [name]: valueWith(type.fields.get(name)?.type, rest) };
}

/**
 * Returns fields of a SidecarSet's containers and volumes that Kubernetes 1.28 lacks and newer-fields.ts does not name.
 */
export async function unnamedFields(
  text: string,
): Promise<{ readonly looked: number; readonly unnamed: readonly string[] }> {
  const old = new Set(pathsOf(await fieldsOfVersion("1.28")));
  const added = pathsOf(text).filter(
    (field) => !old.has(field) && /^template\.spec\.(containers|initContainers|volumes)\./.test(field),
  );
  const isNamed = (field: string) => {
    const { spec } = valueWith(POD_TEMPLATE_SPEC, field.split(".").slice(1)) as SidecarSet;
    return newerFields({ spec }).length > 0;
  };
  return { looked: added.length, unnamed: added.filter((field) => !isNamed(field)) };
}
