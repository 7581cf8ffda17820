/** Decides what a pod's hash annotations say about its SidecarSets, and how they are written. */
import { compareUtf8, goJson } from "../lib/go-json.ts";
import { utcSeconds } from "../lib/rfc3339.ts";

/** What one SidecarSet left on a pod. */
export interface UpgradeRecord {
  /** RFC 3339, UTC, seconds */
  readonly updateTimestamp: string | null;
  readonly hash: string;
  readonly sidecarSetName: string;
  readonly sidecarList: readonly string[] | null;
  readonly controllerRevision?: string;
}

/** SidecarSet name → record. Has no prototype: a SidecarSet may be called "constructor". */
export type UpgradeRecords = Readonly<Record<string, UpgradeRecord>>;

export interface ParsedRecords {
  /** legacy: name → hash, as OpenKruise before 1.0 wrote it */
  readonly form: "current" | "legacy" | "absent" | "malformed";
  /** empty when absent or malformed */
  readonly records: UpgradeRecords;
  /** why, when malformed */
  readonly error?: string;
}

type Fields = Readonly<Record<string, unknown>>;

const ZERO_TIME = "0001-01-01T00:00:00Z";

/** What the annotation's text is not. */
class Mismatch extends Error {}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new Mismatch(`${what} is not an object`);
}

function textOf(value: unknown, what: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value.toWellFormed();
  throw new Mismatch(`${what} is not a string`);
}

function timestampOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const time = typeof value === "string" ? utcSeconds(value) : undefined;
  if (time === undefined) throw new Mismatch("updateTimestamp is not an RFC 3339 time");
  return time === ZERO_TIME ? null : time;
}

function sidecarListOf(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) throw new Mismatch("sidecarList is not a list");
  return value.map((name) => textOf(name, "a name in sidecarList"));
}

function currentRecord(value: unknown): UpgradeRecord {
  const fields = fieldsOf(value ?? {}, "a record");
  const controllerRevision = textOf(fields["controllerRevision"], "controllerRevision");
  return {
    updateTimestamp: timestampOf(fields["updateTimestamp"]),
    hash: textOf(fields["hash"], "hash"),
    sidecarSetName: textOf(fields["sidecarSetName"], "sidecarSetName"),
    sidecarList: sidecarListOf(fields["sidecarList"]),
    ...(controllerRevision === "" ? {} : { controllerRevision }),
  };
}

function legacyRecord(value: unknown, name: string): UpgradeRecord {
  return { updateTimestamp: null, hash: textOf(value, "a hash"), sidecarSetName: name, sidecarList: null };
}

function recordsOf(fields: Fields, read: (value: unknown, name: string) => UpgradeRecord): UpgradeRecords {
  const records: Record<string, UpgradeRecord> = Object.create(null);
  for (const [name, value] of Object.entries(fields)) records[name] = read(value, name);
  return records;
}

function hasStringsOnly(fields: Fields): boolean {
  const values = Object.values(fields);
  return (
    values.some((value) => typeof value === "string") &&
    values.every((value) => typeof value === "string" || value === null)
  );
}

function read(text: string): ParsedRecords {
  const fields = fieldsOf(JSON.parse(text), "the value");
  if (hasStringsOnly(fields)) return { form: "legacy", records: recordsOf(fields, legacyRecord) };
  return { form: "current", records: recordsOf(fields, currentRecord) };
}

/** The value of kruise.io/sidecarset-hash or …-hash-without-image. Never throws. */
export function parseUpgradeRecords(text: string | undefined): ParsedRecords {
  const none: UpgradeRecords = Object.create(null);
  if (text === undefined || text === "") return { form: "absent", records: none };
  try {
    return read(text);
  } catch (error) {
    if (error instanceof Mismatch || error instanceof SyntaxError) {
      return { form: "malformed", records: none, error: error.message };
    }
    throw error;
  }
}

/** Go's JSON of the records: names sorted by their bytes, fields in the struct's order. */
export function formatUpgradeRecords(records: UpgradeRecords): string {
  const members = Object.entries(records)
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, { updateTimestamp, hash, sidecarSetName, sidecarList, controllerRevision }]) => {
      const record = { updateTimestamp, hash, sidecarSetName, sidecarList };
      return `${goJson(name)}:${goJson(controllerRevision ? { ...record, controllerRevision } : record)}`;
    });
  return `{${members.join(",")}}`;
}
