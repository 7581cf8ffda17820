/** Whether the environment of a container can be made: the ConfigMaps and Secrets it names must be there. */
import { asObject, asText, at, isObject, type JsonObject, objectsIn } from "../storage/json.ts";

type Source = "configmap" | "secret";

/** What is stored under namespace/name. */
export type ReadSource = (source: Source, key: string) => JsonObject | undefined;

/** `key` undefined: the whole object is meant. */
function problem(read: ReadSource, namespace: string, source: Source, reference: JsonObject): string | undefined {
  if (reference["optional"] === true) return undefined;
  const name = asText(reference["name"]);
  const object = read(source, `${namespace}/${name}`);
  if (object === undefined) return `${source} "${name}" not found`;
  const key = reference["key"];
  const isMissing = typeof key === "string" && asObject(object["data"])[key] === undefined;
  const kind = source === "secret" ? "Secret" : "ConfigMap";
  return isMissing ? `couldn't find key ${key} in ${kind} ${namespace}/${name}` : undefined;
}

function references(container: JsonObject): readonly (readonly [Source, JsonObject])[] {
  const found: [Source, unknown][] = [];
  for (const variable of objectsIn(container["env"])) {
    found.push(
      ["configmap", at(variable, "valueFrom", "configMapKeyRef")],
      ["secret", at(variable, "valueFrom", "secretKeyRef")],
    );
  }
  for (const source of objectsIn(container["envFrom"])) {
    found.push(["configmap", source["configMapRef"]], ["secret", source["secretRef"]]);
  }
  return found.flatMap(([source, reference]) => (isObject(reference) ? [[source, reference] as const] : []));
}

/** The kubelet's message; undefined when all is there. */
export function configProblem(read: ReadSource, namespace: string, container: JsonObject): string | undefined {
  for (const [source, reference] of references(container)) {
    const found = problem(read, namespace, source, reference);
    if (found !== undefined) return found;
  }
  return undefined;
}
