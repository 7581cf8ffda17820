/** Passes on a timer, and soon after a hint, one after the other: a process never overlaps itself with passes of a kind. */
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { runSetPass, type SetPassOptions } from "../../shared/controller/statefulset/pass.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import type { Log } from "../../shared/log.ts";
import { logSets } from "./statefulset-log.ts";
import { createWakeUp, type WakeUp } from "./wake-up.ts";

interface Ticking {
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  /** from the beginning of one pass to that of the next, unless it takes longer */
  readonly tickMs: number;
  readonly log: Log;
  /** rings when there is something to do */
  readonly wakeUp: WakeUp;
  /** ends the ticks, and the pass under way between two of its rounds */
  readonly signal: AbortSignal;
}

export interface TickerOptions
  extends Omit<Ticking, "wakeUp">,
    Pick<PassOptions, "settings" | "gates" | "isKeepingRegistration"> {
  /** absent: nothing rings */
  readonly wakeUp?: WakeUp;
  /** called after every pass */
  readonly onReport?: ((report: PassReport) => void) | undefined;
}

/** A pass follows its rollouts for as long, so that SidecarSets and StatefulSets that are new are not kept waiting. */
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

/** The same over Advanced StatefulSets; hints are of SidecarSets. */
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
