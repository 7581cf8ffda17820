/** Sends notifications to the receivers that a secret names. Each failure becomes one sentence. */
import type { Notification } from "../api/sidecarset.ts";
import type { NotifiedSubject } from "../core/rollout/notifications.ts";
import type { Receiver } from "../settings/called-services.ts";
import type { SecretSource } from "../settings/secret-source.ts";
import type { Resolve } from "./guarded-post.ts";
import type { NotTaken } from "./send-notification.ts";

/**
 * Sends a notification. The result says why the receiver refused it; undefined: accepted; null: this SidecarSet has no
 * receiver. Never rejects.
 */
export type Notify = (
  sidecarSet: NotifiedSubject,
  notification: Notification,
  timeoutMs: number,
) => Promise<string | null | undefined>;

interface Sending {
  readonly resolve?: Resolve | undefined;
  readonly now: () => number;
}

/** Milliseconds before a failed or overloaded receiver is asked again, so that others do not wait. */
const AGAIN_MS = 30_000;

/** Sends notifications. Its sentences show only the host of an address. */
export function notifier(source: SecretSource, { resolve, now }: Sending): Notify {
  const failures = new Map<string, { readonly why: string; readonly atMs: number }>();
  const isRecent = (atMs: number) => now() >= atMs && now() - atMs < AGAIN_MS;
  return async (sidecarSet, notification, timeoutMs) => {
    const receiver = await receiverFor(source, sidecarSet.name);
    if (receiver === null || typeof receiver === "string") return receiver;
    const last = failures.get(receiver.url.href);
    if (last && isRecent(last.atMs)) return last.why;
    const notTaken = await send(receiver, sidecarSet, notification, { timeoutMs, resolve });
    // A receiver that refuses a notification of one SidecarSet may accept one of the next.
    if (notTaken?.isOfReceiver) failures.set(receiver.url.href, { why: notTaken.why, atMs: now() });
    else failures.delete(receiver.url.href);
    return notTaken?.why;
  };
}

/** The receiver, or the reason why nobody is notified. Few passes have news, so others do not load this code. */
async function receiverFor(source: SecretSource, name: string): Promise<Receiver | string | null> {
  try {
    const { receiverOf } = await import("../settings/called-services.ts");
    return receiverOf(await source(), name) ?? null;
  } catch (error) {
    return `the receivers cannot be read: ${error instanceof Error ? error.message : "no reason"}`;
  }
}

async function send(
  receiver: Receiver,
  sidecarSet: NotifiedSubject,
  notification: Notification,
  { timeoutMs, resolve }: { readonly timeoutMs: number; readonly resolve: Resolve | undefined },
): Promise<NotTaken | undefined> {
  const { host } = receiver.url;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const { sendNotification } = await import("./send-notification.ts");
    return await sendNotification(receiver, sidecarSet, notification, { timeout, resolve });
  } catch (error) {
    if (timeout.aborted) return { why: `${host} did not answer within ${timeoutMs / 1000} s`, isOfReceiver: true };
    const code = error instanceof Error && "code" in error ? error.code : "no answer";
    return { why: `${host} cannot be reached: ${code}`, isOfReceiver: true };
  }
}
