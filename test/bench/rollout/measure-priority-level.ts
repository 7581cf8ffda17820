/**
 * Measures a rollout under a tight priority level of a real API server. The best bare loops are the comparison, in
 * turn.
 */
import { median } from "../measure.ts";
import type { TightLevel } from "./ground.ts";
import { onStage, type RolloutRow, type Stage } from "./stage.ts";

export interface PriorityLevelOptions {
  readonly pods: number;
  readonly rounds: number;
}

interface LevelRow {
  readonly response: TightLevel["response"];
  /** 0: the product's passes; otherwise the number of PATCHes that a bare loop sends at once */
  readonly atOnce: number;
  /** seconds until the last PATCH of a pod, median over the rounds */
  readonly patchSeconds: number;
  /** answers 429 for each pod, the most of any round */
  readonly refusalsPerPod: number;
}

export interface PriorityLevelFigures {
  readonly pods: number;
  readonly rounds: number;
  readonly seats: number;
  readonly rows: readonly LevelRow[];
  /** the product's seconds divided by the fastest bare loop's in the same round; medians */
  readonly ofIdeal: readonly { readonly response: TightLevel["response"]; readonly ratio: number }[];
}

const RESPONSES = ["Reject", "Queue"] as const;
const OURS = 0;

const secondsOf = ({ pods, podsPerSecond }: RolloutRow) => pods / podsPerSecond;

type Taken = ReadonlyMap<number, readonly RolloutRow[]>;

/**
 * Returns the numbers of calls at once to try. A watched answer holds its seat a moment longer, so one fewer may be the
 * best.
 */
function widthsAround(seats: number): readonly number[] {
  return [OURS, seats - 1, seats, seats + 1].filter((atOnce, index) => index === 0 || atOnce > 0);
}

const rollAt = (stage: Stage, atOnce: number) => (atOnce === OURS ? stage.roll("later") : stage.roll("bare", atOnce));

/** The order rotates, so that no run always follows the same one. */
async function takeRounds(stage: Stage, widths: readonly number[], rounds: number): Promise<Taken> {
  const taken = new Map<number, RolloutRow[]>(widths.map((atOnce) => [atOnce, []]));
  for (let round = 0; round < rounds; round++) {
    for (const atOnce of round % 2 === 0 ? widths : widths.toReversed())
      taken.get(atOnce)?.push(await rollAt(stage, atOnce));
  }
  return taken;
}

async function measureLevel(stage: Stage, response: TightLevel["response"], rounds: number) {
  const seats = await stage.tighten({ response });
  const taken = await takeRounds(stage, widthsAround(seats), rounds);
  const rows = [...taken].map(([atOnce, own]): LevelRow => {
    const refusalsPerPod = Math.max(...own.map(({ refusals, pods }) => refusals / pods));
    return { response, atOnce, patchSeconds: median(own.map(secondsOf)), refusalsPerPod };
  });
  return { seats, rows, ofIdeal: { response, ratio: ratioOf(rows, taken) } };
}

function ratioOf(rows: readonly LevelRow[], taken: Taken): number {
  const [best] = rows.filter(({ atOnce }) => atOnce !== OURS).toSorted((a, b) => a.patchSeconds - b.patchSeconds);
  const ideal = (best && taken.get(best.atOnce)) ?? [];
  const ours = taken.get(OURS) ?? [];
  return median(ours.map((row, round) => secondsOf(row) / (ideal[round] ? secondsOf(ideal[round]) : Number.NaN)));
}

/** Runs the first rollout, which gives each pod its condition, before the priority level exists. */
export async function measurePriorityLevel({ pods, rounds }: PriorityLevelOptions): Promise<PriorityLevelFigures> {
  const levels = await onStage("real", pods, async (stage) => {
    await stage.roll("first");
    const measured: Awaited<ReturnType<typeof measureLevel>>[] = [];
    for (const response of RESPONSES) measured.push(await measureLevel(stage, response, rounds));
    return measured;
  });
  return {
    pods,
    rounds,
    seats: Math.max(...levels.map(({ seats }) => seats)),
    rows: levels.flatMap(({ rows }) => rows),
    ofIdeal: levels.map(({ ofIdeal }) => ofIdeal),
  };
}

export function priorityLevelTable({ pods, rounds, seats, rows, ofIdeal }: PriorityLevelFigures): string {
  const line = ({ response, atOnce, patchSeconds, refusalsPerPod }: LevelRow) =>
    [
      response.padEnd(8),
      (atOnce === OURS ? "ours" : `bare loop of ${atOnce}`).padEnd(16),
      patchSeconds.toFixed(1).padStart(8),
      refusalsPerPod.toFixed(3).padStart(15),
    ].join("");
  return [
    `${rounds} rounds of ${pods} pods in turn through a real API server, in a priority level of ${seats} seats`,
    "",
    "answer  who              seconds   refused a pod",
    ...rows.map(line),
    "",
    ...ofIdeal.map(({ response, ratio }) => `${response}: ${ratio.toFixed(2)} of the time of the quickest bare loop`),
    "",
  ].join("\n");
}
