/** Passes over SidecarSets and Advanced StatefulSets on a timer, with the settings of the environment. */
import { batchGates } from "../../shared/approval/batch-gates.ts";
import { clusterLog } from "../../shared/cluster-log.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { connect } from "../../shared/kube/connect.ts";
import { createBatchedLog } from "../../shared/log.ts";
import { type Environment, readCluster, readConfig } from "../../shared/settings/config.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { logCrashes } from "./crash.ts";
import { serveMetrics } from "./metrics.ts";
import type { NamedCluster } from "./named-cluster.ts";
import { type TickerOptions, tickSetsUntilAborted, tickUntilAborted } from "./ticker.ts";
import { withTraces } from "./tracing.ts";

export interface TicksOptions
  extends Omit<TickerOptions, "kruiseNamespace" | "settings" | "gates" | "isKeepingRegistration"> {
  /** of one of several clusters; absent: the process' own */
  readonly env?: Environment | undefined;
}

export interface TickingOptions {
  /** path; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string | undefined;
  /** instead of that one */
  readonly clusters?: readonly NamedCluster[] | undefined;
  readonly tickMs: number;
  /** of /metrics, over plain HTTP; absent: there is none */
  readonly metricsPort?: number | undefined;
}

/**
 * Resolves after SIGTERM or SIGINT, when the passes under way have ended.
 * @throws ConfigError, KubeError or ServerError: one sentence on what cannot be used
 */
export async function tickUntilSignal({ kubeconfig, clusters, tickMs, metricsPort }: TickingOptions): Promise<void> {
  const log = createBatchedLog(readConfig().logLevel);
  logCrashes(log);
  const end = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => end.abort());
  const toCluster = () => connect(kubeconfig ?? readCluster());
  // Of several, one that there is no way to is trouble of its own.
  if (clusters === undefined) await toCluster();
  const metering = metricsPort === undefined ? undefined : await serveMetrics(metricsPort, undefined);
  log.info("ticking", { tickMs, ...(metering ? { metricsPort: metering.server.port } : {}) });
  const onReport = (report: PassReport) => metering?.metrics.addPass(report, Date.now());
  const ticking = { tickMs, log, onReport, signal: end.signal };
  await withTraces(log, () =>
    clusters === undefined ? tickAll({ ...ticking, connect: toCluster }) : tickClusters(clusters, ticking),
  );
  log.info("stopping");
  await metering?.server.close();
}

/**
 * Each in a loop of its own: one that is slow, or down, keeps no other waiting.
 * @throws ConfigError where none has settings that can be used
 */
async function tickClusters(clusters: readonly NamedCluster[], options: Omit<TicksOptions, "connect">): Promise<void> {
  const tick = async ({ name, connect: toCluster, env }: NamedCluster) => {
    const log = clusterLog(options.log, name);
    try {
      await tickAll({ ...options, log, connect: toCluster, env: env?.() });
    } catch (error) {
      log.error("the cluster's settings cannot be used, so no pass is made over it", { error });
    }
  };
  await Promise.all(clusters.map(tick));
  if (!options.signal.aborted) throw new ConfigError("no cluster has settings that can be used: the log says why.");
}

/** Resolves once the signal came and the last passes are over. Rejects with ConfigError alone, at once. */
export async function tickAll({ onReport, env, ...options }: TicksOptions): Promise<void> {
  const { kruiseNamespace, featureGates, isKeepingRegistration } = readConfig(env);
  await Promise.all([
    tickUntilAborted({
      ...options,
      kruiseNamespace,
      settings: featureGates,
      gates: batchGates(options.log, { env }),
      isKeepingRegistration,
      onReport,
    }),
    tickSetsUntilAborted({ ...options, kruiseNamespace, gates: featureGates }),
  ]);
}
