/** Every webhook on one HTTPS port and passes on a timer, for clusters without a cloud. */
import { once } from "node:events";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { createBatchedLog, createLog, type Log } from "../../shared/log.ts";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import { readConfig } from "../../shared/settings/config.ts";
import type { SecretReference } from "../../shared/settings/reference.ts";
import type { Tracing } from "../../shared/tracing/tracing.ts";
import { type ServerOptions, serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { webhooksFrom } from "../webhooks.ts";
import { logCrashes } from "./crash.ts";
import { endSoon } from "./end.ts";
import { serveMetrics } from "./metrics.ts";
import { tickAll } from "./ticks.ts";
import { tracedApp, withTraces } from "./tracing.ts";
import { serveUi } from "./ui.ts";
import { createWakeUp } from "./wake-up.ts";

export interface ServeOptions extends ServerOptions {
  /** path; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string;
  /** absent: no passes, somebody else makes them */
  readonly tickMs?: number;
  /** How API servers prove who they are. */
  readonly authentication: AuthenticationSettings;
  /** Where the secrets of the page's path are kept; absent: no page. */
  readonly uiSecrets?: SecretReference;
  /** absent: VIEW_FRESHNESS_MS */
  readonly freshnessMs?: number;
  /** absent: nothing is logged */
  readonly log?: Log;
  /** of /metrics, over plain HTTP; absent: there is none */
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
 * Begins to serve and to tick. The environment's settings apply, but for the kubeconfig.
 * @throws ServerError, ConfigError, SecretError or KubeError: one sentence on what cannot be used
 */
export async function startServer(options: ServeOptions): Promise<Server> {
  const { log = createLog("error", () => undefined), onReport, tickMs } = options;
  const wakeUp = createWakeUp();
  const send = async () => wakeUp.wake();
  const { kubeconfig, authentication, freshnessMs } = options;
  const webhooks = webhooksFrom(undefined, { kubeconfig, authentication, freshnessMs, log, send });
  const { answer, config, connect: toCluster, identify, isKept, ready } = webhooks;
  await ready;
  await toCluster();
  const { kruiseNamespace, featureGates: settings } = config;
  const ui = { identify, connect: toCluster, kruiseNamespace, settings, isWebhooks: isKept };
  const app = options.uiSecrets === undefined ? answer : await serveUi(answer, options.uiSecrets, ui);
  const metering =
    options.metricsPort === undefined ? undefined : await serveMetrics(options.metricsPort, options.host);
  const counted = metering ? metering.metered(app) : app;
  const answerer = options.tracing ? tracedApp(counted, options.tracing) : counted;
  const server = await serveHttps(answerer, options).catch(async (error: unknown) => {
    // What is open would keep the process alive, with nothing served.
    await metering?.server.close();
    throw error;
  });
  const end = new AbortController();
  const ticking = {
    connect: toCluster,
    log,
    onReport: (report: PassReport) => {
      metering?.metrics.addPass(report, Date.now());
      onReport?.(report);
    },
    wakeUp,
    signal: end.signal,
  };
  const ticks = tickMs === undefined ? undefined : tickAll({ ...ticking, tickMs });
  const close = async () => {
    end.abort();
    await Promise.all([server.close(), metering?.server.close(), ticks]);
  };
  return { port: server.port, ...(metering ? { metricsPort: metering.server.port } : {}), close };
}

/** Resolves after SIGTERM or SIGINT, when everything in flight is done. */
export async function serveUntilSignal(options: ServeOptions): Promise<void> {
  const log = createBatchedLog(readConfig().logLevel);
  logCrashes(log);
  const ended = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  await withTraces(log, async (tracing) => {
    const server = await startServer({ log, tracing, ...options });
    log.info("serving", { port: server.port, tickMs: options.tickMs });
    await ended;
    log.info("stopping");
    await server.close();
  });
  endSoon();
}
