/** Passes over SidecarSets and Advanced StatefulSets on a timer, with the settings of the environment. */

import { batchGates } from "../../shared/approval/batch-gates.ts";
import { clusterLog } from "../../shared/cluster-log.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { connect } from "../../shared/kube/connect.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { createBatchedLog, type Log } from "../../shared/log.ts";
import { type Environment, readCluster, readConfig } from "../../shared/settings/config.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { logCrashes } from "./crash.ts";
import { serveMetrics } from "./metrics.ts";
import type { NamedCluster } from "./named-cluster.ts";
import { tickSetsUntilAborted } from "./statefulset-ticker.ts";
import { tickUntilAborted } from "./ticker.ts";
import { withTraces } from "./tracing.ts";
import type { WakeUp } from "./wake-up.ts";

export interface TicksOptions {
  readonly connect: () => Promise<Cluster>;
  /** from the beginning of one pass to that of the next, unless it takes longer */
  readonly tickMs: number;
  readonly log: Log;
  /** called after every pass over SidecarSets */
  readonly onReport?: ((report: PassReport) => void) | undefined;
  /** rings when there is something to do; absent: nothing does */
  readonly wakeUp?: WakeUp;
  /** ends the ticks, and the passes under way between two of their rounds */
  readonly signal: AbortSignal;
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
