/** A Prometheus that gives good, bad, late or no answers. It judges whether passes obey its answers. */
import type { ConfigMap } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, METRICS_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Gates } from "../../shared/approval/batch-gates.ts";
import { ledgerName, parseLedger } from "../../shared/core/ledger.ts";
import type { Measured } from "../../shared/core/rollout/rules/checks/check-records.ts";
import type { ApiServer, Write } from "./api-server.ts";
import { freshIn, isUpgrade } from "./approver.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import type { SetPlan } from "./objects.ts";
import type { Process } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";
import type { WavePlan } from "./wave-witness.ts";

/** A check as users write it. Values are 0 or 9, and every bound is between them. */
export interface CheckPlan {
  readonly name: string;
  readonly query: string;
  readonly max: number;
  readonly failuresAllowed: number;
  readonly intervalSeconds: number;
}

export interface PrometheusPlan {
  readonly badRate: number;
  /** share of answers without a series */
  readonly nothingRate: number;
  /** share of questions without an answer */
  readonly deafRate: number;
}

export interface PrometheusOptions {
  /** the server's behaviour; absent: no checks */
  readonly plan: PrometheusPlan | undefined;
  readonly sets: readonly SetPlan[];
  readonly server: ApiServer;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  readonly violated: (what: string) => void;
}

type Outcome = "pass" | "fail" | "inconclusive";

/** An answer that a process got. */
interface Told {
  readonly process: string;
  readonly query: string;
  readonly outcome: Outcome;
  readonly askedAtMs: number;
}

/** A check's record in the ledger. */
interface CheckRecord {
  readonly name: string;
  readonly about: string;
  readonly at: string;
  readonly outcome: Outcome;
}

interface Wish {
  readonly text: string;
  readonly checks: readonly CheckPlan[];
  readonly waves: readonly WavePlan[];
}

/** The judge's knowledge about one SidecarSet. */
interface Known {
  /** users' checks in every spec that passes may still use; the newest is last */
  wishes: readonly Wish[];
  /** all records that any ledger has had */
  noted: readonly CheckRecord[];
  /** times at which batches of this release were reserved */
  batchesAtMs: readonly number[];
  /** waves of this release that the status calls passed */
  passed: ReadonlySet<string>;
  hash: string;
  releasedAtMs: number;
  records: readonly CheckRecord[];
  /** `about` → number of failures in a row */
  readonly failures: Map<string, number>;
  /** `about` → time at which the answer for the last batch was requested */
  readonly usedAt: Map<string, string>;
  /** each `about` from before the newest change of the release or of its checks */
  over: ReadonlySet<string>;
}

interface Subject {
  readonly set: string;
  readonly known: Known;
}

/** The longest time that a process waits for an answer. */
const MOST_WAIT_MS = 5_000;
/** Times are in whole seconds. */
const ROUNDING_MS = 1_000;
const VALUES = { pass: "0", fail: "9" } as const;

export class Prometheus {
  /** number of passed waves whose checks were judged */
  passed = 0;
  readonly #options: PrometheusOptions;
  readonly #told: Told[] = [];
  readonly #known: ReadonlyMap<string, Known>;
  /** process → time when it began, in milliseconds */
  readonly #began = new Map<string, number>();
  #isCalm = false;

  constructor(options: PrometheusOptions) {
    this.#options = options;
    this.#known = new Map(
      options.sets.map(({ name }) => [
        name,
        {
          wishes: [],
          noted: [],
          batchesAtMs: [],
          passed: new Set(),
          hash: "",
          releasedAtMs: 0,
          records: [],
          failures: new Map(),
          usedAt: new Map(),
          over: new Set(),
        },
      ]),
    );
  }

  /** Ends all faults. */
  calm(): void {
    this.#isCalm = true;
  }

  gatesOf(process: Process): Gates {
    this.#began.set(process.name, this.#options.scheduler.nowMs);
    return {
      refusals: new Map(),
      measure: (query, timeoutMs) => {
        if (timeoutMs > MOST_WAIT_MS) this.#options.violated(`${process.name} waits for metrics for ${timeoutMs} ms`);
        const askedAtMs = this.#options.scheduler.nowMs;
        const { measured, outcome, afterMs } = this.#answer(timeoutMs);
        return new Promise((resolve) => {
          process.deliver(afterMs, () => {
            this.#told.push({ process: process.name, query, outcome, askedAtMs });
            resolve(measured);
          });
        });
      },
    };
  }

  #answer(timeoutMs: number): { readonly measured: Measured; readonly outcome: Outcome; readonly afterMs: number } {
    const { chance, plan, counts } = this.#options;
    const afterMs = chance.between(1, 300);
    const outcome = !plan || this.#isCalm || !chance.isLucky(plan.badRate) ? "pass" : "fail";
    if (!plan || this.#isCalm) return { measured: { values: [VALUES.pass] }, outcome, afterMs };
    if (chance.isLucky(plan.deafRate)) {
      countFault(counts, "metrics without an answer");
      return { measured: { nothing: "no answer came in time" }, outcome: "inconclusive", afterMs: timeoutMs };
    }
    if (chance.isLucky(plan.nothingRate)) {
      countFault(counts, "metrics say nothing");
      return { measured: { nothing: "no series matches its query" }, outcome: "inconclusive", afterMs };
    }
    if (outcome === "fail") countFault(counts, "metrics beyond a bound");
    return { measured: { values: [VALUES.pass, VALUES[outcome]] }, outcome, afterMs };
  }

  see(write: Write): void {
    if (!this.#options.plan || write.isRemoved) return;
    const isPass = write.userAgent.startsWith("pass");
    if (write.resource === "sidecarsets") {
      const known = this.#known.get(write.name);
      const sidecarSet = write.object as unknown as SidecarSet;
      if (known && isPass) this.#seeStatus(write, known);
      else if (known) this.#seeWish(known, sidecarSet);
    }
    const set = this.#options.sets.find(({ name }) => ledgerName(name) === write.name);
    if (set && isPass && write.resource === "configmaps") this.#seeLedger(write, set.name);
  }

  #seeWish(known: Known, { metadata }: SidecarSet): void {
    const { [HASH_ANNOTATION]: hash = "" } = metadata?.annotations ?? {};
    const wish = wishIn(metadata?.annotations ?? {});
    const isSame = hash === known.hash && wish.text === known.wishes.at(-1)?.text;
    if (!isSame) known.over = new Set([...known.failures.keys(), ...known.usedAt.keys()]);
    known.wishes = [...known.wishes, wish];
    if (hash === known.hash) return;
    known.batchesAtMs = [];
    known.passed = new Set();
    known.hash = hash;
    known.releasedAtMs = this.#options.scheduler.nowMs;
  }

  #seeLedger({ object, previous, userAgent }: Write, set: string): void {
    const known = this.#known.get(set);
    const [next, before] = [object, previous].map((one) => parseLedger((one as ConfigMap | undefined)?.data));
    if (!known || !next) return;
    const records = JSON.parse(next.checks ?? "[]") as readonly CheckRecord[];
    const fresh = freshIn(next, before).filter((one) => isUpgrade(this.#options, one));
    const isBatch = fresh.some(({ revision }) => revision === known.hash);
    // Late answers about an older release do not count for the present one.
    const halted = new Set(
      [...known.failures].filter(([about]) => this.#isBeyond(known, about)).map(([about]) => about),
    );
    for (const record of records) this.#note(userAgent, { set, known }, record);
    if (isBatch) {
      known.batchesAtMs = [...known.batchesAtMs, this.#options.scheduler.nowMs];
      this.#judgeBatch(userAgent, { set, known, records, halted });
    }
    known.noted = [...known.noted, ...records.filter((one) => !known.noted.some((other) => isSameRecord(one, other)))];
    known.records = records;
    this.#forgetChecksOfOtherWaves(known);
    // The ledger may forget records of an ended release or check forever.
    for (const about of known.over)
      if (!records.some((one) => one.about === about)) {
        known.failures.delete(about);
        known.usedAt.delete(about);
      }
  }

  /** The recorded answer must be one that the server gave. It is then counted. */
  #note(process: string, { set, known }: Subject, record: CheckRecord): void {
    const { about, at, outcome, name } = record;
    if (known.records.some((one) => one.about === about && one.at === at)) return;
    const heard = this.#told.some((told) => told.process === process && told.outcome === outcome && isAt(told, at));
    // A late answer counts as no answer.
    if (!heard && outcome !== "inconclusive")
      this.#report(process, set, `notes a ${outcome} of ${name} that nobody said`);
    const failures = known.failures.get(about) ?? 0;
    if (outcome !== "inconclusive") known.failures.set(about, outcome === "fail" ? failures + 1 : 0);
  }

  #judgeBatch(
    process: string,
    { set, known, records, halted }: Subject & Pick<BatchFacts, "records" | "halted">,
  ): void {
    const facts = { ...known, records, halted };
    const problems = known.wishes.flatMap((wish) =>
      checkedBy(wish, known.passed).map((checks) => checks.map((check) => batchProblem(check, facts)).find(Boolean)),
    );
    const [problem] = problems;
    if (problem !== undefined && problems.every((one) => one !== undefined)) this.#report(process, set, problem);
    for (const { about, at } of records) known.usedAt.set(about, at);
  }

  /** Forgets checks of other waves: the ledger keeps only checks that the present wave names. */
  #forgetChecksOfOtherWaves(known: Known): void {
    if (!known.wishes.some(({ waves }) => waves.length > 0)) return;
    for (const about of [...known.failures.keys(), ...known.usedAt.keys()])
      if (!known.records.some((one) => one.about === about)) {
        known.failures.delete(about);
        known.usedAt.delete(about);
      }
  }

  #seeStatus({ object, previous, userAgent, name }: Write, known: Known): void {
    const [next, before] = [object, previous].map((one) => (one as unknown as SidecarSet | undefined)?.status);
    const { waves } = next ?? {};
    forgetWishes(known, object as unknown as SidecarSet);
    if (waves === undefined || waves.revision !== known.hash) return;
    const wish = known.wishes.at(-1);
    const wasPassed = passedIn(before, waves.revision);
    known.passed = passedIn(next, waves.revision);
    const fresh = waves.list.filter(({ name: wave }) => known.passed.has(wave) && !wasPassed.has(wave));
    // Passes may still use a spec older than the stored one. Then another pass is judged.
    if (wish === undefined || known.wishes.length > 1) return;
    if (isFinished(before)) return;
    for (const row of fresh) this.#judgePassed(userAgent, { set: name, known }, wish, row);
    const owed = isFinished(next) ? owedWave(wish, waves.list) : undefined;
    if (owed !== undefined) this.#report(userAgent, name, `is finished before ${owed} is passed`);
  }

  /** All checks of the wave must pass after its soak, and after the last batch that the pass can have seen. */
  #judgePassed(process: string, { set, known }: Subject, wish: Wish, row: WaveRow): void {
    this.passed++;
    const { soakSeconds = 0 } = wish.waves.find(({ name }) => name === row.name) ?? {};
    const beganAtMs = this.#began.get(process) ?? 0;
    const fromMs = Date.parse(row.completeSince ?? "") + 1_000 * soakSeconds;
    const batchAtMs = known.batchesAtMs.findLast((atMs) => atMs < beganAtMs) ?? 0;
    const late = namedBy(wish, row.name).find(({ name }) => !hasPassed(name, known, row, { fromMs, batchAtMs }));
    if (late) this.#report(process, set, `passes ${row.name}, and ${late.name} has not passed since: ${fromMs}`);
  }

  /** True if the check has failed too often under every spec that passes may use. */
  #isBeyond({ wishes, failures, records }: Known, about: string): boolean {
    const name = records.find((one) => one.about === about)?.name;
    const checks = wishes.flatMap((wish) => wish.checks.filter((check) => check.name === name));
    return checks.length > 0 && checks.every(({ failuresAllowed }) => (failures.get(about) ?? 0) > failuresAllowed);
  }

  #report(process: string, set: string, what: string): void {
    this.#options.violated(`${process}: ${set} ${what}`);
  }
}

type BatchFacts = Pick<Known, "releasedAtMs" | "usedAt" | "records"> & { readonly halted: ReadonlySet<string> };

/** Returns a sentence if no batch may begin. */
function batchProblem({ name, intervalSeconds }: CheckPlan, facts: BatchFacts): string | undefined {
  const { releasedAtMs, usedAt, records, halted } = facts;
  const record = records.find((one) => one.name === name);
  if (record?.outcome !== "pass") return `begins a batch, and ${name} is ${record?.outcome ?? "not known"}`;
  if (halted.has(record.about)) return `begins a batch, and ${name} has stopped it`;
  const atMs = Date.parse(record.at);
  if (atMs + ROUNDING_MS <= releasedAtMs) return `begins a batch by what ${name} was before this release`;
  const last = usedAt.get(record.about);
  const isSoon = last !== undefined && atMs - Date.parse(last) < 1_000 * intervalSeconds;
  return isSoon ? `begins a batch by ${name} of ${record.at}, and the last one was by ${last}` : undefined;
}

type WaveRow = NonNullable<NonNullable<SidecarSet["status"]>["waves"]>["list"][number];

function wishIn(annotations: Readonly<Record<string, string>>): Wish {
  const { [METRICS_ANNOTATION]: checks = "[]", [WAVES_ANNOTATION]: waves } = annotations;
  return { text: JSON.stringify([checks, waves]), checks: JSON.parse(checks), waves: JSON.parse(waves ?? "[]") };
}

/** Returns the checks of a wave, or of the namespaces outside all waves. */
function namedBy({ checks, waves }: Wish, wave: string | undefined): readonly CheckPlan[] {
  const named = waves.find(({ name }) => name === wave)?.checks;
  return checks.filter(({ name }) => named === undefined || named.includes(name));
}

/**
 * Returns the checks of the present wave, found from the passed waves. A pass may have looked before the last wave
 * passed.
 */
function checkedBy(wish: Wish, passed: ReadonlySet<string>): readonly (readonly CheckPlan[])[] {
  const { waves } = wish;
  const at = waves.findIndex(({ name, paused }) => paused || !passed.has(name));
  const rank = at < 0 ? waves.length : at;
  return [rank, ...(rank > 0 ? [rank - 1] : [])].map((one) => namedBy(wish, waves[one]?.name));
}

function isFinished(status: SidecarSet["status"]): boolean {
  return status?.conditions?.some(({ type, reason }) => type === "Progressing" && reason === "Finished") === true;
}

function passedIn(status: SidecarSet["status"], revision: string): ReadonlySet<string> {
  const rows = status?.waves?.revision === revision ? status.waves.list : [];
  return new Set(rows.flatMap(({ name, passedAt }) => (passedAt === undefined ? [] : [name])));
}

/** Returns the wave whose checks must pass next. Nobody waits for a paused wave or the waves after it. */
function owedWave(wish: Wish, rows: readonly WaveRow[]): string | undefined {
  const paused = wish.waves.findIndex((one) => one.paused);
  const reached = paused < 0 ? rows : rows.slice(0, paused);
  const isOwed = ({ name, pods, passedAt }: WaveRow) =>
    pods > 0 && passedAt === undefined && namedBy(wish, name).length > 0;
  return reached.find(isOwed)?.name;
}

interface Since {
  /** the end of the wave's soak, in milliseconds */
  readonly fromMs: number;
  readonly batchAtMs: number;
}

/** In a wave without pods it is enough that no check failed. */
function hasPassed(check: string, { noted, records }: Known, { pods }: WaveRow, { fromMs, batchAtMs }: Since): boolean {
  const last = records.find(({ name }) => name === check);
  if (pods === 0) return last === undefined || last.outcome === "pass";
  const isSince = (atMs: number) => atMs >= fromMs && atMs + ROUNDING_MS > batchAtMs;
  return noted.some(({ name, at, outcome }) => name === check && outcome === "pass" && isSince(Date.parse(at)));
}

function isSameRecord(one: CheckRecord, other: CheckRecord): boolean {
  return one.about === other.about && one.at === other.at && one.outcome === other.outcome;
}

function forgetWishes(known: Known, { status }: SidecarSet): void {
  const { text } = wishIn(status?.observedAnnotations ?? {});
  const at = known.wishes.findIndex((wish) => wish.text === text);
  if (at > 0) known.wishes = known.wishes.slice(at);
}

function isAt({ askedAtMs }: Told, at: string): boolean {
  return Math.abs(askedAtMs - Date.parse(at)) < 2 * ROUNDING_MS;
}
