/** The lines in which two texts differ, as `diff -u` shows them. */
import type { Part } from "./screen.ts";

type Kind = "same" | "added" | "removed";

interface Line {
  readonly kind: Kind;
  readonly text: string;
}

const CONTEXT = 3;

/** Whole texts; between far apart changes stands one line of dots. */
export function diffLines(before: string, after: string): readonly Part[] {
  const lines = compare(before.trimEnd().split("\n"), after.trimEnd().split("\n"));
  const changed = lines.flatMap(({ kind }, index) => (kind === "same" ? [] : [index]));
  const isShown = (index: number) => changed.some((one) => Math.abs(one - index) <= CONTEXT);
  return lines.flatMap((line, index) => {
    if (isShown(index)) return [shown(line)];
    return index > 0 && isShown(index - 1) ? [{ text: "  …", color: "dim" } as const] : [];
  });
}

function shown({ kind, text }: Line): Part {
  if (kind === "same") return `  ${text}`;
  return kind === "added" ? { text: `+ ${text}`, color: "green" } : { text: `- ${text}`, color: "red" };
}

/** By the longest common subsequence; manifests have hundreds of lines, not millions. */
function compare(before: readonly string[], after: readonly string[]): readonly Line[] {
  const lengths = commonLengths(before, after);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const line = lineAt(before[i], after[j], at(lengths, i + 1, j) >= at(lengths, i, j + 1));
    lines.push(line);
    if (line.kind !== "added") i++;
    if (line.kind !== "removed") j++;
  }
  return lines;
}

function lineAt(old: string | undefined, young: string | undefined, isRemovedFirst: boolean): Line {
  if (old === undefined) return { kind: "added", text: young ?? "" };
  if (old === young) return { kind: "same", text: old };
  if (young === undefined || isRemovedFirst) return { kind: "removed", text: old };
  return { kind: "added", text: young };
}

/** [i][j]: how many lines the rest of `before` from i on and the rest of `after` from j on have in common. */
function commonLengths(before: readonly string[], after: readonly string[]): readonly (readonly number[])[] {
  const lengths: number[][] = [Array(after.length + 1).fill(0)];
  for (const old of before.toReversed()) {
    const below = lengths[0] ?? [];
    const row = [0];
    for (const [index, young] of [...after.entries()].toReversed())
      row.unshift(old === young ? (below[index + 1] ?? 0) + 1 : Math.max(below[index] ?? 0, row[0] ?? 0));
    lengths.unshift(row);
  }
  return lengths;
}

function at(lengths: readonly (readonly number[])[], i: number, j: number): number {
  return lengths[i]?.[j] ?? 0;
}
