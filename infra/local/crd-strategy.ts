/** CustomResourceDefinitions: defaults, what must be said, and the conditions that make them served. */
import { type FieldError, invalid, required } from "./field-error.ts";
import { asObject, asText, at, childOf, isEqual, objectsIn, setDefault, textAt } from "./json.ts";
import type { ApiObject } from "./object.ts";

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
    const stored = objectsIn(spec["versions"]).find((version) => version["storage"] === true);
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
      storedVersions: [asText(stored?.["name"])],
    };
  },
  validate: (crd: ApiObject): readonly FieldError[] => [...nameErrors(crd), ...versionErrors(crd)],
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    ["group", "scope"].flatMap((field) => {
      const value = at(next, "spec", field);
      const isSame = isEqual(value, at(previous, "spec", field));
      return isSame ? [] : [invalid(`spec.${field}`, value, "field is immutable")];
    }),
};
