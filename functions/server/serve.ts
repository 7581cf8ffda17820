/** Every webhook on one HTTPS port and passes on a timer, for clusters without a cloud. */
import { once } from "node:events";
import { resolve } from "node:path";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { createBatchedLog, createLog, type Log, type LogLevel } from "../../shared/log.ts";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { parseSecretReference, type SecretReference } from "../../shared/settings/secret-source.ts";
import type { Tracing } from "../../shared/tracing/tracing.ts";
import type { Answerer } from "../../shared/webhook/server/http.ts";
import { type ServerOptions, serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { CliError } from "../terminal/screen.ts";
import { webhooksFrom } from "../webhooks.ts";
import { type Behind, threadBehind } from "./behind.ts";
import { serveMetrics } from "./metrics.ts";
import { endSoon, logCrashes, tracedApp, withTraces } from "./tracing.ts";
import { serveUi, type UiServer } from "./ui.ts";

export interface ServeOptions extends ServerOptions {
  /** path of a kubeconfig; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string;
  /** milliseconds between passes; absent: this process makes no passes */
  readonly tickMs?: number;
  /** The API servers' proof of identity. */
  readonly authentication: AuthenticationSettings;
  /** the Secret with the secrets of the page's path; absent: there is no page */
  readonly uiSecrets?: SecretReference;
  /** milliseconds for which the view is fresh; absent: VIEW_FRESHNESS_MS */
  readonly freshnessMs?: number;
  /** log; absent: nothing is logged */
  readonly log?: Log;
  /** takes log lines from the thread of passes and pages, from this level on; absent: that thread logs nothing */
  readonly threadLog?: { readonly from: LogLevel; readonly write: (lines: string) => void };
  /** port of /metrics, over plain HTTP; absent: no metrics are served */
  readonly metricsPort?: number;
  /** traces; absent: there are none */
  readonly tracing?: Tracing | undefined;
  /** called after every pass */
  readonly onReport?: (report: PassReport) => void;
}

/** A server. `close` resolves when all requests are answered and the running pass has ended between two rounds. */
export interface Server extends WebhookServer {
  readonly metricsPort?: number;
}

/**
 * Starts to serve and to make passes. The environment's settings apply, except for the kubeconfig.
 * @throws ServerError, ConfigError, SecretError or KubeError: one sentence on what is unusable
 */
export async function startServer(options: ServeOptions): Promise<Server> {
  const opened: (() => Promise<void>)[] = [];
  const close = async () => {
    await Promise.all(opened.map((end) => end()));
  };
  try {
    return { ...(await openServer(options, opened)), close };
  } catch (error) {
    // Open connections would keep the process alive, although it serves nothing.
    await close();
    throw error;
  }
}

async function openServer(options: ServeOptions, opened: (() => Promise<void>)[]): Promise<Omit<Server, "close">> {
  const { log = createLog("error", noop) } = options;
  const { kubeconfig, authentication, freshnessMs, metricsPort, tickMs } = options;
  const behind = tickMs === undefined && options.uiSecrets === undefined ? undefined : behindOf(options, log);
  const send = async () => behind?.wake();
  const webhooks = webhooksFrom(undefined, { kubeconfig, authentication, freshnessMs, log, send });
  const { answer, connect: toCluster, identify, isKept, ready } = webhooks;
  await ready;
  await toCluster();
  const app = await withPages(answer, options, behind && { identify, makePage: behind.makePage, isWebhooks: isKept });
  const metering =
    metricsPort === undefined
      ? undefined
      : await serveMetrics(metricsPort, options.host, behind?.metrics, webhooks.viewState);
  if (metering) opened.push(metering.server.close);
  const counted = metering ? metering.metered(app) : app;
  const answerer = options.tracing ? tracedApp(counted, options.tracing) : counted;
  const server = await serveHttps(answerer, options);
  opened.push(server.close);
  // The thread starts after the first answers, because loading it would delay them.
  if (behind) opened.push(behind.close);
  await behind?.start();
  return { port: server.port, ...(metering ? { metricsPort: metering.server.port } : {}) };
}

async function withPages(answer: Answerer, { uiSecrets }: ServeOptions, ui: UiServer | undefined): Promise<Answerer> {
  return uiSecrets === undefined || ui === undefined ? answer : await serveUi(answer, uiSecrets, ui);
}

function behindOf({ kubeconfig, tickMs, threadLog, onReport }: ServeOptions, log: Log): Behind {
  const plan = { kubeconfig, tickMs, logFrom: threadLog?.from, isReporting: onReport !== undefined };
  const { write: print = noop } = threadLog ?? {};
  return threadBehind(plan, { log, print, onReport: onReport ?? noop });
}

function noop(): void {}

/** Resolves after SIGTERM or SIGINT, when all running work is done. */
export async function serveUntilSignal(options: ServeOptions): Promise<void> {
  const from = readConfig().logLevel;
  const log = createBatchedLog(from);
  logCrashes(log);
  const threadLog = { from, write: (lines: string) => process.stdout.write(lines) };
  const ended = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  await withTraces(log, async (tracing) => {
    const server = await startServer({ log, threadLog, tracing, ...options });
    log.info("serving", { port: server.port, tickMs: options.tickMs });
    await ended;
    log.info("stopping");
    await server.close();
  });
  endSoon();
}

// The options of `serve` for the proof of a caller's identity.

interface Values {
  readonly "client-ca"?: string | undefined;
  readonly "client-names"?: string | undefined;
  readonly "bearer-tokens"?: string | undefined;
  readonly "path-secrets"?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The kind of authentication. @throws CliError if the options do not name exactly one kind, or lack what it needs */
export function authenticationOf(values: Values): AuthenticationSettings {
  const mode = modeOf(values);
  const clientNames = (values["client-names"] ?? "").split(",").flatMap((name) => name.trim() || []);
  if (mode === "client-certificate" && clientNames.length === 0)
    throw new CliError(
      "--client-names is missing: the names of the API server's client certificate, separated by commas",
    );
  if (mode !== "insecure" && values["path-secrets"] === undefined)
    throw new CliError(
      "--path-secrets is missing: API servers present no certificate and no token to the conversion webhook, so it is only served under a secret path",
    );
  const ignored = (["path-secrets", "client-names"] as const).find((option) => values[option] !== undefined);
  if (mode === "insecure" && ignored !== undefined)
    throw new CliError(`--insecure lets everybody in, whatever --${ignored} says: choose one of them`);
  if (mode !== "client-certificate" && clientNames.length > 0)
    throw new CliError(
      "--client-names says whose certificates are known, and --client-ca, which says who signs them, is missing",
    );
  return {
    mode,
    clientNames,
    clientCertificateFrom: "api-gateway",
    ...reference("pathSecrets", "path-secrets", values["path-secrets"]),
    ...reference("bearerTokens", "bearer-tokens", values["bearer-tokens"]),
  };
}

function modeOf(values: Values): AuthenticationSettings["mode"] {
  const ways = [
    ...(values.insecure ? (["insecure"] as const) : []),
    ...(values["client-ca"] === undefined ? [] : (["client-certificate"] as const)),
    ...(values["bearer-tokens"] === undefined ? [] : (["bearer-token"] as const)),
  ];
  if (ways.length > 1) throw new CliError("choose one of --client-ca, --bearer-tokens and --insecure");
  const [way] = ways;
  if (way !== undefined) return way;
  if (values["path-secrets"] !== undefined) return "secret-path";
  throw new CliError(
    "no caller is let in by default: give --path-secrets FILE, with --bearer-tokens FILE or --client-ca FILE if API servers can present those, or --insecure",
  );
}

function reference<Field extends string>(field: Field, option: string, place: string | undefined) {
  if (place === undefined) return {} as { readonly [field in Field]?: SecretReference };
  return { [field]: secretsAt(option, place) } as { readonly [field in Field]: SecretReference };
}

/** The place of secrets. An option, unlike a variable, may name a file relative to the working directory. */
export function secretsAt(option: string, place: string): SecretReference {
  return parseSecretReference(`--${option}`, place.startsWith("arn:") ? place : resolve(place));
}
