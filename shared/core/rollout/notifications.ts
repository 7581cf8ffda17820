/** Notifications: news about a rollout. They wait in the status until a receiver outside the cluster accepts them. */
import type { Notification, SidecarSet, SidecarSetStatus } from "../../api/sidecarset.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { shortText, visibleLine } from "../../go/unseen.ts";
import type { Action } from "../actions.ts";

type RecordEvent = Extract<Action, { kind: "RecordEvent" }>;

/** One change to report to people, in the words of its Event. */
export interface News extends Pick<RecordEvent, "type" | "reason" | "message"> {
  /** reason of the condition; absent: no condition is involved */
  readonly cause?: string;
}

/** Limit of waiting notifications: the oldest are dropped. One waits at most a day, and the newest a week. */
const MOST_WAITING = 20;
const LONGEST_SECONDS = 24 * 60 * 60;
const NEWEST_SECONDS = 7 * LONGEST_SECONDS;
/** Milliseconds until the claim of a dead pass expires. Then another pass sends the notifications. */
export const CLAIM_MS = 60_000;
const MOST_MESSAGE = 500;

/**
 * Adds the news to the status, in the write that makes them true. A killed or concurrent pass then neither loses nor
 * repeats one. `sidecarSet`: the stored object, precondition of that write.
 */
export function withNews(
  { metadata, status: before }: SidecarSet,
  { notifications: _, ...status }: SidecarSetStatus,
  news: readonly News[],
  at: string,
): SidecarSetStatus {
  // News of a new release is sent at once. The pause concerns the release before it.
  const isNew = news.some(({ reason }) => reason === "RolloutStarted");
  const told = isNew ? [] : toldIn(before);
  const isOfBefore = (one: Notification) =>
    isNew && one.givenUp === undefined && toldIn(before).some((other) => isAlike(other, one)) && !isThere(one, status);
  const waiting = untakenIn(before).filter((one) => !isOfBefore(one));
  // Pods of one tenant that repeatedly fail and recover must not replace the other notifications.
  const isRepeated = ({ reason: event, cause }: News) => waiting.some((one) => isAlike(one, { event, cause }));
  const untold = news.filter((one) => !(REPEATED.has(one.reason) && isRepeated(one)));
  if (untold.length === 0) return status;
  const added = untold.map(({ reason: event, cause, message }, index) => ({
    id: `${metadata?.uid}.${metadata?.resourceVersion}.${index}`,
    at,
    event,
    ...(cause === undefined ? {} : { cause }),
    message: shortText(visibleLine(message), MOST_MESSAGE),
  }));
  return { ...status, notifications: [...told, ...bounded([...waiting, ...added], at)] };
}

/** Obstacles that come and go. While one of them waits to be sent, it is not added again. */
const REPEATED: ReadonlySet<string> = new Set(["Blocked", "Degraded", "MissedInjection"]);
/** Seconds between two notifications about an obstacle. The second is sent only if the obstacle still exists. */
const PAUSE_SECONDS = 600;
/** Marks the obstacles that a receiver knows, in a field that every definition of SidecarSets keeps. */
const TOLD_ID = "told";

type Kind = Pick<Notification, "event"> & { readonly cause?: string | undefined };

function isAlike(one: Kind, other: Kind): boolean {
  return one.event === other.event && one.cause === other.cause;
}

function untakenIn(status: SidecarSetStatus | undefined): readonly Notification[] {
  return (status?.notifications ?? []).filter(({ id }) => id !== TOLD_ID);
}

/** The obstacles that a receiver has been notified about. */
function toldIn(status: SidecarSetStatus | undefined): readonly Notification[] {
  return (status?.notifications ?? []).filter(({ id }) => id === TOLD_ID);
}

/** The notifications that wait for a receiver, without repeated ones during the pause. */
export function waitingFor(status: SidecarSetStatus | undefined): readonly Notification[] {
  return untakenIn(status).filter((one) => !toldIn(status).some((told) => isAlike(told, one)));
}

export function hasUntaken(status: SidecarSetStatus | undefined): boolean {
  return untakenIn(status).length > 0;
}

/**
 * The waiting notifications, without dropped ones and without obstacles that have ended. A pass claims the ones that it
 * sends now. Undefined: it sends none, or another pass does.
 */
export function claimed({ status }: SidecarSet, now: string): readonly Notification[] | undefined {
  const waiting = untakenIn(status);
  // A time that cannot be read, or lies in the future, does not block sending.
  const isWithin = (time: string, seconds: number) => Math.abs(secondsBetween(time, now) ?? seconds) < seconds;
  if (waiting.some(({ claimedAt = "" }) => isWithin(claimedAt, CLAIM_MS / 1_000))) return undefined;
  const told = toldIn(status);
  const lately = told.filter(({ at }) => isWithin(at, PAUSE_SECONDS));
  const isAmong = (list: readonly Notification[], one: Notification) => list.some((other) => isAlike(other, one));
  // An obstacle that ended is not sent if the pause held it back.
  const heldBackBy = (one: Notification) =>
    told.filter(({ at }) => Math.abs(secondsBetween(at, one.at) ?? PAUSE_SECONDS) < PAUSE_SECONDS);
  const isOver = (one: Notification) =>
    isAmong(heldBackBy(one), one) && !isAmong(lately, one) && one.givenUp === undefined && !isThere(one, status);
  const left = bounded(
    waiting.filter((one) => !isOver(one)),
    now,
  ).map(({ claimedAt: _, ...one }) => (isAmong(lately, one) ? one : { ...one, claimedAt: now }));
  const isIdle = left.length === waiting.length && left.every((one) => !("claimedAt" in one));
  return isIdle ? undefined : [...lately, ...left];
}

/** True if the condition reports the obstacle now. */
function isThere({ event, cause }: Notification, status: SidecarSetStatus | undefined): boolean {
  const condition = status?.conditions?.find(({ type }) => type === event);
  return condition?.status === "True" && (event !== "Blocked" || condition.reason === cause);
}

/** The remaining notifications after a receiver has accepted one at `now`, RFC3339. */
export function withoutTaken({ status }: SidecarSet, id: string, now: string): readonly Notification[] | undefined {
  const all = status?.notifications ?? [];
  const taken = all.find((one) => one.id === id);
  if (taken === undefined) return undefined;
  const others = all.filter((one) => one !== taken && !(one.id === TOLD_ID && isAlike(one, taken)));
  const { claimedAt: _, givenUp: __, ...one } = taken;
  return REPEATED.has(taken.event) ? [{ ...one, id: TOLD_ID, at: now }, ...others] : others;
}

/** The newest notifications. The next one reports how many earlier ones were dropped. */
function bounded(waiting: readonly Notification[], now: string): readonly Notification[] {
  const longest = (place: number) => (place === waiting.length - 1 ? NEWEST_SECONDS : LONGEST_SECONDS);
  const kept = waiting.filter(({ at }, place) => (secondsBetween(at, now) ?? 0) <= longest(place)).slice(-MOST_WAITING);
  const [first, ...others] = kept;
  const old = waiting.slice(0, waiting.length - kept.length);
  if (first === undefined || old.length === 0) return kept;
  const givenUp = old.reduce((sum, { givenUp: before = 0 }) => sum + 1 + before, first.givenUp ?? 0);
  return [{ ...first, givenUp }, ...others];
}

/** The number of notifications that a claim at `now` dropped. `after`: the result of `claimed`. */
export function givenUpBy(before: SidecarSetStatus | undefined, after: readonly Notification[], now: string): number {
  const sum = (all: readonly Notification[]) => all.reduce((count, { givenUp = 0 }) => count + givenUp, 0);
  const waiting = untakenIn(before);
  const [newest] = waiting.slice(-1);
  if (newest && (secondsBetween(newest.at, now) ?? 0) > NEWEST_SECONDS) return waiting.length + sum(waiting);
  return sum(after) - sum(waiting);
}

/** The facts about a SidecarSet that a notification carries. */
export interface NotifiedSubject {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
}

/** The format of a request's body. */
export type NotificationFormat = "slack" | "json";

/** Titles of messages by event. For some events the cause gives the title. */
const TITLES: Readonly<Record<string, string>> = {
  RolloutStarted: "rollout started",
  Blocked: "rollout is blocked",
  Halted: "rollout stopped itself",
  Degraded: "pods fail with the latest sidecars",
  Undone: "release was undone",
  WavePassed: "wave passed",
  RolloutFinished: "rollout finished",
  MissedInjection: "pods lack the sidecars",
};

/** The body of one request. `where`: the name of the cluster, in the operator's words. */
export function notificationBody(
  format: NotificationFormat,
  sidecarSet: NotifiedSubject,
  { claimedAt: _, ...notification }: Notification,
  where: string | undefined,
): string {
  const place = where === undefined ? {} : { where };
  if (format === "json") return JSON.stringify({ ...notification, ...place, sidecarSet });
  const { id, at, event, cause, message, givenUp } = notification;
  const what = (event === "Blocked" ? TITLES[cause ?? ""] : undefined) ?? TITLES[event] ?? event;
  const title = escaped(`${where === undefined ? "" : `${where}: `}SidecarSet ${sidecarSet.name}: ${what}`);
  const lost = givenUp === undefined ? "" : `; ${givenUp} earlier ones were given up`;
  const facts = escaped(`${cause ?? event} · generation ${sidecarSet.generation} · ${at} · ${id}${lost}`);
  const plain = (text: string) => ({ type: "plain_text", text, emoji: false });
  return JSON.stringify({
    // The text is in a code block, because clients that read only this field may interpret Markdown and group names.
    text: `${title}\n\`\`\`\n${escaped(message)}\n\`\`\``,
    blocks: [
      { type: "section", text: plain(title) },
      { type: "section", text: plain(escaped(message)) },
      { type: "context", elements: [plain(facts)] },
    ],
  });
}

/** Escapes text so that it cannot name a group, make a link, or end the code block. Source: Slack, "Escaping text". */
function escaped(text: string): string {
  return visibleLine(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("`", "'");
}
