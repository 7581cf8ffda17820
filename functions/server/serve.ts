/** Every webhook on one HTTPS port and passes on a timer, for clusters without a cloud. */
import { once } from "node:events";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { createBatchedLog, createLog, type Log, type LogLevel } from "../../shared/log.ts";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import { readConfig } from "../../shared/settings/config.ts";
import type { SecretReference } from "../../shared/settings/reference.ts";
import type { Tracing } from "../../shared/tracing/tracing.ts";
import type { Answerer } from "../../shared/webhook/server/http.ts";
import { type ServerOptions, serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { webhooksFrom } from "../webhooks.ts";
import { type Behind, threadBehind } from "./behind.ts";
import { endSoon, logCrashes } from "./crash.ts";
import { serveMetrics } from "./metrics.ts";
import { tracedApp, withTraces } from "./tracing.ts";
import { serveUi, type UiServer } from "./ui.ts";

export interface ServeOptions extends ServerOptions {
  /** path; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string;
  /** absent: no passes, somebody else makes them */
  readonly tickMs?: number;
  /** The API servers' proof of identity. */
  readonly authentication: AuthenticationSettings;
  /** the Secret with the secrets of the page's path; absent: no page */
  readonly uiSecrets?: SecretReference;
  /** absent: VIEW_FRESHNESS_MS */
  readonly freshnessMs?: number;
  /** absent: nothing is logged */
  readonly log?: Log;
  /** Takes log lines of the thread of passes and pages, from a level on; absent: it logs nothing */
  readonly threadLog?: { readonly from: LogLevel; readonly write: (lines: string) => void };
  /** port of /metrics, over plain HTTP; absent: there is none */
  readonly metricsPort?: number;
  /** absent: there are no traces */
  readonly tracing?: Tracing | undefined;
  /** called after every pass */
  readonly onReport?: (report: PassReport) => void;
}

/** `close` resolves when the requests in flight are answered and the pass under way has ended between two rounds. */
export interface Server extends WebhookServer {
  readonly metricsPort?: number;
}

/**
 * Begins to serve and to tick. The environment's settings apply, except for the kubeconfig.
 * @throws ServerError, ConfigError, SecretError or KubeError: one sentence on what cannot be used
 */
export async function startServer(options: ServeOptions): Promise<Server> {
  const opened: (() => Promise<void>)[] = [];
  const close = async () => {
    await Promise.all(opened.map((end) => end()));
  };
  try {
    return { ...(await openServer(options, opened)), close };
  } catch (error) {
    // Open connections would keep the process alive, with nothing served.
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
  // It starts after the first answers, because loading it would delay them.
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

/** Resolves after SIGTERM or SIGINT, when everything in flight is done. */
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
