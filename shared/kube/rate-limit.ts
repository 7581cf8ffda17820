/** Limits of the calls to an API server: per second, after a pause, and at once. Like client-go's QPS and Burst. */
import type { CallLimits } from "../settings/cluster-settings.ts";

/** The places for calls. */
export interface Limiter {
  /** Waits until a place is free and the rate allows a call. */
  readonly enter: () => Promise<void>;
  /** Gives the place to the next. */
  readonly leave: () => void;
}

export interface LimiterTime {
  /** milliseconds, never going back */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
}

export function limiter({ qps, burst, atOnce }: CallLimits, time: LimiterTime): Limiter {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  /** when the bucket is full again, if no further call comes */
  let fullAtMs = time.now();
  const takeToken = async () => {
    if (qps === 0) return;
    const perCallMs = 1000 / qps;
    fullAtMs = Math.max(fullAtMs, time.now()) + perCallMs;
    const waitMs = fullAtMs - time.now() - Math.max(1, burst) * perCallMs;
    if (waitMs > 0) await time.sleep(waitMs);
  };
  return {
    enter: async () => {
      if (underWay >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
      else underWay++;
      await takeToken();
    },
    leave: () => {
      const next = waiting.shift();
      if (next) next();
      else underWay--;
    },
  };
}
