/**
 * Measures the cost of a rollout at several sizes. A loop of one patch for each pod is the comparison, in turn on the
 * same cluster.
 */
import { growthExponent, median, slope } from "../measure.ts";
import { onStage, type RolloutRow, type Stage, type Where } from "./stage.ts";

export interface RolloutOptions {
  /** numbers of pods */
  readonly sizes: readonly number[];
  /** number of rounds at each size, with the product and the bare loop in turn */
  readonly rounds: number;
  readonly where: Where;
  /**
   * Called after each size with the figures so far. The largest sizes take as long as all others together, and may be
   * stopped.
   */
  readonly onSize?: (figures: RolloutFigures) => Promise<void>;
}

export interface RolloutFigures {
  readonly where: Where;
  readonly rounds: number;
  readonly rows: readonly RolloutRow[];
  /** pods a second of "later" divided by the neighbouring bare loop's; medians, by number of pods */
  readonly ofBareLoop: readonly { readonly pods: number; readonly ratio: number }[];
  /** growth exponent of computing over the sizes */
  readonly cpuExponent: number;
  readonly secondsExponent: number;
  /** megabytes for each 1,000 pods, least squares */
  readonly memorySlope: number;
}

/** Runs the product and the bare loop in turn, so that other work on the machine affects both. */
async function measureSize({ pods, roll }: Stage, rounds: number) {
  const rows = [await roll("first")];
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const pair =
      round % 2 === 0 ? [await roll("bare"), await roll("later")] : [await roll("later"), await roll("bare")];
    const speed = (kind: string) => pair.find((row) => row.kind === kind)?.podsPerSecond ?? Number.NaN;
    ratios.push(speed("later") / speed("bare"));
    rows.push(...pair);
  }
  return { rows, ofBareLoop: { pods, ratio: median(ratios) } };
}

/** The cluster and each rollout run in their own processes. */
export async function measureRollout({ sizes, rounds, where, onSize }: RolloutOptions): Promise<RolloutFigures> {
  const [smallest = 0] = sizes;
  const rows = [await onStage(where, smallest, ({ roll }) => roll("gated"))];
  const ofBareLoop: { pods: number; ratio: number }[] = [];
  for (const pods of sizes) {
    const measured = await onStage(where, pods, (stage) => measureSize(stage, rounds));
    rows.push(...measured.rows);
    ofBareLoop.push(measured.ofBareLoop);
    await onSize?.(summed({ where, rounds, rows, ofBareLoop }));
  }
  return summed({ where, rounds, rows, ofBareLoop });
}

function summed(measured: Pick<RolloutFigures, "where" | "rounds" | "rows" | "ofBareLoop">): RolloutFigures {
  const later = measured.rows.filter(({ kind }) => kind === "later");
  return {
    ...measured,
    cpuExponent: growthExponent(later.map((row) => [row.pods, row.cpuPerPod * row.pods])),
    secondsExponent: growthExponent(later.map((row) => [row.pods, row.seconds])),
    memorySlope: slope(later.map((row) => [row.pods / 1000, row.peakMegabytes])),
  };
}
