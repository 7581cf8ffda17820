/** Sends the waiting notifications of a SidecarSet in parallel to the rounds. No pod and no round waits for it. */

import { VALUE_ANNOTATION_SUFFIX } from "../../api/names.ts";
import type { Notification, SidecarSet } from "../../api/sidecarset.ts";
import { CLAIM_MS, claimed, givenUpBy, hasUntaken, withoutTaken } from "../../core/rollout/notifications.ts";
import { counted } from "../../go/counted.ts";
import { shortText } from "../../go/unseen.ts";
import { type Cluster, SIDECARSETS } from "../../kube/port.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { act, attempt, type Outcome } from "./act.ts";
import { serverTimestamp } from "./departures.ts";
import type { Context } from "./observe.ts";
import { readSidecarSet } from "./observe-pods.ts";
import type { PatchPod } from "./pod-patch.ts";
import { newsOf } from "./status-additions.ts";

/** Limit in milliseconds for all receivers of one SidecarSet together. */
const SENDING_MS = 5_000;
/** Milliseconds that the pass needs afterwards. */
const RESERVE_MS = 2_000;
const LEAST_MS = 500;
/** Limit of tries, because the rounds write the same status. */
const ATTEMPTS = 8;

const PRUNED =
  "no notification is sent: the definition of SidecarSets does not keep status.notifications: install the one of this version (sidecarset install)";

/** promises of rollouts that resolve when nothing is being sent */
const sending = new WeakMap<Context, Promise<void>>();
/** Rollouts that wait for the current sending. It reads the waiting notifications at its start, so one is enough. */
const queued = new WeakSet<Context>();

/** Starts sending after the current sending ends. `before`: the SidecarSet before the write. */
export function beginNotify(context: Context, before: SidecarSet | undefined, { metadata, status }: SidecarSet): void {
  if (context.gates?.notify === undefined) return;
  // OpenKruise's CRD keeps no conditions, so there are no news.
  const hasNews = status?.conditions === undefined || newsOf(before?.status, status).length > 0;
  if (before && status?.notifications === undefined && hasNews) context.tally.notificationProblem ??= PRUNED;
  if (!hasUntaken(status) || queued.has(context)) return;
  queued.add(context);
  const { beside = (work) => work() } = context;
  const send = async () => {
    await sending.get(context);
    queued.delete(context);
    await sendWaiting(context, metadata?.name ?? "").catch((error: unknown) => {
      context.tally.notificationProblem ??= `notifications: ${error instanceof Error ? error.message : String(error)}`;
    });
  };
  sending.set(context, beside(send));
}

/** Resolves when all notifications are sent, refused, or left to a later pass. */
export async function notificationsAreSent(context: Context): Promise<void> {
  await sending.get(context);
}

async function sendWaiting(context: Context, name: string): Promise<void> {
  const { clock } = context;
  const untilMs = Math.min(clock.now() + SENDING_MS, context.endsAtMs - RESERVE_MS);
  const claimedAtMs = clock.epochMs();
  // A process that was frozen in between has lost its claim.
  const leftMs = () => (Math.abs(clock.epochMs() - claimedAtMs) > CLAIM_MS / 2 ? 0 : Math.floor(untilMs - clock.now()));
  if (leftMs() < LEAST_MS) return;
  const now = serverTimestamp(context);
  const claim = await rewrite(context, name, (read) => claimed(read, now));
  noteGivenUp(context, claim, now);
  const due = (claim?.waiting ?? []).filter(({ claimedAt }) => claimedAt !== undefined);
  for (const one of due) if (!(await sendOne(context, claim?.sidecarSet, one, leftMs()))) return;
}

/** Records the dropped ones. The next sent notification reports them too. */
function noteGivenUp({ tally }: Context, claim: Rewritten | undefined, now: string): void {
  const count = claim ? givenUpBy(claim.sidecarSet.status, claim.waiting, now) : 0;
  if (count > 0)
    tally.notificationProblem ??= `${counted(count, "notification was", "notifications were")} given up: no receiver took any for a day, or the newest for a week`;
}

/** Sends one; true: the receiver accepted it, or there is none, so the next one may follow. */
async function sendOne(
  context: Context,
  sidecarSet: SidecarSet | undefined,
  one: Notification,
  leftMs: number,
): Promise<boolean> {
  if (leftMs < LEAST_MS) return false;
  const { gates, tally } = context;
  const { name = "", uid = "", generation = 0 } = sidecarSet?.metadata ?? {};
  const problem = await gates?.notify?.({ name, uid, generation }, one, leftMs);
  if (typeof problem === "string") {
    tally.notificationProblem ??= `a notification is not taken: ${problem}`;
    return false;
  }
  if (problem === undefined) tally.notified = (tally.notified ?? 0) + 1;
  await rewrite(context, name, (read) => withoutTaken(read, one.id, serverTimestamp(context)));
  return true;
}

interface Rewritten {
  readonly sidecarSet: SidecarSet;
  readonly waiting: readonly Notification[];
}

/** Writes the status; undefined: nothing has to be written, the SidecarSet is gone, or others were faster each time. */
async function rewrite(
  { cluster }: Context,
  name: string,
  next: (read: SidecarSet) => readonly Notification[] | undefined,
): Promise<Rewritten | undefined> {
  for (let times = 1; times <= ATTEMPTS; times++) {
    const sidecarSet = await readSidecarSet(cluster, name);
    const waiting = sidecarSet && next(sidecarSet);
    if (sidecarSet === undefined || waiting === undefined) return undefined;
    const outcome = await write(cluster, sidecarSet, waiting);
    if (outcome.kind === "done") return { sidecarSet, waiting };
    if (outcome.kind === "refused") throw outcome.error;
  }
  return undefined;
}

/** Removes the field with the last notification, so that no empty list stays. */
function write(cluster: Cluster, { metadata }: SidecarSet, waiting: readonly Notification[]): Promise<Outcome> {
  const { name = "", uid, resourceVersion } = metadata ?? {};
  const notifications = waiting.length > 0 ? waiting : null;
  const patch = { type: "merge", body: { metadata: { uid, resourceVersion }, status: { notifications } } } as const;
  return attempt(() => cluster.patch(SIDECARSETS, { name }, patch, { subresource: "status" }));
}

// Records an Event on each pod whose sidecars changed in place, in parallel to the rounds. No pod waits for it.

const WRITES_AT_ONCE = 4;
/** Milliseconds before the end of the pass in which no Events are written. */
const EVENTS_RESERVE_MS = 2_000;
const MOST_MESSAGE = 1_000;

/** promises of rollouts that resolve when their Events are written */
const telling = new WeakMap<Context, Promise<void>>();

/** Starts to write after the Events of earlier batches. `patches`: the successful ones. */
export function tellPods(context: Context, sidecarSet: SidecarSet, patches: readonly PatchPod[]): void {
  const upgrades = patches.filter(({ purpose, images }) => purpose === "upgrade" && images.length > 0);
  if (upgrades.length === 0) return;
  const { beside = (work) => work() } = context;
  const tell = async () => {
    await telling.get(context);
    await mapLimited(upgrades, WRITES_AT_ONCE, (patch) => tellPod(context, sidecarSet, patch));
  };
  telling.set(context, beside(tell));
}

/** Resolves when every Event is written, was refused, or is left out. */
export async function podsAreTold(context: Context): Promise<void> {
  await telling.get(context);
}

async function tellPod(context: Context, sidecarSet: SidecarSet, patch: PatchPod): Promise<void> {
  if (context.clock.now() >= context.endsAtMs - EVENTS_RESERVE_MS) return;
  const { namespace, name, uid } = patch.pod;
  const set = sidecarSet.metadata?.name ?? "";
  const message = shortText(`SidecarSet ${set} updates in place: ${changesOf(set, patch)}`, MOST_MESSAGE);
  const regarding = { kind: "Pod", namespace, name, uid } as const;
  const event = { kind: "RecordEvent", regarding, type: "Normal", reason: "SidecarUpdated", message } as const;
  await act(event, { ...context, sidecarSet }).catch(() => undefined);
}

/** The changes. New values respell the image: `agent to docker.io/agent:1; new values of agent.LEVEL`. */
function changesOf(sidecarSet: string, { images, annotations }: PatchPod): string {
  const prefix = `${sidecarSet}${VALUE_ANNOTATION_SUFFIX}/`;
  const variables = Object.keys(annotations).filter((key) => key.startsWith(prefix));
  const values = variables.map((key) => key.slice(prefix.length)).join(", ");
  const changes = images.map(({ container, to }) => `${container} to ${to}`).join(", ");
  return values === "" ? changes : `${changes}; new values of ${values}`;
}
