/** The metric checks that an annotation asks for before each batch, each a query with bounds; or the fault. */
import { isJsonObject, type JsonObject, jsonOf } from "../../../go/json/json-object.ts";

export interface MetricCheck {
  readonly name: string;
  /** query in PromQL, with the SidecarSet's variables filled in */
  readonly query: string;
  /** upper bound of every value; absent: none */
  readonly max?: number;
  /** lower bound of every value; absent: none */
  readonly min?: number;
  /** number of failures in a row that do not stop the rollout yet */
  readonly failuresAllowed: number;
  /** shortest time in seconds between evaluations, and from a batch to the next evaluation */
  readonly intervalSeconds: number;
  readonly onFailure: "halt" | "undo";
}

const MOST_CHECKS = 10;
const MOST_QUERY = 4_096;
const MOST_FAILURES = 100;
const LEAST_SECONDS = 1;
const MOST_SECONDS = 86_400;
const DEFAULT_SECONDS = 60;
const FIELDS = ["name", "query", "max", "min", "failuresAllowed", "intervalSeconds", "onFailure"] as const;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Matches a variable in Kubernetes' form. */
const VARIABLE = /\$\(([^)]*)\)/g;

type Field = (typeof FIELDS)[number];

interface ParsedChecks {
  /** checks; empty if one cannot be read, or none exists */
  readonly checks: readonly MetricCheck[];
  /** problems, each a text that completes "the annotation …" */
  readonly problems: readonly string[];
}

/** Parses the checks. `text`: value of the annotation. `sidecarSet`: its name, which queries may contain. */
export function parseChecks(text: string | undefined, sidecarSet: string): ParsedChecks {
  if (text === undefined) return { checks: [], problems: [] };
  const list = jsonOf(text);
  if (!Array.isArray(list))
    return unreadable('is no JSON list: write for example [{"name":"errors","query":"…","max":0}]');
  if (list.length === 0) return unreadable("lists no check: write one, or take the annotation away");
  if (list.length > MOST_CHECKS) return unreadable(`lists ${list.length} checks, which may be ${MOST_CHECKS} at most`);
  const read = list.map((entry: unknown, index) => readCheck(entry, index, sidecarSet));
  const checks = read.flatMap(({ check }) => check ?? []);
  const names = checks.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  const problems = read.flatMap((one) => one.problems);
  const all = [...problems, ...(twice === undefined ? [] : [`has two checks named ${twice}`])];
  return { checks: all.length === 0 ? checks : [], problems: all };
}

function unreadable(problem: string): ParsedChecks {
  return { checks: [], problems: [problem] };
}

function readCheck(
  entry: unknown,
  index: number,
  sidecarSet: string,
): { readonly check?: MetricCheck; readonly problems: readonly string[] } {
  if (!isJsonObject(entry)) return { problems: [`has no object as check ${index + 1}`] };
  const where = typeof entry["name"] === "string" && NAME.test(entry["name"]) ? entry["name"] : String(index + 1);
  const problems = [...unknownFields(entry), ...RULES.flatMap((rule) => rule(entry) ?? [])];
  if (problems.length > 0) return { problems: problems.map((problem) => `has a check ${where} ${problem}`) };
  return { check: checkFrom(entry, sidecarSet), problems: [] };
}

/** A check from an entry that has passed all rules. */
function checkFrom(entry: JsonObject, sidecarSet: string): MetricCheck {
  const { name, query, ...rest } = entry as unknown as Pick<MetricCheck, "name" | "query"> & Partial<MetricCheck>;
  return {
    failuresAllowed: 0,
    intervalSeconds: DEFAULT_SECONDS,
    onFailure: "halt",
    ...rest,
    name,
    query: query.replaceAll("$(NAME)", sidecarSet),
  };
}

function unknownFields(entry: JsonObject): readonly string[] {
  const isKnown = (key: string) => FIELDS.some((field) => field === key);
  return Object.keys(entry)
    .filter((key) => !isKnown(key))
    .map((key) => `with the field ${key}, which is none of ${FIELDS.join(", ")}`);
}

const RULES: readonly ((entry: JsonObject) => string | undefined)[] = [
  ({ name }) =>
    typeof name === "string" && NAME.test(name)
      ? undefined
      : "without a name of lower-case letters, digits and dashes, 63 at most",
  queryProblem,
  (entry) => numberProblem(entry, "max"),
  (entry) => numberProblem(entry, "min"),
  ({ max, min }) => (max === undefined && min === undefined ? "without a bound: write max, min or both" : undefined),
  ({ max, min }) =>
    isNumber(max) && isNumber(min) && min > max ? `whose min ${min} is more than its max ${max}` : undefined,
  (entry) => countProblem(entry, "failuresAllowed", [0, MOST_FAILURES]),
  (entry) => countProblem(entry, "intervalSeconds", [LEAST_SECONDS, MOST_SECONDS]),
  ({ onFailure }) =>
    onFailure === undefined || onFailure === "halt" || onFailure === "undo"
      ? undefined
      : "whose onFailure is neither halt nor undo",
];

function queryProblem({ query }: JsonObject): string | undefined {
  if (typeof query !== "string" || query.trim() === "") return "without a query in PromQL";
  if (query.length > MOST_QUERY)
    return `whose query has ${query.length} characters, which may be ${MOST_QUERY} at most`;
  const unknown = variablesOf(query).find((name) => name !== "NAME");
  return unknown === undefined
    ? undefined
    : `whose query names $(${unknown}): there is $(NAME), the name of the SidecarSet`;
}

/** The variables of a query. Only the text up to the last bracket is searched, which limits the time. */
export function variablesOf(query: string): readonly (string | undefined)[] {
  const closed = query.slice(0, query.lastIndexOf(")") + 1);
  return [...closed.matchAll(VARIABLE)].map(([, name]) => name);
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function numberProblem(entry: JsonObject, field: Field): string | undefined {
  const value = entry[field];
  return value === undefined || isNumber(value) ? undefined : `whose ${field} is no number`;
}

function countProblem(entry: JsonObject, field: Field, [least, most]: readonly [number, number]): string | undefined {
  const value = entry[field];
  if (value === undefined || (Number.isInteger(value) && isNumber(value) && value >= least && value <= most))
    return undefined;
  return `whose ${field} is no whole number from ${least} to ${most}`;
}

/** The bound, in words that follow a value: "at most 0.05". */
export function boundText({ max, min }: MetricCheck): string {
  const [most, least] = [max === undefined ? [] : [`at most ${max}`], min === undefined ? [] : [`at least ${min}`]];
  return [...least, ...most].join(" and ");
}
