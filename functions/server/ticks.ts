/** Passes over SidecarSets and ordered sets on a timer, in a process that goes on. The environment's settings apply. */

import { batchGates } from "../../shared/approval/batch-gates.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { connect } from "../../shared/kube/connect.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { createBatchedLog, type Log } from "../../shared/log.ts";
import { readCluster, readConfig } from "../../shared/settings/config.ts";
import type { Alarm } from "./alarm.ts";
import { logCrashes } from "./crash.ts";
import { serveMetrics } from "./metrics.ts";
import { tickSetsUntilAborted } from "./statefulset-ticker.ts";
import { tickUntilAborted } from "./ticker.ts";

export interface TicksOptions {
  readonly connect: () => Promise<Cluster>;
  /** from the beginning of one pass to that of the next, unless it takes longer */
  readonly tickMs: number;
  readonly log: Log;
  /** called after every pass over SidecarSets */
  readonly onReport?: ((report: PassReport) => void) | undefined;
  /** rings when there is something to do; absent: nothing does */
  readonly alarm?: Alarm;
  /** ends the ticks, and the passes under way between two of their rounds */
  readonly signal: AbortSignal;
}

export interface TickingOptions {
  /** path; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string | undefined;
  readonly tickMs: number;
  /** of /metrics, over plain HTTP; absent: there is none */
  readonly metricsPort?: number | undefined;
}

/**
 * Resolves after SIGTERM or SIGINT, when the passes under way have ended.
 * @throws ConfigError, KubeError or ServerError: one sentence on what cannot be used
 */
export async function tickUntilSignal({ kubeconfig, tickMs, metricsPort }: TickingOptions): Promise<void> {
  const log = createBatchedLog(readConfig().logLevel);
  logCrashes(log);
  const end = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => end.abort());
  const cluster = kubeconfig ?? readCluster();
  const toCluster = () => connect(cluster);
  await toCluster();
  const metering = metricsPort === undefined ? undefined : await serveMetrics(metricsPort, undefined);
  log.info("ticking", { tickMs, ...(metering ? { metricsPort: metering.server.port } : {}) });
  const onReport = (report: PassReport) => metering?.metrics.addPass(report, Date.now());
  await tickAll({ connect: toCluster, tickMs, log, onReport, signal: end.signal });
  log.info("stopping");
  await metering?.server.close();
}

/** Resolves once the signal came and the last passes are over. Never rejects. */
export async function tickAll({ onReport, ...options }: TicksOptions): Promise<void> {
  const { kruiseNamespace, featureGates, isKeepingRegistration } = readConfig();
  await Promise.all([
    tickUntilAborted({
      ...options,
      kruiseNamespace,
      settings: featureGates,
      gates: batchGates(options.log),
      isKeepingRegistration,
      onReport,
    }),
    tickSetsUntilAborted({ ...options, kruiseNamespace, gates: featureGates }),
  ]);
}
