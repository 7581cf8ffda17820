/** Passes over Advanced StatefulSets on a timer, one after the other, beside those over SidecarSets. */
import { setTimeout as sleep } from "node:timers/promises";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import type { StatefulSetFeatureGates } from "../../shared/core/statefulset/gates.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import type { Log } from "../../shared/log.ts";
import { logSets } from "./statefulset-log.ts";

export interface SetTickerOptions {
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  readonly gates: StatefulSetFeatureGates;
  /** from the beginning of one pass to that of the next, unless it takes longer */
  readonly tickMs: number;
  readonly log: Log;
  /** ends the ticks, and the pass under way between two of its rounds */
  readonly signal: AbortSignal;
}

/** A pass follows its sets for as long, so that new ones are not kept waiting. */
const LEAST_DEADLINE_MS = 30_000;

/** Resolves once the signal came and the last pass is over. Never rejects: the next tick may go better. */
export async function tickSetsUntilAborted(options: SetTickerOptions): Promise<void> {
  const { connect, kruiseNamespace, gates, tickMs, log, signal } = options;
  const deadlineMs = Math.max(tickMs, LEAST_DEADLINE_MS);
  while (!signal.aborted) {
    const next = performance.now() + tickMs;
    try {
      const report = await runSetPass(await connect(), { kruiseNamespace, gates, deadlineMs, follow: true, signal });
      if (report.sets.length > 0 || report.problems.length > 0) logSets(log, report);
    } catch (error) {
      log.error("pass over ordered sets failed", { error });
    }
    await sleep(Math.max(0, next - performance.now()), undefined, { signal }).catch(() => undefined);
  }
}
