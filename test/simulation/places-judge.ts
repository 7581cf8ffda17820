/** Compares every text about a rollout at one moment of a world, and reports contradictions with the book of holds. */
import { combinationOf, judged, placeProblems } from "../support/hold-places.ts";
import { type ReaderOptions, readNow } from "./read-now.ts";

interface PlacesJudgeOptions extends ReaderOptions {
  /** gets the names of the holds that applied together */
  readonly compared: (combination: string) => void;
  readonly violated: (what: string) => void;
}

export async function judgePlaces(options: PlacesJudgeOptions, name: string): Promise<void> {
  const read = await readNow(options, name);
  if (!read) return;
  const one = judged(read, read.sidecarSets);
  const combination = combinationOf(one);
  options.compared(combination);
  for (const problem of placeProblems(one)) options.violated(`${name}, held by ${combination}: ${problem}`);
}
