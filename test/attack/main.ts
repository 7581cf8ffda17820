/**
 * `npm run attack` tries every known attack, table by table. Exits 1 if an attack succeeded, or nothing was tried. `--
 * --times 10` generates ten times as many. `-- --part here` runs one part (here, control plane, page). `-- --counted`
 * tries nothing: it sums the reports that this run's tests left in reports/.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { keepReport } from "../simulation/report-file.ts";
import { readOptions } from "../support/read-options.ts";
import { asFigures, asText, haveAllHeld, type Report, sumTables } from "./sums.ts";
import { type Part, TABLES } from "./tables.ts";

const ROOT = join(import.meta.dirname, "../..");
const VITEST = "node_modules/vitest/vitest.mjs";
const BODIES = 2_000;
const PARTS: readonly Part[] = ["here", "control plane", "page"];

const { values } = readOptions({
  options: {
    times: { type: "string" },
    part: { type: "string", multiple: true },
    counted: { type: "boolean" },
    json: { type: "string" },
  },
});
const times = Number(values.times ?? 1);
const parts = PARTS.filter((part) => values.part?.includes(part) ?? true);
const tables = TABLES.filter(({ part }) => parts.includes(part));

function filesOf(part: Part): readonly string[] {
  const all = TABLES.filter((table) => table.part === part).flatMap(({ files }) =>
    files === "fuzz" ? [] : Object.keys(files),
  );
  return [...new Set(all)];
}

/** A missing file counts as empty. */
function readReports(names: readonly string[]): readonly Report[] {
  return names.flatMap((name) => {
    try {
      return JSON.parse(readFileSync(join(ROOT, "reports", name), "utf8")) as Report;
    } catch {
      return [];
    }
  });
}

/** The commands of each part, and the reports that they leave. */
const RUNS: Readonly<Record<Part, readonly (readonly [report: string, command: readonly string[]])[]>> = {
  here: [
    [
      "attack.json",
      [VITEST, "run", "--config=vitest.all.config.ts", "--outputFile.json=reports/attack.json", ...filesOf("here")],
    ],
    ["attack-fuzz.json", ["test/fuzz/main.ts", "--bodies", `${BODIES * times}`, "--json", "reports/attack-fuzz.json"]],
  ],
  "control plane": [["e2e-tests.json", ["test/e2e/main.ts", ...filesOf("control plane")]]],
  page: [["page.json", [VITEST, "run", "--config", "test/page/vitest.config.ts", ...filesOf("page")]]],
};

/** Returns true if no command failed. The reports have the details. */
function run(part: Part): boolean {
  const env = { ...process.env, ATTACK_TIMES: `${times}` };
  const ends = RUNS[part].map(([report, command]) => {
    rmSync(join(ROOT, "reports", report), { force: true });
    return spawnSync(process.execPath, command, { stdio: "inherit", cwd: ROOT, env }).status === 0;
  });
  return ends.every(Boolean);
}

/** Reports of .ci/run; repeated runs are the last. */
const COUNTED = ["vitest", "e2e-tests", "simulation", "page", "again-vitest", "again-e2e-tests", "again-page"];

const beganMs = performance.now();
const isGreen = values.counted || parts.map(run).every(Boolean);
const names = values.counted
  ? COUNTED.map((name) => `${name}.json`)
  : parts.flatMap((part) => RUNS[part].map(([report]) => report));
const sums = sumTables(readReports(names), ROOT, tables);
process.stdout.write(`\n${asText(sums)}`);
const seconds = Math.round((performance.now() - beganMs) / 1000);
if (values.json && !values.counted) keepReport(values.json, "attack", { times, seconds, ...asFigures(sums) });
process.exitCode = isGreen && haveAllHeld(sums) ? 0 : 1;
