/** Prints an explanation: a mark for each verdict, and what to do about it. */
import type { Step, Verdict } from "../../shared/core/inspect/explain/step.ts";
import type { Color, Screen } from "./screen.ts";
import { wrap } from "./table.ts";

const MARKS: Readonly<Record<Verdict, readonly [string, Color]>> = {
  ok: ["✓", "green"],
  note: ["·", "dim"],
  wait: ["…", "yellow"],
  stop: ["✗", "red"],
};

export function showSteps(title: string, steps: readonly Step<string>[], screen: Screen): void {
  screen.line({ text: title, color: "bold" });
  for (const { verdict, reason, message, hint } of steps) {
    const [mark, color] = MARKS[verdict];
    const [first = "", ...rest] = wrap(`${reason}: ${message}`, screen.width, 4);
    screen.line("  ", { text: mark, color }, ` ${first}`);
    for (const line of rest) screen.line(line);
    if (hint === undefined) continue;
    const [firstHint = "", ...restHint] = wrap(`→ ${hint}`, screen.width, 4);
    for (const line of [`    ${firstHint}`, ...restHint]) screen.line({ text: line, color: "cyan" });
  }
}
