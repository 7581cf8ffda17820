/** Decides what an answer of a Prometheus-compatible server means for a check. Source: Prometheus, HTTP API, instant queries. */
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { shortText } from "../../../go/unseen.ts";
import { boundText, type MetricCheck } from "../../pod/steering/metric-checks.ts";

/** Values as the server writes them, such as `0.12`, `NaN` or `+Inf`; or why there is none, in words. */
export type Measured = { readonly values: readonly string[] } | { readonly nothing: string };

export interface Outcome {
  readonly outcome: "pass" | "fail" | "inconclusive";
  /** the value that decides, or why there is none */
  readonly told: string;
}

const MOST_ERROR = 200;

/** `body`: what came with the code; undefined: more than is read. */
export function measuredBy(code: number, body: string | undefined): Measured {
  if (body === undefined) return { nothing: "the answer is too long: let the query sum or count" };
  const answer = jsonOf(body);
  const { status, error, data, warnings } = isJsonObject(answer) ? answer : {};
  if (status === "error") return { nothing: `the server answered: ${plainText(error)}` };
  if (code !== 200) return { nothing: `the server answered ${code} rather than 200` };
  if (status !== "success" || !isJsonObject(data)) return { nothing: "the answer is none of Prometheus" };
  // Parts of the data may be missing then, with which it might fail.
  if (Array.isArray(warnings) && warnings.length > 0)
    return { nothing: `the server warned: ${plainText(warnings[0])}` };
  return valuesOf(data["resultType"], data["result"]);
}

function valuesOf(type: unknown, result: unknown): Measured {
  if (type !== "scalar" && type !== "vector")
    return { nothing: `the query gives a ${plainText(type)}: write one that gives a vector or a scalar` };
  const samples = type === "scalar" ? [result] : Array.isArray(result) ? result.map(sampleOf) : [undefined];
  const values = samples.map((sample) => (Array.isArray(sample) ? (sample[1] as unknown) : undefined));
  if (!values.every((value) => typeof value === "string")) return { nothing: "the answer has no values" };
  return values.length === 0 ? { nothing: "no series matches its query" } : { values };
}

function sampleOf(series: unknown): unknown {
  return isJsonObject(series) ? series["value"] : undefined;
}

/** Each value has to keep the bounds; what is no number says nothing. */
export function judge(check: MetricCheck, measured: Measured): Outcome {
  if ("nothing" in measured) return { outcome: "inconclusive", told: measured.nothing };
  const { max = Number.POSITIVE_INFINITY, min = Number.NEGATIVE_INFINITY } = check;
  const known = measured.values.map((text) => ({ text, value: numberOf(text) }));
  const beyond = known.find(({ value }) => value > max || value < min);
  if (beyond) return { outcome: "fail", told: beyond.text };
  if (known.some(({ value }) => Number.isNaN(value))) return { outcome: "inconclusive", told: "the value is NaN" };
  const isNearer = check.max === undefined ? (a: number, b: number) => a < b : (a: number, b: number) => a > b;
  const nearest = known.reduce((best, one) => (isNearer(one.value, best.value) ? one : best));
  return { outcome: "pass", told: nearest.text };
}

function numberOf(text: string): number {
  if (text === "+Inf" || text === "-Inf") return text === "+Inf" ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** What a check came to, in words: "the check errors is at 0.12, which has to be at most 0.05". */
export function outcomeText(check: MetricCheck, { outcome, told }: Outcome): string {
  if (outcome === "inconclusive") return `the check ${check.name} says nothing: ${told}`;
  return `the check ${check.name} is at ${told}, which has to be ${boundText(check)}`;
}

/** True of such words about a check without a value, which somebody has to give it; also where they name a wave first. */
export function saysNothing(text: string): boolean {
  return /^(?:wave \S* is not passed yet: )?the check \S+ says nothing: /.test(text);
}

/** One line, and not a long one. */
function plainText(text: unknown): string {
  const plain = String(text)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return shortText(plain, MOST_ERROR);
}
