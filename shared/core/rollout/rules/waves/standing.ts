/**
 * Decides how far a release has come through its waves: which of them may be written to, and what of that the status has
 * to say. A wave is behind us once the status says so of this very release; only that lets pods of later waves go, so no
 * pass relies on what it alone has seen, and nothing that befalls the wave later takes it back.
 */
import type { Labels } from "../../../../api/kubernetes.ts";
import { WAVES_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../../api/sidecarset.ts";
import { addSeconds, secondsBetween } from "../../../../go/seconds-between.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import { type Wave, waveOf } from "../../../pod/steering/waves.ts";
import { currentHash } from "../../history/outcomes.ts";
import { classify, type Replaceable } from "../../select/classify.ts";
import { canFlip } from "../../upgrade/hot-slot.ts";
import { type CheckRecord, knownChecks } from "../checks/check-records.ts";
import { wasFinished } from "../halt/undone.ts";
import { type AtWork, areChecksPassed, checksAsked } from "./wave-checks.ts";

export type WavesRecord = NonNullable<SidecarSetStatus["waves"]>;
type WaveRecord = WavesRecord["list"][number];

/** Where a wave stands: behind us, at work, complete for too short a time, for long enough but without its checks, complete and paused, or not begun. */
type WaveStage = "passed" | "updating" | "soaking" | "checking" | "paused" | "waiting";

export interface WaveRow {
  /** "": namespaces of no wave, which come last */
  readonly name: string;
  readonly stage: WaveStage;
  readonly pods: number;
  readonly updated: number;
  readonly updatedReady: number;
  /** pods that are still to be updated, or to be ready, and workloads that are restarted */
  readonly left: number;
  /** so many of them are workloads that are being restarted, or are to be; absent: none */
  readonly restarts?: number;
  /** while it soaks or is checked after that, RFC3339 */
  readonly soaksUntil?: string;
}

export interface WavesSummary extends AtWork {
  readonly rows: readonly WaveRow[];
  /** the wave that keeps those behind it; absent: none does */
  readonly holder?: WaveRow;
  /** pods behind it that wait for their wave */
  readonly behind: number;
  /** a wave was passed just now: the status is to say so, and then its successor begins */
  readonly isTurning: boolean;
  /** a wave that is not passed has checks that are to see all of it: the rollout is not over before it is passed */
  readonly isProving?: true;
}

export interface WavesNow {
  readonly summary: WavesSummary;
  /** what the status has to say */
  readonly record: WavesRecord;
  /** which wave a pod belongs to, from 0 */
  readonly rankOf: (state: PodState) => number;
  /** its wave has begun, and none before it is paused */
  readonly isOpen: (state: Pick<PodState, "pod">) => boolean;
}

export interface WavesScene {
  readonly sidecarSet: SidecarSet;
  /** namespace → its labels, as far as waves read them */
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  /** what came of checks of metrics */
  readonly checks: readonly CheckRecord[];
  /** which pods are replaced; absent: none is */
  readonly replacement?: TallyFacts["replacement"];
  /** evicted pods that have no successor yet; absent: none */
  readonly gone?: TallyFacts["gone"];
  readonly restarts?: TallyFacts["restarts"];
}

/** undefined: nobody asks for waves, or nobody can read which. */
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

/** A wave with pods is still to pass its checks, and nobody has paused it, nor one before it. */
function isProving(rows: readonly WaveRow[], asksChecks: (wave: string) => boolean): boolean {
  const paused = rows.findIndex(({ stage }) => stage === "paused");
  const left = paused < 0 ? rows : rows.slice(0, paused);
  return left.some(({ name, stage, pods }) => name !== "" && stage !== "passed" && pods > 0 && asksChecks(name));
}

/** Of a release that has reached every pod, and was over: what metrics say now is no matter of it. */
function isOver(sidecarSet: SidecarSet, tallies: readonly Tally[]): boolean {
  const { metadata, status } = sidecarSet;
  const isSeen = status?.observedGeneration === metadata?.generation && wasFinished(sidecarSet, status?.latestRevision);
  return isSeen && tallies.every(({ pods, updated }) => pods === updated);
}

/** What the status goes on to say of waves while nobody can read the annotation; undefined: it is not there. */
export function keptRecord(sidecarSet: SidecarSet): WavesRecord | undefined {
  const isUnreadable = steeringOf(sidecarSet).problems.some(({ annotation }) => annotation === WAVES_ANNOTATION);
  return isUnreadable ? sidecarSet.status?.waves : undefined;
}

/** What is stored of this release; of another one nothing counts. */
function storedRecords(sidecarSet: SidecarSet): ReadonlyMap<string, WaveRecord> {
  const { waves } = sidecarSet.status ?? {};
  if (waves === undefined || waves.revision !== currentHash(sidecarSet)) return new Map();
  return new Map(waves.list.map((one) => [one.name, one]));
}

/**
 * What is stored would let a wave soak from too early: it is of another release, or says of one that it was complete which
 * is so no more, and what is written to now may be through before the next pass looks.
 */
export function isSoakBehind(stored: WavesRecord | undefined, { revision, list }: WavesRecord): boolean {
  const isOver = ({ name, completeSince }: WaveRecord) =>
    completeSince !== undefined && !list.some((one) => one.name === name && one.completeSince !== undefined);
  return stored?.revision !== revision || stored.list.some(isOver);
}

interface Since {
  readonly stored: ReadonlyMap<string, WaveRecord>;
  readonly now: string;
  /** of a wave with so many pods: its checks have passed since that time */
  readonly isProven: (wave: Wave, soakedAt: string, pods: number) => boolean;
  /** all are passed at once */
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

/** The time begins again when a pod of the wave is not ready any more before it is over. */
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

/** How many waves may be written to. The first always may. */
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

// What is left to be done in each wave.

/** Counts of pods. */
interface Tally {
  readonly pods: number;
  readonly updated: number;
  readonly updatedReady: number;
  /** to be updated, or to be ready, before the wave is complete */
  readonly left: number;
  /** how many of `left` are workloads, which are being restarted or will be */
  readonly restarts: number;
  /** how many of `left` could be upgraded now */
  readonly waiting: number;
}

const NO_PODS: Tally = { pods: 0, updated: 0, updatedReady: 0, left: 0, restarts: 0, waiting: 0 };

/** What pods are counted by. */
interface TallyFacts {
  readonly sidecarSet: SidecarSet;
  /** of a namespace, from 0 */
  readonly rankOf: (namespace: string) => number;
  readonly count: number;
  /** absent: no pod is replaced */
  readonly replacement?: Replaceable | undefined;
  /** pods that were evicted, and that no other pod has taken the place of; absent: none */
  readonly gone?: readonly { readonly namespace: string }[] | undefined;
  /** workloads that are being restarted, so that pods of theirs may be on their way, or are to be; absent: none */
  readonly restarts?: readonly { readonly namespace: string }[] | undefined;
}

/**
 * One for each rank. Pods that can only be recreated, and are not replaced, and pods that the update selector leaves out
 * are not waited for.
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

/** What is reserved may be written to at any moment, whatever it looks like. */
function isLeft(state: PodState, { sidecarSet, replacement }: TallyFacts): boolean {
  if (state.isReservedNow === true) return true;
  if (state.isUpdated) return !isThrough(state, sidecarSet);
  const podClass = classify(state, sidecarSet, replacement);
  // Where replacing has stopped, what it is to reach yet keeps the waves behind it.
  if (podClass === "notUpgradable") return replacement?.wants(state.pod) === true;
  return podClass === "waiting" || podClass === "inFlight";
}

/** Of an updated pod: nothing of its update is left to be done, or to be waited for. */
function isThrough(state: PodState, sidecarSet: SidecarSet): boolean {
  const isUp = (state.isConsistent && state.isReady) || state.isIgnored === true;
  return isUp && !canFlip(state.pod, sidecarSet) && (state.resize === undefined || state.resize.step === "none");
}
