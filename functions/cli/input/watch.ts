/** Looks at something every two seconds, until it is done or the time is up. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Screen } from "../../terminal/screen.ts";
import type { Input } from "../command.ts";
import type { Session } from "../session.ts";
import { NOT_DONE } from "./watch-code.ts";

const WATCH_MS = 2_000;

interface Look {
  /** one sentence, which changes whenever anything does that is worth a line; absent: each change shows everything again */
  readonly why?: string;
  readonly data: object;
  readonly show: (screen: Screen) => void;
  /** the exit code; undefined: look again */
  readonly code: number | undefined;
  /** until the next look; absent: two seconds */
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
