/** JSONPath, as far as printer columns use it. */
import { asText, at, objectsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";

/** `.status.x`, `.spec.list[0].y`, `.metadata.annotations['a/b']`, `.status.list[?(@.type=="x")].y`; of `[*]` the first. */
export function jsonPath(object: ApiObject, path: string): unknown {
  const [, list = "", field = "", value = "", rest = ""] = FILTERED.exec(path) ?? [];
  if (list === "") return plainPath(object, path);
  const found = objectsIn(plainPath(object, list)).find((item) => item[field] === value);
  return found && plainPath(found as ApiObject, rest);
}

const FILTERED = /^(.+)\[\?\(@\.(\w+)==["']([^"']+)["']\)\](.*)$/;

function plainPath(object: ApiObject, path: string): unknown {
  const steps = [...path.matchAll(/\.((?:\\.|[^.[\]\\])+)|\[(\d+|\*)\]|\[['"]([^'"]+)['"]\]/g)];
  const keys = steps.map(([, field, index, quoted]) => {
    if (index !== undefined) return index === "*" ? 0 : Number(index);
    return quoted ?? asText(field).replaceAll("\\", "");
  });
  return at(object, ...keys);
}
