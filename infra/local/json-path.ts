/** JSONPath, as far as printer columns use it. */
import { asText, at } from "./json.ts";
import type { ApiObject } from "./object.ts";

/** `.status.x`, `.spec.list[0].y`, `.metadata.annotations['a/b']`; of `[*]` the first. */
export function jsonPath(object: ApiObject, path: string): unknown {
  const steps = [...path.matchAll(/\.((?:\\.|[^.[\]\\])+)|\[(\d+|\*)\]|\[['"]([^'"]+)['"]\]/g)];
  const keys = steps.map(([, field, index, quoted]) => {
    if (index !== undefined) return index === "*" ? 0 : Number(index);
    return quoted ?? asText(field).replaceAll("\\", "");
  });
  return at(object, ...keys);
}
