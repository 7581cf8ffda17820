/** A bar of how far a rollout has come. */
import type { Part } from "./screen.ts";

const WIDTH = 20;

/** `ready`: of those that are updated. */
export function bar(ready: number, updated: number, all: number): readonly Part[] {
  const share = (count: number) => (all === 0 ? 0 : Math.min(WIDTH, Math.floor((count / all) * WIDTH)));
  const [full, half] = [share(ready), share(updated)];
  return [
    { text: "█".repeat(full), color: "green" },
    { text: "▒".repeat(Math.max(0, half - full)), color: "yellow" },
    { text: "░".repeat(WIDTH - Math.max(full, half)), color: "dim" },
    ` ${updated}/${all}`,
  ];
}
