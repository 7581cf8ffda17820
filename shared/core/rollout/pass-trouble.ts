/** The status and the texts for a rollout whose passes are refused or fail. */
import type { SidecarSet, SidecarSetStatus, StatusCondition } from "../../api/sidecarset.ts";
import { countsText } from "./counts-text.ts";
import type { Hold } from "./hold.ts";

export interface PassTrouble {
  /** the object, with the words of the API server or of the failure, in one clause */
  readonly text: string;
  /** true: an earlier pass had such trouble too */
  readonly isLasting: boolean;
  /** the pass's other action if no image may change, which ends `text`; absent: the cause is another one */
  readonly instead?: string;
}

/** All troubles of passes. No pod is updated during one. */
const PASS_TROUBLES = ["refused", "passRefused", "unreachable", "contention", "unread", "passFailed"] as const;
export type PassTroubleHold = (typeof PASS_TROUBLES)[number];
/** Trouble that prevents a pass from reaching a decision. */
type PassHold = Exclude<PassTroubleHold, "refused">;

/** True when the API server refuses writes to pods, rather than reads or records of a pass. */
export function isOfWrites(hold: Hold): hold is "refused" {
  return hold === "refused";
}

/** True if the trouble holds the whole rollout. False if it concerns single pods, and the others continue. */
export function isPassTrouble(hold: Hold): boolean {
  return PASS_TROUBLES.some((one) => one === hold);
}

/** The reason why a pass made no decision. */
export interface PassFailure {
  readonly hold: PassHold;
  /** the reason in one clause */
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

/** The trouble of the last pass, from the stored status; undefined: none. A failed pass did not see the generation. */
export function lastTrouble({ metadata, status }: SidecarSet): LastTrouble | undefined {
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  const hold = troubleOf(blocked?.reason);
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  if (blocked === undefined || hold === undefined || (isOfWrites(hold) && !isSeen)) return undefined;
  return { hold, text: blocked.message, isLasting: blocked.status === "True" };
}

/** The reason why two or more passes in a row failed; undefined: they did not. */
export function lastFailure(sidecarSet: SidecarSet): PassTrouble | undefined {
  const trouble = lastTrouble(sidecarSet);
  return trouble?.isLasting && !isOfWrites(trouble.hold) ? trouble : undefined;
}

interface Troubled {
  readonly summary: { readonly hold: Hold; readonly selected: number };
}

/** The decision while passes are in trouble. A lasting trouble removes all further actions. */
export function withTrouble<T extends Troubled>(decision: T, { hold, text, isLasting }: LastTrouble) {
  const { summary } = decision;
  const selected = isLasting ? 0 : summary.selected;
  return { ...decision, summary: { ...summary, selected, hold, trouble: { text, isLasting } } };
}

/** The conditions after a failed pass. The first failure changes only `Blocked`, which stays False. `now`: RFC3339 */
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

/** The reason of the Event about a SidecarSet whose status passes may not write. */
export const STATUS_REFUSED = "StatusRefused";

/** Keeps a Finished condition, because no other field records that the rollout has finished. */
function isBlocked(stored: readonly StatusCondition[]): boolean {
  const blocked = stored.find(({ type }) => type === "Blocked");
  const trouble = troubleOf(blocked?.reason);
  return blocked?.status === "True" || (trouble !== undefined && !isOfWrites(trouble));
}

function countsOf({ matchedPods = 0, updatedPods = 0, updatedReadyPods = 0 }: SidecarSetStatus): string {
  return countsText({ matched: matchedPods, updated: updatedPods, updatedReady: updatedReadyPods });
}

/** Keeps a Finished condition: no other field remembers that the rollout was finished. */
function progressing(stored: readonly StatusCondition[], reason: string) {
  const isFinished = stored.some((one) => one.type === "Progressing" && one.reason === "Finished");
  return isFinished ? {} : { Progressing: { status: "False", reason } as const };
}

const BLOCKED = {
  Ready: { status: "False", reason: "Blocked" },
  Reconciling: { status: "False", reason: "Blocked" },
  Stalled: { status: "True", reason: "Blocked" },
} as const;
