/** What other runs have measured, from the reports that they leave behind. */
import { readFile } from "node:fs/promises";

type Json = Readonly<Record<string, unknown>>;

/** undefined: nobody has measured that here. @throws SyntaxError for a report that is no JSON */
async function reportAt(path: string): Promise<Json | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Json;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** By their names in figures.json; what was not measured is not among them, so that older figures stay. */
export async function takenFigures(): Promise<Json> {
  const [bench, simulation] = await Promise.all([reportAt("reports/bench.json"), reportAt("reports/simulation.json")]);
  return { ...bench, ...(simulation ? { simulation } : {}) };
}
