/** Stores the figures of each file's last long run in test/soak/soak.json. */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { FileReport } from "./report.ts";

const RECORD = "test/soak/soak.json";

function read(): Readonly<Record<string, object>> {
  try {
    return JSON.parse(readFileSync(RECORD, "utf8"));
  } catch {
    return {};
  }
}

/** Records only passed tests of files that count something. `date`: ISO 8601. */
export function recordSoak(files: readonly FileReport[], date: string): void {
  const cores = availableParallelism();
  const green = files.filter(
    ({ failed, passed, figures }) => failed === 0 && passed > 0 && Object.keys(figures).length,
  );
  const records = green.map(({ file, passed, seconds, figures }) => [
    file,
    { date: date.slice(0, 10), cores, seconds, passed, figures },
  ]);
  const all = Object.entries({ ...read(), ...Object.fromEntries(records) });
  const sorted = Object.fromEntries(all.toSorted(([a], [b]) => a.localeCompare(b)));
  writeFileSync(RECORD, `${JSON.stringify(sorted, undefined, 2)}\n`);
}
