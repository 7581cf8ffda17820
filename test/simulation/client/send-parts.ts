/** Sends a body in parts that end anywhere, also inside a character. */
import type http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../chance.ts";

/** Milliseconds for the client to read the first part. */
const PAUSE_MS = 2;
const MOST_PARTS = 12;

export async function sendParts(response: http.ServerResponse, bytes: Buffer, chance: Chance): Promise<void> {
  const isSlow = chance.isLucky(0.2);
  const ends = isSlow ? Array.from({ length: MOST_PARTS }, () => chance.below(bytes.length + 1)) : [];
  // The parts split a character or an escape.
  const torn = isSlow ? [bytes.indexOf(0xe2) + 1, bytes.indexOf(0xf0) + 2, bytes.indexOf(0x5c) + 1] : [];
  let from = 0;
  for (const end of [...ends, ...torn, bytes.length].sort((a, b) => a - b)) {
    if (end <= from || response.destroyed) continue;
    response.write(bytes.subarray(from, end));
    from = end;
    if (isSlow) await sleep(PAUSE_MS);
  }
}
