/** The order in which namespaces get a release, from the annotation that names the waves. */
import type { LabelSelector, Labels } from "../../../api/kubernetes.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { labelValueErrors, qualifiedNameErrors } from "../../../go/label-name.ts";
import { selectorMatches } from "../../../go/label-selector.ts";

export interface Wave {
  readonly name: string;
  /** selector for labels of namespaces; empty: all namespaces */
  readonly namespaceSelector: LabelSelector;
  /** seconds for which the wave is complete before the next one begins */
  readonly soakSeconds: number;
  /** true: later waves do not start */
  readonly isPaused: boolean;
  /** names of metric checks for this wave; absent: all checks */
  readonly checks?: readonly string[];
}

const EXAMPLE = '[{"name": "dev", "namespaceSelector": {"matchLabels": {"stage": "dev"}}}]';
const FIELDS: readonly string[] = ["name", "namespaceSelector", "soakSeconds", "paused", "checks"];
const OPERATORS: ReadonlyMap<string, "values" | "none"> = new Map([
  ["In", "values"],
  ["NotIn", "values"],
  ["Exists", "none"],
  ["DoesNotExist", "none"],
]);
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MOST_WAVES = 50;
const MOST_SOAK_SECONDS = 31_536_000;

interface ParsedWaves {
  /** waves; undefined: none are set, or the annotation cannot be read */
  readonly waves?: readonly Wave[];
  /** problems, each a text that completes "the annotation …" */
  readonly problems: readonly string[];
}

/** Parses the waves. `text`: value of the annotation. */
export function parseWaves(text: string | undefined): ParsedWaves {
  if (text === undefined) return { problems: [] };
  const list = jsonOf(text);
  const problems = listProblems(list);
  return problems.length > 0 ? { problems } : { waves: (list as readonly Given[]).map(waveFrom), problems };
}

/** Keys of namespace labels that select waves; undefined: no waves. */
export function namespaceLabelsRead(waves: readonly Wave[] | undefined): readonly string[] | undefined {
  const keys = waves?.flatMap(({ namespaceSelector: { matchLabels = {}, matchExpressions = [] } }) => [
    ...Object.keys(matchLabels),
    ...matchExpressions.map(({ key }) => key),
  ]);
  return keys && [...new Set(keys)].sort();
}

/** Index of the first wave that selects the namespace; the number of waves if none does. */
export function waveOf(waves: readonly Wave[], labels: Labels | undefined): number {
  const first =
    labels === undefined
      ? -1
      : waves.findIndex(({ namespaceSelector }) => selectorMatches(namespaceSelector, labels) === true);
  return first < 0 ? waves.length : first;
}

function listProblems(list: unknown): readonly string[] {
  if (!Array.isArray(list)) return [`is no list in JSON: write one such as ${EXAMPLE}`];
  if (list.length === 0) return [`names no wave: write one at least, such as ${EXAMPLE}, or remove the annotation`];
  if (list.length > MOST_WAVES) return [`names ${list.length} waves: ${MOST_WAVES} are the most`];
  const names = list.map((one: Given) => one?.name);
  const twice = new Set(names.filter((name, at) => typeof name === "string" && names.indexOf(name) < at));
  return [
    ...list.flatMap(waveProblems),
    ...[...twice].map((name) => `names the wave ${name} more than once: give each wave a name of its own`),
  ];
}

/** Content of the annotation before any check. */
type Anything<Key extends string> = Readonly<Partial<Record<Key, unknown>>>;
type Given = Anything<"name" | "namespaceSelector" | "soakSeconds" | "paused" | "checks">;

function waveProblems(one: unknown, at: number): readonly string[] {
  if (!isJsonObject(one)) return [`has a wave (number ${at + 1}) that is no object: write ${EXAMPLE}`];
  const { name, namespaceSelector, soakSeconds, paused, checks }: Given = one;
  if (typeof name !== "string" || !NAME.test(name))
    return [`has a wave (number ${at + 1}) without a good name: write up to 63 of a-z, 0-9 and -, such as dev`];
  const unknown = Object.keys(one).filter((field) => !FIELDS.includes(field));
  return [
    ...unknown.map((field) => `gives the wave ${name} the unknown field ${field}: it may have ${FIELDS.join(", ")}`),
    ...selectorProblems(namespaceSelector).map(
      (problem) => `has a bad namespaceSelector in the wave ${name}: ${problem}`,
    ),
    ...(soakSeconds === undefined || isSoak(soakSeconds)
      ? []
      : [`has bad soakSeconds in the wave ${name}: write whole seconds from 0 to ${MOST_SOAK_SECONDS}, such as 3600`]),
    ...(paused === undefined || typeof paused === "boolean"
      ? []
      : [`says paused in the wave ${name} without true or false: write one of them, without quotes`]),
    ...(checks === undefined || areTexts(checks)
      ? []
      : [`has bad checks in the wave ${name}: write a list of names such as ["errors"], or [] for none`]),
  ];
}

function isSoak(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= MOST_SOAK_SECONDS;
}

function selectorProblems(selector: unknown): readonly string[] {
  if (!isJsonObject(selector)) return ['write one such as {"matchLabels": {"stage": "dev"}}, or {} for all namespaces'];
  const unknown = Object.keys(selector).find((field) => field !== "matchLabels" && field !== "matchExpressions");
  if (unknown !== undefined)
    return [`it has the unknown field ${unknown}, and may have matchLabels and matchExpressions`];
  const shape = shapeProblem(selector);
  if (shape !== undefined) return [shape];
  const { matchLabels = {}, matchExpressions = [] } = selector as LabelSelector;
  return [
    ...Object.entries(matchLabels).flatMap(([key, value]) => labelProblems(key, [value])),
    ...matchExpressions.flatMap(({ key, operator, values = [] }) => [
      ...operatorProblems(operator, values.length),
      ...labelProblems(key, values),
    ]),
  ];
}

function labelProblems(key: string, values: readonly string[]): readonly string[] {
  return [
    ...qualifiedNameErrors(key).map((error) => `the label ${key}: ${error}`),
    ...values.flatMap((value) => labelValueErrors(value).map((error) => `the value ${value} of ${key}: ${error}`)),
  ];
}

function operatorProblems(operator: string, values: number): readonly string[] {
  const takes = OPERATORS.get(operator);
  if (takes === undefined) return [`${operator} is none of ${[...OPERATORS.keys()].join(", ")}`];
  if (takes === "values") return values > 0 ? [] : [`${operator} needs values`];
  return values === 0 ? [] : [`${operator} takes no values`];
}

type GivenSelector = Anything<"matchLabels" | "matchExpressions">;
type GivenRequirement = Anything<"key" | "operator" | "values">;

/** The first fault in the shape that the validation of selectors requires. */
function shapeProblem({ matchLabels = {}, matchExpressions = [] }: GivenSelector): string | undefined {
  if (!(isJsonObject(matchLabels) && areTexts(Object.values(matchLabels))))
    return "its matchLabels do not map labels to texts";
  if (!(Array.isArray(matchExpressions) && matchExpressions.every(isRequirement)))
    return "its matchExpressions are not a list of objects with key, operator and values";
  return undefined;
}

function isRequirement(one: unknown): boolean {
  if (!isJsonObject(one)) return false;
  const { key, operator, values }: GivenRequirement = one;
  return typeof key === "string" && typeof operator === "string" && (values === undefined || areTexts(values));
}

function areTexts(values: unknown): boolean {
  return Array.isArray(values) && values.every((value) => typeof value === "string");
}

function waveFrom({ name, namespaceSelector, soakSeconds = 0, paused = false, checks }: Given): Wave {
  return {
    name: name as string,
    namespaceSelector: namespaceSelector as LabelSelector,
    soakSeconds: soakSeconds as number,
    isPaused: paused as boolean,
    ...(checks === undefined ? {} : { checks: checks as readonly string[] }),
  };
}
