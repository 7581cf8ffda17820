/** CustomResourceDefinitions: defaults, what must be said, and the conditions that make them served. */

import { asObject, asText, at, childOf, isEqual, objectsIn, setDefault, textAt, textsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { type FieldError, forbiddenField, invalid, required } from "./field-error.ts";

function versionErrors(crd: ApiObject): readonly FieldError[] {
  const versions = objectsIn(at(crd, "spec", "versions"));
  const stored = versions.filter((version) => version["storage"] === true);
  const schemas = versions.flatMap((version, index) => {
    const hasSchema = at(version, "schema", "openAPIV3Schema") !== undefined;
    return hasSchema ? [] : [required(`spec.versions[${index}].schema.openAPIV3Schema`, "schemas are required")];
  });
  const one = "must have exactly one version marked as storage version";
  return stored.length === 1 ? schemas : [...schemas, invalid("spec.versions", stored.length, one)];
}

function nameErrors(crd: ApiObject): readonly FieldError[] {
  const wanted = `${textAt(crd, "spec", "names", "plural")}.${textAt(crd, "spec", "group")}`;
  const why = `must be spec.names.plural+"."+spec.group`;
  const name = crd.metadata.name;
  return name === wanted ? [] : [invalid("metadata.name", name, why)];
}

function storageVersion(crd: ApiObject): string {
  const stored = objectsIn(at(crd, "spec", "versions")).find((version) => version["storage"] === true);
  return asText(stored?.["name"]);
}

/** Objects may be stored in them still. */
function storedVersionErrors(crd: ApiObject): readonly FieldError[] {
  const names = objectsIn(at(crd, "spec", "versions")).map((version) => version["name"]);
  const why = (name: string) =>
    `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
  return textsIn(at(crd, "status", "storedVersions")).flatMap((name, index) =>
    names.includes(name) ? [] : [invalid(`status.storedVersions[${index}]`, name, why(name))],
  );
}

/** The names are those of the API server's own type. */
function conversionErrors(crd: ApiObject): readonly FieldError[] {
  const conversion = asObject(at(crd, "spec", "conversion"));
  const webhook = asObject(conversion["webhook"]);
  if (conversion["strategy"] === "Webhook") return [];
  const given = [
    ...(webhook["clientConfig"] === undefined ? [] : ["webhookClientConfig"]),
    ...(webhook["conversionReviewVersions"] === undefined ? [] : ["conversionReviewVersions"]),
  ];
  const why = "should not be set when strategy is not set to Webhook";
  return given.map((field) => forbiddenField(`spec.conversion.${field}`, why));
}

export const CRD_STRATEGY = {
  default(crd: ApiObject): void {
    const spec = childOf(crd, "spec");
    setDefault(spec, "conversion", { strategy: "None" });
    const names = childOf(spec, "names");
    setDefault(names, "singular", asText(names["kind"]).toLowerCase());
    setDefault(names, "listKind", `${asText(names["kind"])}List`);
  },
  prepareCreate(crd: ApiObject): void {
    const spec = asObject(crd["spec"]);
    const conditions = [
      { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" },
      {
        type: "Established",
        status: "True",
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
      },
    ];
    const lastTransitionTime = crd.metadata.creationTimestamp;
    crd["status"] = {
      conditions: conditions.map((condition) => ({ ...condition, lastTransitionTime })),
      acceptedNames: spec["names"],
      storedVersions: [storageVersion(crd)],
    };
  },
  prepareUpdate(crd: ApiObject): void {
    const status = childOf(crd, "status");
    const stored = textsIn(status["storedVersions"]);
    const now = storageVersion(crd);
    if (!stored.includes(now)) status["storedVersions"] = [...stored, now];
  },
  validate: (crd: ApiObject): readonly FieldError[] => [
    ...nameErrors(crd),
    ...versionErrors(crd),
    ...storedVersionErrors(crd),
    ...conversionErrors(crd),
  ],
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    ["group", "scope"].flatMap((field) => {
      const value = at(next, "spec", field);
      const isSame = isEqual(value, at(previous, "spec", field));
      return isSame ? [] : [invalid(`spec.${field}`, value, "field is immutable")];
    }),
};
