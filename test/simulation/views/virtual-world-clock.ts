/** Replaces the product's timers, clocks and random numbers by the world's while a world runs. */
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import type { Scheduler } from "../scheduler.ts";

type Global = Record<"setTimeout" | "clearTimeout", unknown>;

/** Runs `world` in virtual time. `random` replaces Math.random. */
export async function inVirtualTime<T>(
  scheduler: Scheduler,
  random: () => number,
  world: () => Promise<T>,
): Promise<T> {
  const global = globalThis as unknown as Global;
  const kept = { set: global.setTimeout, clear: global.clearTimeout, sleep: timers.setTimeout };
  const { now } = Date;
  const { random: chance } = Math;
  const cancels = new Map<number, () => void>();
  let last = 0;
  global.setTimeout = (run: () => void, ms = 0) => {
    const id = ++last;
    cancels.set(id, scheduler.after(ms, run));
    return id;
  };
  global.clearTimeout = (id: number) => {
    cancels.get(id)?.();
    cancels.delete(id);
  };
  const sleep = (ms: number) => new Promise<void>((resolve) => void scheduler.after(ms, resolve));
  Object.assign(timers, { setTimeout: sleep });
  Object.assign(Date, { now: () => scheduler.nowMs });
  Object.assign(Math, { random });
  syncBuiltinESMExports();
  try {
    return await world();
  } finally {
    Object.assign(global, { setTimeout: kept.set, clearTimeout: kept.clear });
    Object.assign(timers, { setTimeout: kept.sleep });
    Object.assign(Date, { now });
    Object.assign(Math, { random: chance });
    syncBuiltinESMExports();
  }
}
