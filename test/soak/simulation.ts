/** Seeds beyond those of CI, in chunks: after each the figures stand in docs/soak.json, and a later run goes on from there. */
import { execFileSync } from "node:child_process";
import { availableParallelism, constants, setPriority } from "node:os";
import { parseArgs } from "node:util";
import { type Campaign, emptyCampaign, merged, rareFaults } from "../simulation/campaign.ts";
import { FAULTS } from "../simulation/faults.ts";
import { keepReport, readReport } from "../simulation/report-file.ts";
import { runAll } from "../simulation/run-all.ts";

const SEEDS = 2_000_000;
/** CI's are before. */
const FIRST = 1_000_000;
const CHUNK = 10_000;
const SIMULATED = ["shared", "infra/local", "test/simulation"] as const;

interface Record extends Omit<Campaign, "findings"> {
  readonly commit: string;
  /** of what is simulated: as long as they are the same, seeds add up */
  readonly trees: string;
  readonly cores: number;
  readonly seconds: number;
  readonly findings: number;
}

const { values } = parseArgs({
  options: { seeds: { type: "string" }, threads: { type: "string" }, json: { type: "string" } },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);
const git = (...argv: string[]) => execFileSync("git", argv, { encoding: "utf8" }).trim();

function begin(file: string): Record {
  const trees = SIMULATED.map((path) => git("rev-parse", "--short=12", `HEAD:${path}`)).join(" ");
  const known = readReport(file)["simulation"] as Record | undefined;
  const fresh = { ...emptyCampaign(), findings: 0, trees, commit: git("rev-parse", "--short=12", "HEAD") };
  return known?.trees === trees ? known : { ...fresh, cores: availableParallelism(), seconds: 0 };
}

function added(record: Record, campaign: Campaign, seconds: number): Record {
  const sum = merged({ ...record, findings: [] }, campaign);
  const findings = record.findings + campaign.findings.length;
  return { ...record, ...sum, findings, seconds: record.seconds + seconds };
}

async function soak(file: string, seeds: number, threads: number): Promise<boolean> {
  let record = begin(file);
  if (record.runs > 0) print(`goes on after ${record.runs} seeds`);
  while (record.runs < seeds) {
    const beganMs = performance.now();
    const from = FIRST + record.runs;
    const campaign = await runAll("seeds", { from, count: Math.min(CHUNK, seeds - record.runs) }, threads);
    for (const { seed, violations } of campaign.findings)
      print(`FAIL npm run simulate -- --seed ${seed}   # ${violations[0]}`);
    record = added(record, campaign, Math.round((performance.now() - beganMs) / 1000));
    keepReport(file, "simulation", { kinds: FAULTS.length, ...record });
    print(`${record.runs} of ${seeds} seeds, ${record.findings} violated; ${record.seconds} s`);
  }
  const rare = rareFaults({ ...record, findings: [] });
  for (const fault of rare) print(`FAIL the fault "${fault}" happened ${record.faults[fault]} times`);
  return record.runs > 0 && record.findings === 0 && rare.length === 0;
}

if (git("status", "--porcelain", "--", ...SIMULATED) !== "") print("what is simulated is not as it was committed");
else {
  setPriority(constants.priority.PRIORITY_LOW);
  const threads = Number(values.threads ?? availableParallelism());
  const isGreen = await soak(values.json ?? "docs/soak.json", Number(values.seeds ?? SEEDS), threads);
  process.exit(isGreen ? 0 : 1);
}
process.exitCode = 2;
