/** Whether the environment of a container can be made: the ConfigMaps and Secrets it names must be there. */
import type { Api } from "./api.ts";
import { asObject, asText, at, isObject, type JsonObject, objectsIn } from "./json.ts";

interface Source {
  readonly collection: string;
  readonly word: string;
}

const CONFIG_MAP: Source = { collection: "/configmaps", word: "configmap" };
const SECRET: Source = { collection: "/secrets", word: "secret" };

/** `key` undefined: the whole object is meant. */
function problem(api: Api, namespace: string, source: Source, reference: JsonObject): string | undefined {
  if (reference["optional"] === true) return undefined;
  const name = asText(reference["name"]);
  const object = api.store.get(source.collection, `${namespace}/${name}`);
  if (object === undefined) return `${source.word} "${name}" not found`;
  const key = reference["key"];
  const isMissing = typeof key === "string" && asObject(object["data"])[key] === undefined;
  const kind = source.word === "secret" ? "Secret" : "ConfigMap";
  return isMissing ? `couldn't find key ${key} in ${kind} ${namespace}/${name}` : undefined;
}

function references(container: JsonObject): readonly (readonly [Source, JsonObject])[] {
  const found: [Source, unknown][] = [];
  for (const variable of objectsIn(container["env"])) {
    found.push(
      [CONFIG_MAP, at(variable, "valueFrom", "configMapKeyRef")],
      [SECRET, at(variable, "valueFrom", "secretKeyRef")],
    );
  }
  for (const source of objectsIn(container["envFrom"])) {
    found.push([CONFIG_MAP, source["configMapRef"]], [SECRET, source["secretRef"]]);
  }
  return found.flatMap(([source, reference]) => (isObject(reference) ? [[source, reference] as const] : []));
}

/** The kubelet's message; undefined when all is there. */
export function configProblem(api: Api, namespace: string, container: JsonObject): string | undefined {
  for (const [source, reference] of references(container)) {
    const found = problem(api, namespace, source, reference);
    if (found !== undefined) return found;
  }
  return undefined;
}
