/** The kinds that a CustomResourceDefinition makes: one per served version. */
import { asList, asObject, asText, at, type JsonObject, objectsIn, textAt, textsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import type { CustomVersion, Kind, PrinterColumn } from "./kind.ts";

function column(item: JsonObject): PrinterColumn {
  return {
    name: asText(item["name"]),
    type: asText(item["type"]),
    format: asText(item["format"]),
    description: asText(item["description"]),
    jsonPath: asText(item["jsonPath"]),
    priority: Number(item["priority"] ?? 0),
  };
}

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  format: "",
  description: "",
  jsonPath: ".metadata.creationTimestamp",
  priority: 0,
};

function customVersion(crd: ApiObject, version: JsonObject): CustomVersion {
  const columns = objectsIn(version["additionalPrinterColumns"]).map(column);
  const isWebhook = textAt(crd, "spec", "conversion", "strategy") === "Webhook";
  return {
    schema: asObject(at(version, "schema", "openAPIV3Schema")),
    columns: columns.length === 0 ? [AGE] : columns,
    conversion: isWebhook ? asObject(at(crd, "spec", "conversion", "webhook", "clientConfig")) : undefined,
    scaleSelector: textAt(version, "subresources", "scale", "labelSelectorPath"),
  };
}

/** Every version, served or not: an unserved one may still be the stored one. */
export function kindsOf(crd: ApiObject): readonly (Kind & { readonly isServed: boolean })[] {
  const group = textAt(crd, "spec", "group");
  const names = asObject(at(crd, "spec", "names"));
  const versions = objectsIn(at(crd, "spec", "versions"));
  const stored = versions.find((version) => version["storage"] === true);
  return versions.map((version) => ({
    group,
    version: asText(version["name"]),
    kind: asText(names["kind"]),
    plural: asText(names["plural"]),
    singular: asText(names["singular"]),
    shortNames: textsIn(names["shortNames"]),
    categories: textsIn(names["categories"]),
    namespaced: textAt(crd, "spec", "scope") === "Namespaced",
    hasStatus: at(version, "subresources", "status") !== undefined,
    hasScale: at(version, "subresources", "scale") !== undefined,
    hasGeneration: true,
    collection: `${group}/${asText(names["plural"])}`,
    storedAs: `${group}/${asText(stored?.["name"])}`,
    custom: customVersion(crd, version),
    isServed: version["served"] === true,
  }));
}

/** Whether the API server serves what this CRD defines. */
export function isEstablished(crd: ApiObject): boolean {
  return asList(at(crd, "status", "conditions")).some(
    (condition) => at(condition, "type") === "Established" && at(condition, "status") === "True",
  );
}
