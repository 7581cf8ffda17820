/** Parses every annotation that steers the rollout of a SidecarSet, once, into one value; what is wrong with one is part of it. */
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import {
  EVICT_MISSED_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  GATE_ANNOTATION,
  GIVEN_UP_ANNOTATION,
  HALT_ON_ANNOTATION,
  HASH_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  METRICS_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  REPLACE_ANNOTATION,
  SKIP_WAVES_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  UNDONE_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isJsonObject, jsonOf } from "../../../go/json/json-object.ts";
import { shownText } from "../../../go/shown-text.ts";
import { type MetricCheck, parseChecks } from "./metric-checks.ts";
import { parseWaves, type Wave } from "./waves.ts";

/** A number of pods, or a share of them. */
export interface Amount {
  readonly amount: number;
  readonly isPercent: boolean;
}

/** How many of the updated pods may fail before the rollout stops. */
interface HaltOn extends Amount {
  /** as it is written */
  readonly text: string;
  /** between the updates of pods that count together; absent: all count */
  readonly withinSeconds?: number;
}

/** A release that was taken back: it is never taken back again, and what it was taken back to is not given up. */
export interface Undone {
  /** hash of the release */
  readonly from: string;
  /** hash of what worked before */
  readonly to: string;
  /** RFC3339 */
  readonly at: string;
  /** what was done and why, one sentence */
  readonly message: string;
}

const GIVEN_UP = ["aborted", "undone", "halted"] as const;
export type GivenUp = (typeof GIVEN_UP)[number];

/** A release that somebody gave up. */
interface GivenUpRelease {
  /** hash of the release */
  readonly hash: string;
  readonly outcome: GivenUp;
  /** RFC3339 */
  readonly at: string;
}

/** Kinds of pods that are replaced. `Jobs` adds pods of Jobs to the other two; an eviction is a failed attempt of the Job. */
const REPLACED = ["NotUpgradable", "Missed", "Jobs"] as const;

interface Replace {
  readonly words: ReadonlySet<(typeof REPLACED)[number]>;
  /** so many workloads are restarted at once; 0: pods are evicted */
  readonly restarts: number;
}

interface SteeringProblem {
  readonly annotation: string;
  /** one sentence */
  readonly text: string;
  /** the rollout stops; false: the annotation is ignored, and the rollout goes on */
  readonly isStopping: boolean;
}

/** The parsed annotations. An annotation that cannot be read counts as absent, unless a field says otherwise. */
export interface Steering {
  readonly haltOn?: HaltOn | undefined;
  readonly undoesOnHalt: boolean;
  /** undefined: it cannot be read */
  readonly undone: readonly Undone[] | undefined;
  /** the release is what a failed one was put back to, and no other followed */
  readonly isPutBack: boolean;
  readonly givenUp: readonly GivenUpRelease[];
  /** the address that is asked before each batch */
  readonly gate?: URL | undefined;
  /** checks of metrics that the rollout of this release has to pass */
  readonly checks: readonly MetricCheck[];
  readonly waves?: readonly Wave[] | undefined;
  /** the release waits for no wave: somebody says so, or it is what a failed one was put back to */
  readonly areWavesSkipped: boolean;
  /** how many pods of one owner may be down at once: none where that cannot be read */
  readonly ownerBudget?: Amount | undefined;
  readonly followsOrdinals: boolean;
  readonly ignoresNeverReady: boolean;
  readonly replace: Replace;
  /** pods that missed their sidecars are evicted, by the annotation for them alone */
  readonly evictsMissed: boolean;
  /** passes compare times that other machines wrote down */
  readonly isTimed: boolean;
  /** problems that stop the rollout come first */
  readonly problems: readonly SteeringProblem[];
}

const EMPTY: ObjectMeta = {};
/** Metadata objects are never changed in place, and many callers ask once for each pod. */
const known = new WeakMap<ObjectMeta, Steering>();

export function steeringOf({ metadata = EMPTY }: SidecarSet): Steering {
  const before = known.get(metadata);
  if (before) return before;
  const steering = parse(metadata);
  known.set(metadata, steering);
  return steering;
}

function parse({ name = "", annotations = {} }: ObjectMeta): Steering {
  const problems: SteeringProblem[] = [];
  const note = (annotation: string, isStopping: boolean, all: readonly string[]) => {
    problems.push(...all.map((one) => ({ annotation, text: `the annotation ${annotation} ${one}`, isStopping })));
  };
  const read = <T>(annotation: string, { isStopping, parser, problem }: Form<T>): T | undefined => {
    const text = annotations[annotation];
    const value = text === undefined ? undefined : parser(text);
    if (text !== undefined && value === undefined) note(annotation, isStopping, [problem(text)]);
    return value;
  };
  // In the order of their problems.
  const haltOn = read(HALT_ON_ANNOTATION, HALT_ON);
  const ownerBudget = read(OWNER_BUDGET_ANNOTATION, OWNER_BUDGET);
  const gate = read(GATE_ANNOTATION, GATE);
  const written = parseChecks(annotations[METRICS_ANNOTATION], name);
  note(METRICS_ANNOTATION, true, written.problems);
  const { waves, problems: wavesProblems } = parseWaves(annotations[WAVES_ANNOTATION]);
  note(WAVES_ANNOTATION, true, [...wavesProblems, ...unknownChecks(waves, written)]);
  const undoesOnHalt = read(UNDO_ON_HALT_ANNOTATION, UNDO_ON_HALT) === true;
  const ignoresNeverReady = read(IGNORE_NEVER_READY_ANNOTATION, IGNORE_NEVER_READY) === true;
  const replace = read(REPLACE_ANNOTATION, REPLACE) ?? NOTHING_REPLACED;
  const release = parseRelease(annotations);
  return {
    haltOn,
    gate,
    ownerBudget: annotations[OWNER_BUDGET_ANNOTATION] === undefined ? undefined : (ownerBudget ?? NO_PODS),
    ...release,
    // What a failed release is put back to must not wait for the numbers of that release.
    checks: release.isPutBack ? [] : written.checks,
    waves,
    undoesOnHalt,
    ignoresNeverReady,
    // What says "no" is the word for it; anything else was meant to switch it on.
    followsOrdinals: (annotations[FOLLOW_ORDINALS_ANNOTATION] ?? "false") !== "false",
    replace,
    evictsMissed: annotations[EVICT_MISSED_ANNOTATION] === "true",
    isTimed:
      annotations[METRICS_ANNOTATION] !== undefined ||
      waves !== undefined ||
      replace.restarts > 0 ||
      replace.words.has("NotUpgradable"),
    problems,
  };
}

/** How an annotation is read, and what is said of one that cannot be. */
interface Form<T> {
  readonly isStopping: boolean;
  readonly parser: (text: string) => T | undefined;
  /** completes "the annotation …" */
  readonly problem: (text: string) => string;
}

/** `3`, `10%`, `10% within 5m` */
const HALT_ON: Form<HaltOn> = {
  isStopping: true,
  parser: (text) => {
    const [, amount = "", span, unit = ""] = /^(\d{1,6}%?)(?: within (\d{1,5})(s|m|h))?$/.exec(text.trim()) ?? [];
    const limit = parseAmount(amount);
    if (limit === undefined || span === undefined) return limit && { ...limit, text };
    return { ...limit, text, withinSeconds: Number(span) * (SECONDS[unit] ?? 1) };
  },
  problem: (text) => `says ${shownText(text)}: write for example 3, 10% or "10% within 5m"`,
};
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** `1`, `25%` */
const OWNER_BUDGET: Form<Amount> = {
  isStopping: true,
  parser: (text) => parseAmount(text.trim()),
  problem: (text) => `says ${shownText(text.trim())}: write a number of pods or a share, such as 1 or 25%`,
};
const NO_PODS: Amount = { amount: 0, isPercent: false };

const GATE: Form<URL> = {
  isStopping: true,
  parser: (text) => {
    const url = URL.parse(text.trim());
    const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
    return isWeb && url.username === "" && url.password === "" ? url : undefined;
  },
  // Without the address, which may hold a secret.
  problem: () => "is no address: write one such as https://gate.example.com/batch, without user and password",
};

const UNDO_ON_HALT: Form<boolean> = {
  isStopping: false,
  parser: parseFlag,
  problem: (text) => `says ${shownText(text)}, which is neither true nor false: nothing is undone`,
};

/** Accepts `true` and `false` only, because the annotation widens the budget. */
const IGNORE_NEVER_READY: Form<boolean> = {
  isStopping: false,
  parser: (text) => parseFlag(text.trim()),
  problem: (text) =>
    `says ${shownText(text.trim())}: write true or false; until then pods that were never ready use budget`,
};

/** Accepts exact words only, because replacement removes pods. */
const REPLACE: Form<Replace> = {
  isStopping: false,
  parser: parseReplace,
  problem: (text) =>
    `says ${shownText(text)}: write NotUpgradable, Missed, or both with a comma between, and beside them Jobs for pods of Jobs, or Restart (Restart=3 for three at once) to restart workloads; until then no pod is replaced`,
};
const NOTHING_REPLACED: Replace = { words: new Set(), restarts: 0 };

function parseFlag(text: string): boolean | undefined {
  return text === "true" ? true : text === "false" ? false : undefined;
}

function parseAmount(text: string): Amount | undefined {
  const [, amount, percent] = /^(\d{1,6})(%?)$/.exec(text) ?? [];
  return amount === undefined ? undefined : { amount: Number(amount), isPercent: percent === "%" };
}

/** Parses what annotations say of releases, by their hashes. */
function parseRelease(annotations: Readonly<Record<string, string>>) {
  const undone = parseUndone(annotations[UNDONE_ANNOTATION] ?? "[]");
  const hash = annotations[HASH_ANNOTATION];
  const last = undone?.at(-1);
  const isPutBack = last !== undefined && last.to === hash;
  const areWavesSkipped = isPutBack || Boolean(hash && annotations[SKIP_WAVES_ANNOTATION] === hash);
  return { undone, isPutBack, areWavesSkipped, givenUp: parseGivenUp(annotations[GIVEN_UP_ANNOTATION] ?? "[]") };
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
  // A Job has no restart, and nothing is evicted beside one.
  if (!isReadable || known.every((word) => word === "Jobs") || (restarts > 0 && words.includes("Jobs")))
    return undefined;
  return { words: new Set(known), restarts };
}

/** Returns a sentence for each check that a wave names and that does not exist. Where checks cannot be read nobody knows which there are. */
function unknownChecks(
  waves: readonly Wave[] | undefined,
  { checks, problems }: ReturnType<typeof parseChecks>,
): readonly string[] {
  if (waves === undefined || problems.length > 0) return [];
  const names = checks.map(({ name }) => name);
  return waves.flatMap(({ name: wave, checks: asked = [] }) =>
    asked
      .filter((name) => !names.includes(name))
      .map(
        (name) =>
          `names the check ${name} in the wave ${wave}, and the annotation ${METRICS_ANNOTATION} has none of that name`,
      ),
  );
}
