/** A kubeconfig as access to its cluster, with client-node, which knows every kind of user that one can have. */

import http from "node:http";
import https, { type RequestOptions } from "node:https";
import { BlockList, isIP } from "node:net";
import { delimiter } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { hideSecret } from "../log.ts";
import { KubeError } from "./error.ts";
import type { ClusterAccess } from "./transport.ts";

/**
 * Reads the kubeconfig with its certificates, and runs the user's credential plugin, if any. Makes no request. Without
 * a path: ~/.kube/config, else the pod's service account. @throws KubeError (code 0, reason InvalidKubeconfig or
 * NoCredentials): one sentence with the fault, its place, and the remedy
 */
export async function kubeconfigAccess(path: string | undefined, context?: string): Promise<ClusterAccess> {
  const where = whereOf(path);
  const read = () => load(path, where, context);
  const config = await read();
  const cluster = requireCluster(config, where);
  const options = await credentials(config, where);
  if (options.key) hideSecret(String(options.key));
  return {
    server: cluster.server,
    isInsecure: cluster.skipTLSVerify === true,
    ...(cluster.proxyUrl ? { proxyUrl: cluster.proxyUrl } : {}),
    ...(cluster.tlsServerName ? { tlsServerName: cluster.tlsServerName } : {}),
    ...(options.ca ? { certificateAuthority: String(options.ca) } : {}),
    ...(options.cert ? { clientCertificate: String(options.cert) } : {}),
    ...(options.key ? { clientKey: String(options.key) } : {}),
    ...tokens({ config, read, where }, bearerToken(options)),
  };
}

/** The namespace that the context names; undefined: none. @throws KubeError when the kubeconfig cannot be read */
export async function kubeconfigNamespace(path: string | undefined, context?: string): Promise<string | undefined> {
  const config = await load(path, whereOf(path), context);
  return config.getContextObject(config.getCurrentContext())?.namespace || undefined;
}

/** The name of the context that is used. @throws KubeError when the kubeconfig cannot be read */
export async function kubeconfigContext(path: string | undefined, context?: string): Promise<string> {
  return (await load(path, whereOf(path), context)).getCurrentContext();
}

/** The names of its contexts. @throws KubeError when the kubeconfig cannot be read */
export async function kubeconfigContexts(path: string | undefined): Promise<readonly string[]> {
  return (await load(path, whereOf(path))).getContexts().map(({ name }) => name);
}

function whereOf(path: string | undefined): string {
  return path === undefined ? "the kubeconfig ~/.kube/config" : `the kubeconfig ${path}`;
}

interface Loaded {
  readonly config: KubeConfig;
  readonly read: () => Promise<KubeConfig>;
  readonly where: string;
}

/** A refused token may have been replaced in the file since, or be one that a plugin would not hand out again. */
function tokens({ config, read: reload, where }: Loaded, first: string | undefined) {
  let [current, fixed] = [config, first];
  const read = async () => {
    const token = bearerToken(await credentials(current, where));
    if (token !== undefined) hideSecret(token);
    return token;
  };
  if (fixed !== undefined) hideSecret(fixed);
  return {
    token: async () => {
      if (isTokenRenewed(current)) return read();
      if (fixed !== undefined) hideSecret(fixed);
      return fixed;
    },
    renewToken: async (refused: string | undefined) => {
      if (refused === undefined) return false;
      current = await reload().catch(() => current);
      fixed = await read().catch(() => fixed);
      return fixed !== undefined && fixed !== refused;
    },
  };
}

async function load(path: string | undefined, where: string, context?: string): Promise<KubeConfig> {
  // Lazily: it takes a cold start 100 ms and more.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  try {
    if (path === undefined) config.loadFromDefault();
    else loadFiles(config, path.split(delimiter).filter(Boolean), KubeConfig);
  } catch (cause) {
    throw invalid(where, loadProblem(cause), cause);
  }
  // client-node's last resort, which no user wants.
  if (path === undefined && config.getCurrentContext() === "loaded-context")
    throw invalid(where, "does not exist and this is no pod with a service account: set KUBECONFIG to a file's path");
  if (context === undefined) return config;
  if (!config.getContextObject(context))
    throw invalid(
      where,
      `has no context ${context}: it has ${config
        .getContexts()
        .map(({ name }) => name)
        .join(", ")}`,
    );
  config.setCurrentContext(context);
  return config;
}

/** As kubectl merges them: the first file that names an entry wins. */
function loadFiles(config: KubeConfig, [first = "", ...others]: readonly string[], Kind: typeof KubeConfig): void {
  config.loadFromFile(first);
  for (const path of others) {
    const next = new Kind();
    next.loadFromFile(path);
    // client-node refuses duplicate names.
    next.clusters = next.clusters.filter(({ name }) => !config.getCluster(name));
    next.users = next.users.filter(({ name }) => !config.getUser(name));
    next.contexts = next.contexts.filter(({ name }) => !config.getContextObject(name));
    config.mergeConfig(next, Boolean(config.getCurrentContext()));
  }
}

function loadProblem(cause: unknown): string {
  if (!(cause instanceof Error)) return "cannot be read";
  if ("code" in cause && cause.code === "ENOENT" && "path" in cause)
    return `cannot be read, there is no file ${cause.path}: set KUBECONFIG to the path of one`;
  if (cause.name === "YAMLException") return `is not YAML: ${cause.message.split("\n")[0]}`;
  if (cause instanceof TypeError) return "is not a kubeconfig: it has no clusters, users and contexts";
  return `cannot be used: ${cause.message}`;
}

function requireCluster(config: KubeConfig, where: string) {
  const name = config.getCurrentContext();
  if (!name) throw invalid(where, "has no current-context: set one with kubectl config use-context");
  const context = config.getContextObject(name);
  if (!context) throw invalid(where, `has no context ${name}, which its current-context names`);
  const cluster = config.getCluster(context.cluster);
  if (!cluster) throw invalid(where, `has no cluster ${context.cluster}, which its context ${name} names`);
  if (!config.getUser(context.user))
    throw invalid(where, `has no user ${context.user}, which its context ${name} names`);
  if (!URL.canParse(cluster.server)) throw invalid(where, `has a server that is no URL: ${cluster.server}`);
  const user = config.getCurrentUser();
  if (user?.impersonateUser) throw invalid(where, "impersonates a user, which is not supported");
  if (user?.username) throw invalid(where, "has a user name and password, which is not supported: use a token");
  return cluster;
}

/** CA, client certificate and Authorization header, as client-node finds them. */
async function credentials(config: KubeConfig, where: string): Promise<RequestOptions> {
  const options: RequestOptions = { headers: {} };
  // Credentials do not travel in the clear; client-node refuses too.
  if (config.getCurrentCluster()?.server.startsWith("http:")) return options;
  // client-node would create its own agent for the proxy.
  config.clusters = config.clusters.map((cluster) => ({ ...cluster, proxyUrl: "" }));
  try {
    await config.applyToHTTPSOptions(options);
    return options;
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message.trim() : String(cause);
    throw new KubeError(`the credentials of ${where} cannot be had: ${problem || "its plugin failed without a word"}`, {
      code: 0,
      reason: "NoCredentials",
      isOutcomeKnown: true,
      cause,
    });
  }
}

function bearerToken({ headers }: RequestOptions): string | undefined {
  const value: unknown = Object.entries(headers ?? {}).find(([name]) => name === "Authorization")?.[1];
  return typeof value === "string" ? value.replace(/^Bearer /, "").trim() : undefined;
}

/** A plugin's token and a mounted one expire; client-node caches them as long as they are good. */
function isTokenRenewed(config: KubeConfig): boolean {
  const user = config.getCurrentUser();
  return Boolean(user?.exec || user?.authProvider);
}

function invalid(where: string, problem: string, cause?: unknown): KubeError {
  return new KubeError(`${where} ${problem}`, { code: 0, reason: "InvalidKubeconfig", isOutcomeKnown: true, cause });
}

// The way to an API server through a proxy: `proxy-url` of a kubeconfig, else the variables that kubectl reads.

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
  if (!url?.host) throw invalidProxy(`${name} is not the address of a proxy: write http://HOST:PORT`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw invalidProxy(
      `${name} names a proxy of the kind ${url.protocol.replace(":", "")}: only http and https are supported`,
    );
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (!TUNNELS.some(([from, least]) => major === from && minor >= least) && major < 25)
    throw invalidProxy(`${name} names a proxy, which Node ${process.versions.node} cannot use: run Node 24.5 or newer`);
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

function invalidProxy(message: string): KubeError {
  return new KubeError(message, { code: 0, reason: "InvalidProxy", isOutcomeKnown: true });
}
