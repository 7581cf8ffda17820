/**
 * Measures how long a function's call waits for the API server, one read after the other. Lambda bills waiting like
 * computing.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startLocalCluster } from "../../infra/local/cluster.ts";
import { startFunction } from "../lambda/runtime-process.ts";
import { prepareSubjects } from "./lambda-subjects.ts";

/** Milliseconds that each answer of the API server is delayed: far more than a busy machine adds. */
const DELAY_MS = 100;
const CALLS = 8;
const TIMEOUT_MS = 60_000;

/**
 * Returns for each function how many reads of a warm call wait for each other. A longer delay of each read shows this.
 */
export async function measureWaits(names: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-waits-"));
  let delayMs = 0;
  const local = await startLocalCluster({
    front: async (request, ask) => {
      await sleep(delayMs);
      return ask(request);
    },
  });
  try {
    const subjects = await prepareSubjects(folder, local, names);
    const all = [];
    for (const subject of subjects) {
      const { invoke, kill } = await startFunction(subject);
      const timed = async () => {
        const begin = performance.now();
        await invoke(subject.event, TIMEOUT_MS);
        return performance.now() - begin;
      };
      const medianOf = async (delay: number) => {
        delayMs = delay;
        const times: number[] = [];
        for (let call = 0; call < CALLS; call++) times.push(await timed());
        return times.toSorted((a, b) => a - b)[CALLS / 2] ?? Number.NaN;
      };
      await medianOf(0);
      const fast = await medianOf(0);
      all.push([subject.name, Math.round(((await medianOf(DELAY_MS)) - fast) / DELAY_MS)] as const);
      delayMs = 0;
      await kill();
    }
    return Object.fromEntries(all);
  } finally {
    await local.close();
    await rm(folder, { recursive: true, force: true });
  }
}
