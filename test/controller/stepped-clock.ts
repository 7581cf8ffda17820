/** A clock that moves only in sleeps, at once and to the millisecond; and a watch that sends the test's events. */
import { setImmediate } from "node:timers/promises";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { Clock } from "../../shared/controller/loop/clock.ts";
import type { WatchEvent, WatchOptions } from "../../shared/kube/port.ts";

interface Plan {
  readonly atMs: number;
  readonly run: () => unknown;
}

export interface SteppedClock {
  readonly clock: Clock;
  /** Runs a function at that moment, when a sleep passes it. */
  readonly plan: (atMs: number, run: Plan["run"]) => void;
  /** the requested length of each sleep */
  readonly slept: readonly number[];
  /** Sets the start time in milliseconds since the epoch; without it, time starts when the test does. */
  readonly beginAt: (epochMs: number) => void;
}

export function steppedClock(): SteppedClock {
  let beganMs = Date.now();
  let nowMs = 0;
  const plans: Plan[] = [];
  const slept: number[] = [];
  const until = async (atMs: number, signal?: AbortSignal): Promise<void> => {
    await settled();
    if (signal?.aborted) return;
    const next = plans.toSorted((a, b) => a.atMs - b.atMs)[0];
    if (!next || next.atMs > atMs) {
      nowMs = Math.max(nowMs, atMs);
      return;
    }
    plans.splice(plans.indexOf(next), 1);
    nowMs = Math.max(nowMs, next.atMs);
    await next.run();
    await until(atMs, signal);
  };
  const sleep = (ms: number, signal?: AbortSignal) => {
    slept.push(ms);
    return until(nowMs + ms, signal);
  };
  const clock = { now: () => nowMs, epochMs: () => beganMs + nowMs, sleep, random: () => 0.25 };
  const beginAt = (epochMs: number) => {
    beganMs = epochMs;
  };
  return { clock, plan: (atMs, run) => plans.push({ atMs, run }), slept, beginAt };
}

/** Moves time for several tasks that sleep at once, like the parts of a pass: up to the next task that wakes. */
export function sharedClock(): Pick<SteppedClock, "clock" | "plan"> {
  const beganMs = Date.now();
  let nowMs = 0;
  const waiting = new Set<Plan>();
  let isPassing = false;
  const pass = async (): Promise<void> => {
    if (isPassing) return;
    isPassing = true;
    for (;;) {
      await settled();
      const [next] = [...waiting].toSorted((a, b) => a.atMs - b.atMs);
      if (!next) break;
      waiting.delete(next);
      nowMs = Math.max(nowMs, next.atMs);
      next.run();
    }
    isPassing = false;
  };
  const plan = (atMs: number, run: Plan["run"]) => {
    const one = { atMs, run };
    waiting.add(one);
    void pass();
    return one;
  };
  const sleep = (ms: number, signal?: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (signal?.aborted) return Promise.resolve();
    const one = plan(nowMs + ms, resolve);
    const end = () => {
      waiting.delete(one);
      resolve();
    };
    signal?.addEventListener("abort", end, { once: true });
    return promise;
  };
  const clock = { now: () => nowMs, epochMs: () => beganMs + nowMs, sleep, random: () => 0.25 };
  return { clock, plan };
}

/** Waits until promises that need no timer have settled. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await setImmediate();
}

export interface ScriptedWatch<T extends KubernetesObject> {
  readonly watch: (options: WatchOptions) => AsyncIterable<WatchEvent<T>>;
  /** the options of each watch, oldest first */
  readonly opened: readonly WatchOptions[];
  /** sends an event to the open watch, or ends it with an error */
  readonly say: (what: WatchEvent<T> | Error) => void;
}

export function scriptedWatch<T extends KubernetesObject>(): ScriptedWatch<T> {
  const opened: WatchOptions[] = [];
  let waiting = Promise.withResolvers<WatchEvent<T> | Error>();
  const watch = async function* (options: WatchOptions) {
    opened.push(options);
    while (!options.signal?.aborted) {
      const what = await waiting.promise;
      waiting = Promise.withResolvers();
      if (what instanceof Error) throw what;
      yield what;
    }
  };
  return { watch, opened, say: (what) => waiting.resolve(what) };
}
