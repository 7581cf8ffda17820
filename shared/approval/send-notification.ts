/** Posts one notification to its receiver, only at the checked address, and without following redirects. */
import type { Notification } from "../api/sidecarset.ts";
import { type NotifiedSubject, notificationBody } from "../core/rollout/notifications.ts";
import type { Receiver } from "../settings/called-services.ts";
import { addressOf, post, type Resolve, resolveName } from "./guarded-post.ts";

interface Sending {
  readonly timeout: AbortSignal;
  readonly resolve?: Resolve | undefined;
}

/** The reason why a receiver refused a notification. `isOfReceiver`: it would refuse any other one now too. */
export interface NotTaken {
  readonly why: string;
  readonly isOfReceiver: boolean;
}

const TOO_MANY_REQUESTS = 429;

/** Posts a notification; undefined: accepted. It rejects if there is no answer, also after `timeout`. */
export async function sendNotification(
  { url, isPrivate, format, where }: Receiver,
  sidecarSet: NotifiedSubject,
  notification: Notification,
  { timeout, resolve = resolveName }: Sending,
): Promise<NotTaken | undefined> {
  const permission = { isPrivate, setting: "NOTIFICATIONS", what: "receiver" } as const;
  const address = await addressOf(url, permission, { resolve, timeout });
  if (typeof address === "string") return { why: `${url.host} may not be told: ${address}`, isOfReceiver: true };
  const body = notificationBody(format, sidecarSet, notification, where);
  // A receiver that records ids can see that a notification came twice.
  const headers = { "idempotency-key": notification.id };
  const { code } = await post(url, body, { address, timeout, isHeadEnough: true, headers });
  if (code >= 200 && code < 300) return undefined;
  return { why: `${url.host} answered ${code}`, isOfReceiver: code === TOO_MANY_REQUESTS || code >= 500 };
}
