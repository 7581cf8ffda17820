/**
 * Prints the optimizations as a table for people: the median, the least and the 90th percentile, and what the shipped
 * way saves.
 */
import type { Room, Way } from "./measure-rooms.ts";

/** The least saving that justifies an optimization. */
const WORTH = 0.1;

export function roomsTable(rooms: readonly Room[]): string {
  return rooms.map(roomLines).join("\n");
}

/** False if an optimization saves less than a tenth of its decisive figure. */
export function arePaying(rooms: readonly Room[]): boolean {
  return rooms.every(
    ({ decidedBy, shipped, without }) =>
      decidedBy === undefined || without.every((way) => saved(shipped, way, decidedBy) >= WORTH),
  );
}

function saved(shipped: Way, without: Way, figure: string): number {
  return 1 - medianOf(shipped, figure) / medianOf(without, figure);
}

function medianOf({ figures }: Way, figure: string): number {
  return figures[figure]?.median ?? Number.NaN;
}

function roomLines({ name, decidedBy, shipped, without, floor }: Room): string {
  const ways = [shipped, ...without, ...(floor ? [floor] : [])];
  const lines = ways.flatMap((way) =>
    Object.keys(way.figures).map((figure) => {
      const isOther = without.includes(way);
      const share = isOther ? `, of which ${(saved(shipped, way, figure) * 100).toFixed(0)} % are saved` : "";
      return `${line(way, figure)}${share}${isOther && figure === decidedBy ? " (decisive)" : ""}`;
    }),
  );
  return [name, ...lines, ""].join("\n");
}

function line({ name, figures }: Way, figure: string): string {
  const { min = Number.NaN, median = Number.NaN, p90 = Number.NaN } = figures[figure] ?? {};
  const range = `(${min.toFixed(1)} to ${p90.toFixed(1)})`;
  return `  ${name.padEnd(22)} ${figure.padEnd(18)} ${median.toFixed(1).padStart(9)} ${range}`;
}
