/**
 * Measures the time until an ordered set has its pods: one pass that follows, pods in order, and a kubelet with its
 * delays.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { createSet, readPods, settle, startSetCluster } from "../controller/ordered-set/fixture.ts";

const PODS = 100;
const KUBELET_MS = 200;
const MOST_SECONDS = 60;

interface OrderedFigures {
  readonly pods: number;
  readonly kubeletSeconds: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly apiCalls: number;
}

/** Writes reports/ordered.json too. Throws if some pods did not exist in time. */
export async function measureOrdered(): Promise<OrderedFigures> {
  const { cluster, local } = await startSetCluster({ startDelayMs: KUBELET_MS / 2, readyDelayMs: KUBELET_MS / 2 });
  try {
    await createSet(cluster, "db", { replicas: PODS });
    const began = performance.now();
    const report = await settle(cluster, "db", { deadlineMs: 10 * 60_000 });
    const seconds = (performance.now() - began) / 1000;
    const ready = (await readPods(cluster, "db")).length;
    const apiCalls = Object.values(local.apiCalls("sidecarset-serverless")).reduce((sum, calls) => sum + calls, 0);
    const figures: OrderedFigures = {
      pods: ready,
      kubeletSeconds: KUBELET_MS / 1000,
      seconds: Number(seconds.toFixed(1)),
      rounds: report.tally.rounds,
      apiCalls,
    };
    await mkdir("reports", { recursive: true });
    await writeFile("reports/ordered.json", `${JSON.stringify(figures, undefined, 2)}\n`);
    const isInTime = report.stop === "settled" && ready === PODS && seconds <= MOST_SECONDS;
    if (!isInTime) throw new Error(`${ready} of ${PODS} pods in ${figures.seconds} s: ${report.stop}, ${report.why}`);
    return figures;
  } finally {
    await local.close();
  }
}

export function orderedTable({ pods, kubeletSeconds, seconds, rounds, apiCalls }: OrderedFigures): string {
  const each = (apiCalls / pods).toFixed(1);
  return `${pods} pods in order, ${kubeletSeconds} s each on the node: ${seconds} s (at most ${MOST_SECONDS} s), ${rounds} rounds, ${each} API calls a pod\n`;
}
