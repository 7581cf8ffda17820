/**
 * The annotations of a SidecarSet that passes obey, one row each. A row says whether the status names it, how it is
 * read, the text when it cannot be read, and whether passes compare times. The rows are in the order of their problems.
 */
import * as NAMES from "../../../api/names.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { shownText } from "../../../go/unseen.ts";
import { type MetricCheck, parseChecks } from "./metric-checks.ts";
import { parseWaves, type Wave } from "./waves.ts";

/** A number of pods or a percentage. */
export interface Amount {
  readonly amount: number;
  readonly isPercent: boolean;
}

/** The number of updated pods that may fail before the rollout stops. */
export interface HaltOn extends Amount {
  /** the text of the annotation */
  readonly text: string;
  /** seconds within which counted pods were updated; absent: all pods count */
  readonly withinSeconds?: number;
}

/** A release that was rolled back. It is never rolled back again, and the release that replaced it is not given up. */
export interface Undone {
  /** hash of the release */
  readonly from: string;
  /** hash of the earlier, working release */
  readonly to: string;
  /** time of the rollback, RFC3339 */
  readonly at: string;
  /** the action and its reason in one sentence */
  readonly message: string;
}

const GIVEN_UP = ["aborted", "undone", "halted"] as const;
export type GivenUp = (typeof GIVEN_UP)[number];

/** A release that somebody gave up. */
export interface GivenUpRelease {
  /** hash of the release */
  readonly hash: string;
  readonly outcome: GivenUp;
  /** time at which it was given up, RFC3339 */
  readonly at: string;
}

/**
 * Kinds of pods that are replaced. `Jobs` adds pods of Jobs to the two others. An eviction counts as a failed attempt
 * of a Job.
 */
const REPLACED = ["NotUpgradable", "Missed", "Jobs"] as const;

export interface Replace {
  readonly words: ReadonlySet<(typeof REPLACED)[number]>;
  /** number of workloads that are restarted at once; 0: pods are evicted */
  readonly restarts: number;
}

export interface Read<T> {
  /** the parsed value; absent: it cannot be read */
  readonly value?: T | undefined;
  /** problems, each a text that completes "the annotation …" */
  readonly problems: readonly string[];
}

interface Row<T> {
  /** people write the annotation without a new generation, so the status lists the ones that passes obey */
  readonly isObserved: boolean;
  /** true: a problem with the annotation stops the rollout; false: the annotation is ignored */
  readonly isStopping: boolean;
  /** parses the text. `sidecarSet`: name of the SidecarSet */
  readonly read: (text: string, sidecarSet: string) => Read<T>;
  /** returns true if passes compare times that other machines recorded in it */
  isTimed(value: T | undefined): boolean;
  /** sort key in the digests that ledgers hold; absent: the name */
  readonly sortedAs?: string;
}

const never = () => false;

function readOr<T>(value: T | undefined, problem?: string): Read<T> {
  return { value, problems: value === undefined && problem ? [problem] : [] };
}

const asWritten = (text: string) => readOr(text);

/** Annotations that passes and commands write. */
const ours = { isObserved: false, isStopping: false, isTimed: never } as const;
const people = { isObserved: true, isStopping: false, isTimed: never } as const;
const stopping = { isObserved: true, isStopping: true, isTimed: never } as const;
/** Annotations that other modules read. */
const elsewhere = { read: (): Read<never> => ({ problems: [] }) } as const;

// Functions create the tables, so that bundles without annotations can drop them.
const STOPPING = /* @__PURE__ */ (() => {
  return {
    /** Examples: `3`, `10%`, `10% within 5m`. */
    [NAMES.HALT_ON_ANNOTATION]: {
      ...stopping,
      read: (text: string) =>
        readOr(parseHaltOn(text), `says ${shownText(text)}: write for example 3, 10% or "10% within 5m"`),
    },
    /** Examples: `1`, `25%`. */
    [NAMES.OWNER_BUDGET_ANNOTATION]: {
      ...stopping,
      read: (text: string) =>
        readOr(
          parseAmount(text.trim()),
          `says ${shownText(text.trim())}: write a number of pods or a share, such as 1 or 25%`,
        ),
      sortedAs: "sidecarset.kruise.io/owner",
    },
    /** The problem does not contain the address, which may hold a secret. */
    [NAMES.GATE_ANNOTATION]: {
      ...stopping,
      read: (text: string) =>
        readOr(
          parseGate(text),
          "is no address: write one such as https://gate.example.com/batch, without user and password",
        ),
    },
    [NAMES.METRICS_ANNOTATION]: {
      ...stopping,
      read: (text: string, sidecarSet: string): Read<readonly MetricCheck[]> => {
        const { checks, problems } = parseChecks(text, sidecarSet);
        return problems.length > 0 ? { problems } : { value: checks, problems };
      },
      isTimed: () => true,
    },
    [NAMES.WAVES_ANNOTATION]: {
      ...stopping,
      read: (text: string): Read<readonly Wave[]> => {
        const { waves: value, problems } = parseWaves(text);
        return { value, problems };
      },
      isTimed: Boolean,
    },
  } as const;
})();

const OTHERS = /* @__PURE__ */ (() => {
  return {
    [NAMES.UNDO_ON_HALT_ANNOTATION]: {
      ...people,
      read: (text: string) =>
        readOr(parseFlag(text), `says ${shownText(text)}, which is neither true nor false: nothing is undone`),
    },
    /** Accepts `true` and `false` only, because the annotation widens the budget. */
    [NAMES.IGNORE_NEVER_READY_ANNOTATION]: {
      ...people,
      read: (text: string) =>
        readOr(
          parseFlag(text.trim()),
          `says ${shownText(text.trim())}: write true or false; until then pods that were never ready use budget`,
        ),
    },
    /** Accepts exact words only, because replacement removes pods. */
    [NAMES.REPLACE_ANNOTATION]: {
      ...people,
      read: (text: string) =>
        readOr(
          parseReplace(text),
          `says ${shownText(text)}: write NotUpgradable, Missed, or both with a comma between, and beside them Jobs for pods of Jobs, or Restart (Restart=3 for three at once) to restart workloads; until then no pod is replaced`,
        ),
      isTimed: (value: Replace | undefined) =>
        value !== undefined && (value.restarts > 0 || value.words.has("NotUpgradable")),
    },
    // Only "false" switches the annotation off; any other text counts as on.
    [NAMES.FOLLOW_ORDINALS_ANNOTATION]: { ...people, read: (text: string) => readOr(text !== "false") },
    [NAMES.EVICT_MISSED_ANNOTATION]: { ...people, read: (text: string) => readOr(text === "true") },
    [NAMES.SKIP_WAVES_ANNOTATION]: { ...people, read: asWritten },
    [NAMES.UNDONE_ANNOTATION]: { ...ours, read: (text: string) => readOr(parseUndone(text)) },
    [NAMES.GIVEN_UP_ANNOTATION]: { ...ours, read: (text: string) => readOr(parseGivenUp(text)) },
    [NAMES.IN_PLACE_ANNOTATION]: {
      ...people,
      read: (text: string) =>
        readOr(
          text.trim() === NAMES.IN_PLACE_VALUES ? true : undefined,
          `says ${shownText(text)}: write ${NAMES.IN_PLACE_VALUES}; until then values are injected as literals`,
        ),
    },
    [NAMES.DRAIN_ANNOTATION]: {
      ...people,
      read: (text: string) =>
        readOr(
          parseDrain(text.trim()),
          `says ${shownText(text.trim())}: write a time of an hour at most, such as 10s; until then pods are not drained`,
        ),
      isTimed: Boolean,
    },
    [NAMES.PRE_PULL_ANNOTATION]: {
      ...people,
      read: (text: string) =>
        readOr(
          parseNodes(text.trim()),
          `says ${shownText(text)}: write how many nodes pull at once, from 1 to ${MOST_NODES}; until then no image is pulled first`,
        ),
      isTimed: Boolean,
    },
    [NAMES.CANARY_ANNOTATION]: { ...people, ...elsewhere },
    [NAMES.BASE_ANNOTATION]: { ...ours, ...elsewhere },
    [NAMES.HASH_ANNOTATION]: { ...ours, read: asWritten },
    [NAMES.HASH_WITHOUT_IMAGE_ANNOTATION]: { ...ours, ...elsewhere },
  } as const;
})();

export const ANNOTATIONS = /* @__PURE__ */ (() => {
  return { ...STOPPING, ...OTHERS } as const satisfies Readonly<Record<string, Row<unknown>>>;
})();

export type SteeringAnnotation = keyof typeof ANNOTATIONS;

function parseHaltOn(text: string): HaltOn | undefined {
  const [, amount = "", span, unit = ""] = /^(\d{1,6}%?)(?: within (\d{1,5})(s|m|h))?$/.exec(text.trim()) ?? [];
  const limit = parseAmount(amount);
  if (limit === undefined || span === undefined) return limit && { ...limit, text };
  return { ...limit, text, withinSeconds: Number(span) * (SECONDS[unit] ?? 1) };
}
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** The duration of a drain in seconds. */
function parseDrain(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,4})(s|m|h)$/.exec(text) ?? [];
  const seconds = Number(amount) * (SECONDS[unit] ?? 1);
  return seconds > 0 && seconds <= MOST_DRAIN_SECONDS ? seconds : undefined;
}
const MOST_DRAIN_SECONDS = 3_600;

function parseGate(text: string): URL | undefined {
  const url = URL.parse(text.trim());
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  return isWeb && url.username === "" && url.password === "" ? url : undefined;
}

function parseFlag(text: string): boolean | undefined {
  return text === "true" ? true : text === "false" ? false : undefined;
}

function parseAmount(text: string): Amount | undefined {
  const [, amount, percent] = /^(\d{1,6})(%?)$/.exec(text) ?? [];
  return amount === undefined ? undefined : { amount: Number(amount), isPercent: percent === "%" };
}

const MOST_NODES = 500;

function parseNodes(text: string): number | undefined {
  const nodes = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  return nodes >= 1 && nodes <= MOST_NODES ? nodes : undefined;
}

function parseUndone(text: string): readonly Undone[] | undefined {
  const list = jsonOf(text);
  return Array.isArray(list) && list.every(isUndone) ? list : undefined;
}

function isUndone(value: unknown): value is Undone {
  return isJsonObject(value) && ["from", "to", "at", "message"].every((key) => typeof value[key] === "string");
}

function parseGivenUp(text: string): readonly GivenUpRelease[] {
  const list = jsonOf(text);
  return Array.isArray(list) ? list.filter(isGivenUpRelease) : [];
}

function isGivenUpRelease(value: unknown): value is GivenUpRelease {
  if (!isJsonObject(value)) return false;
  const { hash, outcome, at } = value;
  return typeof hash === "string" && typeof at === "string" && GIVEN_UP.some((one) => one === outcome);
}

function parseReplace(text: string): Replace | undefined {
  const all = text.split(",").map((word) => word.trim());
  const [restart, ...more] = all.flatMap((word) => /^Restart(?:=([1-9]\d{0,2}))?$/.exec(word)?.slice(0, 2) ?? []);
  const words = all.filter((word) => word !== restart);
  const known = REPLACED.filter((word) => words.includes(word));
  const isReadable = words.every((word) => REPLACED.some((one) => one === word));
  const restarts = restart === undefined ? 0 : Number(more[0] ?? 1);
  // Jobs cannot be restarted, and pods are not evicted while workloads restart.
  if (!isReadable || known.every((word) => word === "Jobs") || (restarts > 0 && words.includes("Jobs")))
    return undefined;
  return { words: new Set(known), restarts };
}
