/** Passes on a timer, and soon after a hint, one after the other: a process never overlaps itself. */

import { runPass } from "../../shared/controller/pass.ts";
import type { Gates } from "../../shared/controller/rollout/gates.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import type { Log } from "../../shared/log.ts";
import { createWakeUp, type WakeUp } from "./wake-up.ts";

export interface TickerOptions {
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  /** from the beginning of one pass to that of the next, unless it takes longer */
  readonly tickMs: number;
  readonly settings: RolloutSettings;
  readonly gates?: Gates | undefined;
  /** of the pod webhook */
  readonly isKeepingRegistration?: boolean;
  readonly log: Log;
  readonly onReport: ((report: PassReport) => void) | undefined;
  /** rings when there is something to do; absent: nothing does */
  readonly wakeUp?: WakeUp;
  /** ends the ticks, and the pass under way between two of its rounds */
  readonly signal: AbortSignal;
}

/** A pass follows its rollouts for as long, so that SidecarSets that are new are not kept waiting. */
const LEAST_DEADLINE_MS = 10_000;

/** Resolves once the signal came and the last pass is over. Never rejects: the next tick may go better. */
export async function tickUntilAborted(options: TickerOptions): Promise<void> {
  const {
    connect,
    kruiseNamespace,
    settings,
    gates,
    isKeepingRegistration = false,
    tickMs,
    log,
    onReport,
    signal,
  } = options;
  const wakeUp = options.wakeUp ?? createWakeUp();
  const deadlineMs = Math.max(tickMs, LEAST_DEADLINE_MS);
  while (!signal.aborted) {
    const next = performance.now() + tickMs;
    try {
      const pass = {
        kruiseNamespace,
        deadlineMs,
        follow: true,
        settings,
        gates,
        isKeepingRegistration,
        signal,
      };
      const report = await runPass(await connect(), pass);
      log[report.problems.length > 0 ? "warn" : "info"]("pass", { ...report });
      onReport?.(report);
    } catch (error) {
      log.error("pass failed", { error });
    }
    await wakeUp.sleep(Math.max(0, next - performance.now()), signal);
  }
}
