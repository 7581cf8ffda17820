/**
 * How earlier results of metric checks affect the next batch. The ledger stores them in the write that reserves a
 * batch, so each result allows one batch, in any process.
 */
import { hash } from "node:crypto";
import { HASH_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { isJsonObject, jsonOf } from "../../../../go/json/json-object.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import { shortText } from "../../../../go/unseen.ts";
import type { Ledger } from "../../../ledger.ts";
import { boundText, type MetricCheck } from "../../../pod/steering/metric-checks.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";

/** The last evaluation of a check. */
export interface CheckRecord extends Outcome {
  readonly name: string;
  /** digest of the check, the SidecarSet and the release; a record with another digest does not apply */
  readonly about: string;
  /** time at which the pass asked the server, RFC3339 */
  readonly at: string;
  /** number of failed evaluations in a row, without the inconclusive ones */
  readonly failures: number;
  /** true: a batch has begun since this evaluation */
  readonly isUsed?: true;
}

/** A check and its last record for this release; absent: it was never evaluated. */
export interface KnownCheck {
  readonly check: MetricCheck;
  readonly record?: CheckRecord;
}

/** Parses records. A record that cannot be read is ignored, and a pass then asks the server again. */
export function parseRecords(text: string | undefined): readonly CheckRecord[] {
  const list = jsonOf(text);
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/**
 * The records in the ledger's form. A check that passed before a change of the SidecarSet allows no batch: another
 * release may have run meanwhile.
 */
export function recordsIn(
  { checks, generation }: Pick<Ledger, "checks" | "generation">,
  { metadata }: SidecarSet,
): readonly CheckRecord[] {
  const records = parseRecords(checks);
  if (generation === metadata?.generation) return records;
  return records.filter(({ outcome, isUsed }) => outcome !== "pass" || isUsed);
}

const TEXTS = ["name", "about", "at", "told"] as const;
const OUTCOMES: readonly unknown[] = ["pass", "fail", "inconclusive"];

function isRecord(value: unknown): value is CheckRecord {
  if (!isJsonObject(value) || !OUTCOMES.includes(value["outcome"])) return false;
  return TEXTS.every((key) => typeof value[key] === "string") && Number.isInteger(value["failures"]);
}

/** The records as text; undefined: there is nothing to store. `isUsed`: a batch begins with these results. */
export function formatRecords(known: readonly KnownCheck[], isUsed: boolean): string | undefined {
  const records = known.flatMap(({ record }) => record ?? []);
  if (records.length === 0) return undefined;
  return JSON.stringify(isUsed ? records.map((one) => ({ ...one, isUsed })) : records);
}

/** The checks with their records; empty if there are no checks. `asked`: names of the checks; absent: all. */
export function knownChecks(
  sidecarSet: SidecarSet,
  records: readonly CheckRecord[],
  asked: readonly MetricCheck[] = steeringOf(sidecarSet).checks,
): readonly KnownCheck[] {
  return asked.map((check) => {
    const about = aboutOf(check, sidecarSet);
    const record = records.find((one) => one.about === about);
    return record === undefined ? { check } : { check, record };
  });
}

/** The check after its evaluation. `at`: time at which the pass asked the server, RFC3339. */
export function evaluated(
  { check, record }: KnownCheck,
  sidecarSet: SidecarSet,
  outcome: Outcome,
  at: string,
): Required<KnownCheck> {
  const before = record?.failures ?? 0;
  const failures = { pass: 0, fail: before + 1, inconclusive: before }[outcome.outcome];
  return { check, record: { name: check.name, about: aboutOf(check, sidecarSet), at, ...outcome, failures } };
}

function aboutOf(check: MetricCheck, { metadata }: SidecarSet): string {
  const { uid, annotations } = metadata ?? {};
  return hash("sha256", JSON.stringify([check, uid, annotations?.[HASH_ANNOTATION]])).slice(0, 16);
}

/** The reason why a check stops the rollout, and whether it asks for an undo; undefined: no check stops it. */
export function failedCheck(
  known: readonly KnownCheck[],
): { readonly halt: string; readonly isUndoing: boolean } | undefined {
  const failed = known.filter(isBeyondAllowed);
  const [first] = failed;
  if (first === undefined) return undefined;
  const times = `${first.record.failures} ${first.record.failures === 1 ? "time" : "times in a row"}`;
  return {
    halt: `${outcomeText(first.check, first.record)}, and has failed ${times}`,
    isUndoing: failed.some(({ check }) => check.onFailure === "undo"),
  };
}

function isBeyondAllowed(known: KnownCheck): known is Required<KnownCheck> {
  const { check, record } = known;
  return record?.outcome === "fail" && record.failures > check.failuresAllowed;
}

export interface Held {
  /** the reason in one sentence */
  readonly reason: string;
  /** true: all checks passed, and only the time between batches is left */
  readonly isPaced: boolean;
  /** true: a check has no value, so a person has to correct the query or the server */
  readonly isSilent?: true;
  /** seconds until a pass may ask the server again */
  readonly seconds: number;
}

/** The reason why the last results hold the next batch; undefined: they do not. `now`: RFC3339. */
export function heldBy(known: readonly KnownCheck[], now: string): Held | undefined {
  const seconds = Math.max(0, ...known.map((one) => secondsLeft(one, now)));
  const bad = known.find(({ record }) => record && record.outcome !== "pass");
  if (bad?.record) {
    const silent = bad.record.outcome === "inconclusive" ? { isSilent: true as const } : {};
    return { reason: standingText(bad.check, bad.record), isPaced: false, ...silent, seconds };
  }
  const paced = known.find((one) => one.record?.isUsed && secondsLeft(one, now) > 0);
  if (!paced?.record) return undefined;
  const { name, intervalSeconds } = paced.check;
  const reason = `${outcomeText(paced.check, paced.record)}; ${name} is evaluated again ${intervalSeconds} s after the last batch`;
  return { reason, isPaced: true, seconds };
}

function standingText(check: MetricCheck, record: CheckRecord): string {
  if (record.outcome === "inconclusive") return `${outcomeText(check, record)}; no batch begins until it passes`;
  return `${outcomeText(check, record)}; it has failed ${record.failures} of ${check.failuresAllowed + 1} times in a row that stop the rollout`;
}

/** Checks that a pass evaluates before a batch; none while a blocking check must not be asked again yet. */
export function dueChecks(known: readonly KnownCheck[], now: string): readonly KnownCheck[] {
  const isDue = (one: KnownCheck) => secondsLeft(one, now) === 0;
  const isInTheWay = ({ record }: KnownCheck) =>
    record?.isUsed === true || (record && record.outcome !== "pass") === true;
  return known.some((one) => isInTheWay(one) && !isDue(one)) ? [] : known.filter((one) => isDue(one));
}

/** Seconds until the check may be evaluated again. The clock of another machine may be ahead. */
function secondsLeft({ check: { intervalSeconds }, record }: KnownCheck, now: string): number {
  const age = record && secondsBetween(record.at, now);
  if (age === undefined || age >= intervalSeconds || age < -intervalSeconds) return 0;
  return intervalSeconds - age;
}

// Reads the answer of a Prometheus-compatible server for a check. Source: Prometheus, HTTP API, instant queries.

/** Values as the server writes them, such as `0.12`, `NaN` or `+Inf`; or the reason why there is no value. */
export type Measured = { readonly values: readonly string[] } | { readonly nothing: string };

interface Outcome {
  readonly outcome: "pass" | "fail" | "inconclusive";
  /** the value that decides, or the reason why there is none */
  readonly told: string;
}

const MOST_ERROR = 200;

/** The values of an answer. `body`: body of the response; undefined: it is longer than the limit. */
export function measuredBy(code: number, body: string | undefined): Measured {
  if (body === undefined) return { nothing: "the answer is too long: let the query sum or count" };
  const answer = jsonOf(body);
  const { status, error, data, warnings, isPartial } = isJsonObject(answer) ? answer : {};
  if (status === "error") return { nothing: `the server answered: ${plainText(error)}` };
  if (code !== 200) return { nothing: `the server answered ${code} rather than 200` };
  if (status !== "success" || !isJsonObject(data)) return { nothing: "the answer is none of Prometheus" };
  // A warning may mean that data is missing which would fail the check.
  if (Array.isArray(warnings) && warnings.length > 0)
    return { nothing: `the server warned: ${plainText(warnings[0])}` };
  // VictoriaMetrics marks partial data with this field.
  if (isPartial === true) return { nothing: "the server answered with a part of the data" };
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

/** The result of a check: every value must be within the bounds. A value that is no number is inconclusive. */
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

/** The result of a check in words: "the check errors is at 0.12, which has to be at most 0.05". */
function outcomeText(check: MetricCheck, { outcome, told }: Outcome): string {
  if (outcome === "inconclusive") return `the check ${check.name} says nothing: ${told}`;
  return `the check ${check.name} is at ${told}, which has to be ${boundText(check)}`;
}

/** True if the text says that a check gave no value. Somebody has to fix the check. The text may name a wave first. */
export function saysNothing(text: string): boolean {
  return /^(?:wave \S* is not passed yet: )?the check \S+ says nothing: /.test(text);
}

/** The text in one short line. */
function plainText(text: unknown): string {
  const plain = String(text)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return shortText(plain, MOST_ERROR);
}
