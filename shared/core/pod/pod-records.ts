/** The records about SidecarSets in a pod's hash annotations, and their format. */
import type { Pod } from "../../api/kubernetes.ts";
import { DRAINED, DRAINED_BY_ANNOTATION, INJECTED_LIST_ANNOTATION, TRAFFIC_LABEL } from "../../api/names.ts";
import { compareUtf8, goJson } from "../../go/json/go-json.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { jsonProblem } from "../../go/json/json-problem.ts";
import { storedTime } from "../../go/rfc3339.ts";
import { secondsBetween } from "../../go/seconds-between.ts";

/** The record of one SidecarSet on a pod. */
export interface UpgradeRecord {
  /** time of the update, RFC 3339, UTC, seconds */
  readonly updateTimestamp: string | null;
  readonly hash: string;
  readonly sidecarSetName: string;
  readonly sidecarList: readonly string[] | null;
  readonly controllerRevision?: string;
}

/** Records by SidecarSet name. The object has no prototype, because a SidecarSet may be called "constructor". */
export type UpgradeRecords = Readonly<Record<string, UpgradeRecord>>;

export interface ParsedRecords {
  /** legacy: hashes by name, as OpenKruise before 1.0 wrote them */
  readonly form: "current" | "legacy" | "absent" | "malformed";
  /** records; empty if the annotation is absent or malformed */
  readonly records: UpgradeRecords;
  /** the fault of a malformed annotation */
  readonly error?: string;
}

/** A value of the wrong type for Go's struct. Go then drops everything that it has read. */
class Mismatch extends Error {}

/** The error with the words of Go's encoding/json. */
function mismatch(value: unknown, goType: string): Mismatch {
  const kind = typeof value === "boolean" ? "bool" : typeof value;
  return new Mismatch(
    `json: cannot unmarshal ${Array.isArray(value) ? "array" : kind} into Go value of type ${goType}`,
  );
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value.toWellFormed();
  throw mismatch(value, "string");
}

function timestampOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const time = storedTime(textOf(value));
  if (time === undefined) throw mismatch(value, "Time");
  return time;
}

function sidecarListOf(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) throw mismatch(value, "[]string");
  return value.map(textOf);
}

function currentRecord(value: unknown): UpgradeRecord {
  const fields = value ?? {};
  if (!isJsonObject(fields)) throw mismatch(value, "SidecarSetUpgradeSpec");
  const controllerRevision = textOf(fields["controllerRevision"]);
  return {
    updateTimestamp: timestampOf(fields["updateTimestamp"]),
    hash: textOf(fields["hash"]),
    sidecarSetName: textOf(fields["sidecarSetName"]),
    sidecarList: sidecarListOf(fields["sidecarList"]),
    ...(controllerRevision === "" ? {} : { controllerRevision }),
  };
}

function legacyRecord(value: unknown, name: string): UpgradeRecord {
  return { updateTimestamp: null, hash: textOf(value), sidecarSetName: name, sidecarList: null };
}

type ReadRecord = (value: unknown, name: string) => UpgradeRecord;

function recordsOf(value: unknown, readRecord: ReadRecord): UpgradeRecords {
  if (!isJsonObject(value)) throw mismatch(value, "map[string]string");
  const records: Record<string, UpgradeRecord> = Object.create(null);
  for (const [name, record] of Object.entries(value)) records[name] = readRecord(record, name);
  return records;
}

function attempt(value: unknown, readRecord: ReadRecord): UpgradeRecords | Mismatch {
  try {
    return recordsOf(value, readRecord);
  } catch (error) {
    if (error instanceof Mismatch) return error;
    throw error;
  }
}

/** The result for a pod without records, as nearly every new pod. */
const ABSENT: ParsedRecords = { form: "absent", records: Object.freeze(Object.create(null)) };

function malformed(error: string): ParsedRecords {
  return { form: "malformed", records: Object.create(null), error };
}

/**
 * Parsed records by their text, because many pods of a rollout have the same text. A full cache is emptied. It is
 * small, because V8 moves kept records to its old generation.
 */
const parsed = new Map<string, ParsedRecords>();
const MAX_PARSED = 100;

/** Reads kruise.io/sidecarset-hash or …-hash-without-image. Never throws. The same text gives the same object. */
export function parseUpgradeRecords(text: string | undefined): ParsedRecords {
  // A null value is "" in Go.
  if (!text) return ABSENT;
  const known = parsed.get(text);
  if (known) return known;
  const fresh = readUpgradeRecords(text);
  if (parsed.size === MAX_PARSED) parsed.clear();
  parsed.set(text, fresh);
  return fresh;
}

/** Parses an existing text without the cache, for callers that keep only a part. */
export function readUpgradeRecords(text: string): ParsedRecords {
  const problem = jsonProblem(text);
  if (problem !== undefined) return malformed(problem);
  const value: unknown = JSON.parse(text);
  // The reference panics here, because a nil map accepts no writes.
  if (value === null) return malformed("null is no map");
  const current = attempt(value, currentRecord);
  if (!(current instanceof Mismatch)) return { form: "current", records: current };
  const legacy = attempt(value, legacyRecord);
  return legacy instanceof Mismatch ? malformed(legacy.message) : { form: "legacy", records: legacy };
}

/** Printed records by object. The objects never change. */
const printed = new WeakMap<UpgradeRecord, string>();

function printRecord(given: UpgradeRecord): string {
  const known = printed.get(given);
  if (known !== undefined) return known;
  const { updateTimestamp, hash, sidecarSetName, sidecarList, controllerRevision } = given;
  const record = { updateTimestamp, hash, sidecarSetName, sidecarList };
  const text = goJson(controllerRevision ? { ...record, controllerRevision } : record);
  printed.set(given, text);
  return text;
}

/** Go's JSON of the records: names sorted by their bytes, fields in the struct's order. */
export function formatUpgradeRecords(records: UpgradeRecords): string {
  const members = Object.entries(records)
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, record]) => `${goJson(name)}:${printRecord(record)}`);
  return `{${members.join(",")}}`;
}

// The drains that a pod's annotation lists.

/** The reason why a pod is out of endpoints. */
export interface DrainHold {
  /** start of the drain, RFC3339 */
  readonly since: string;
  /** hash of the release that the drain waits for */
  readonly release: string;
}

/** Drains of the pod by SidecarSet. It is empty if the label differs: somebody restored the pod. */
export function drainHolds({ metadata }: Pod): Readonly<Record<string, unknown>> {
  if (metadata?.labels?.[TRAFFIC_LABEL] !== DRAINED) return {};
  return jsonObjectOf(metadata.annotations?.[DRAINED_BY_ANNOTATION]) ?? {};
}

/** The longest age of a drain. An older entry, or an entry of the future, was forged or forgotten. */
const LONGEST_DRAIN_SECONDS = 7_200;
const AHEAD_SECONDS = 300;

/**
 * The other SidecarSets that drain the pod. A SidecarSet that is not injected drains nothing: its entry may stay for
 * ever. `now`: RFC3339; absent: entries of any age count.
 */
export function otherDrains(pod: Pod, sidecarSet: string, now?: string): readonly string[] {
  const { annotations = {} } = pod.metadata ?? {};
  if (annotations[DRAINED_BY_ANNOTATION] === undefined) return [];
  const injected = new Set(annotations[INJECTED_LIST_ANNOTATION]?.split(","));
  const isNow = (value: unknown) => {
    const age = now === undefined ? 0 : (secondsBetween(holdOf(value).since, now) ?? LONGEST_DRAIN_SECONDS);
    return age >= -AHEAD_SECONDS && age < LONGEST_DRAIN_SECONDS;
  };
  return Object.entries(drainHolds(pod)).flatMap(([name, value]) =>
    name !== sidecarSet && injected.has(name) && isNow(value) ? [name] : [],
  );
}

/** The drain of the pod by this SidecarSet; undefined: there is none. */
export function drainHold(pod: Pod, sidecarSet: string): DrainHold | undefined {
  if (pod.metadata?.annotations?.[DRAINED_BY_ANNOTATION] === undefined) return undefined;
  const holds = drainHolds(pod);
  if (!Object.hasOwn(holds, sidecarSet)) return undefined;
  return holdOf(holds[sidecarSet]);
}

/** A drain from a JSON value. Not every value can become a text: an object may define its own conversion, or none. */
function holdOf(value: unknown): DrainHold {
  const { since, release } = isJsonObject(value) ? value : {};
  return { since: typeof since === "string" ? since : "", release: typeof release === "string" ? release : "" };
}
