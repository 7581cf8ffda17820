/** The receivers of notifications, from the secret that NOTIFICATIONS names. */
import { NOTIFICATION_FORMATS, type NotificationFormat } from "../core/rollout/notifications.ts";
import { hideSecret } from "../log.ts";

export interface Receiver {
  /** name of a SidecarSet, or the beginning of names, followed by a star */
  readonly sidecarSets: string;
  readonly format: NotificationFormat;
  /** holds a secret, as a rule */
  readonly url: URL;
  /** it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
  /** which cluster it is, in the operator's words */
  readonly where?: string;
}

const FORM = "is not written as SIDECARSETS slack|json https://… WHERE, where WHERE may be absent";

/** One line; undefined: a comment. A text is the fault, without any part of the line. */
export function parseReceiver(line: string): Receiver | string | undefined {
  if (line.startsWith("#")) return undefined;
  const [sidecarSets = "", written, address = "", ...where] = line.trim().split(/\s+/);
  const format = NOTIFICATION_FORMATS.find((one) => one === written);
  const isPrivate = address.endsWith("=private");
  const href = isPrivate ? address.slice(0, -"=private".length) : address;
  if (!/^[a-z0-9.-]*\*?$/.test(sidecarSets) || format === undefined || !/^https?:\/\/[^@\s]+$/.test(href)) return FORM;
  if (!URL.canParse(href)) return FORM;
  const url = new URL(href);
  if (url.protocol === "http:" && !isPrivate)
    return "is reached over http, which is for private networks: write =private behind it, or https";
  hideSecret(url.pathname + url.search);
  const label = where.length > 0 ? { where: where.join(" ") } : {};
  return { sidecarSets, format, url, isPrivate, ...label };
}

/** The first line that names the SidecarSet counts. */
export function receiverOf(lines: readonly string[], name: string): Receiver | undefined {
  const isAbout = (pattern: string) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
  for (const line of lines) {
    const receiver = parseReceiver(line);
    if (typeof receiver === "object" && isAbout(receiver.sidecarSets)) return receiver;
  }
  return undefined;
}
