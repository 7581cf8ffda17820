/** Serves one message of the queue: it waits until the change is visible, then runs a pass for the subject. */
import { HASH_ANNOTATION } from "../api/names.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { isPassDue, seenFrom, tickWork, type Work } from "../core/rollout/queue/work.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, SIDECARSETS } from "../kube/port.ts";
import { type Clock, systemClock } from "./loop/clock.ts";
import { type PassOptions, runPass } from "./pass.ts";
import { listAll } from "./rollout/observe-pods.ts";
import { gravesOf, type PassReport } from "./rollout/report.ts";

/** Starts of the last successful passes, by SidecarSet. If they are lost, passes only do extra work. */
export type Served = Map<string, number>;

export interface WorkOptions extends Omit<PassOptions, "deadlineMs" | "sidecarSet"> {
  readonly remainingMs: () => number;
  readonly served: Served;
}

/** Limit in milliseconds of the wait for a change, because the API server may have refused it. */
const STORED_MS = 5_000;
const REREAD_MS = 250;
/** Largest difference in milliseconds between the clocks of two machines. */
const MAX_WAIT_MS = 2_000;
/** Milliseconds by which a timer may end too early. */
const EARLY_MS = 1;
/** Limit in milliseconds of trust in a served message with any date: the time between two ticks. */
const BELIEVED_MS = 60_000;
const MAX_SERVED = 1_000;

/** The work for the listed SidecarSets. `at`: epoch milliseconds of the schedule's call. */
export async function listWork(cluster: Cluster, at: number): Promise<readonly Work[]> {
  const minute = Math.floor(at / 60_000);
  const { items } = await listAll<SidecarSet, Work>(cluster, SIDECARSETS, {}, (sidecarSet) =>
    isPassDue(sidecarSet, minute) ? tickWork(sidecarSet.metadata?.name ?? "", at) : undefined,
  );
  return items;
}

/** Serves the work; undefined: a pass that began after the announced change has served it already. */
export async function serveWork(cluster: Cluster, work: Work, options: WorkOptions): Promise<PassReport | undefined> {
  const { remainingMs, served, clock = systemClock, ...pass } = options;
  const { sidecarSet } = work;
  const from = seenFrom(work);
  if (from !== undefined && isServed(served.get(sidecarSet), from, clock.epochMs())) return undefined;
  if (work.kind === "change") await untilStored(cluster, work, clock);
  else if (from !== undefined && from > clock.epochMs())
    await clock.sleep(Math.min(from - clock.epochMs() + EARLY_MS, MAX_WAIT_MS));
  const beganAt = clock.epochMs();
  // Only this work counts: trouble elsewhere must not move the message to the dead letters.
  const scope = work.kind === "launch" ? { onlyLaunches: true } : { sidecarSet };
  const report = await runPass(cluster, { ...pass, clock, ...scope, deadlineMs: remainingMs() });
  if (failureOf(report) === undefined && hasLooked(report)) remember(served, sidecarSet, beganAt);
  return report;
}

/** True if the message was served. Another machine dated it, and clocks may be set: none is trusted for long. */
function isServed(beganAt: number | undefined, from: number, now: number): boolean {
  return beganAt !== undefined && beganAt >= from && now >= beganAt && now - beganAt < BELIEVED_MS;
}

/** True if the pass read the pods. Without that it saw nothing of the announced change. */
function hasLooked({ notReached, unread }: PassReport): boolean {
  return notReached.length === 0 && unread.length === 0;
}

/** The reason why the message must be served again; undefined: it need not. */
export function failureOf(report: PassReport): string | undefined {
  return gravesOf(report)[0] ?? report.sidecarSets.find(({ stop }) => stop === "failed")?.why;
}

function remember(served: Served, sidecarSet: string, beganAt: number): void {
  served.delete(sidecarSet);
  served.set(sidecarSet, beganAt);
  const [oldest] = served.keys();
  if (oldest !== undefined && served.size > MAX_SERVED) served.delete(oldest);
}

async function untilStored(cluster: Cluster, change: Work & { kind: "change" }, clock: Clock): Promise<void> {
  const endsAt = clock.now() + STORED_MS;
  while (!(await isStored(cluster, change)) && clock.now() < endsAt) await clock.sleep(REREAD_MS);
}

/** True if the change is stored. A later generation means that it was stored, and changed again. */
async function isStored(cluster: Cluster, { sidecarSet, hash, generation }: Work & { kind: "change" }) {
  try {
    const { metadata } = await cluster.get<SidecarSet>(SIDECARSETS, { name: sidecarSet });
    const stored = metadata?.generation ?? 0;
    if (generation > 0 && stored !== generation) return stored > generation;
    return (metadata?.annotations?.[HASH_ANNOTATION] ?? "") === hash;
  } catch (error) {
    if (isKubeError(error, 404)) return false;
    throw error;
  }
}
