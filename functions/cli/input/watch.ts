/** Looks at something every two seconds, until it is done or the time is up. */
import { setTimeout as sleep } from "node:timers/promises";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { endOf } from "../../../shared/core/rollout/book.ts";
import { EFFECTS } from "../../../shared/core/rollout/hold-effects.ts";
import type { Screen } from "../../terminal/screen.ts";
import type { Input } from "../command.ts";
import type { Session } from "../session.ts";
import type { Progress } from "./progress.ts";

const WATCH_MS = 2_000;

interface Look {
  /** one sentence; a new one is worth a line. absent: each change shows everything again */
  readonly why?: string;
  readonly data: object;
  readonly show: (screen: Screen) => void;
  /** the exit code; undefined: look again */
  readonly code: number | undefined;
  /** time until the next look; absent: two seconds */
  readonly waitMs?: number;
}

export async function watch(input: Input, session: Session, look: () => Promise<Look>): Promise<number> {
  const endsAt = performance.now() + (input.durationMs("timeout") ?? Number.POSITIVE_INFINITY);
  for (let last = ""; ; ) {
    const seen = await look();
    const now = seen.why ?? JSON.stringify(seen.data);
    showLook(session, seen, now !== last);
    const code = seen.code ?? (performance.now() > endsAt ? NOT_DONE : undefined);
    if (code !== undefined) return code;
    last = now;
    await sleep(seen.waitMs ?? WATCH_MS);
  }
}

/** On a terminal everything is drawn again; elsewhere each change is a line. */
function showLook(session: Session, { why, data, show }: Look, isNew: boolean): void {
  const { screen, output } = session;
  if (output === "table" && screen.isTerminal) {
    screen.clear();
    show(screen);
  } else if (isNew && output === "table") why === undefined ? show(screen) : screen.line(why);
  else if (isNew) session.printNext(data);
}

// Decides with which exit code `status -w` ends, and when it goes on watching.

/** Watched, and it was not done in the end. */
export const NOT_DONE = 3;

interface WatchedSet {
  readonly sidecarSet: SidecarSet;
  readonly progress: Progress;
}

/** undefined: it still moves without help, or no pass has seen its newest state. */
export function watchCode(status: WatchedSet): number | undefined {
  const { summary, isStopped, isUndone } = status.progress;
  if (isStopped) return NOT_DONE;
  if (isDone(status)) return 0;
  const end = endOf(summary);
  const isKnown = isSeen(status) || EFFECTS[summary.hold].follow === "off";
  if (end === undefined || isUndone || !isKnown) return undefined;
  return end === "well" ? 0 : NOT_DONE;
}

function isDone(status: WatchedSet): boolean {
  const { summary } = status.progress;
  return isSeen(status) && summary.updated === summary.matched && summary.updatedReady === summary.updated;
}

function isSeen({ sidecarSet: { metadata, status } }: WatchedSet): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
}
