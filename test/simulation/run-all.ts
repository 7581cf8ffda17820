/** Runs a part of the simulation in several processes, within a time limit. */
import { type Campaign, emptyCampaign, merged } from "./campaign.ts";
import { PARTS, type Part, type Share } from "./parts.ts";
import { inProcesses } from "./processes.ts";

const WORKER = { file: new URL("./worker.ts", import.meta.url) };

export interface Extent {
  readonly from: number;
  readonly count: number;
  /** Milliseconds after which no share is started; absent: all shares run. */
  readonly withinMs?: number | undefined;
  /** the least number of runs, even after the time limit */
  readonly atLeast?: number | undefined;
}

export async function runAll(
  part: Part,
  { from, count, withinMs = Number.POSITIVE_INFINITY, atLeast = 0 }: Extent,
  processes: number,
): Promise<Campaign> {
  let campaign = emptyCampaign();
  const { step } = PARTS[part];
  const shares: Share[] = [];
  for (let begin = from; begin < from + count; begin += step)
    shares.push({ part, from: begin, to: Math.min(from + count, begin + step) });
  const endsAtMs = performance.now() + withinMs;
  const next = () => {
    const [share] = shares;
    if (share === undefined || (performance.now() >= endsAtMs && share.from - from >= atLeast)) return undefined;
    return shares.shift();
  };
  await inProcesses(WORKER, processes, next, (part: Campaign) => {
    campaign = merged(campaign, part);
  });
  return campaign;
}
