/** A part of the simulation in several processes: they do a fifth more than as many threads of one. */
import { fork } from "node:child_process";
import { type Campaign, emptyCampaign, merged } from "./campaign.ts";
import { PARTS, type Part, type Share } from "./parts.ts";

/** Worlds leave much garbage; a core each is busy anyway, so that threads beside it, of V8's, cost a tenth. */
const ARGV = ["--single-threaded", "--max-semi-space-size=16"];

export interface Extent {
  readonly from: number;
  readonly count: number;
  /** After so long no share is begun any more; absent: all are. */
  readonly withinMs?: number | undefined;
  /** So many are run however long they take. */
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
  const workers = Array.from({ length: processes }, () =>
    work(next, (result) => {
      campaign = merged(campaign, result);
    }),
  );
  await Promise.all(workers);
  return campaign;
}

/** Hands out share after share, so that no worker waits for another. */
function work(nextShare: () => Share | undefined, onPart: (part: Campaign) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(new URL("./worker.ts", import.meta.url), { execArgv: ARGV });
    let isOver = false;
    const next = () => {
      const share = nextShare();
      isOver = share === undefined;
      if (share) worker.send(share);
      else worker.disconnect();
    };
    worker.on("message", (part: Campaign) => {
      onPart(part);
      next();
    });
    worker.on("error", reject);
    worker.on("exit", (code, signal) => {
      if (isOver && code === 0) resolve();
      else reject(new Error(`a process of the simulation ended with ${signal ?? code}`));
    });
    next();
  });
}
