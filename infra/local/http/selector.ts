/** Label and field selectors of lists and watches, and metav1.LabelSelector of webhooks and controllers. */
import { type ApiObject, asText, at, objectsIn, textMap, textsIn } from "../storage/json.ts";
import { badRequest } from "../storage/status-error.ts";

export type Test = (object: ApiObject) => boolean;

type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

const TERM =
  /^\s*(?:(?<not>!)\s*(?<absent>[\w./-]+)|(?<key>[\w./-]+)(?:\s*(?<operator>==|=|!=|>|<)\s*(?<value>[\w.-]*)|\s+(?<set>in|notin)\s*\((?<values>[^)]*)\))?)\s*$/;

/** Splits at commas outside parentheses. */
function termsOf(selector: string): readonly string[] {
  return selector.trim() === "" ? [] : selector.split(/,(?![^(]*\))/);
}

function labelTest(term: string, selector: string): LabelTest {
  const groups = TERM.exec(term)?.groups;
  if (groups === undefined) {
    throw badRequest(`unable to parse requirement: found '${term.trim()}' in '${selector}', expected: identifier`);
  }
  const { absent, key = "", operator, value = "", set, values = "" } = groups;
  if (absent !== undefined) return (labels) => labels[absent] === undefined;
  if (set !== undefined) {
    return requirementTest({
      key,
      operator: set === "in" ? "In" : "NotIn",
      values: values.split(",").map((v) => v.trim()),
    });
  }
  if (operator === undefined) return (labels) => labels[key] !== undefined;
  if (operator === ">") return (labels) => Number(labels[key]) > Number(value);
  if (operator === "<") return (labels) => Number(labels[key]) < Number(value);
  return operator === "!=" ? (labels) => labels[key] !== value : (labels) => labels[key] === value;
}

function requirementTest(requirement: { key: string; operator: string; values: readonly string[] }): LabelTest {
  const { key, operator, values } = requirement;
  if (operator === "Exists") return (labels) => labels[key] !== undefined;
  if (operator === "DoesNotExist") return (labels) => labels[key] === undefined;
  if (operator === "In") return (labels) => values.includes(labels[key] ?? "\0");
  return (labels) => !values.includes(labels[key] ?? "\0");
}

/** `a=b,c!=d,e in (f,g),!h`. Throws 400 when it cannot be read. */
export function labelSelectorTest(selector: string): Test {
  const tests = termsOf(selector).map((term) => labelTest(term, selector));
  return (object) => {
    const labels = textMap(object.metadata.labels);
    return tests.every((test) => test(labels));
  };
}

/** metav1.LabelSelector; an empty or absent one matches everything. */
export function matchesLabels(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  const exact = Object.entries(textMap(at(selector, "matchLabels")));
  const expressions = objectsIn(at(selector, "matchExpressions"));
  return (
    exact.every(([key, value]) => labels[key] === value) &&
    expressions.every((expression) =>
      requirementTest({
        key: asText(expression["key"]),
        operator: asText(expression["operator"]),
        values: textsIn(expression["values"]),
      })(labels),
    )
  );
}

const EVENT_FIELDS = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

/** Beyond metadata.name and metadata.namespace, which every kind has. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  "/pods": [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
  ],
  "/events": [
    ...EVENT_FIELDS.map((name) => `involvedObject.${name}`),
    "reason",
    "reportingComponent",
    "source",
    "type",
  ],
  "/namespaces": ["status.phase"],
  "/secrets": ["type"],
  "/nodes": ["spec.unschedulable"],
};

/** Kinds with fields of their own and custom resources say it in other words. */
function unknownField(field: string, collection: string): Error {
  const [group = ""] = collection.split("/");
  const isShort = FIELDS[collection] !== undefined || group.includes(".");
  if (isShort && !collection.startsWith("apps/")) return badRequest(`field label not supported: ${field}`);
  const known = 'only "metadata.name", "metadata.namespace"';
  return badRequest(`${JSON.stringify(field)} is not a known field selector: ${known}`);
}

function fieldTest(term: string, collection: string): Test {
  const [, field = "", operator = "", value = ""] = /^([^=!]+)(!=|==?)(.*)$/.exec(term.trim()) ?? [];
  if (field === "") throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const known = ["metadata.name", "metadata.namespace", ...(FIELDS[collection] ?? [])];
  if (!known.includes(field)) throw unknownField(field, collection);
  const path = field === "source" ? ["source", "component"] : field.split(".");
  return (object) => {
    const actual = at(object, ...path);
    return (String(actual ?? "") === value) === (operator !== "!=");
  };
}

/** `metadata.name=a,status.phase!=Running`. Throws 400 for a field the kind does not offer. */
export function fieldSelectorTest(selector: string, collection: string): Test {
  const tests = termsOf(selector).map((term) => fieldTest(term, collection));
  return (object) => tests.every((test) => test(object));
}
