/** The parts of a simulation run, cut into shares for the workers. */
import { type Campaign, runSeeds } from "./campaign.ts";
import { runEdits } from "./edits.ts";
import { runKillPoints } from "./kill-points.ts";
import { PROTOCOLS, runProtocols } from "./protocol/run-protocol.ts";
import { CHANGES, runSchedules } from "./schedules.ts";

export interface Share {
  readonly part: Part;
  readonly from: number;
  readonly to: number;
}

/** `to` is the number of shares for schedules, and a number of seeds for the others. */
export const PARTS = {
  seeds: { unit: "seeds", default: 1_000, step: 100 },
  "kill-points": { unit: "scenarios with every call a kill point", default: 200, step: 5 },
  edits: { unit: "edit sequences", default: 20_000, step: 200 },
  schedules: { unit: "shares of all schedules", default: 64, step: 1 },
  protocol: { unit: "small worlds of the protocol, every interleaving of each", default: PROTOCOLS, step: 1 },
} as const;

export type Part = keyof typeof PARTS;

export async function runShare({ part, from, to }: Share): Promise<Campaign> {
  switch (part) {
    case "seeds":
      return runSeeds(from, to);
    case "kill-points":
      return runKillPoints(from, to);
    case "edits":
      return runEdits(from, to);
    case "protocol":
      return runProtocols(from, to);
    case "schedules":
      return runScheduleShare(from);
    default:
      return part satisfies never;
  }
}

function runScheduleShare(share: number): Promise<Campaign> {
  const change = CHANGES[share % CHANGES.length] ?? "pause";
  const shares = PARTS.schedules.default / CHANGES.length;
  return runSchedules(change, (step) => step % shares === Math.floor(share / CHANGES.length));
}
