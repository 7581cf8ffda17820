/** A part of the simulation on several threads. */
import { Worker } from "node:worker_threads";
import { type Campaign, emptyCampaign, merged } from "./campaign.ts";
import { PARTS, type Part, type Share } from "./parts.ts";

/** Worlds leave much garbage, and nearly all of it at once. */
const LIMITS = { maxYoungGenerationSizeMb: 192 };

export async function runAll(
  part: Part,
  { from, count }: { readonly from: number; readonly count: number },
  threads: number,
): Promise<Campaign> {
  let campaign = emptyCampaign();
  const { step } = PARTS[part];
  const shares: Share[] = [];
  for (let begin = from; begin < from + count; begin += step)
    shares.push({ part, from: begin, to: Math.min(from + count, begin + step) });
  const workers = Array.from({ length: threads }, () =>
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
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { resourceLimits: LIMITS });
    const next = () => {
      const share = shares.shift();
      if (share) worker.postMessage(share);
      else worker.terminate().then(() => resolve(), reject);
    };
    worker.on("message", (part: Campaign) => {
      onPart(part);
      next();
    });
    worker.on("error", reject);
    next();
  });
}
