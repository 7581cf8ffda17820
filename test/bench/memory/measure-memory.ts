/**
 * Measures the memory of the rollout function for many pods: one tick of the bundle as Lambda runs it. The API server
 * is another process.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "../../../infra/build.ts";
import type { PassReport } from "../../../shared/controller/rollout/report.ts";
import { startFunction } from "../../lambda/runtime-process.ts";
import { openShare } from "../../support/processor-share.ts";
import { slope } from "../measure.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { startProcess } from "../process/start-process.ts";
import type { ManyPods } from "./many-pods-process.ts";

export interface MemoryOptions {
  /** numbers of pods */
  readonly sizes: readonly number[];
  /** seconds of one tick */
  readonly seconds: number;
  /** share of one processor; absent: the whole machine */
  readonly share?: number;
  /** budget of the SidecarSet; absent: the usual one of the memory measurement */
  readonly maxUnavailable?: number;
  /** the most ticks of one function until it has upgraded pods; absent: one */
  readonly mostTicks?: number;
}

export interface MemoryRow {
  readonly pods: number;
  /** peak megabytes of the whole process */
  readonly peakMegabytes: number;
  /** number of ticks until pods were upgraded; earlier ticks only read, and the next one continued */
  readonly ticks: number;
  /** number of pods that were upgraded in the last tick */
  readonly upgraded: number;
  readonly rounds: number;
  readonly cpuSeconds: number;
}

export interface MemoryFigures {
  readonly rows: readonly MemoryRow[];
  /** megabytes for each 1,000 pods, least squares */
  readonly slope: number;
}

/**
 * The same budget for every number of pods. Calls that have not ended also take memory, which must not grow with the
 * pods.
 */
const MAX_UNAVAILABLE = 500;

/** Returns the peak memory of a process since its start. Works on Linux; elsewhere it throws. */
async function peakMegabytes(pid: number): Promise<number> {
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kilobytes) * 1024) / 1e6;
}

async function measureSize(folder: string, pods: number, options: MemoryOptions): Promise<MemoryRow> {
  const { seconds, share, maxUnavailable = MAX_UNAVAILABLE } = options;
  const limit = share === undefined ? undefined : await openShare(share);
  const api = startProcess(new URL("many-pods-process.ts", import.meta.url));
  try {
    const plan: ManyPods = { pods, maxUnavailable };
    const { server, certificateAuthority } = await api.call<MadeUpApi>("start", plan);
    const env = {
      CLUSTER_TOKEN: join(folder, "token"),
      CLUSTER_SERVER: server,
      CLUSTER_CA: Buffer.from(certificateAuthority).toString("base64"),
      LOG_LEVEL: "warn",
    };
    const started = await startFunction({ folder, env, share: limit });
    try {
      const invoke = async () => (await started.invoke({}, seconds * 1000)) as PassReport;
      const { ticks, upgraded, rounds } = await untilUpgraded(invoke, options.mostTicks ?? 1);
      const peak = await peakMegabytes(started.process.pid ?? 0);
      return { pods, peakMegabytes: peak, ticks, upgraded, rounds, cpuSeconds: (await started.cpuMs()) / 1000 };
    } finally {
      await started.kill();
    }
  } finally {
    await api.stop();
    await limit?.remove();
  }
}

async function untilUpgraded(invoke: () => Promise<PassReport>, mostTicks: number) {
  for (let ticks = 1; ; ticks++) {
    const { sidecarSets, problems } = await invoke();
    const [report] = sidecarSets;
    const { upgraded = 0, rounds = 0 } = report?.tally ?? {};
    if (upgraded > 0) return { ticks, upgraded, rounds };
    if (ticks === mostTicks) throw new Error(`no pod was upgraded: ${problems.join(", ")} ${report?.why}`);
  }
}

/** @throws Error if no pod is upgraded within the allowed ticks */
export async function measureMemory(options: MemoryOptions): Promise<MemoryFigures> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-memory-"));
  try {
    await bundle("rollout", folder);
    await writeFile(join(folder, "token"), "benchmark");
    const rows: MemoryRow[] = [];
    for (const pods of options.sizes) rows.push(await measureSize(folder, pods, options));
    return { rows, slope: slope(rows.map((row) => [row.pods / 1000, row.peakMegabytes])) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
