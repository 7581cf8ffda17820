/** The way to an API server through a proxy: `proxy-url` of a kubeconfig, else the variables that kubectl reads. */
import http from "node:http";
import https from "node:https";
import { BlockList, isIP } from "node:net";
import { hideSecret } from "../log.ts";
import { KubeError } from "./error.ts";
import type { ClusterAccess } from "./transport.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Node opens tunnels from these versions on. */
const TUNNELS: readonly (readonly [number, number])[] = [
  [22, 21],
  [24, 5],
];

/**
 * `access` with its proxy, or unchanged if NO_PROXY names the server. `proxy-url` wins over the variables. @throws
 * KubeError (reason InvalidProxy) for an unusable proxy
 */
export function throughProxy(access: ClusterAccess, env: Environment): ClusterAccess {
  const { hostname, port, protocol } = new URL(access.server);
  const name = access.proxyUrl === undefined ? variableFor(protocol, env) : "proxy-url";
  const value = access.proxyUrl ?? read(env, name);
  if (value === undefined) return access;
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const own = port || (protocol === "http:" ? "80" : "443");
  if (access.proxyUrl === undefined && isBypassed(host, own, read(env, "NO_PROXY") ?? "")) return access;
  const proxy = parseProxy(name, value);
  const address = `${proxy.protocol}//${proxy.host}`;
  const proxyEnv = { HTTP_PROXY: proxy.href, HTTPS_PROXY: proxy.href };
  return {
    ...access,
    proxy: {
      name: `${address} (${name})`,
      openAgent: (options) =>
        protocol === "http:" ? new http.Agent({ ...options, proxyEnv }) : new https.Agent({ ...options, proxyEnv }),
    },
  };
}

function variableFor(protocol: string, env: Environment): string {
  const name = protocol === "http:" ? "HTTP_PROXY" : "HTTPS_PROXY";
  return env[name] ? name : name.toLowerCase();
}

/** In capitals first, as Go does. */
function read(env: Environment, name: string): string | undefined {
  return env[name] || env[name.toLowerCase()] || undefined;
}

/** Source: golang.org/x/net/http/httpproxy. A value without a scheme is an HTTP proxy. */
function parseProxy(name: string, value: string): URL {
  const url = URL.parse(value.includes("://") ? value : `http://${value}`);
  if (url?.password) hideSecret(decodeURIComponent(url.password));
  if (!url?.host) throw invalid(`${name} is not the address of a proxy: write http://HOST:PORT`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw invalid(
      `${name} names a proxy of the kind ${url.protocol.replace(":", "")}: only http and https are supported`,
    );
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (!TUNNELS.some(([from, least]) => major === from && minor >= least) && major < 25)
    throw invalid(`${name} names a proxy, which Node ${process.versions.node} cannot use: run Node 24.5 or newer`);
  return url;
}

/** Source: golang.org/x/net/http/httpproxy, `useProxy`. */
function isBypassed(host: string, port: string, noProxy: string): boolean {
  if (host === "localhost" || isLoopback(host)) return true;
  return noProxy
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== "" && (entry === "*" || isNamed(entry, host, port)));
}

function isNamed(entry: string, host: string, port: string): boolean {
  if (entry.includes("/")) return isInRange(host, entry);
  const [, name = entry, ownPort] = /^(\[.+\]|[^:]+)(?::(\d+))?$/.exec(entry) ?? [];
  if (ownPort !== undefined && ownPort !== port) return false;
  const named = name.replace(/^\[|\]$/g, "");
  if (isIP(named)) return isIP(host) > 0 && isInRange(host, `${named}/${isIP(named) === 4 ? 32 : 128}`);
  const suffix = named.replace(/^\*(?=\.)/, "");
  return suffix.startsWith(".") ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

function isLoopback(host: string): boolean {
  return isInRange(host, "127.0.0.0/8") || isInRange(host, "::1/128");
}

/** `range`: like 10.0.0.0/8; an invalid one contains nothing. */
function isInRange(host: string, range: string): boolean {
  const [net = "", prefix] = range.split("/");
  const family = isIP(net);
  if (family === 0 || isIP(host) === 0 || !/^\d{1,3}$/.test(prefix ?? "")) return false;
  if (Number(prefix) > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  list.addSubnet(net, Number(prefix), family === 4 ? "ipv4" : "ipv6");
  return list.check(host, isIP(host) === 4 ? "ipv4" : "ipv6");
}

function invalid(message: string): KubeError {
  return new KubeError(message, { code: 0, reason: "InvalidProxy", isOutcomeKnown: true });
}
