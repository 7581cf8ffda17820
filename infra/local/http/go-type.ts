/** Values of types that Go's structs do not take: only where clients are likely to get it wrong. */
import { readQuantity } from "../kinds/quantity.ts";
import { asObject, at, isObject, type JsonObject, objectsIn } from "../storage/json.ts";

const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

function textMapProblem(value: unknown, place: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value))
    return `json: cannot unmarshal ${typeName(value)} into Go struct field ${place} of type map[string]string`;
  const wrong = Object.values(value).find((item) => typeof item !== "string" && item !== null);
  return wrong === undefined
    ? undefined
    : `json: cannot unmarshal ${typeName(wrong)} into Go struct field ${place} of type string`;
}

function quantityProblem(container: JsonObject): string | undefined {
  const amounts = ["limits", "requests"].flatMap((list) => Object.values(asObject(at(container, "resources", list))));
  return amounts.some((amount) => readQuantity(amount) === undefined) ? QUANTITY : undefined;
}

function containersProblem(spec: unknown): string | undefined {
  for (const list of ["containers", "initContainers"]) {
    const value = at(spec, list);
    if (value !== undefined && value !== null && !Array.isArray(value)) {
      return `json: cannot unmarshal ${typeName(value)} into Go struct field PodSpec.spec.${list} of type []v1.Container`;
    }
    for (const container of objectsIn(value)) {
      const problem = quantityProblem(container);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

/** What Go's decoder would say about a built-in object; undefined when it would take it. */
export function goProblem(kind: string, body: JsonObject): string | undefined {
  const ofPod =
    kind === "Pod" ? containersProblem(body["spec"]) : containersProblem(at(body, "spec", "template", "spec"));
  return (
    metadataProblem(body["metadata"]) ??
    (kind === "ConfigMap" ? textMapProblem(body["data"], "ConfigMap.data") : undefined) ??
    ofPod
  );
}

/** Of every kind, custom resources too. */
export function metadataProblem(metadata: unknown): string | undefined {
  return (
    textMapProblem(at(metadata, "labels"), "ObjectMeta.metadata.labels") ??
    textMapProblem(at(metadata, "annotations"), "ObjectMeta.metadata.annotations")
  );
}
