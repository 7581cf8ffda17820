/**
 * How far a release has come through its waves: which waves may be written to, and the status's record of that. A wave
 * has passed once the status says so for this very release. Only that opens later waves, so no pass relies on its own
 * view, and later failures do not undo it.
 */
import type { Labels } from "../../../../api/kubernetes.ts";
import { WAVES_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../../api/sidecarset.ts";
import { addSeconds, secondsBetween } from "../../../../go/seconds-between.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import type { MetricCheck } from "../../../pod/steering/metric-checks.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { type Wave, waveOf } from "../../../pod/steering/waves.ts";
import { currentHash } from "../../history/history.ts";
import { classify, type Replaceable } from "../../select/classify.ts";
import { canFlip } from "../../upgrade/hot-slot.ts";
import { type CheckRecord, type KnownCheck, knownChecks } from "../checks/check-records.ts";
import { wasFinished } from "../halt/undone.ts";

export type WavesRecord = NonNullable<SidecarSetStatus["waves"]>;
type WaveRecord = WavesRecord["list"][number];

/**
 * The stage of a wave: passed, updating, complete for too short a time, complete but unchecked, complete and paused, or
 * not begun.
 */
type WaveStage = "passed" | "updating" | "soaking" | "checking" | "paused" | "waiting";

export interface WaveRow {
  /** name of the wave; "" for namespaces outside all waves, which come last */
  readonly name: string;
  readonly stage: WaveStage;
  readonly pods: number;
  readonly updated: number;
  readonly updatedReady: number;
  /** number of pods to update or to become ready, and of workloads to restart */
  readonly left: number;
  /** number of workloads to restart; absent: none */
  readonly restarts?: number;
  /** end of the wave's soak, RFC3339, while it soaks or its later checks run */
  readonly soaksUntil?: string;
}

export interface WavesSummary extends AtWork {
  readonly rows: readonly WaveRow[];
  /** the wave that blocks the later ones; absent: none */
  readonly holder?: WaveRow;
  /** number of pods in later waves that wait */
  readonly behind: number;
  /** a wave passed just now: the status must say so before the next one begins */
  readonly isTurning: boolean;
  /** true: an unpassed wave has checks that must see all of it, so the rollout is not over */
  readonly isProving?: true;
}

export interface WavesNow {
  readonly summary: WavesSummary;
  /** record of the waves for the status */
  readonly record: WavesRecord;
  /** returns the index of a pod's wave, from 0 */
  readonly rankOf: (state: PodState) => number;
  /** returns true if the pod's wave has begun, and no earlier one is paused */
  readonly isOpen: (state: Pick<PodState, "pod">) => boolean;
}

export interface WavesScene {
  readonly sidecarSet: SidecarSet;
  /** the labels that waves read, by namespace */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  /** the present time: RFC3339, whole seconds, UTC */
  readonly now: string;
  /** results of metric checks */
  readonly checks: readonly CheckRecord[];
  /** pods to replace; absent: none */
  readonly replacement?: TallyFacts["replacement"];
  /** evicted pods without a successor yet; absent: none */
  readonly gone?: TallyFacts["gone"];
  readonly restarts?: TallyFacts["restarts"];
}

/** The waves; undefined: none are configured, or the annotation cannot be read. */
export function wavesNow(scene: WavesScene, states: Sequence<PodState>): WavesNow | undefined {
  const { sidecarSet, namespaceLabels, now } = scene;
  const { waves: asked, areWavesSkipped: isSkipping } = steeringOf(sidecarSet);
  if (asked === undefined) return undefined;
  const waves = isSkipping ? asked.map((wave) => ({ ...wave, isPaused: false })) : asked;
  const ranks = new Map([...namespaceLabels].map(([name, labels]) => [name, waveOf(waves, labels)]));
  const rankOfNamespace = (namespace: string) => ranks.get(namespace) ?? waves.length;
  const rankOf = ({ pod }: Pick<PodState, "pod">) => rankOfNamespace(pod.metadata?.namespace ?? "");
  const tallies = tallyWaves(states, { ...scene, rankOf: rankOfNamespace, count: waves.length + 1 });
  const stored = storedRecords(sidecarSet);
  const asks = (wave: string) => (isOver(sidecarSet, tallies) ? [] : checksAsked(sidecarSet, wave));
  const isProven = ({ name }: Wave, soakedAt: string, pods: number) =>
    areChecksPassed(knownChecks(sidecarSet, scene.checks, asks(name)), soakedAt, pods);
  const list = advance(waves, tallies, { stored, now, isSkipping, isProven });
  const open = openWaves(waves, (name) => isSkipping || stored.get(name)?.passedAt !== undefined);
  const isTurning = list.some(
    ({ name, passedAt }) => passedAt !== undefined && stored.get(name)?.passedAt === undefined,
  );
  const rows: readonly WaveRow[] = rowsOf(waves, tallies, list, now);
  const holder = rows.find(({ stage }) => stage !== "passed" && stage !== "waiting");
  const behind = tallies.slice(open).reduce((sum, { waiting }) => sum + waiting, 0);
  const isHeld = holder !== undefined && holder.name !== "";
  return {
    summary: {
      rows,
      ...(isHeld ? { holder } : {}),
      ...(isHeld && holder.stage === "checking" && !isTurning ? { checkedFrom: holder.soaksUntil ?? "" } : {}),
      ...(isHeld && isProving(rows, (name) => asks(name).length > 0) ? { isProving: true } : {}),
      behind,
      isTurning,
      atWork: waves[open - 1]?.name ?? "",
    },
    record: { revision: currentHash(sidecarSet), list },
    rankOf,
    isOpen: (state) => rankOf(state) < open,
  };
}

/** True if a wave with pods still has to pass its checks, and neither it nor an earlier one is paused. */
function isProving(rows: readonly WaveRow[], asksChecks: (wave: string) => boolean): boolean {
  const paused = rows.findIndex(({ stage }) => stage === "paused");
  const left = paused < 0 ? rows : rows.slice(0, paused);
  return left.some(({ name, stage, pods }) => name !== "" && stage !== "passed" && pods > 0 && asksChecks(name));
}

/** True for a finished release that reached every pod: metrics no longer concern it. */
function isOver(sidecarSet: SidecarSet, tallies: readonly Tally[]): boolean {
  const { metadata, status } = sidecarSet;
  const isSeen = status?.observedGeneration === metadata?.generation && wasFinished(sidecarSet, status?.latestRevision);
  return isSeen && tallies.every(({ pods, updated }) => pods === updated);
}

/** The waves that the status keeps while the annotation cannot be read; undefined: the annotation can be read. */
export function keptRecord(sidecarSet: SidecarSet): WavesRecord | undefined {
  const isUnreadable = steeringOf(sidecarSet).problems.some(({ annotation }) => annotation === WAVES_ANNOTATION);
  return isUnreadable ? sidecarSet.status?.waves : undefined;
}

/** The stored records of this release; records of another release do not count. */
function storedRecords(sidecarSet: SidecarSet): ReadonlyMap<string, WaveRecord> {
  const { waves } = sidecarSet.status ?? {};
  if (waves === undefined || waves.revision !== currentHash(sidecarSet)) return new Map();
  return new Map(waves.list.map((one) => [one.name, one]));
}

/**
 * True if the stored times would start a soak too early. They belong to another release, or call a wave complete that
 * no longer is. The pods that are now written to may be done before the next pass looks.
 */
export function isSoakBehind(stored: WavesRecord | undefined, { revision, list }: WavesRecord): boolean {
  const isOver = ({ name, completeSince }: WaveRecord) =>
    completeSince !== undefined && !list.some((one) => one.name === name && one.completeSince !== undefined);
  return stored?.revision !== revision || stored.list.some(isOver);
}

interface Since {
  readonly stored: ReadonlyMap<string, WaveRecord>;
  readonly now: string;
  /** returns true if the checks of a wave with this many pods have passed since that time */
  readonly isProven: (wave: Wave, soakedAt: string, pods: number) => boolean;
  /** true: all waves pass at once */
  readonly isSkipping: boolean;
}

function advance(waves: readonly Wave[], tallies: readonly Tally[], since: Since): readonly WaveRecord[] {
  const { stored, now, isSkipping } = since;
  let isReached = true;
  return waves.map((wave, rank): WaveRecord => {
    const known = stored.get(wave.name);
    const { pods = 0, updated = 0, updatedReady = 0, left = 0 } = tallies[rank] ?? {};
    const times = isSkipping
      ? { ...timesKnown(known), passedAt: known?.passedAt ?? now }
      : timesOf(wave, known, { ...since, pods, isComplete: left === 0 && isReached });
    isReached = times.passedAt !== undefined;
    return { name: wave.name, pods, updated, updatedReady, ...times };
  });
}

type Times = Pick<WaveRecord, "completeSince" | "passedAt">;

/** The times of the waves. A time starts again if a pod of the wave stops being ready before it is over. */
function timesOf(
  wave: Wave,
  known: WaveRecord | undefined,
  { isComplete, pods, now, isProven }: Since & { readonly isComplete: boolean; readonly pods: number },
): Times {
  const { completeSince: before, passedAt } = known ?? {};
  if (passedAt !== undefined) return { ...timesKnown(known), passedAt };
  if (!isComplete) return {};
  const completeSince = before ?? now;
  const soakedAt = addSeconds(completeSince, wave.soakSeconds) ?? "";
  const isOver = !wave.isPaused && isSoaked(completeSince, wave.soakSeconds, now) && isProven(wave, soakedAt, pods);
  return { completeSince, ...(isOver ? { passedAt: now } : {}) };
}

function timesKnown({ completeSince }: Partial<WaveRecord> = {}): Times {
  return completeSince === undefined ? {} : { completeSince };
}

function isSoaked(since: string, seconds: number, now: string): boolean {
  return seconds === 0 || (secondsBetween(since, now) ?? 0) >= seconds;
}

/** The number of waves that may be written to, at least one. */
function openWaves(waves: readonly Wave[], isPassed: (name: string) => boolean): number {
  const closed = waves.findIndex(({ name, isPaused }) => isPaused || !isPassed(name));
  return closed < 0 ? waves.length + 1 : closed + 1;
}

function rowsOf(waves: readonly Wave[], tallies: readonly Tally[], list: readonly WaveRecord[], now: string) {
  let isReached = true;
  const rows = waves.map((wave, rank): WaveRow => {
    const record = list[rank];
    const stage = isReached ? stageOf(wave, now, record) : "waiting";
    isReached = stage === "passed";
    const isTimed = stage === "soaking" || stage === "checking";
    const until = isTimed ? addSeconds(record?.completeSince ?? "", wave.soakSeconds) : undefined;
    return { ...rowOf(wave.name, stage, tallies[rank]), ...(until === undefined ? {} : { soaksUntil: until }) };
  });
  const rest = tallies[waves.length];
  if (rest === undefined || rest.pods === 0) return rows;
  const stage = !isReached ? "waiting" : rest.left === 0 ? "passed" : "updating";
  return [...rows, rowOf("", stage, rest)];
}

function stageOf({ isPaused, soakSeconds }: Wave, now: string, record: Partial<WaveRecord> = {}): WaveStage {
  const { completeSince, passedAt } = record;
  if (completeSince === undefined && passedAt === undefined) return "updating";
  if (isPaused) return "paused";
  if (passedAt !== undefined || completeSince === undefined) return "passed";
  return isSoaked(completeSince, soakSeconds, now) ? "checking" : "soaking";
}

function rowOf(
  name: string,
  stage: WaveStage,
  { pods = 0, updated = 0, updatedReady = 0, left = 0, restarts = 0 }: Partial<Tally> = {},
) {
  return { name, stage, pods, updated, updatedReady, left, ...(restarts > 0 ? { restarts } : {}) };
}

// Counts the remaining work of each wave.

/** Counts of pods. */
interface Tally {
  readonly pods: number;
  readonly updated: number;
  readonly updatedReady: number;
  /** number of pods to update, or to become ready, before the wave is complete */
  readonly left: number;
  /** number of workloads in `left` that are being restarted, or will be */
  readonly restarts: number;
  /** number of pods in `left` that could be upgraded now */
  readonly waiting: number;
}

const NO_PODS: Tally = { pods: 0, updated: 0, updatedReady: 0, left: 0, restarts: 0, waiting: 0 };

/** The facts that the counts depend on. */
interface TallyFacts {
  readonly sidecarSet: SidecarSet;
  /** returns the rank of a namespace's wave, from 0 */
  readonly rankOf: (namespace: string) => number;
  readonly count: number;
  /** pods to replace; absent: no pod is replaced */
  readonly replacement?: Replaceable | undefined;
  /** evicted pods without a successor; absent: none */
  readonly gone?: readonly { readonly namespace: string }[] | undefined;
  /** workloads that are being restarted, or will be, so that their pods may be on their way; absent: none */
  readonly restarts?: readonly { readonly namespace: string }[] | undefined;
}

/**
 * One tally for each rank. A wave does not wait for pods that must be recreated if nobody does it, or for pods that the
 * update selector leaves out.
 */
function tallyWaves(states: Sequence<PodState>, facts: TallyFacts): readonly Tally[] {
  const { rankOf, count, gone = [], restarts = [] } = facts;
  const tallies = Array.from({ length: count }, () => NO_PODS);
  const add = (namespace: string, tally: Tally) => {
    const rank = rankOf(namespace);
    tallies[rank] = sum(tallies[rank] ?? NO_PODS, tally);
  };
  each(states, (state) => add(state.pod.metadata?.namespace ?? "", one(state, facts)));
  for (const { namespace } of gone) add(namespace, { ...NO_PODS, left: 1 });
  for (const { namespace } of restarts) add(namespace, { ...NO_PODS, left: 1, restarts: 1 });
  return tallies;
}

function sum(a: Tally, b: Tally): Tally {
  return {
    pods: a.pods + b.pods,
    updated: a.updated + b.updated,
    updatedReady: a.updatedReady + b.updatedReady,
    left: a.left + b.left,
    restarts: a.restarts + b.restarts,
    waiting: a.waiting + b.waiting,
  };
}

function one(state: PodState, facts: TallyFacts): Tally {
  const { isUpdated, isConsistent, isReady } = state;
  return {
    pods: 1,
    updated: isUpdated ? 1 : 0,
    updatedReady: isUpdated && isConsistent && isReady ? 1 : 0,
    left: isLeft(state, facts) ? 1 : 0,
    restarts: 0,
    waiting: classify(state, facts.sidecarSet, facts.replacement) === "waiting" ? 1 : 0,
  };
}

/** True while the pod has work left. A pass may write to a reserved pod in any state at any moment. */
function isLeft(state: PodState, { sidecarSet, replacement }: TallyFacts): boolean {
  if (state.isReservedNow === true) return true;
  if (state.isUpdated) return !isThrough(state, sidecarSet);
  const podClass = classify(state, sidecarSet, replacement);
  // When replacing has stopped, the pods that it must still reach hold the later waves.
  if (podClass === "notUpgradable") return replacement?.wants(state.pod) === true;
  return podClass === "waiting" || podClass === "inFlight";
}

/** True for an updated pod whose update is complete. */
function isThrough(state: PodState, sidecarSet: SidecarSet): boolean {
  const isUp = (state.isConsistent && state.isReady) || state.isIgnored === true;
  return isUp && !canFlip(state.pod, sidecarSet) && (state.resize === undefined || state.resize.step === "none");
}

// Chooses the metric checks to ask now: checks of the current wave, before each batch and before the wave passes. At
// its end only results count that are newer than its soak and its last batch.

/** The current wave. */
export interface AtWork {
  /** the last wave that has begun; "" for the namespaces outside all waves, which come last */
  readonly atWork: string;
  /** time after which results count, RFC3339, while the wave waits only for its checks */
  readonly checkedFrom?: string;
}

/** The checks. `wave`: name of a wave; undefined or unknown: all checks. */
export function checksAsked(sidecarSet: SidecarSet, wave: string | undefined): readonly MetricCheck[] {
  const { checks, waves } = steeringOf(sidecarSet);
  const named = waves?.find(({ name }) => name === wave)?.checks;
  return checks.filter(({ name }) => named === undefined || named.includes(name));
}

/** The checks to evaluate now, with their results. `waves`: absent if there are none. */
export function checksNow(
  sidecarSet: SidecarSet,
  records: readonly CheckRecord[],
  waves: AtWork | undefined,
): readonly KnownCheck[] {
  const known = knownChecks(sidecarSet, records, checksAsked(sidecarSet, waves?.atWork));
  const from = waves?.checkedFrom;
  return from === undefined ? known : known.map((one) => withoutOld(one, from));
}

/** True if a complete wave has passed these checks. `from`: start of its soak, RFC3339. `pods`: its number of pods. */
function areChecksPassed(known: readonly KnownCheck[], from: string, pods: number): boolean {
  // A wave without pods shows nothing about the release, but earlier results stay valid.
  if (pods === 0) return known.every(({ record }) => record === undefined || record.outcome === "pass");
  return known
    .map((one) => withoutOld(one, from))
    .every(({ record }) => record?.outcome === "pass" && record.isUsed !== true);
}

/** Marks a result older than `from` as used, so that a pass evaluates the check again. */
function withoutOld(known: KnownCheck, from: string): KnownCheck {
  const { record } = known;
  const isOld = record?.outcome === "pass" && (secondsBetween(from, record.at) ?? -1) < 0;
  return isOld ? { ...known, record: { ...record, isUsed: true } } : known;
}
