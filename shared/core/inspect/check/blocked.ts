/** A check's finding about a blocked rollout: cause, words and advice, all from the book of holds. */
import type { SidecarSet, StatusCondition } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { commandText } from "../../pod/command-text.ts";
import { isOfRelease } from "../../pod/failing-pods.ts";
import { BOOK, endOf, holdOfBlocked, holdsIn, saidBy, wordsOf } from "../../rollout/book.ts";
import { natureOf } from "../../rollout/conditions/verdict.ts";
import type { Decision } from "../../rollout/decide.ts";
import { undoHint } from "../../rollout/history/outcomes.ts";
import type { Hold } from "../../rollout/hold.ts";
import { EFFECTS } from "../../rollout/hold-effects.ts";
import { type Counted, failingText, leftDownText } from "../../rollout/hold-words.ts";
import { NOTHING_COUNTED, saidByRules, unavailableOf } from "../../rollout/summary.ts";
import { type Finding, finding } from "./finding.ts";

export type Decided = Pick<Decision, "failing" | "halt"> & { readonly summary: Counted };

/** `decided`: the next pass's decision; undefined: unknown. If it is not blocked, the last pass's record counts. */
export function checkBlocked(sidecarSet: SidecarSet, decided: Decided | undefined): readonly Finding[] {
  const stored = sidecarSet.status?.conditions?.find(({ type }) => type === "Blocked");
  const found = blockedNow(sidecarSet, decided, stored) ?? blockedBefore(sidecarSet, stored, decided);
  if (found) return [found];
  return [...passedOver(sidecarSet, decided, stored), ...failingPods(sidecarSet, decided)];
}

function blockedNow(
  sidecarSet: SidecarSet,
  decided: Decided | undefined,
  stored: StatusCondition | undefined,
): Finding | undefined {
  if (decided === undefined) return undefined;
  const { summary, failing, halt } = decided;
  const held = { ...summary, halt };
  const { blocked } = BOOK[held.hold];
  const text = blocked?.text(held, failing);
  const since = stored?.status === "True" && stored.reason === blocked?.reason ? stored.lastTransitionTime : undefined;
  return text === undefined
    ? undefined
    : blockedFinding(sidecarSet, held, { text, since, isFailing: isOfRelease(failing) });
}

function blockedBefore(sidecarSet: SidecarSet, stored?: StatusCondition, decided?: Decided): Finding | undefined {
  const hold = holdOfBlocked(stored?.reason ?? "");
  if (stored?.status !== "True" || hold === undefined) return undefined;
  const { message: text, lastTransitionTime: since } = stored;
  const before = heldAs(hold, text);
  const held = { ...before, rules: saidByRules({ ...before.rules, halt: decided?.summary.rules.halt }) };
  return blockedFinding(sidecarSet, held, { text, since, isFailing: false });
}

/** The counts of a rollout with this hold, including facts from the message, such as a gate's answer. */
function heldAs(hold: Hold, text: string): Counted {
  return { ...NOTHING_COUNTED, hold, halt: text, ...BOOK[hold].factsIn?.(text) };
}

/** Undefined: nobody has to act, for example while a gate refuses. */
function blockedFinding(
  sidecarSet: SidecarSet,
  held: Counted,
  {
    text,
    since,
    isFailing,
  }: { readonly text: string; readonly since: string | undefined; readonly isFailing: boolean },
): Finding | undefined {
  const name = sidecarSet.metadata?.name ?? "";
  const { cause, severity } = wordsOf(held.hold, held, name);
  if (severity !== "trouble" && !natureOf(saidBy(BOOK[held.hold].verdict, held)).isTrouble) return undefined;
  const dated = since === undefined ? "" : ` since ${since}`;
  return finding(
    "RolloutBlocked",
    aboutOf(sidecarSet),
    `its rollout is blocked${dated} (${cause}): ${text}`,
    adviceOn(held, name, isFailing),
  );
}

function adviceOn(held: Counted, name: string, isFailing: boolean): string {
  const next =
    BOOK[held.hold].next?.(name, held) ?? (isFailing ? undoHint(name, held.rules.halt?.hasWayBack) : undefined);
  return withMore(held, name, next);
}

/** `next`: the first thing to do. The advice also names what keeps the pods from every release. */
function withMore(held: Counted, name: string, next: string | undefined): string {
  const keeping = holdsIn(held).filter((hold) => EFFECTS[hold].keepsRelease);
  const then = keeping.map((hold) => `then ${BOOK[hold].next?.(name, held)}`);
  const more = commandText`sidecarset explain sidecarset/${name} tells more`;
  return [...(next === undefined ? [] : [next, ...then]), more].join("; ");
}

/** Pods that refuse writes while the others continue. */
function passedOver(
  sidecarSet: SidecarSet,
  decided: Decided | undefined,
  stored: StatusCondition | undefined,
): readonly Finding[] {
  const { refused } = BOOK;
  const told = stored?.reason === refused.blocked?.reason ? stored?.message : undefined;
  const text = decided?.summary.trouble?.text ?? told;
  if (text === undefined) return [];
  const held = heldAs("refused", text);
  const message = `writes to pods are refused, and passes go on with others (${saidBy(refused.cause, held)}): ${text}`;
  return [finding("PodsRefused", aboutOf(sidecarSet), message, adviceOn(held, sidecarSet.metadata?.name ?? "", false))];
}

function failingPods(sidecarSet: SidecarSet, decided: Decided | undefined): readonly Finding[] {
  if (decided === undefined) return [];
  const { failing, summary } = decided;
  const { leftDown } = summary;
  if (failing.length === 0)
    return leftDown?.areFailing && endOf(summary) !== undefined
      ? [finding("PodsFail", aboutOf(sidecarSet), leftDownText(leftDown), leftAdvice(summary, sidecarSet))]
      : [];
  if (unavailableOf(summary) < summary.maxUnavailable) return [];
  const message = `${counted(failing.length, "pod")} with the newest sidecars: ${failingText(failing)}`;
  const name = sidecarSet.metadata?.name ?? "";
  const hint = withMore(
    summary,
    name,
    isOfRelease(failing) ? undoHint(name, summary.rules.halt?.hasWayBack) : undefined,
  );
  return [finding("PodsFail", aboutOf(sidecarSet), message, hint)];
}

/** The advice for pods that an older release left down. A running rollout restores them. */
function leftAdvice(held: Counted, { metadata }: SidecarSet): string {
  const next = BOOK[held.hold].next?.(metadata?.name ?? "", held);
  return ["let the rollout reach them", next].filter((text) => text !== undefined).join(": ");
}

function aboutOf({ metadata }: SidecarSet): string {
  return `SidecarSet ${metadata?.name}`;
}
