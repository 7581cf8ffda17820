/** The gates that may be asked before a batch, from the settings. */
import { ConfigError } from "./config-error.ts";

export interface GateHost {
  /** such as https://gate.example.com:8443 */
  readonly origin: string;
  /** it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
}

const FORM = "host, host:port or http://host, with =private for one in a private network";

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
    throw new ConfigError(`GATE_HOSTS names ${address}, which is not written as ${FORM}.`);
  return { origin: url.origin, isPrivate: mark === "private" };
}
