/** Combinations of list options that the API server refuses with 422. */
import { type FieldError, forbiddenField, invalidObject, notSupported } from "../kinds/field-error.ts";
import { isTrue } from "./query.ts";

const SUBJECT = { group: "meta.k8s.io", plural: "", kind: "ListOptions" };

function matchErrors(parameters: URLSearchParams): readonly FieldError[] {
  const match = parameters.get("resourceVersionMatch") ?? "";
  const version = parameters.get("resourceVersion") ?? "";
  if (match === "") return [];
  if (version === "")
    return [
      forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
    ];
  if (parameters.get("continue"))
    return [forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")];
  if (match !== "Exact" && match !== "NotOlderThan") {
    return [notSupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""])];
  }
  return match === "Exact" && version === "0"
    ? [forbiddenField("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')]
    : [];
}

function watchErrors(parameters: URLSearchParams): readonly FieldError[] {
  const match = parameters.get("resourceVersionMatch") ?? "";
  if (!isTrue(parameters.get("sendInitialEvents"))) {
    return match === ""
      ? []
      : [
          forbiddenField(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
          ),
        ];
  }
  if (match !== "NotOlderThan") {
    return [
      forbiddenField("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    ];
  }
  return [];
}

/** Throws 422 Invalid. */
export function checkListOptions(parameters: URLSearchParams, isWatch: boolean): void {
  const errors = isWatch ? watchErrors(parameters) : matchErrors(parameters);
  if (errors.length > 0) throw invalidObject(SUBJECT, "", errors);
}
