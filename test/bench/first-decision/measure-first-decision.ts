/**
 * Measures the time until a pass over very many SidecarSets decides on the first one. A bare list is the comparison, in
 * turn.
 */
import { openShare } from "../../support/processor-share.ts";
import { median } from "../measure.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { startProcess } from "../process/start-process.ts";
import type { First, FirstPlan } from "./pass-process.ts";

export interface FirstDecisionOptions {
  readonly sidecarSets: number;
  readonly rounds: number;
  /** share of one processor for each of the two; absent: the whole machine */
  readonly share?: number;
}

/** Medians over the rounds. */
export interface FirstDecisionFigures extends FirstDecisionOptions {
  readonly bareSeconds: number;
  readonly seconds: number;
  /** ratio to the bare list of the same round */
  readonly ofBareList: { readonly seconds: number; readonly cpu: number };
}

async function measureOne(plan: FirstPlan, share: number | undefined): Promise<First> {
  const limit = share === undefined ? undefined : await openShare(share);
  const process = startProcess(new URL("pass-process.ts", import.meta.url), limit);
  try {
    return await process.call<First>("run", plan);
  } finally {
    await process.stop();
    await limit?.remove();
  }
}

interface Round {
  readonly bare: First;
  readonly ours: First;
}

async function measureRound(api: MadeUpApi, isBareFirst: boolean, share: number | undefined): Promise<Round> {
  const before = isBareFirst ? await measureOne({ kind: "bare", api }, share) : undefined;
  const ours = await measureOne({ kind: "ours", api }, share);
  const bare = before ?? (await measureOne({ kind: "bare", api }, share));
  if (bare.pages !== ours.pages || bare.pages === 0)
    throw new Error(`the pass read ${ours.pages} pages of SidecarSets, the bare list ${bare.pages}`);
  return { bare, ours };
}

/** @throws Error if the two have not read the same pages */
export async function measureFirstDecision(options: FirstDecisionOptions): Promise<FirstDecisionFigures> {
  const server = startProcess(new URL("../process/made-up-api.ts", import.meta.url));
  try {
    const api = await server.call<MadeUpApi>("start", { sidecarSets: options.sidecarSets, pods: 0 });
    const rounds: Round[] = [];
    for (let round = 0; round < options.rounds; round++)
      rounds.push(await measureRound(api, round % 2 === 0, options.share));
    return {
      ...options,
      bareSeconds: median(rounds.map(({ bare }) => bare.seconds)),
      seconds: median(rounds.map(({ ours }) => ours.seconds)),
      ofBareList: {
        seconds: median(rounds.map(({ bare, ours }) => ours.seconds / bare.seconds)),
        cpu: median(rounds.map(({ bare, ours }) => ours.cpuSeconds / bare.cpuSeconds)),
      },
    };
  } finally {
    await server.stop();
  }
}

export function firstDecisionLine({ sidecarSets, rounds, ...figures }: FirstDecisionFigures): string {
  const { bareSeconds, seconds, ofBareList } = figures;
  return `${sidecarSets} SidecarSets, ${rounds} rounds: a bare list ${bareSeconds.toFixed(2)} s, the first decision ${seconds.toFixed(2)} s: ${ofBareList.seconds.toFixed(2)} of its time, ${ofBareList.cpu.toFixed(2)} of its computing\n`;
}
