/** Decides what is said of a rollout whose passes are refused, or fail: in the status, and by those who read it. */
import type { SidecarSet, SidecarSetStatus, StatusCondition } from "../../api/sidecarset.ts";
import { countsText } from "./counts-text.ts";
import type { Hold } from "./hold.ts";

export interface PassTrouble {
  /** the object, and the words of the API server, or of the failure; one clause */
  readonly text: string;
  /** a pass before this one met such trouble as well */
  readonly isLasting: boolean;
  /** how `text` ends where no image may change: what is done instead; absent: it has another cause */
  readonly instead?: string;
}

/** Every trouble of passes: nothing is updated while it lasts. */
const PASS_TROUBLES = ["refused", "passRefused", "unreachable", "contention", "unread", "passFailed"] as const;
export type PassTroubleHold = (typeof PASS_TROUBLES)[number];
/** The trouble that keeps a pass from its decision. */
type PassHold = Exclude<PassTroubleHold, "refused">;

/** True where writes to pods are refused, not what a pass reads or records. */
export function isOfWrites(hold: Hold): hold is "refused" {
  return hold === "refused";
}

/** True while the trouble is what holds the rollout; else it concerns single pods, and others go on. */
export function isPassTrouble(hold: Hold): boolean {
  return PASS_TROUBLES.some((one) => one === hold);
}

/** Why a pass did not come to a decision. */
export interface PassFailure {
  readonly hold: PassHold;
  /** one clause */
  readonly text: string;
}

/** The reason of the condition Blocked. */
export function reasonOfTrouble<H extends PassTroubleHold>(hold: H): Capitalize<H> {
  return `${hold.slice(0, 1).toUpperCase()}${hold.slice(1)}` as Capitalize<H>;
}

function troubleOf(reason: string | undefined): PassTroubleHold | undefined {
  return PASS_TROUBLES.find((hold) => reasonOfTrouble(hold) === reason);
}

interface LastTrouble extends PassTrouble {
  readonly hold: PassTroubleHold;
}

/** What the last pass met, as the stored status says. Undefined: nothing. A pass that failed did not see the generation. */
export function lastTrouble({ metadata, status }: SidecarSet): LastTrouble | undefined {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  const hold = troubleOf(blocked?.reason);
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  if (blocked === undefined || hold === undefined || (isOfWrites(hold) && !isSeen)) return undefined;
  return { hold, text: blocked.message, isLasting: blocked.status === "True" };
}

/** Why passes fail, two or more in a row. Undefined: they do not. */
export function lastFailure(sidecarSet: SidecarSet): PassTrouble | undefined {
  const trouble = lastTrouble(sidecarSet);
  return trouble?.isLasting && !isOfWrites(trouble.hold) ? trouble : undefined;
}

interface Troubled {
  readonly summary: { readonly hold: Hold; readonly selected: number };
}

/** The decision while passes are in trouble: nothing more is done, where that lasts. */
export function withTrouble<T extends Troubled>(decision: T, { hold, text, isLasting }: LastTrouble) {
  const { summary } = decision;
  const selected = isLasting ? 0 : summary.selected;
  return { ...decision, summary: { ...summary, selected, hold, trouble: { text, isLasting } } };
}

/**
 * The conditions after a pass that failed. After the first one only `Blocked` changes, and stays False; the others keep
 * what was seen last. `now`: RFC3339
 */
export function conditionsOfFailure(
  sidecarSet: SidecarSet,
  { hold, text }: PassFailure,
  now: string,
): readonly StatusCondition[] {
  const { conditions: stored = [], ...counts } = sidecarSet.status ?? {};
  const isLasting = isBlocked(stored);
  const reason = reasonOfTrouble(hold);
  const said: Readonly<Record<string, Pick<StatusCondition, "status" | "reason">>> = {
    Blocked: { status: isLasting ? "True" : "False", reason },
    ...(isLasting ? { ...progressing(stored, reason), ...BLOCKED } : {}),
  };
  const changed = Object.entries(said).map(([type, { status, reason }]): StatusCondition => {
    const known = stored.find((condition) => condition.type === type);
    const lastTransitionTime = known?.status === status ? known.lastTransitionTime : now;
    const message = type === "Progressing" ? `${countsOf(counts)}; ${text}` : text;
    return { lastTransitionTime, status, reason, message, type };
  });
  const byType = new Map(changed.map((condition) => [condition.type, condition]));
  const kept = stored.map((condition) => byType.get(condition.type) ?? condition);
  return [...kept, ...changed.filter(({ type }) => !stored.some((condition) => condition.type === type))];
}

/** Blocked by a failed pass, or by something that this pass did not see. */
function isBlocked(stored: readonly StatusCondition[]): boolean {
  const blocked = stored.find(({ type }) => type === "Blocked");
  const trouble = troubleOf(blocked?.reason);
  return blocked?.status === "True" || (trouble !== undefined && !isOfWrites(trouble));
}

function countsOf({ matchedPods = 0, updatedPods = 0, updatedReadyPods = 0 }: SidecarSetStatus): string {
  return countsText({ matched: matchedPods, updated: updatedPods, updatedReady: updatedReadyPods });
}

/** Only this condition remembers that a rollout was finished. */
function progressing(stored: readonly StatusCondition[], reason: string) {
  const isFinished = stored.some((one) => one.type === "Progressing" && one.reason === "Finished");
  return isFinished ? {} : { Progressing: { status: "False", reason } as const };
}

const BLOCKED = {
  Ready: { status: "False", reason: "Blocked" },
  Reconciling: { status: "False", reason: "Blocked" },
  Stalled: { status: "True", reason: "Blocked" },
} as const;
