/** Prints the figures of memory as a table for people. */
import type { MemoryFigures } from "./measure-memory.ts";

export function memoryTable({ rows, slope }: MemoryFigures): string {
  const columns = (texts: readonly string[]) => texts.map((text) => text.padStart(12)).join("");
  return [
    columns(["pods", "peak MB", "upgraded", "rounds", "CPU s"]),
    ...rows.map(({ pods, peakMegabytes, upgraded, rounds, cpuSeconds }) =>
      columns([`${pods}`, peakMegabytes.toFixed(0), `${upgraded}`, `${rounds}`, cpuSeconds.toFixed(1)]),
    ),
    ...(rows.length < 2 ? [] : ["", `${slope.toFixed(2)} MB for each 1,000 pods`]),
    "",
  ].join("\n");
}
