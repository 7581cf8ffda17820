/** The services that passes call, from the settings: gates, Prometheus, receivers of notifications. */

import type { NotificationFormat } from "../core/rollout/notifications.ts";
import { hideSecret } from "../log.ts";
import { ConfigError } from "./config-error.ts";
import { parseSecretReference, type SecretReference } from "./secret-source.ts";

export interface GateHost {
  /** such as https://gate.example.com:8443 */
  readonly origin: string;
  /** it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
}

const GATES_FORM = "host, host:port or http://host, with =private for one in a private network";

/**
 * Reads GATE_HOSTS, such as `gate.example.com,http://gate.shop.svc:8080=private`. The default scheme is https. @throws
 * ConfigError for the first unusable one
 */
export function parseGateHosts(text: string | undefined): readonly GateHost[] {
  return (text ?? "").split(",").flatMap((entry) => (entry.trim() === "" ? [] : [parseHost(entry.trim())]));
}

function parseHost(entry: string): GateHost {
  const [address = "", mark, ...rest] = entry.split("=");
  const text = /^https?:\/\//.test(address) ? address : `https://${address}`;
  const isForm = rest.length === 0 && (mark === undefined || mark === "private") && !/[?#@*]/.test(address);
  const url = isForm && URL.canParse(text) ? new URL(text) : undefined;
  if (url?.pathname !== "/" || text.endsWith("/") || url.hostname === "")
    throw new ConfigError(`GATE_HOSTS names ${address}, which is not written as ${GATES_FORM}.`);
  return { origin: url.origin, isPrivate: mark === "private" };
}

// The Prometheus-compatible server that evaluates checks of metrics, from the settings.

export interface PrometheusServer {
  /** base of its API, without a slash at the end, such as https://mimir.example.com/prometheus */
  readonly url: string;
  /** it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
  /** place of the bearer token; absent: none needed */
  readonly token?: SecretReference;
}

const SERVER_FORM =
  "https://host, with a port or a path where it has them, or http://host=private for one in a private network";

/**
 * PROMETHEUS_SERVER, such as `http://prometheus.monitoring.svc:9090=private`, and PROMETHEUS_TOKEN. undefined: none is
 * asked. @throws ConfigError
 */
export function parsePrometheus(server: string | undefined, token: string | undefined): PrometheusServer | undefined {
  if (!server && token)
    throw new ConfigError("PROMETHEUS_TOKEN is set, and PROMETHEUS_SERVER, which it is for, is not.");
  if (!server) return undefined;
  const { address, isPrivate } = parseAddress(server);
  const place = token ? { token: parseSecretReference("PROMETHEUS_TOKEN", token) } : {};
  return { url: address.href.replace(/\/+$/, ""), isPrivate, ...place };
}

function parseAddress(text: string): { readonly address: URL; readonly isPrivate: boolean } {
  const isPrivate = text.endsWith("=private");
  const written = isPrivate ? text.slice(0, -"=private".length) : text;
  const isForm = /^https?:\/\/[^?#@=\s]+$/.test(written) && URL.canParse(written);
  if (!isForm) throw new ConfigError(`PROMETHEUS_SERVER is not written as ${SERVER_FORM}.`);
  const address = new URL(written);
  if (address.protocol === "http:" && !isPrivate)
    throw new ConfigError(
      "PROMETHEUS_SERVER is reached over http, which is for private networks: write =private behind it, or https.",
    );
  return { address, isPrivate };
}

// The receivers of notifications, from the secret that NOTIFICATIONS names.

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

const RECEIVERS_FORM = "is not written as SIDECARSETS slack|json https://… WHERE, where WHERE may be absent";

/** One line; undefined: a comment. A text is the fault, without any part of the line. */
export function parseReceiver(line: string): Receiver | string | undefined {
  if (line.startsWith("#")) return undefined;
  const [sidecarSets = "", written, address = "", ...where] = line.trim().split(/\s+/);
  const format = (["slack", "json"] as const).find((one) => one === written);
  const isPrivate = address.endsWith("=private");
  const href = isPrivate ? address.slice(0, -"=private".length) : address;
  if (!/^[a-z0-9.-]*\*?$/.test(sidecarSets) || format === undefined || !/^https?:\/\/[^@\s]+$/.test(href))
    return RECEIVERS_FORM;
  if (!URL.canParse(href)) return RECEIVERS_FORM;
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
