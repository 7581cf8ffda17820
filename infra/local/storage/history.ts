/** A history: every write, every admission, and how often each caller called. */
import type { ApiObject } from "./json.ts";

export type WriteVerb = "create" | "update" | "patch" | "delete";

/** An object as a write left it; for a delete that removed it, its last state. */
export interface RecordedWrite {
  readonly sequence: number;
  /** RFC 3339 with milliseconds */
  readonly time: string;
  readonly verb: WriteVerb;
  readonly userAgent: string;
  readonly group: string;
  /** plural */
  readonly resource: string;
  /** "" for the object itself */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** True when this write removed the object. */
  readonly isRemoved: boolean;
  /** The object in its storage version. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
}

/** One call of one admission webhook. */
export interface RecordedAdmission {
  readonly sequence: number;
  readonly time: string;
  readonly type: "mutating" | "validating";
  readonly webhook: string;
  readonly operation: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly dryRun: boolean;
  readonly durationMs: number;
  readonly allowed: boolean;
  /** The reason of a failed call; undefined when the webhook answered. */
  readonly error: string | undefined;
  readonly object: ApiObject | undefined;
  /** RFC 6902 operations it answered with. */
  readonly patch: unknown;
}

export interface History {
  write(write: Omit<RecordedWrite, "sequence" | "time">): void;
  admission(admission: Omit<RecordedAdmission, "sequence" | "time">): void;
  call(userAgent: string, call: string): void;
  writes(): readonly RecordedWrite[];
  admissions(): readonly RecordedAdmission[];
  calls(userAgentPrefix: string): Record<string, number>;
}

/** `limit`: the least number of latest writes that are kept; at most twice as many are. */
export function createHistory(now: () => number, limit = Number.POSITIVE_INFINITY): History {
  const writes: RecordedWrite[] = [];
  const admissions: RecordedAdmission[] = [];
  const calls = new Map<string, Map<string, number>>();
  let sequence = 0;
  const stamp = (): { sequence: number; time: string } => {
    sequence += 1;
    return { sequence, time: new Date(now()).toISOString() };
  };
  return {
    write(write) {
      writes.push({ ...stamp(), ...write });
      if (writes.length > 2 * limit) writes.splice(0, writes.length - limit);
    },
    admission: (admission) => void admissions.push({ ...stamp(), ...admission }),
    call(userAgent, call) {
      const counts = calls.get(userAgent) ?? new Map<string, number>();
      calls.set(userAgent, counts.set(call, (counts.get(call) ?? 0) + 1));
    },
    writes: () => writes,
    admissions: () => admissions,
    calls(prefix) {
      const sum: Record<string, number> = {};
      for (const [userAgent, counts] of calls) {
        if (!userAgent.startsWith(prefix)) continue;
        for (const [call, count] of counts) sum[call] = (sum[call] ?? 0) + count;
      }
      return sum;
    },
  };
}
