/** A part of the simulation in several processes: they do a fifth more than as many threads of one. */
import { fork } from "node:child_process";
import { type Campaign, emptyCampaign, merged } from "./campaign.ts";
import { PARTS, type Part, type Share } from "./parts.ts";

/** Worlds leave much garbage; a core each is busy anyway, so that threads beside it, of V8's, cost a tenth. */
const ARGV = ["--single-threaded", "--max-semi-space-size=16"];

export async function runAll(
  part: Part,
  { from, count }: { readonly from: number; readonly count: number },
  processes: number,
): Promise<Campaign> {
  let campaign = emptyCampaign();
  const { step } = PARTS[part];
  const shares: Share[] = [];
  for (let begin = from; begin < from + count; begin += step)
    shares.push({ part, from: begin, to: Math.min(from + count, begin + step) });
  const workers = Array.from({ length: processes }, () =>
    work(shares, (result) => {
      campaign = merged(campaign, result);
    }),
  );
  await Promise.all(workers);
  return campaign;
}

/** Hands out share after share, so that no worker waits for another. */
function work(shares: Share[], onPart: (part: Campaign) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(new URL("./worker.ts", import.meta.url), { execArgv: ARGV });
    let isOver = false;
    const next = () => {
      const share = shares.shift();
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
