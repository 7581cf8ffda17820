/** Decides whether a pod template may carry tolerations as an annotation, as Kubernetes once had them. */

import { type FieldError, invalid, invalidEach, notSupported } from "../../../go/field-error.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { labelValueErrors, qualifiedNameErrors } from "../../../go/label-name.ts";

export const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;

interface Toleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
  readonly hasSeconds: boolean;
}

/** Source: Kubernetes ValidateTolerationsInPodAnnotations. */
export function tolerationErrors(text: string, field: string): readonly FieldError[] {
  if (text === "") return [];
  const list = jsonOf(text);
  if (list === null) return [];
  if (list === undefined) return [invalid(field, TOLERATIONS, "is no JSON")];
  if (!Array.isArray(list)) return [invalid(field, TOLERATIONS, notList(list))];
  const tolerations = list.map(readToleration);
  if (tolerations.includes(undefined)) return [invalid(field, TOLERATIONS, "has what is no toleration")];
  return tolerations.flatMap((one, index) => (one ? errorsOf(one, `${field}.${TOLERATIONS}[${index}]`) : []));
}

/** In the words of Go. */
function notList(value: unknown): string {
  const kind = typeof value === "boolean" ? "bool" : typeof value === "string" ? "string" : "number";
  const what = isJsonObject(value) ? "object" : kind;
  return `json: cannot unmarshal ${what} into Go value of type []core.Toleration`;
}

/** Go knows its members whatever their case. Undefined for what it cannot read. */
function readToleration(value: unknown): Toleration | undefined {
  if (value !== null && !isJsonObject(value)) return undefined;
  const members = new Map(Object.entries(value ?? {}).map(([name, member]) => [name.toLowerCase(), member ?? ""]));
  const [key, operator, text, effect] = ["key", "operator", "value", "effect"].map((name) => members.get(name) ?? "");
  const seconds = members.get("tolerationseconds") ?? "";
  if (typeof key !== "string" || typeof operator !== "string" || typeof text !== "string") return undefined;
  if (typeof effect !== "string" || (seconds !== "" && !Number.isInteger(seconds))) return undefined;
  return { key, operator, value: text, effect, hasSeconds: seconds !== "" };
}

function errorsOf({ key, operator, value, effect, hasSeconds }: Toleration, field: string): readonly FieldError[] {
  const matchesAll = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
  return [
    ...(key === "" ? [] : invalidEach(`${field}.key`, key, qualifiedNameErrors(key))),
    ...(key === "" && operator !== "Exists" ? [invalid(`${field}.operator`, operator, matchesAll)] : []),
    ...(hasSeconds && effect !== "NoExecute"
      ? [invalid(`${field}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")]
      : []),
    ...operatorErrors(operator, value, `${field}.operator`),
    ...(["", ...EFFECTS].includes(effect) ? [] : [notSupported(`${field}.effect`, effect, EFFECTS)]),
  ];
}

function operatorErrors(operator: string, value: string, field: string): readonly FieldError[] {
  if (operator === "Exists")
    return value === "" ? [] : [invalid(field, value, "value must be empty when `operator` is 'Exists'")];
  if (operator !== "" && operator !== "Equal") return [notSupported(field, operator, ["Equal", "Exists"])];
  const problems = labelValueErrors(value);
  return problems.length === 0 ? [] : [invalid(field, value, problems.join(";"))];
}
