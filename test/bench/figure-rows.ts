/** Lists the main figures: the target, the measurement, and whether CI, a benchmark or the dated soak measured it. */
import { NODE_FIGURES } from "./node-figures.ts";
import { SAFETY_FIGURES } from "./safety-figures.ts";
import { SPEED_FIGURES } from "./speed-figures.ts";
import type { FigureRow, Part, Parts, WantedFigure } from "./wanted-figure.ts";

const WANTED: readonly WantedFigure[] = [...SAFETY_FIGURES, ...NODE_FIGURES, ...SPEED_FIGURES];

/** A part without its own date was measured together with the part that contains it. */
function partAt(parts: Parts, from: string): { readonly part: Part; readonly measuredAt: string } | undefined {
  const path = from.split(".");
  let measuredAt = String(parts["measuredAt"] ?? "");
  let part: unknown = parts;
  for (const key of path) {
    part = (part as Part | undefined)?.[key];
    const own = part as Part | undefined;
    measuredAt = String(own?.["measuredAt"] ?? own?.["date"] ?? measuredAt);
  }
  return part === undefined || part === null ? undefined : { part: part as Part, measuredAt };
}

function isWithin(is: number, { atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY }: WantedFigure) {
  return is <= atMost && is >= atLeast;
}

/** Returns the rows for figures.json. A figure without a measurement has no row. */
export function figureRows(parts: Parts): readonly FigureRow[] {
  return WANTED.flatMap((wanted) => {
    const { from, pick, of, isMain = false, ...row } = wanted;
    const found = partAt(parts, from);
    const is = found && pick(found.part);
    if (found === undefined || is === undefined) return [];
    const looked = of?.(found.part);
    return [
      {
        ...row,
        measuredAt: found.measuredAt,
        is,
        ...(looked === undefined ? {} : { of: looked }),
        isMet: isWithin(is, wanted) && looked !== 0,
        isMain,
      },
    ];
  });
}

/** Returns the targets without a measurement. */
export function notMeasured(parts: Parts): readonly string[] {
  const known = new Set(figureRows(parts).map(({ what, by }) => `${by}: ${what}`));
  return WANTED.map(({ what, by }) => `${by}: ${what}`).filter((name) => !known.has(name));
}
