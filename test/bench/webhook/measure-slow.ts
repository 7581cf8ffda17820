/** Measures how long pods wait while the API server of a warm pod webhook answers late, or does not answer. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { kubeconfigText } from "../../../infra/local/http/https-server.ts";
import { registeredPath } from "../../../shared/webhook/server/path-secret.ts";
import { podsMonth } from "../cost.ts";
import { reviewBody } from "../fixture.ts";
import { median } from "../measure.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import type { Load, LoadPlan } from "./load-process.ts";
import { begin, openStage, quantile, SECRET, WARM_MS } from "./measure-webhook.ts";

export interface SlowOptions {
  /** milliseconds until each answer of the API server; undefined: it does not answer */
  readonly delays: readonly (number | undefined)[];
  /** milliseconds of one delay in one round */
  readonly milliseconds: number;
  readonly rounds: number;
}

interface SlowRow {
  readonly delayMs: number | undefined;
  readonly pods: number;
  /** median milliseconds of a review, with the caller's own work */
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
  /** milliseconds of the mean above the median without a delay */
  readonly addedMean: number;
  /** share of the pods that waited for 0.9 s or more */
  readonly waiting: number;
  /** dollars of an hour with 3,000 pods a minute on Lambda, if each takes the mean time */
  readonly hour: number;
}

export interface SlowFigures {
  readonly rows: readonly SlowRow[];
}

const CALLERS = 16;
/** Milliseconds of a caller's pause: about 50 pods a second if no pod waits. */
const PAUSE_MS = 300;
const PODS_PER_MINUTE = 3_000;
const HOURS_OF_MONTH = 720;
/**
 * Milliseconds that count as a wait for the API server, which is a second. Other work on this machine rarely takes this
 * long.
 */
const LONG_MS = 900;

/** Some seconds without a delay precede each delay. Rows are medians over the rounds. */
export async function measureSlow({ delays, milliseconds, rounds }: SlowOptions): Promise<SlowFigures> {
  const stage = await openStage();
  try {
    const api = begin(stage, "../process/made-up-api.ts");
    const { server, certificateAuthority } = await api.call<MadeUpApi>("start", { sidecarSets: 10, pods: 0 });
    const kubeconfig = join(stage.folder, "kubeconfig-slow");
    await writeFile(
      kubeconfig,
      kubeconfigText({ url: server, caCertificate: certificateAuthority, token: "benchmark" }),
    );
    const port = await begin(stage, "server-process.ts").call<number>("start", {
      kind: "ours",
      kubeconfig,
      ...stage.tls,
    });
    const load = begin(stage, "load-process.ts");
    const path = `${registeredPath(SECRET, "/mutate-pod")}?timeout=10s`;
    const plan = { port, path, body: reviewBody(), authority: stage.authority, callers: CALLERS, pauseMs: PAUSE_MS };
    const run = (time: number) => load.call<Load>("run", { ...plan, milliseconds: time } satisfies LoadPlan);
    await run(WARM_MS);
    const samples: SlowRow[][] = [];
    for (let round = 0; round < rounds; round++) {
      const { milliseconds: usual } = await run(milliseconds);
      const floor = quantile(usual, 0.5);
      const rows = [rowOf(0, usual, floor)];
      for (const delay of delays) {
        await api.call("delay", delay ?? null);
        rows.push(rowOf(delay, (await run(milliseconds)).milliseconds, floor));
        await api.call("delay", 0);
        await run(WARM_MS);
      }
      samples.push(rows);
    }
    const rows = [0, ...delays].map((delayMs, index) =>
      middleOf(
        delayMs,
        samples.flatMap((one) => one[index] ?? []),
      ),
    );
    return { rows };
  } finally {
    for (const process of stage.processes) await process.stop();
    await rm(stage.folder, { recursive: true, force: true });
  }
}

function rowOf(delayMs: number | undefined, times: readonly number[], floor: number): SlowRow {
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  return {
    delayMs,
    pods: times.length,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    most: Math.max(...times),
    addedMean: mean - floor,
    waiting: times.filter((time) => time > floor + LONG_MS).length / times.length,
    hour: podsMonth(PODS_PER_MINUTE, { podMs: mean, podWaits: 0 }).total / HOURS_OF_MONTH,
  };
}

function middleOf(delayMs: number | undefined, rows: readonly SlowRow[]): SlowRow {
  const of = (pick: (row: SlowRow) => number) => median(rows.map(pick));
  return {
    delayMs,
    pods: rows.reduce((sum, { pods }) => sum + pods, 0),
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    most: of(({ most }) => most),
    addedMean: of(({ addedMean }) => addedMean),
    waiting: of(({ waiting }) => waiting),
    hour: of(({ hour }) => hour),
  };
}

export function slowTable({ rows }: SlowFigures): string {
  const head = "each answer of the API server   pods   p50 ms   p99 ms  most ms  added ms  > 0.9 s  $ an hour";
  const line = ({ delayMs, pods, p50, p99, most, addedMean, waiting, hour }: SlowRow) =>
    [
      (delayMs === undefined ? "never" : `after ${delayMs} ms`).padEnd(29),
      String(pods).padStart(7),
      p50.toFixed(1).padStart(9),
      p99.toFixed(1).padStart(9),
      most.toFixed(0).padStart(9),
      addedMean.toFixed(1).padStart(10),
      `${(waiting * 100).toFixed(1)} %`.padStart(9),
      hour.toFixed(3).padStart(11),
    ].join("");
  return [head, ...rows.map(line), ""].join("\n");
}
