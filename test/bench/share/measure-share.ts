/**
 * Measures functions with the share of a processor that Lambda gives for their memory: cold starts, a first decision,
 * ticks.
 */
import { shareOf } from "../../support/processor-share.ts";
import { measureColdMutatePod, type Spread } from "../cold-start.ts";
import { type FirstDecisionFigures, measureFirstDecision } from "../first-decision/measure-first-decision.ts";
import { type MemoryRow, measureMemory } from "../memory/measure-memory.ts";

export interface ShareOptions {
  /** memory sizes of functions */
  readonly megabytes: readonly number[];
  /** numbers of pods in the ticks */
  readonly sizes: readonly number[];
  /** seconds of one tick */
  readonly seconds: number;
  readonly maxUnavailable: number;
  readonly sidecarSets: number;
  readonly rounds: number;
  /** number of cold starts */
  readonly processes: number;
}

export interface ShareRow {
  readonly megabytes: number;
  /** milliseconds to the first answer of mutate-pod, and of an empty handler */
  readonly cold: { readonly own: Spread; readonly empty: Spread };
  readonly first: FirstDecisionFigures;
  readonly ticks: readonly MemoryRow[];
}

/** The most ticks. A function that has not read all pods at its time limit continues in its next tick. */
const MOST_TICKS = 4;

/** @throws Error if this machine cannot share processors out */
export async function* measureShare(options: ShareOptions): AsyncGenerator<ShareRow> {
  const { sizes, seconds, maxUnavailable, sidecarSets, rounds, processes } = options;
  for (const megabytes of options.megabytes) {
    const share = shareOf(megabytes);
    const cold = await measureColdMutatePod(processes, share);
    const first = await measureFirstDecision({ sidecarSets, rounds, share });
    const { rows: ticks } = await measureMemory({ sizes, seconds, maxUnavailable, share, mostTicks: MOST_TICKS });
    yield { megabytes, cold, first, ticks };
  }
}

export function shareTable(rows: readonly ShareRow[], { sidecarSets, seconds, maxUnavailable }: ShareOptions): string {
  const columns = (texts: readonly string[]) => texts.map((text) => text.padStart(12)).join("");
  const texts = rows.flatMap(({ megabytes, cold, first, ticks }) => [
    `${megabytes} MB, ${shareOf(megabytes).toFixed(2)} of a processor`,
    `  first answer of mutate-pod ${cold.own.median.toFixed(0)} ms, of an empty handler ${cold.empty.median.toFixed(0)} ms`,
    `  first decision over ${sidecarSets} SidecarSets ${first.seconds.toFixed(2)} s, a bare list of them ${first.bareSeconds.toFixed(2)} s`,
    `  ticks of ${seconds} s, maxUnavailable ${maxUnavailable}:`,
    columns(["pods", "ticks", "updated", "rounds", "CPU s", "peak MB"]),
    ...ticks.map(({ pods, ticks: needed, upgraded, rounds, cpuSeconds, peakMegabytes }) =>
      columns([`${pods}`, `${needed}`, `${upgraded}`, `${rounds}`, cpuSeconds.toFixed(1), peakMegabytes.toFixed(0)]),
    ),
    "",
  ]);
  return texts.join("\n");
}
