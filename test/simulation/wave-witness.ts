/**
 * Judges the order of waves by the pods' past and present images, as kubelets know them, and not by what passes write.
 * Changes after a pass looked do not count against that pass.
 */
import type { KubernetesObject, LabelSelector, Pod } from "../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  METRICS_ANNOTATION,
  RESTARTED_FOR_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import type { Write } from "./api-server.ts";
import { isHalfUpgraded } from "./end-state.ts";
import { isMissedByRestarts } from "./evictions.ts";
import type { NamespaceWitness } from "./namespace-witness.ts";
import { hashOfPod, isSidecarOf, isTenantPod, isWorking } from "./objects.ts";
import { reaches, selects } from "./permission.ts";
import { comesBack } from "./replacements.ts";
import { isOfFailedPass } from "./status-words.ts";

/** A wave as users write it. */
export interface WavePlan {
  readonly name: string;
  readonly namespaceSelector: LabelSelector;
  readonly soakSeconds?: number;
  readonly paused?: boolean;
  /** names of the wave's metric checks; absent: all */
  readonly checks?: readonly string[];
}

export interface WaveWitnessOptions {
  readonly set: string;
  readonly namespaces: NamespaceWitness;
  readonly nowMs: () => number;
  /** number of writes so far, which is this judge's time */
  readonly clock: () => number;
  /** returns when a pass began, in writes */
  readonly beganOf: (pass: string) => number;
  readonly violated: (what: string) => void;
  /** returns the pods of the workload with this uid; absent: no restarts */
  readonly podsOf?: (uid: string) => readonly Pod[];
  /** returns workloads whose restart began since then and has not ended; absent: no restarts */
  readonly restartedSince?: (time: number) => readonly KubernetesObject[];
  /**
   * returns workloads that had to be restarted for missing sidecars when the pass began, and still must be; absent: no
   * restarts
   */
  readonly owedSince?: (pass: string, status: SidecarSetStatus) => readonly KubernetesObject[];
}

const RESTARTED: ReadonlySet<string> = new Set(["deployments", "statefulsets", "daemonsets"]);

/** Milliseconds of rounding: both ends of a soak are in whole seconds. */
const ROUNDING_MS = 1_000;

/** A SidecarSet's spec between two writes of its users. */
interface Wish {
  readonly text: string | undefined;
  readonly waves: readonly WavePlan[];
  readonly sidecarSet: SidecarSet;
}

type Row = Pick<NonNullable<NonNullable<SidecarSet["status"]>["waves"]>["list"][number], "completeSince" | "passedAt">;

interface Told {
  readonly status: SidecarSetStatus;
  readonly all: readonly WavePlan[];
  readonly wave: WavePlan;
  readonly was: Row | undefined;
  readonly is: Row | undefined;
}

/** A release, from its write to the next release. */
interface Release {
  readonly hash: string;
  /** the newest generation with this release; 0: the release of a deleted SidecarSet with the same name */
  readonly generation: number;
  /** the number of writes when this state began */
  readonly since: number;
  /**
   * uid of each pod that existed when the release came → time in ms when it was first seen complete; absent: not yet
   */
  readonly through: Map<string, number | undefined>;
  /** the shortest soak of each wave that users ever wrote */
  readonly soaks: Map<string, number>;
}

export class WaveWitness {
  readonly #options: WaveWitnessOptions;
  readonly #pods = new Map<string, Pod>();
  /** uid → number of writes since which the pod has been incomplete and not released */
  #leftSince: ReadonlyMap<string, number> = new Map();
  /** every spec that passes may still use, the newest last */
  #wishes: readonly Wish[] = [];
  /** releases whose patches may still arrive, the newest last */
  #releases: readonly Release[] = [];
  #uid = "";
  /** number of judged pods that a wave precedes */
  judged = 0;

  constructor(options: WaveWitnessOptions) {
    this.#options = options;
  }

  get set(): string {
    return this.#options.set;
  }

  see(write: Write): void {
    const { resource, name, userAgent } = write;
    const isPass = userAgent.startsWith("pass");
    if (resource === "pods") this.#seePod(write, isPass);
    if (isPass && RESTARTED.has(resource)) this.#seeRestart(write);
    if (resource === "sidecarsets" && name === this.#options.set) {
      if (isPass) this.#seeStatus(write);
      else this.#seeWish(write);
    }
    if (resource === "pods" || resource === "sidecarsets" || resource === "namespaces") this.#look();
  }

  #seeWish({ object, isRemoved }: Write): void {
    if (isRemoved) return;
    const sidecarSet = object as unknown as SidecarSet;
    const { annotations, uid = "", generation = 0 } = sidecarSet.metadata ?? {};
    const text = annotations?.[WAVES_ANNOTATION];
    const waves = JSON.parse(text ?? "[]") as readonly WavePlan[];
    this.#wishes = [...this.#wishes, { text, waves, sidecarSet }];
    if (uid !== this.#uid) this.#releases = this.#releases.map((one) => ({ ...one, generation: 0 }));
    this.#uid = uid;
    const hash = annotations?.[HASH_ANNOTATION] ?? "";
    const last = this.#release;
    const isSame = last?.hash === hash && last.generation > 0;
    const release = isSame ? { ...last, generation } : this.#begun(hash, generation);
    this.#releases = [...(isSame ? this.#releases.slice(0, -1) : this.#releases), release];
    for (const { name, soakSeconds = 0 } of waves) {
      const { soaks } = release;
      soaks.set(name, Math.min(soaks.get(name) ?? Number.POSITIVE_INFINITY, soakSeconds));
    }
  }

  #begun(hash: string, generation: number): Release {
    const through = new Map([...this.#pods.keys()].map((uid) => [uid, undefined] as const));
    return { hash, generation, since: this.#options.clock(), through, soaks: new Map() };
  }

  get #release(): Release | undefined {
    return this.#releases.at(-1);
  }

  #seePod({ object, previous, isRemoved, userAgent }: Write, isPass: boolean): void {
    const next = object as unknown as Pod;
    const before = previous as unknown as Pod | undefined;
    const uid = next.metadata?.uid ?? "";
    if (isPass && before && hashOfPod(before, this.#options.set) !== hashOfPod(next, this.#options.set))
      this.#judgeUpgrade(userAgent, next);
    if (isRemoved) this.#pods.delete(uid);
    else this.#pods.set(uid, next);
  }

  /** Judges a restart for this SidecarSet. All pods of the workload are in one namespace, so they are in one wave. */
  #seeRestart({ object, previous, userAgent }: Write): void {
    const { set, podsOf } = this.#options;
    const [is, was] = [object, previous].map((one) => one?.metadata.annotations?.[RESTARTED_FOR_ANNOTATION] ?? "");
    const hash = new RegExp(`(?:^|,)${set}=([^,]*)`).exec(is ?? "")?.[1];
    const [pod] = podsOf?.(object.metadata.uid ?? "") ?? [];
    if (is !== was && hash !== undefined && pod) this.#judgeUpgrade(userAgent, pod, hash);
  }

  /** Earlier waves must be complete and have soaked. Some spec that passes may use must pause none of them. */
  #judgeUpgrade(pass: string, pod: Pod, hash = hashOfPod(pod, this.#options.set)): void {
    const releases = this.#releases.filter((one) => one.hash === hash);
    const problems = releases.flatMap((release) =>
      this.#wishes.map((wish) => this.#upgradeProblem(wish, pod, release)),
    );
    const [problem] = problems;
    if (problem !== undefined && problems.every((one) => one !== undefined))
      this.#report(pass, `updates ${pod.metadata?.name}, and ${problem}`);
  }

  #upgradeProblem({ waves }: Wish, pod: Pod, release: Release): string | undefined {
    const rank = this.#leastRank(waves, pod, release.since);
    if (rank > 0) this.judged++;
    for (const wave of waves.slice(0, rank)) {
      if (wave.paused) return `the wave ${wave.name} before it is paused`;
      const late = this.#notSoaked(waves, wave, release);
      if (late) return `${late.metadata?.name} of the wave ${wave.name} before it is not done, or not soaked`;
    }
    return undefined;
  }

  /**
   * Returns a pod that existed when the release came, was always in this wave, and has not been complete for long
   * enough.
   */
  #notSoaked(waves: readonly WavePlan[], wave: WavePlan, { through, since, soaks }: Release): Pod | undefined {
    const latestMs = this.#options.nowMs() + ROUNDING_MS - 1_000 * (soaks.get(wave.name) ?? 0);
    return [...this.#pods.values()].find((pod) => {
      const uid = pod.metadata?.uid ?? "";
      if (pod.metadata?.deletionTimestamp || !through.has(uid)) return false;
      const isSoaked = (through.get(uid) ?? Number.POSITIVE_INFINITY) <= latestMs;
      return !isSoaked && this.#isAlwaysOf(waves, wave, pod, since);
    });
  }

  #seeStatus({ object, previous, userAgent }: Write): void {
    const next = (object as unknown as SidecarSet).status ?? {};
    const before = (previous as unknown as SidecarSet | undefined)?.status;
    this.#forget(next);
    const { waves } = next;
    // A failed pass has counted no pod, so it leaves the status of waves unchanged.
    if (!waves || waves.revision !== this.#release?.hash || isOfFailedPass(next)) return;
    const all = this.#wishes.at(-1)?.waves ?? [];
    const known = before?.waves?.revision === waves.revision ? before.waves.list : [];
    for (const wave of all) {
      const [was, is] = [known, waves.list].map((list) => list.find(({ name }) => name === wave.name) ?? {});
      this.#judgeRow(userAgent, { all, wave, was, is, status: next });
    }
  }

  /** Judges the status of one wave, before and after the write. */
  #judgeRow(pass: string, { all, wave, was = {}, is = {}, status }: Told): void {
    if (was.passedAt !== undefined) {
      if (is.passedAt === undefined) this.#report(pass, `passes the wave ${wave.name} back`);
      return;
    }
    if (is.completeSince === undefined) return;
    this.#judgeComplete(pass, all, wave);
    const owed = this.#options.owedSince?.(pass, status).find((one) => this.#isIn(pass, all, wave, one));
    if (owed)
      this.#report(pass, `calls the wave ${wave.name} complete, where ${owed.metadata?.name} is to be restarted`);
    const late = is.passedAt === undefined ? undefined : this.#release && this.#notSoaked(all, wave, this.#release);
    if (late) this.#report(pass, `passes the wave ${wave.name}, where ${late.metadata?.name} has not soaked`);
  }

  /** A complete wave may contain no pod that was incomplete all the time since the pass began. */
  #judgeComplete(pass: string, waves: readonly WavePlan[], wave: WavePlan): void {
    const began = this.#options.beganOf(pass);
    const left = [...this.#pods.values()].find((pod) => {
      const since = this.#leftSince.get(pod.metadata?.uid ?? "") ?? Number.POSITIVE_INFINITY;
      return since <= began && this.#isAlwaysOf(waves, wave, pod, began);
    });
    if (left) this.#report(pass, `calls the wave ${wave.name} complete, where ${left.metadata?.name} is not`);
    const restarted = this.#options
      .restartedSince?.(began)
      .find((one) => this.#isAlwaysOf(waves, wave, one as Pod, began));
    if (restarted)
      this.#report(pass, `calls the wave ${wave.name} complete, where ${restarted.metadata?.name} is being restarted`);
  }

  #isIn(pass: string, waves: readonly WavePlan[], wave: WavePlan, one: KubernetesObject): boolean {
    return this.#isAlwaysOf(waves, wave, one as Pod, this.#options.beganOf(pass));
  }

  /** Forgets older specs after the status shows the one that passes obey. */
  #forget({ observedAnnotations, observedGeneration = 0 }: NonNullable<SidecarSet["status"]>): void {
    const text = observedAnnotations?.[WAVES_ANNOTATION];
    const at = this.#wishes.findIndex((wish) => wish.text === text);
    if (at > 0) this.#wishes = this.#wishes.slice(at);
    this.#releases = this.#releases.filter(({ generation }) => generation >= observedGeneration);
  }

  /**
   * Returns one sentence for each fault after all faults of the world have ended. Every wave that can pass must have
   * passed, with right counts.
   */
  restProblems({ waves: told, selection }: SidecarSetStatus = {}): readonly string[] {
    const { set, namespaces } = this.#options;
    const wish = this.#wishes.at(-1);
    if (!wish || wish.waves.length === 0) return [];
    if (told?.revision !== this.#release?.hash) return [`${set}: the status tells of waves of ${told?.revision}`];
    const pods = [...this.#pods.values()].filter((pod) => !pod.metadata?.deletionTimestamp);
    const matched = pods.filter((pod) => selects(wish.sidecarSet, pod, namespaces.now));
    let isReached = true;
    return wish.waves.flatMap((wave, rank) => {
      const own = matched.filter((pod) => this.#leastRank(wish.waves, pod, this.#options.clock()) === rank);
      const updated = own.filter((pod) => hashOfPod(pod, set) === this.#release?.hash);
      const isComplete = own.every(({ metadata }) => !this.#leftSince.has(metadata?.uid ?? ""));
      const row = told?.list[rank];
      const isTold = row?.name === wave.name && row.pods === own.length && row.updated === updated.length;
      const isPassed = row?.passedAt !== undefined;
      const isOfWave = (pod: Pod) => this.#leastRank(wish.waves, pod, this.#options.clock()) === rank;
      const isResting =
        areChecksResting(wish.sidecarSet, wave) ||
        areRestartsResting(wish.sidecarSet, pods.filter(isOfWave), selection);
      const isOwed = isReached && isComplete && !wave.paused && !isPassed && !isResting;
      isReached = isPassed;
      return [
        ...(isTold ? [] : [`${set}: of the wave ${wave.name} the status tells ${JSON.stringify(row)}`]),
        ...(isOwed ? [`${set}: the wave ${wave.name} is done, and not passed`] : []),
      ];
    });
  }

  /** Records the present state of each pod. */
  #look(): void {
    const { clock, nowMs } = this.#options;
    const left = [...this.#pods].filter(([, pod]) => this.#isLeft(pod)).map(([uid]) => uid);
    this.#leftSince = new Map(left.map((uid) => [uid, this.#leftSince.get(uid) ?? clock()]));
    const through = this.#release?.through ?? new Map<string, number | undefined>();
    for (const [uid, sinceMs] of through) if (!this.#leftSince.has(uid)) through.set(uid, sinceMs ?? nowMs());
  }

  /** True for a pod that is not updated, or not ready again. */
  #isLeft(pod: Pod): boolean {
    const { set, namespaces } = this.#options;
    const sidecarSet = this.#wishes.at(-1)?.sidecarSet;
    if (!sidecarSet || pod.metadata?.deletionTimestamp || !selects(sidecarSet, pod, namespaces.now)) return false;
    // The annotation ignores pods that were never ready.
    const isLeftOut = sidecarSet.metadata?.annotations?.[IGNORE_NEVER_READY_ANNOTATION] === "true" && isTenantPod(pod);
    if (hashOfPod(pod, set) === this.#release?.hash) return !(isUp(pod, set) || isLeftOut);
    return reaches(runningAgain(sidecarSet), pod, namespaces.now);
  }

  /** True if the namespace's labels put the pod into this wave, and into no earlier one, all the time since then. */
  #isAlwaysOf(waves: readonly WavePlan[], wave: WavePlan, pod: Pod, since: number): boolean {
    const { namespaces } = this.#options;
    const earlier = waves.slice(0, waves.indexOf(wave));
    const isIn = namespaces.ever(since);
    const wasIn = namespaces.since(since);
    return isIn(pod, wave.namespaceSelector) && !earlier.some((one) => wasIn(pod, one.namespaceSelector));
  }

  /** Returns the earliest wave that the namespace's labels selected at any time since then. */
  #leastRank(waves: readonly WavePlan[], pod: Pod, since: number): number {
    const wasIn = this.#options.namespaces.since(since);
    const rank = waves.findIndex(({ namespaceSelector }) => wasIn(pod, namespaceSelector));
    return rank < 0 ? waves.length : rank;
  }

  #report(pass: string, what: string): void {
    this.#options.violated(`${pass}: ${what}`);
  }
}

/** Judges by readiness, because other writers' changes show only there. */
function isUp(pod: Pod, set: string): boolean {
  const own = pod.spec.containers.filter((container) => isSidecarOf(set, container));
  return isWorking({ ...pod, spec: { ...pod.spec, containers: own } }) && !isHalfUpgraded(pod, set);
}

/** True while the wave is paused: no check is evaluated then, and earlier answers let no wave pass. */
function areChecksResting({ metadata, spec }: SidecarSet, { checks }: WavePlan): boolean {
  const { paused, type } = spec.updateStrategy ?? {};
  return (
    checks?.length !== 0 &&
    metadata?.annotations?.[METRICS_ANNOTATION] !== undefined &&
    (paused === true || type === "NotUpdate")
  );
}

/** True while the wave is paused: no workload is restarted then, and none is found to be impossible to restart. */
function areRestartsResting(
  sidecarSet: SidecarSet,
  pods: readonly Pod[],
  { since = "" }: SidecarSetStatus["selection"] = { digest: "", since: "" },
): boolean {
  const { paused, type, maxUnavailable } = sidecarSet.spec.updateStrategy ?? {};
  const isStill = paused === true || type === "NotUpdate" || maxUnavailable === 0;
  return (
    isStill && pods.some((pod) => isMissedByRestarts(sidecarSet, pod, Date.parse(since)) && comesBack(pod, sidecarSet))
  );
}

/** Returns the SidecarSet without its pause. */
function runningAgain({ spec, ...rest }: SidecarSet): SidecarSet {
  return {
    ...rest,
    spec: { ...spec, updateStrategy: { ...spec.updateStrategy, paused: false, type: "RollingUpdate" } },
  };
}
