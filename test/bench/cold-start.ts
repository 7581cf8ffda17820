/**
 * Measures the time of a new process of each function until its first answer, above an empty function's; and warm
 * calls.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocalCluster } from "../../infra/local/cluster.ts";
import { type FunctionProcess, startFunction } from "../lambda/runtime-process.ts";
import { openShare } from "../support/processor-share.ts";
import { prepareSubjects, type Subject } from "./lambda-subjects.ts";

/** A spread of times in milliseconds. */
export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly p90: number;
}

interface WarmFigures extends Spread {
  /** milliseconds of computing for each call, on average; absent if there is no /proc */
  readonly cpu?: number;
  /** bytes of the answer's body, or of the whole answer if it has no body */
  readonly answerBytes: number;
  /** bytes that each call logs */
  readonly logBytes: number;
}

interface FunctionFigures {
  /**
   * time from the start of the process to its first answer; each quantile is above the empty handler's in the same run
   */
  readonly cold: Spread;
  /** milliseconds of computing, which a busy machine changes less; absent if there is no /proc */
  readonly coldCpu?: Spread;
  /** later answers, with the runtime's own work */
  readonly warm: WarmFigures;
}

export interface ColdStartFigures {
  readonly processes: number;
  /** the empty handler's times, from the start of its process */
  readonly empty: FunctionFigures;
  readonly functions: Readonly<Record<string, FunctionFigures>>;
}

const TIMEOUT_MS = 10_000;
/** Number of warm calls: fewer than a busy instance answers in a minute, but enough for V8 to compile the hot code. */
const WARM_CALLS = 2_000;
const WARM_TICKS = 20;

/**
 * Measures `processes` new processes of each function in turn, so that other work on the machine affects all functions.
 */
export async function measureColdStart(processes: number): Promise<ColdStartFigures> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-cold-"));
  const local = await startLocalCluster();
  try {
    const subjects = await prepareSubjects(folder, local);
    const cold = await measureCold(subjects, processes);
    const figures: [string, FunctionFigures][] = [];
    for (const subject of subjects) {
      const warm = await measureWarm(subject);
      figures.push([subject.name, { ...coldFigures(subject.name, cold), warm }]);
    }
    const { empty, ...functions } = Object.fromEntries(figures);
    if (empty === undefined) throw new Error("the empty handler was not measured");
    return { processes, empty, functions };
  } finally {
    await local.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the milliseconds to the first answer of mutate-pod and of an empty handler, with a share of a processor. */
export async function measureColdMutatePod(processes: number, share: number): Promise<{ own: Spread; empty: Spread }> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-cold-"));
  const local = await startLocalCluster();
  const limit = await openShare(share);
  try {
    const subjects = await prepareSubjects(folder, local, ["empty", "mutate-pod"]);
    const cold = await measureCold(
      subjects.map((subject) => ({ ...subject, share: limit })),
      processes,
    );
    const of = (name: string) => spread(cold.get(name)?.wall ?? []);
    return { own: of("mutate-pod"), empty: of("empty") };
  } finally {
    await limit.remove();
    await local.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of each process. */
export interface ColdTimes {
  readonly wall: number[];
  readonly cpu: number[];
}

/** Measures `processes` new processes of each subject in turn. Returns the results by name. */
export async function measureCold(
  subjects: readonly Subject[],
  processes: number,
): Promise<ReadonlyMap<string, ColdTimes>> {
  const times = new Map<string, ColdTimes>(subjects.map(({ name }) => [name, { wall: [], cpu: [] }]));
  for (let round = 0; round < processes; round++) {
    for (const subject of subjects) {
      const begin = performance.now();
      const started = await startFunction(subject);
      await requireSuccess(started, subject);
      times.get(subject.name)?.wall.push(performance.now() - begin);
      times.get(subject.name)?.cpu.push(await started.cpuMs());
      await started.kill();
    }
  }
  return times;
}

function coldFigures(name: string, times: ReadonlyMap<string, ColdTimes>): Omit<FunctionFigures, "warm"> {
  const of = (which: string) => {
    const { wall = [], cpu = [] } = times.get(which) ?? {};
    return { cold: spread(wall), coldCpu: spread(cpu) };
  };
  const [own, empty] = [of(name), of("empty")];
  const figures =
    name === "empty" ? own : { cold: above(own.cold, empty.cold), coldCpu: above(own.coldCpu, empty.coldCpu) };
  return Number.isNaN(figures.coldCpu.min) ? { cold: figures.cold } : figures;
}

/** Measures warm calls. The first quarter of the calls compiles, and does not count. */
async function measureWarm(subject: Subject): Promise<WarmFigures> {
  const started = await startFunction(subject);
  const [calls, counted] =
    subject.name === "rollout" ? [WARM_TICKS, WARM_TICKS * 0.75] : [WARM_CALLS, WARM_CALLS * 0.75];
  for (let call = counted; call < calls; call++) await requireSuccess(started, subject);
  const [cpuBefore, logBefore] = [await started.cpuMs(), started.logBytes()];
  const times: number[] = [];
  let answerBytes = 0;
  for (let call = 0; call < counted; call++) {
    const begin = performance.now();
    answerBytes = await requireSuccess(started, subject);
    times.push(performance.now() - begin);
  }
  const cpu = ((await started.cpuMs()) - cpuBefore) / counted;
  const logBytes = (started.logBytes() - logBefore) / counted;
  await started.kill();
  return { ...spread(times), ...(Number.isNaN(cpu) ? {} : { cpu }), answerBytes, logBytes };
}

/** Returns the bytes of the answer. Throws for a failure, because a function that fails fast would look good. */
async function requireSuccess({ invoke }: FunctionProcess, { name, event }: Subject): Promise<number> {
  const answer = await invoke(event, TIMEOUT_MS);
  const text = JSON.stringify(answer);
  const isGood =
    name === "rollout"
      ? text.includes('"problems":[]')
      : text.includes('"statusCode":200') && !text.includes('\\"allowed\\":false');
  if (!isGood) throw new Error(`${name} answered ${text}`);
  return Buffer.byteLength((answer as { readonly body?: string }).body ?? text);
}

function above(own: Spread, empty: Spread): Spread {
  return { min: own.min - empty.min, median: own.median - empty.median, p90: own.p90 - empty.p90 };
}

export function spread(times: readonly number[]): Spread {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { min: at(0), median: at(0.5), p90: at(0.9) };
}
