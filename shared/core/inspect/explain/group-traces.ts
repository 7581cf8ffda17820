/** Decides how many pods are explained at once: each by the one rule that counts for it. */
import type { Reason, Step } from "./step.ts";

export interface PodTrace {
  readonly pod: string;
  readonly steps: readonly Step[];
}

/** Whether anybody is at work is the same for all of them. */
const WORK: ReadonlySet<Reason> = new Set(["ChangeNotSeen", "TickNotRunning", "TickUnknown", "TickRunning"]);

/** A step for each reason, with how many pods it is about; those that need somebody first, and whether anybody is at work last. */
export function groupTraces(traces: readonly PodTrace[]): readonly Step[] {
  const groups = Map.groupBy(traces, ({ steps }) => decisive(steps)?.reason);
  const rank = { stop: 0, wait: 1, note: 2, ok: 3 };
  const grouped = [...groups.values()]
    .flatMap((those) => groupStep(those, traces.length))
    .toSorted((a, b) => rank[a.verdict] - rank[b.verdict]);
  const work = traces.map(({ steps }) => steps.filter(({ reason }) => WORK.has(reason)));
  return [...grouped, ...(work.find((steps) => steps.length > 0) ?? [])];
}

function decisive(all: readonly Step[]): Step | undefined {
  const steps = all.filter(({ reason }) => !WORK.has(reason));
  return (
    steps.find(({ verdict }) => verdict === "stop") ?? steps.find(({ verdict }) => verdict === "wait") ?? steps.at(-1)
  );
}

function groupStep(traces: readonly PodTrace[], all: number): readonly Step[] {
  const [first] = traces;
  const step = first && decisive(first.steps);
  if (first === undefined || step === undefined) return [];
  const which = traces.length === 1 ? first.pod : `such as ${first.pod}`;
  return [{ ...step, message: `${traces.length} of ${all} pods, ${which}: ${step.message}` }];
}
