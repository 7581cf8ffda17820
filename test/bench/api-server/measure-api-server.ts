/** Measures the time of a pod's creation through a real API server, for each way of its stage in turn. */
import { sendRaw } from "../../contract/raw.ts";
import { median } from "../measure.ts";
import type { Load, LoadPlan } from "../webhook/load-process.ts";
import { quantile } from "../webhook/measure-webhook.ts";
import { isInjecting, openStage, podBody, podsPath, type Stage, WAYS, type Way } from "./stage.ts";

export interface ApiServerOptions {
  /** the times of one caller in many short rounds, because other work on this machine changes every second */
  readonly alone: Loads;
  /** the times of eight callers at once */
  readonly many: Loads;
}

interface Loads {
  readonly rounds: number;
  /** milliseconds of one load */
  readonly milliseconds: number;
}

interface ApiServerRow {
  readonly way: Way;
  /** number of pods that were created */
  readonly pods: number;
  /** milliseconds for one caller, median over the rounds */
  readonly p50: number;
  /** created pods a second with eight callers at once */
  readonly podsPerSecond: number;
  /** milliseconds above the no-op webhook in the same round; median */
  readonly aboveNoOp: number;
  /** p50 divided by the no-op webhook's in the same round; median */
  readonly ofNoOp: number;
  /** p50 divided by the p50 of the webhook with the constant patch in the same round; median */
  readonly ofConstant: number;
  /** p50 divided by the p50 of the webhook that keeps a list for a second, in the same round; median */
  readonly ofKept: number;
}

export interface ApiServerFigures {
  /** number of measured rounds with one caller */
  readonly rounds: number;
  readonly rows: readonly ApiServerRow[];
}

const MANY = 8;
const WARM_MS = 3_000;
/**
 * Number of rounds after which the pods are deleted, so that few exist. The deletion does not always precede the same
 * way.
 */
const DELETE_EVERY = 9;

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
  return result;
}

async function deletePods({ target }: Stage): Promise<void> {
  for (const way of WAYS) {
    const path = `${podsPath(way)}?gracePeriodSeconds=0`;
    const { code, text } = await sendRaw(target, { method: "DELETE", path });
    if (code !== 200) throw new Error(`pods are not deleted: ${code} ${text}`);
  }
}

type Samples = ReadonlyMap<Way, readonly Load[]>;

/**
 * Within 42 rounds every way follows every other way equally often, because the API server may still collect the
 * previous way's garbage. Seven is a prime number.
 */
function orderOf(round: number): readonly Way[] {
  const step = 1 + (Math.floor(round / WAYS.length) % (WAYS.length - 1));
  return WAYS.map((way, index) => WAYS[(round + step * index) % WAYS.length] ?? way);
}

async function sampleAll(stage: Stage, callers: number, { rounds, milliseconds }: Loads): Promise<Samples> {
  const samples = new Map<Way, Load[]>(WAYS.map((way) => [way, []]));
  for (let round = 0; round < rounds; round++) {
    for (const way of orderOf(round)) samples.get(way)?.push(await loadOnce(stage, way, callers, milliseconds));
    if (round % DELETE_EVERY === DELETE_EVERY - 1) await deletePods(stage);
  }
  await deletePods(stage);
  return samples;
}

export async function measureApiServer({ alone, many }: ApiServerOptions): Promise<ApiServerFigures> {
  const stage = await openStage();
  try {
    for (const callers of [1, MANY]) await sampleAll(stage, callers, { rounds: 1, milliseconds: WARM_MS });
    const ofOne = await sampleAll(stage, 1, alone);
    const ofMany = await sampleAll(stage, MANY, many);
    return { rounds: alone.rounds, rows: WAYS.map((way) => rowOf(way, ofOne, ofMany)) };
  } finally {
    await stage.close();
  }
}

function rowOf(way: Way, alone: Samples, many: Samples): ApiServerRow {
  const p50s = (of: Way) => (alone.get(of) ?? []).map(({ milliseconds }) => quantile(milliseconds, 0.5));
  const own = p50s(way);
  const against = (of: Way, compare: (p50: number, floor: number) => number) => {
    const floor = p50s(of);
    return median(own.map((p50, round) => compare(p50, floor[round] ?? Number.NaN)));
  };
  const loads = many.get(way) ?? [];
  return {
    way,
    pods: [...(alone.get(way) ?? []), ...loads].reduce((sum, { requests }) => sum + requests, 0),
    p50: median(own),
    podsPerSecond: median(loads.map(({ requests, seconds }) => requests / seconds)),
    aboveNoOp: against("no-op webhook", (p50, floor) => p50 - floor),
    ofNoOp: against("no-op webhook", (p50, floor) => p50 / floor),
    ofConstant: against("constant patch", (p50, floor) => p50 / floor),
    ofKept: against("ours, kept 1 s", (p50, floor) => p50 / floor),
  };
}

export function apiServerTable({ rounds, rows }: ApiServerFigures): string {
  const line = ({ way, p50, aboveNoOp, ofNoOp, ofConstant, ofKept, podsPerSecond, pods }: ApiServerRow) =>
    [
      way.padEnd(16),
      p50.toFixed(2).padStart(14),
      aboveNoOp.toFixed(2).padStart(11),
      ofNoOp.toFixed(2).padStart(6),
      ofConstant.toFixed(2).padStart(12),
      ofKept.toFixed(2).padStart(8),
      podsPerSecond.toFixed(0).padStart(11),
      String(pods).padStart(8),
    ].join("");
  const head = "pods are created p50 ms, alone  to no-op     ×  × constant  × kept  8 callers    pods";
  return [`${rounds} rounds in turn through a real API server`, "", head, ...rows.map(line), ""].join("\n");
}
