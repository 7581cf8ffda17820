/**
 * Runs seeds beyond CI's, in chunks. After each chunk the figures are in test/soak/soak.json, and a later run continues
 * from there, at any commit. `chunks` says when and at which commit seeds were run.
 */
import { execFileSync } from "node:child_process";
import { availableParallelism, constants, setPriority } from "node:os";
import { type Campaign, emptyCampaign, merged, rarities } from "../simulation/campaign.ts";
import { FAULTS } from "../simulation/faults.ts";
import { keepReport, readReport } from "../simulation/report-file.ts";
import { runAll } from "../simulation/run-all.ts";
import { readOptions } from "../support/read-options.ts";

const SEEDS = 2_000_000;
/** The first seed; CI runs lower ones. */
const FIRST = 1_000_000;
const CHUNK = 20_000;
const SIMULATED = ["shared", "infra/local", "test/simulation"] as const;

/** Consecutive seeds that were run on one day at one commit. */
interface Chunk {
  readonly date: string;
  readonly commit: string;
  readonly from: number;
  /** the first seed after the chunk */
  readonly to: number;
  /** seeds in which a promise was broken */
  readonly findings: readonly number[];
  readonly seconds: number;
}

/** All chunks together, from all commits. */
interface Record extends Omit<Campaign, "findings"> {
  /** date of the last chunk, to which `commit` belongs too */
  readonly date: string;
  readonly commit: string;
  readonly cores: number;
  readonly seconds: number;
  readonly findings: number;
  readonly chunks: readonly Chunk[];
}

const { values } = readOptions({
  options: { seeds: { type: "string" }, processes: { type: "string" }, json: { type: "string" } },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);
const git = (...argv: string[]) => execFileSync("git", argv, { encoding: "utf8" }).trim();
const COMMIT = git("rev-parse", "--short=12", "HEAD");
const today = () => new Date().toISOString().slice(0, 10);

function begin(file: string): Record {
  const known = readReport(file)["simulation"] as Record | undefined;
  const fresh = { ...emptyCampaign(), findings: 0, date: today(), commit: COMMIT, chunks: [] };
  // Kinds that were added later have a count of zero.
  const [faults, worlds] = [
    { ...fresh.faults, ...known?.faults },
    { ...fresh.worlds, ...known?.worlds },
  ];
  return { ...fresh, cores: availableParallelism(), seconds: 0, ...known, faults, worlds };
}

function added(record: Record, from: number, campaign: Campaign, seconds: number): Record {
  const date = today();
  const findings = campaign.findings.map(({ seed }) => seed);
  const chunk: Chunk = { date, commit: COMMIT, from, to: from + campaign.runs, findings, seconds };
  return {
    ...record,
    ...merged({ ...record, findings: [] }, campaign),
    findings: record.findings + findings.length,
    seconds: record.seconds + seconds,
    date,
    commit: COMMIT,
    chunks: joined(record.chunks, chunk),
  };
}

/** Returns the chunks with the new one. A chunk of the same day and commit is joined with the last one. */
function joined(chunks: readonly Chunk[], next: Chunk): readonly Chunk[] {
  const last = chunks.at(-1);
  if (last?.date !== next.date || last.commit !== next.commit || last.to !== next.from) return [...chunks, next];
  const findings = [...last.findings, ...next.findings];
  return [...chunks.slice(0, -1), { ...last, to: next.to, findings, seconds: last.seconds + next.seconds }];
}

async function soak(file: string, seeds: number, processes: number): Promise<boolean> {
  let record = begin(file);
  if (record.runs > 0) print(`goes on after ${record.runs} seeds`);
  while (record.runs < seeds) {
    const beganMs = performance.now();
    const from = record.chunks.at(-1)?.to ?? FIRST;
    const campaign = await runAll("seeds", { from, count: Math.min(CHUNK, seeds - record.runs) }, processes);
    for (const { seed, violations } of campaign.findings)
      print(`FAIL npm run simulate -- --seed ${seed}   # ${violations[0]}`);
    record = added(record, from, campaign, Math.round((performance.now() - beganMs) / 1000));
    keepReport(file, "simulation", { kinds: FAULTS.length, ...record });
    print(`${record.runs} of ${seeds} seeds, ${record.findings} violated; ${record.seconds} s`);
  }
  const rare = rarities({ ...record, findings: [] });
  for (const what of rare) print(`FAIL ${what}`);
  return record.runs > 0 && record.findings === 0 && rare.length === 0;
}

if (git("status", "--porcelain", "--", ...SIMULATED) !== "") print("what is simulated is not as it was committed");
else {
  setPriority(constants.priority.PRIORITY_LOW);
  const processes = Number(values.processes ?? availableParallelism());
  const isGreen = await soak(values.json ?? "test/soak/soak.json", Number(values.seeds ?? SEEDS), processes);
  process.exit(isGreen ? 0 : 1);
}
process.exitCode = 2;
