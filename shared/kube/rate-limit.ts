/** How hard an API server is asked: so many calls a second, so many after a pause, so many at once. As client-go's QPS and Burst. */
import type { CallLimits } from "../settings/cluster-settings.ts";

/** Waits until its turn has come, does the work, and gives its place to the next. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

export interface LimiterTime {
  /** milliseconds, never going back */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
}

export function limiter({ qps, burst, atOnce }: CallLimits, time: LimiterTime): Limiter {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  /** when the bucket would be full again, had nobody taken anything out of it since */
  let fullAtMs = time.now();
  const takeToken = async () => {
    if (qps === 0) return;
    const perCallMs = 1000 / qps;
    fullAtMs = Math.max(fullAtMs, time.now()) + perCallMs;
    const waitMs = fullAtMs - time.now() - Math.max(1, burst) * perCallMs;
    if (waitMs > 0) await time.sleep(waitMs);
  };
  return async (work) => {
    if (underWay >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else underWay++;
    try {
      await takeToken();
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else underWay--;
    }
  };
}
