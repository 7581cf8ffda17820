/** Passes over SidecarSets and Advanced StatefulSets on a timer, with the settings of the environment. */

import { setTimeout as timeout } from "node:timers/promises";
import { batchGates } from "../../shared/approval/batch-gates.ts";
import { logWith } from "../../shared/cluster-log.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { runSetPass, type SetPassOptions } from "../../shared/controller/statefulset/pass.ts";
import { connect } from "../../shared/kube/connect.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { createBatchedLog, type Log } from "../../shared/log.ts";
import { type Environment, readCluster, readConfig } from "../../shared/settings/config.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { serveMetrics } from "./metrics.ts";
import type { NamedCluster } from "./named-cluster.ts";
import { logSets } from "./tick.ts";
import { logCrashes, withTraces } from "./tracing.ts";

export interface TicksOptions
  extends Omit<TickerOptions, "kruiseNamespace" | "settings" | "gates" | "isKeepingRegistration"> {
  /** settings of one of several clusters; absent: the process' own */
  readonly env?: Environment | undefined;
}

export interface TickingOptions {
  /** path; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string | undefined;
  /** used instead of the kubeconfig */
  readonly clusters?: readonly NamedCluster[] | undefined;
  readonly tickMs: number;
  /** port of /metrics, over plain HTTP; absent: there is none */
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
  // With several clusters, one that cannot be reached stops no other.
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
 * Runs a loop for each cluster, so that a slow one keeps no other waiting.
 * @throws ConfigError where none has settings that can be used
 */
async function tickClusters(clusters: readonly NamedCluster[], options: Omit<TicksOptions, "connect">): Promise<void> {
  const tick = async ({ name, connect: toCluster, env }: NamedCluster) => {
    const log = logWith(options.log, { cluster: name });
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

/** Passes on a timer, and soon after a hint, one after the other: a process never overlaps itself with passes of a kind. */
interface Ticking {
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  /** time between the beginnings of two passes; more if the first pass takes longer */
  readonly tickMs: number;
  readonly log: Log;
  /** rings when there is something to do */
  readonly wakeUp: WakeUp;
  /** ends the ticks, and the pass under way between two of its rounds */
  readonly signal: AbortSignal;
}

interface TickerOptions
  extends Omit<Ticking, "wakeUp">,
    Pick<PassOptions, "settings" | "gates" | "isKeepingRegistration"> {
  /** absent: nothing rings */
  readonly wakeUp?: WakeUp;
  /** called after every pass */
  readonly onReport?: ((report: PassReport) => void) | undefined;
}

/** A pass follows its rollouts at most this long, so that new SidecarSets and StatefulSets do not wait. */
const LEAST_DEADLINE_MS = 10_000;
const LEAST_SETS_DEADLINE_MS = 30_000;

/** Resolves once the signal came and the last pass is over. Never rejects: the next tick may go better. */
export async function tickUntilAborted(options: TickerOptions): Promise<void> {
  const { settings, gates, isKeepingRegistration = false, tickMs, log, onReport, wakeUp = createWakeUp() } = options;
  const deadlineMs = Math.max(tickMs, LEAST_DEADLINE_MS);
  await repeat({ ...options, wakeUp }, "pass", async (cluster, pass) => {
    const report = await runPass(cluster, { ...pass, deadlineMs, settings, gates, isKeepingRegistration });
    log[report.problems.length > 0 ? "warn" : "info"]("pass", { ...report });
    onReport?.(report);
  });
}

/** The same for Advanced StatefulSets; hints concern only SidecarSets. */
export async function tickSetsUntilAborted(
  options: Omit<Ticking, "wakeUp"> & Pick<SetPassOptions, "gates">,
): Promise<void> {
  const { gates, tickMs, log } = options;
  const deadlineMs = Math.max(tickMs, LEAST_SETS_DEADLINE_MS);
  await repeat({ ...options, wakeUp: createWakeUp() }, "pass over ordered sets", async (cluster, pass) => {
    const report = await runSetPass(cluster, { ...pass, deadlineMs, gates });
    if (report.sets.length > 0 || report.problems.length > 0) logSets(log, report);
  });
}

async function repeat(
  { connect, kruiseNamespace, tickMs, log, signal, wakeUp }: Ticking,
  name: string,
  run: (cluster: Cluster, pass: { kruiseNamespace: string; follow: true; signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const next = performance.now() + tickMs;
    try {
      await run(await connect(), { kruiseNamespace, follow: true, signal });
    } catch (error) {
      log.error(`${name} failed`, { error });
    }
    await wakeUp.sleep(Math.max(0, next - performance.now()), signal);
  }
}

// Sleep between two passes that ends early when there is something to do.

export interface WakeUp {
  /** Ends the present sleep, or the next one if there is none. */
  readonly wake: () => void;
  /** Resolves after that many milliseconds, soon after `wake` was called, or when `signal` aborts. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/**
 * The delay after an announcement: the object is stored a moment later, and frequent announcements must not fill the
 * time.
 */
const SOON_MS = 500;

export function createWakeUp(): WakeUp {
  let isAwake = false;
  let end = (): void => undefined;
  const pause = (milliseconds: number, signal: AbortSignal) =>
    timeout(milliseconds, undefined, { signal }).catch(() => undefined);
  return {
    wake: () => {
      isAwake = true;
      end();
    },
    sleep: async (milliseconds, signal) => {
      const early = new AbortController();
      end = () => early.abort();
      if (!isAwake) await pause(milliseconds, AbortSignal.any([signal, early.signal]));
      if (!isAwake) return;
      isAwake = false;
      await pause(SOON_MS, signal);
    },
  };
}
