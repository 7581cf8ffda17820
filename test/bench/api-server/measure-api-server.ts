/** What a pod's creation takes through a real API server: the ways of its stage in turn. */
import { sendRaw } from "../../contract/raw.ts";
import { median } from "../measure.ts";
import type { Load, LoadPlan } from "../webhook/load-process.ts";
import { quantile } from "../webhook/measure-webhook.ts";
import { isInjecting, openStage, podBody, podsPath, type Stage, WAYS, type Way } from "./stage.ts";

export interface ApiServerOptions {
  readonly rounds: number;
  /** of one load */
  readonly milliseconds: number;
}

interface ApiServerRow {
  readonly way: Way;
  /** pods that were created */
  readonly pods: number;
  /** milliseconds of one caller, median over the rounds */
  readonly p50: number;
  /** of eight callers */
  readonly podsPerSecond: number;
  /** milliseconds above the no-op webhook in the same round; median */
  readonly aboveNoOp: number;
  /** p50 of the no-op webhook's in the same round; median */
  readonly ofNoOp: number;
}

export interface ApiServerFigures {
  readonly rounds: number;
  readonly rows: readonly ApiServerRow[];
}

interface Sample {
  readonly pods: number;
  readonly p50: number;
  readonly podsPerSecond: number;
}

const MANY = 8;
const WARM_MS = 3_000;

/** Its pods are deleted afterwards, so that every load finds as few. */
async function loadOnce({ target, load }: Stage, way: Way, callers: number, milliseconds: number): Promise<Load> {
  const result = await load.call<Load>("run", {
    port: Number(new URL(target.url).port),
    path: podsPath(way),
    body: podBody(),
    authority: target.caCertificate,
    headers: { authorization: `Bearer ${target.token}` },
    code: 201,
    callers,
    milliseconds,
  } satisfies LoadPlan);
  if (result.lastAnswer.includes("fluent-bit") !== isInjecting(way))
    throw new Error(`${way}: the pod is ${result.lastAnswer}`);
  const path = `${podsPath(way)}?gracePeriodSeconds=0`;
  const { code, text } = await sendRaw(target, { method: "DELETE", path });
  if (code !== 200) throw new Error(`pods are not deleted: ${code} ${text}`);
  return result;
}

async function sampleOf(stage: Stage, way: Way, milliseconds: number): Promise<Sample> {
  const alone = await loadOnce(stage, way, 1, milliseconds);
  const many = await loadOnce(stage, way, MANY, milliseconds);
  return {
    pods: alone.requests + many.requests,
    p50: quantile(alone.milliseconds, 0.5),
    podsPerSecond: many.requests / many.seconds,
  };
}

/** The order turns around, so that nobody always comes after the same neighbour. */
export async function measureApiServer({ rounds, milliseconds }: ApiServerOptions): Promise<ApiServerFigures> {
  const stage = await openStage();
  try {
    const samples = new Map<Way, Sample[]>(WAYS.map((way) => [way, []]));
    for (const way of WAYS) await sampleOf(stage, way, WARM_MS);
    for (let round = 0; round < rounds; round++) {
      for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed())
        samples.get(way)?.push(await sampleOf(stage, way, milliseconds));
    }
    return { rounds, rows: WAYS.map((way) => rowOf(way, samples)) };
  } finally {
    await stage.close();
  }
}

function rowOf(way: Way, samples: ReadonlyMap<Way, readonly Sample[]>): ApiServerRow {
  const own = samples.get(way) ?? [];
  const noOp = (samples.get("no-op webhook") ?? []).map(({ p50 }) => p50);
  const against = (compare: (p50: number, noOp: number) => number) =>
    median(own.map(({ p50 }, round) => compare(p50, noOp[round] ?? Number.NaN)));
  return {
    way,
    pods: own.reduce((sum, { pods }) => sum + pods, 0),
    p50: median(own.map(({ p50 }) => p50)),
    podsPerSecond: median(own.map(({ podsPerSecond }) => podsPerSecond)),
    aboveNoOp: against((p50, floor) => p50 - floor),
    ofNoOp: against((p50, floor) => p50 / floor),
  };
}

export function apiServerTable({ rounds, rows }: ApiServerFigures): string {
  const line = ({ way, p50, aboveNoOp, ofNoOp, podsPerSecond, pods }: ApiServerRow) =>
    [
      way.padEnd(17),
      p50.toFixed(2).padStart(14),
      aboveNoOp.toFixed(2).padStart(12),
      ofNoOp.toFixed(2).padStart(6),
      podsPerSecond.toFixed(0).padStart(18),
      String(pods).padStart(9),
    ].join("");
  const head = "pods are created    p50 ms, alone   to no-op     ×  a second, 8 callers     pods";
  return [`${rounds} rounds in turn through a real API server`, "", head, ...rows.map(line), ""].join("\n");
}
