/** The Prometheus-compatible server that evaluates checks of metrics, from the settings. */
import { ConfigError } from "./config-error.ts";
import { parseSecretReference, type SecretReference } from "./secret-source.ts";

export interface PrometheusServer {
  /** base of its API, without a slash at the end, such as https://mimir.example.com/prometheus */
  readonly url: string;
  /** it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
  /** place of the bearer token; absent: none needed */
  readonly token?: SecretReference;
}

const FORM =
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
  if (!isForm) throw new ConfigError(`PROMETHEUS_SERVER is not written as ${FORM}.`);
  const address = new URL(written);
  if (address.protocol === "http:" && !isPrivate)
    throw new ConfigError(
      "PROMETHEUS_SERVER is reached over http, which is for private networks: write =private behind it, or https.",
    );
  return { address, isPrivate };
}
