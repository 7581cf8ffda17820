/** Figures from the reports of other runs. */
import { globSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { ON_NODE } from "../e2e/node/on-node.ts";

type Json = Readonly<Record<string, unknown>>;

const ORDERED = "reports/ordered.json";

/** Returns a report; undefined: it was not measured here. @throws SyntaxError for a report that is not JSON */
async function reportAt(path: string): Promise<Json | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Json;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Returns the figures of a run of all files; undefined for a run of some files, which would look complete. */
async function wholeRun(path: string, all: readonly string[]): Promise<Json | undefined> {
  const report = await reportAt(path);
  if (report === undefined) return undefined;
  const { files = [], finished, passed, failed, figures } = report as Json & { readonly files?: readonly Json[] };
  const count = globSync([...all]).length;
  if (files.length < count) {
    process.stderr.write(`${path} is left out: it is of ${files.length} of ${count} files\n`);
    return undefined;
  }
  return { measuredAt: String(finished).slice(0, 10), files: files.length, passed, failed, figures };
}

async function orderedSets(): Promise<Json> {
  const report = await reportAt(ORDERED);
  if (report === undefined) return {};
  return { ordered: { measuredAt: (await stat(ORDERED)).mtime.toISOString().slice(0, 10), ...report } };
}

/** Drops the soak's progress, which stays in its own file. */
function withoutChunks(soak: Json): Json {
  return Object.fromEntries(
    Object.entries(soak).map(([name, part]) => {
      const { chunks: _, ...figures } = part as Json;
      return [name, figures];
    }),
  );
}

/** Drops the list of bugs, which stays in its own file. */
function withoutBugs({ bugs: _, ...planted }: Json): Json {
  return planted;
}

/** Returns figures by their names in figures.json. Absent figures were not measured, so older ones stay. */
export async function takenFigures(): Promise<Json> {
  const [bench, simulation, soak, planted] = await Promise.all(
    ["reports/bench.json", "reports/simulation.json", "test/soak/soak.json", "test/planted/planted.json"].map(reportAt),
  );
  const e2e = await wholeRun("reports/e2e.json", ["test/e2e/**/*.e2e.ts"]);
  const node = await wholeRun("reports/node.json", ON_NODE);
  return {
    ...bench,
    ...(await orderedSets()),
    ...(e2e ? { e2e } : {}),
    ...(node ? { node } : {}),
    ...(simulation ? { simulation } : {}),
    ...(soak ? { soak: withoutChunks(soak) } : {}),
    ...(planted ? { planted: withoutBugs(planted) } : {}),
  };
}
