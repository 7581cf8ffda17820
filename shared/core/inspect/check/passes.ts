/** Tells whether rollout passes run, clocks agree, and reservations end. */
import type { ConfigMap, KubernetesObject } from "../../../api/kubernetes.ts";
import type { SidecarSet, StatusCondition } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { ledgerName, parseLedger } from "../../ledger.ts";
import { commandText } from "../../pod/command-text.ts";
import { isOfRelease } from "../../pod/failing-pods.ts";
import { BOOK, endOf, holdOfBlocked, holdsIn, saidBy, wordsOf } from "../../rollout/book.ts";
import { natureOf } from "../../rollout/conditions/verdict.ts";
import type { Decision } from "../../rollout/decide.ts";
import { undoHint } from "../../rollout/history/history.ts";
import type { Hold } from "../../rollout/hold.ts";
import { areAwaited, EFFECTS } from "../../rollout/hold-effects.ts";
import { type Counted, failingText, leftDownText } from "../../rollout/hold-words.ts";
import { waitingFor } from "../../rollout/notifications.ts";
import { conditionsOfFailure } from "../../rollout/pass-trouble.ts";
import { NOTHING_COUNTED, saidByRules } from "../../rollout/summary.ts";
import { type Facts, seenOf } from "./facts.ts";
import { type Finding, finding, where } from "./finding.ts";

/** The sum of a one-minute schedule and a pass of up to one minute, with a margin. */
const LATE_SECONDS = 180;
/** A frozen pass resumes, or its successor fences its pods, long before this time. */
const HELD_SECONDS = 600;
/** Leases, certificates and tokens tolerate this difference. */
const SKEW_SECONDS = 10;
/** A failed receiver is tried again after a minute. */
const WAITS_SECONDS = 300;
const LEDGER = "sidecarset-ledger-";
const START =
  "see that the schedule of the rollout function is on, or that serve runs with --tick; until then sidecarset tick makes one by hand";

export function checkPasses(facts: Facts): readonly Finding[] {
  const late = checkTick(facts);
  const sets = seenOf(facts.sidecarSets);
  return [
    ...late,
    ...checkClock(facts),
    ...(seenOf(facts.configMaps) ?? []).flatMap((one) => checkLedger(one, sets, facts.now)),
    // Without passes no generation is seen at all, which another finding says.
    ...(late.length === 0 && sets ? sets.flatMap(checkGeneration) : []),
    ...(late.length === 0 && sets ? sets.flatMap((one) => checkNotifications(one, facts.now)) : []),
  ];
}

function checkTick({ lastPass, sidecarSets, now, kruiseNamespace }: Facts): readonly Finding[] {
  if ("why" in lastPass) return [];
  const about = `Lease ${kruiseNamespace}/sidecarset-rollout`;
  const sets = seenOf(sidecarSets) ?? [];
  if (lastPass.value === undefined) return sets.length === 0 ? [] : [neverRan(about, sets.filter(isUnseen).length)];
  const age = secondsBetween(lastPass.value, now) ?? 0;
  return where(
    age > LATE_SECONDS,
    finding("TickNotRunning", about, `no pass has run since ${lastPass.value} (${agoText(age)})`, START),
  );
}

/** The finding without a Lease. If every change was recorded, OpenKruise may have done that. */
function neverRan(about: string, unseen: number): Finding {
  if (unseen > 0)
    return finding(
      "TickNeverRan",
      about,
      `there is none, and no pass has recorded ${counted(unseen, "SidecarSet")}: none runs`,
      START,
    );
  return finding("TickUnknown", about, "there is none: no pass has run from here yet", START);
}

function isUnseen({ metadata, status }: SidecarSet): boolean {
  return (status?.observedGeneration ?? 0) < (metadata?.generation ?? 0);
}

function agoText(seconds: number): string {
  if (seconds < 7_200) return `${counted(Math.floor(seconds / 60), "minute")} ago`;
  return seconds < 172_800
    ? `${counted(Math.floor(seconds / 3_600), "hour")} ago`
    : `${counted(Math.floor(seconds / 86_400), "day")} ago`;
}

function checkClock({ skewSeconds }: Facts): readonly Finding[] {
  const skew = seenOf(skewSeconds) ?? 0;
  const [amount, direction] = [Math.abs(skew), skew > 0 ? "behind" : "ahead of"];
  return where(
    amount > SKEW_SECONDS,
    finding(
      "ClockSkew",
      "clock",
      `the clock here is ${amount} seconds ${direction} the API server's: ages in this list are wrong by as much, and so are Leases and certificates where functions run with this clock`,
      "have both keep time by NTP",
    ),
  );
}

function checkLedger(configMap: ConfigMap, sets: readonly SidecarSet[] | undefined, now: string): readonly Finding[] {
  const { metadata, data } = configMap;
  const name = metadata?.name ?? "";
  if (!name.startsWith(LEDGER)) return [];
  const about = `ConfigMap ${metadata?.namespace}/${name}`;
  const ledger = parseLedger(data);
  if (ledger === undefined)
    return [
      finding(
        "LedgerUnreadable",
        about,
        "it is no ledger of reservations: its SidecarSet is not rolled out",
        "delete it while no pass runs",
      ),
    ];
  const count = ledger.reservations.length;
  const written = lastWrite(configMap);
  const age = written === undefined ? 0 : (secondsBetween(written, now) ?? 0);
  const isLeft = sets !== undefined && !sets.some((one) => ledgerName(one.metadata?.name ?? "") === name);
  const first = ledger.reservations[0];
  return [
    ...where(
      count > 0 && age > HELD_SECONDS,
      finding(
        "ReservationsHeld",
        about,
        `${counted(count, "pod is", "pods are")} reserved for an update since ${written}, such as ${first?.namespace}/${first?.name}: ${count === 1 ? "it uses" : "they use"} the budget`,
        "the next pass frees them; see why none succeeds in the function's log",
      ),
    ),
    ...where(
      isLeft,
      finding(
        "LedgerLeft",
        about,
        "its SidecarSet is gone",
        count > 0 ? "leave it until a late pass can have ended, an hour or so, then delete it" : "delete it",
      ),
    ),
  ];
}

function checkNotifications({ metadata, status }: SidecarSet, now: string): readonly Finding[] {
  const notifications = waitingFor(status);
  const [oldest] = notifications;
  const age = oldest === undefined ? 0 : (secondsBetween(oldest.at, now) ?? 0);
  const count = counted(notifications.length, "notification waits", "notifications wait");
  return where(
    age > WAITS_SECONDS,
    finding(
      "NotificationsWait",
      `SidecarSet ${metadata?.name}`,
      `${count} to be sent, the oldest (${oldest?.event}) since ${oldest?.at}`,
      "the log of the passes says why; see that NOTIFICATIONS is set there and that the receiver answers",
    ),
  );
}

function checkGeneration(one: SidecarSet): readonly Finding[] {
  const { metadata, status } = one;
  return where(
    isUnseen(one),
    finding(
      "ChangeNotSeen",
      `SidecarSet ${metadata?.name}`,
      `no pass has recorded its latest change (generation ${metadata?.generation}, recorded ${status?.observedGeneration ?? 0})`,
      "look again in a minute; where that does not change, the function's log says why",
    ),
  );
}

// A check's finding about a blocked rollout: cause, words and advice, all from the book of holds.

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
    return leftDown?.areFailing && (areAwaited(summary) || endOf(summary) !== undefined)
      ? [finding("PodsFail", aboutOf(sidecarSet), leftDownText(leftDown), leftAdvice(summary, sidecarSet))]
      : [];
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

// The last write of an object or of one of its fields, as its managed fields say.

interface ManagedField {
  readonly time?: string;
  readonly fieldsV1?: unknown;
}

function managedFields({ metadata }: KubernetesObject): readonly ManagedField[] {
  return (metadata as { readonly managedFields?: readonly ManagedField[] } | undefined)?.managedFields ?? [];
}

/** RFC3339; undefined: not recorded */
function lastWrite(object: KubernetesObject): string | undefined {
  return newest(managedFields(object));
}

/** The last write by an author who has set this field; `path` looks like ["spec", "paused"]. */
export function lastWriteOf(object: KubernetesObject, path: readonly string[]): string | undefined {
  return newest(managedFields(object).filter(({ fieldsV1 }) => hasField(fieldsV1, path)));
}

function hasField(fields: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  return isJsonObject(fields) && hasField(fields[`f:${first}`], rest);
}

/** Timestamps of an API server sort as text. */
function newest(fields: readonly ManagedField[]): string | undefined {
  return fields
    .flatMap(({ time }) => time ?? [])
    .sort()
    .at(-1);
}

// Gives a SidecarSet the conditions that passes may not write, as their Event about the refusal tells.

/** Passes run each minute, so an older refusal is over. */
const CURRENT_SECONDS = 180;

/** A refused write of a status. */
export interface StatusRefusal {
  /** of the SidecarSet */
  readonly uid: string;
  readonly text: string;
  /** RFC3339: the last time */
  readonly at: string;
}

/** `now`: RFC3339 */
export function withRefusal(sidecarSet: SidecarSet, refusals: readonly StatusRefusal[], now: string): SidecarSet {
  const isCurrent = ({ uid, at }: StatusRefusal) =>
    uid === sidecarSet.metadata?.uid &&
    // A time far ahead would stay current for ever: anybody who may record Events could write it.
    Math.abs(secondsBetween(at, now) ?? CURRENT_SECONDS) < CURRENT_SECONDS &&
    !isWrittenSince(sidecarSet, at);
  const [last] = refusals.filter(isCurrent).toSorted((one, other) => compareUtf8(other.at, one.at));
  if (last === undefined) return sidecarSet;
  const withFailure = (before: SidecarSet): SidecarSet => {
    const conditions = conditionsOfFailure(before, { hold: "passRefused", text: last.text }, last.at);
    return { ...before, status: { ...before.status, conditions } };
  };
  // The second failure blocks.
  return withFailure(withFailure(sidecarSet));
}

/** The managed fields and the conditions have the times of writes. */
function isWrittenSince(sidecarSet: SidecarSet, at: string): boolean {
  const changes = sidecarSet.status?.conditions?.map(({ lastTransitionTime }) => lastTransitionTime) ?? [];
  return [...changes, lastWriteOf(sidecarSet, ["status"])].some((time) => time !== undefined && time > at);
}
