/**
 * A world whose SidecarSets go through a queue. The schedule fills the queue once a minute, and admissions announce
 * changes and pods. Workers take one message each, fail, and are killed at their time limit. They remember the
 * SidecarSets that they served. The simulation's judges apply, and more. Another pass must have done the work of a
 * skipped message. Two passes never work for one SidecarSet at the same time. After all faults have ended, everything
 * settles within minutes. No message is given up, and a change is begun at once. Then all is quiet.
 */
import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { newPassMemory, type PassMemory, runPass } from "../../../shared/controller/pass.ts";
import { failureOf, listWork, type Served, serveWork } from "../../../shared/controller/serve-work.ts";
import { parseWork, queueMessage, type Work } from "../../../shared/core/rollout/queue/work.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../../shared/kube/port.ts";
import { createLog } from "../../../shared/log.ts";
import { hints } from "../../../shared/webhook/handlers/hints.ts";
import { type Chance, seededChance } from "../chance.ts";
import { finalViolations } from "../end-state.ts";
import { FROZEN_MS, type PassPlan, TROUBLE_MS } from "../plans.ts";
import { ordinaryScenarioOf, type Scenario } from "../scenario.ts";
import type { SeedResult } from "../seeds-main.ts";
import { World } from "../world.ts";
import { Fifo, type Kept } from "./fifo.ts";

export const QUEUE_TROUBLE = [
  "call of the schedule left out",
  "call of the schedule came late",
  "call of the schedule came twice",
  "message lost",
  "answer to a message lost",
  "message long under way",
  "worker killed",
  "worker out of time",
  "message came again",
  "message given up",
  "message sent twice",
  "message skipped",
  "change stored late",
] as const;
type Trouble = (typeof QUEUE_TROUBLE)[number];

type QueueResult = SeedResult<"messages" | "passes" | "skipped" | "upgrades">;

/** A warm function: it serves one call after the other, and keeps its memory. */
interface Environment {
  readonly served: Served;
  readonly memory: PassMemory;
  readonly skewMs: number;
}

/** The time limit of a function, as in serverless.yml. */
const LIMIT_MS = 58_000;
/** The time that is left for the report, as in functions/lambda/rollout.ts. */
const REPORT_MS = 1_000;
const MINUTE_MS = 60_000;
/** The largest difference between the clocks of two machines. */
const MOST_SKEW_MS = 1_000;
/** Longest time in milliseconds between the admission of a pod's status and its storage. */
const STORED_MS = 200;
/**
 * docs/deploy-scale.md promises "in a second or two". The time of a pass's calls, and of a pass that already runs, is
 * added.
 */
const SOON_MS = 10_000;
const LONG_MS = 10 * MINUTE_MS;
/** The time for a container's start and for the pass that sees it. */
const STARTED_MS = 5_000;
const NOBODY = "nobody";

export class QueueWorld {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #world: World;
  readonly #fifo: Fifo;
  readonly #workers: number;
  readonly #happened: Partial<Record<Trouble, number>> = {};
  #environments: Environment[] = [];
  readonly #working = new Map<string, number>();
  /** SidecarSet → time when any pass last listed its pods */
  readonly #lookedAt = new Map<string, number>();
  /** message id → time of the last change that the message announces */
  readonly #toldAt = new Map<string, number>();
  readonly #storedUntil = new Map<string, number>();
  readonly #hints: ReturnType<typeof hints>;
  #requests = 0;
  #busy = 0;
  #passes = 0;
  #skipped = 0;
  #isCalm = false;
  #isNobodyTold = false;
  /** true if most of the workers' passes end early, until messages are given up */
  readonly #isLong: boolean;
  /** the largest error of clocks, in milliseconds */
  readonly #skewMs: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#chance = seededChance(seed, 40);
    this.#isLong = seed % 15 === 7;
    this.#skewMs = this.#chance.pick([0, MOST_SKEW_MS]);
    const tell = async (work: readonly Work[]) => {
      for (const one of work) this.#tell(one);
    };
    // The admitting process has its own clock.
    const skewMs = this.#chance.between(-this.#skewMs, this.#skewMs);
    let isBuilt = false;
    this.#world = new World(scenarioOf(seed), {
      admit: (next, before, store) => (isBuilt ? this.#admit(next, before, store) : store()),
      tell: (pod) => void this.#hints.ofPods(requestOf(`pod-${++this.#requests}`, pod, pod)),
    });
    isBuilt = true;
    // With fewer workers, SidecarSets whose pods never become ready would occupy all of them.
    this.#workers = Math.max(this.#chance.between(1, 3), this.#world.scenario.sets.length);
    const { scheduler } = this.#world;
    this.#hints = hints({ send: tell, log: createLog("error", () => undefined), now: () => scheduler.nowMs + skewMs });
    this.#fifo = new Fifo(scheduler);
  }

  async run(): Promise<QueueResult> {
    const world = this.#world;
    const { scheduler, scenario } = world;
    for (const { name } of scenario.sets) scheduler.after(0, () => world.users.releases.releaseNext(name));
    for (const { atMs, fault } of scenario.strikes) scheduler.after(atMs, () => world.users.strike(fault));
    void this.#schedule();
    await scheduler.runFor(this.#isLong ? LONG_MS : 2 * TROUBLE_MS + this.#chance.below(MINUTE_MS));
    this.#isCalm = true;
    world.calm();
    await this.#settles();
    if (world.violations.length === 0) await this.#answersSoon();
    const { violations, lines: trace, witness } = world;
    const { length: givenUp } = this.#fifo.failed;
    if (givenUp > 0) this.#happened["message given up"] = givenUp;
    if (this.#fifo.dropped > 0) this.#happened["message sent twice"] = this.#fifo.dropped;
    const { upgrades } = witness;
    const counts = { messages: this.#fifo.sent, passes: this.#passes, skipped: this.#skipped, upgrades };
    return { seed: this.#seed, violations, happened: this.#happened, trace, counts };
  }

  /** A failed message returns after 70 s, five times at most. All messages of its SidecarSet wait for it. */
  async #settles(): Promise<void> {
    const { scheduler, scenario, witness, server } = this.#world;
    const givenUp = this.#fifo.failed.length;
    // After this time delayed workers have ended, and their calls have arrived.
    await scheduler.runFor(7 * MINUTE_MS);
    const pods = server.all(PODS).length;
    for (let minutes = 0; minutes < 5 * (pods + 3) && this.#left().length > 0; minutes++)
      await scheduler.runFor(MINUTE_MS);
    for (const problem of this.#left()) this.#world.violated(`though nothing goes wrong any more: ${problem}`);
    if (this.#fifo.failed.length > givenUp + scenario.sets.length)
      this.#world.violated(`${this.#fifo.failed.length - givenUp} messages are given up though nothing goes wrong`);
    if (this.#left().length > 0) return;
    await scheduler.runFor(5 * MINUTE_MS);
    const before = witness.passWrites;
    await scheduler.runFor(6 * MINUTE_MS);
    if (witness.passWrites > before)
      this.#world.violated(`${witness.passWrites - before} writes although there is nothing to do`);
    if (this.#fifo.length > 2 * scenario.sets.length)
      this.#world.violated(`${this.#fifo.length} messages wait although there is nothing to do`);
  }

  /** Makes one change after the other, also to older SidecarSets. The last changes are not announced. */
  async #answersSoon(): Promise<void> {
    const { releases } = this.#world.users;
    const { name: any = "" } = this.#world.scenario.sets[0] ?? {};
    const { version, shape } = releases.of(any);
    const pause = (paused: boolean) => (set: string) => releases.apply(set, { strategy: { paused } });
    const changes = [
      (set: string) => releases.releaseNext(set),
      (set: string) => releases.apply(set, set === any ? { version, shape } : { strategy: { partition: 1 } }),
      (set: string) => releases.rollForth(set),
      pause(true),
      pause(false),
    ];
    for (const change of changes) await this.#answers(change, SOON_MS + 2 * MOST_SKEW_MS);
    // With a slow clock a pass may look before the change is stored.
    if (this.#skewMs === 0) await this.#newPod();
    this.#isNobodyTold = true;
    for (const change of changes) await this.#answers(change, MINUTE_MS + SOON_MS);
    // New work must not wait until settled SidecarSets have been served.
    const { scheduler, server } = this.#world;
    const minutes = 1 + server.all(PODS).length;
    for (let minute = 0; minute < minutes && this.#left().length > 0; minute++) await scheduler.runFor(MINUTE_MS);
    for (const problem of this.#left()) this.#world.violated(`${minutes} minutes after the last change: ${problem}`);
  }

  /** Creates a pod, which must be counted as soon as it is ready, although nobody changes a SidecarSet. */
  async #newPod(): Promise<void> {
    const { scheduler, scenario, users } = this.#world;
    for (let minute = 0; minute < 5 && this.#left().length > 0; minute++) await scheduler.runFor(MINUTE_MS);
    if (this.#left().length > 0) return;
    // After this time no pass follows the earlier change.
    await scheduler.runFor(2 * MINUTE_MS);
    users.createPod("shop", "late-1");
    await scheduler.runFor(STARTED_MS + scenario.noticeMs + scenario.readyMs + SOON_MS);
    for (const problem of this.#left()) this.#world.violated(`a new pod is ready, and nobody has looked: ${problem}`);
  }

  async #answers(change: (set: string) => void, withinMs: number): Promise<void> {
    const { scheduler, scenario, users } = this.#world;
    // The start of a minute is avoided, because all SidecarSets are served then.
    const untilTurn = MINUTE_MS - (scheduler.nowMs % MINUTE_MS);
    await scheduler.runFor(untilTurn + this.#chance.between(15_000, 40_000));
    for (const { name } of scenario.sets) change(name);
    await scheduler.runFor(withinMs);
    for (const { name } of scenario.sets) {
      const { metadata, status } = users.releases.stored(name) ?? {};
      if (status?.observedGeneration !== metadata?.generation)
        this.#world.violated(`${name} has changed, and nobody has looked for ${withinMs / 1_000} s`);
    }
  }

  #left(): readonly string[] {
    const { scenario, scheduler, server, witness } = this.#world;
    const { now } = witness.namespaces;
    return scenario.sets.flatMap(({ name }) =>
      finalViolations(server, name, { ledger: witness.ledgerOf(name), nowMs: scheduler.nowMs, isIn: now }),
    );
  }

  /** Fills the queue once a minute until the world ends. */
  async #schedule(): Promise<void> {
    for (;;) {
      const { nowMs } = this.#world.scheduler;
      const isLeftOut = this.#isTrouble(0.15, "call of the schedule left out");
      const lateMs = this.#isTrouble(0.1, "call of the schedule came late") ? this.#chance.below(90_000) : 0;
      if (!isLeftOut) void this.#sleep(lateMs).then(() => this.#fill(nowMs));
      if (this.#isTrouble(0.1, "call of the schedule came twice"))
        void this.#sleep(this.#chance.below(90_000)).then(() => this.#fill(nowMs));
      await this.#sleep(MINUTE_MS);
    }
  }

  /** Fills the queue as functions/lambda/rollout.ts does by schedule. */
  async #fill(at: number): Promise<void> {
    const plan = { ...this.#planOf(NOBODY), deadlineMs: LIMIT_MS - REPORT_MS };
    await this.#world.start({ plan }, async ({ cluster, options: { sidecarSet: _, ...options } }) => {
      const work = await listWork(cluster, at).catch(() => []);
      for (const one of work) this.#tell(one);
      return await runPass(cluster, { ...options, withoutSidecarSets: true });
    });
  }

  #tell(work: Work): void {
    if (this.#isNobodyTold && work.kind !== "tick") return;
    if (this.#isTrouble(0.05, "message lost")) return;
    this.#isTrouble(0.05, "answer to a message lost");
    const lateMs = this.#isTrouble(0.05, "message long under way")
      ? this.#chance.below(20_000)
      : this.#chance.below(20);
    const { nowMs } = this.#world.scheduler;
    void this.#sleep(lateMs).then(() => {
      const message = queueMessage(work);
      const id = `${message.MessageGroupId} ${message.MessageDeduplicationId}`;
      if (!this.#toldAt.has(id)) this.#toldAt.set(id, nowMs);
      this.#fifo.send(message);
      this.#dispatch();
    });
  }

  /** Stores changes in the order of their admission; sometimes storing takes long. */
  #admit(next: SidecarSet, before: SidecarSet | undefined, store: () => void): void {
    const name = next.metadata?.name ?? "";
    const { nowMs } = this.#world.scheduler;
    const isLate = this.#isTrouble(0.2, "change stored late");
    const atMs = Math.max(this.#storedUntil.get(name) ?? 0, nowMs + this.#chance.between(1, isLate ? 3_000 : 100));
    this.#storedUntil.set(name, atMs);
    const admit = this.#hints.ofSidecarSets(() => ({ kind: "allowed" }));
    void Promise.resolve(admit(requestOf(`set-${++this.#requests}`, next, before))).then(() =>
      this.#sleep(atMs - nowMs).then(store),
    );
  }

  /** Gives a message to each free worker. */
  #dispatch(): void {
    while (this.#busy < this.#workers) {
      const kept = this.#fifo.receive();
      if (!kept) return;
      this.#busy++;
      if (kept.receives > 1) this.#note("message came again");
      void this.#hand(kept).finally(() => {
        this.#busy--;
        this.#dispatch();
      });
    }
  }

  async #hand(kept: Kept): Promise<void> {
    const beganMs = this.#world.scheduler.nowMs;
    const environment = this.#environments.pop() ?? this.#newEnvironment();
    const isServed = await this.#serve(kept, environment);
    const tookMs = this.#world.scheduler.nowMs - beganMs;
    if (isServed === "killed") this.#note("worker out of time");
    else if (!this.#isTrouble(0.05, undefined)) this.#environments.push(environment);
    if (isServed === true) this.#fifo.served(kept);
    else this.#fifo.failedBy(kept, tookMs, () => this.#dispatch());
  }

  #newEnvironment(): Environment {
    const skewMs = this.#chance.between(-this.#skewMs, this.#skewMs);
    return { served: new Map(), memory: newPassMemory(), skewMs };
  }

  /** Serves a message as functions/lambda/rollout.ts does. Ends it at the time limit, as Lambda does. */
  async #serve(kept: Kept, { served, memory, skewMs }: Environment): Promise<boolean | "killed"> {
    const { scheduler } = this.#world;
    const work = parseWork(kept.message.MessageBody);
    const { sidecarSet } = work;
    const endsAtMs = scheduler.nowMs + LIMIT_MS;
    let kill = () => {};
    const ended = new Promise<boolean>((resolve) => {
      const plan = this.#planOf(sidecarSet);
      void this.#world.start({ plan, memory, skewMs }, async ({ cluster, options, process }) => {
        kill = () => process.kill();
        const { deadlineMs: _, sidecarSet: __, ...pass } = options;
        const remainingMs = () => endsAtMs - scheduler.nowMs - REPORT_MS;
        try {
          const report = await serveWork(this.#watched(cluster, sidecarSet), work, { ...pass, served, remainingMs });
          if (report === undefined) this.#skip(kept, work);
          resolve(report === undefined || failureOf(report) === undefined);
          return report;
        } catch {
          resolve(false);
          return undefined;
        }
      });
    });
    const late = this.#sleep(LIMIT_MS).then(() => "killed" as const);
    const how = await Promise.race([ended, late]);
    kill();
    this.#stop(sidecarSet);
    return how;
  }

  /** Records when a SidecarSet's pods are listed, and reports two passes that work for one SidecarSet. */
  #watched(cluster: Cluster, sidecarSet: string): Cluster {
    this.#passes++;
    const others = this.#working.get(sidecarSet) ?? 0;
    if (others > 0) this.#world.violated(`two messages of ${sidecarSet} are served at the same time`);
    this.#working.set(sidecarSet, others + 1);
    const looks = async <T>(isLook: boolean, answer: Promise<T>): Promise<T> => {
      const { nowMs } = this.#world.scheduler;
      // A deleted SidecarSet has no pods to list.
      const isDone = await answer.then(
        () => isLook,
        (error: unknown) => isKubeError(error, 404),
      );
      if (isDone) this.#lookedAt.set(sidecarSet, nowMs);
      return answer;
    };
    return {
      ...cluster,
      get: (resource, key) => looks(false, cluster.get(resource, key)),
      list: (resource, options) => looks(resource === PODS, cluster.list(resource, options)),
    };
  }

  #stop(sidecarSet: string): void {
    this.#working.set(sidecarSet, (this.#working.get(sidecarSet) ?? 1) - 1);
  }

  #skip({ message }: Kept, work: Work): void {
    this.#skipped++;
    this.#note("message skipped");
    const id = `${message.MessageGroupId} ${message.MessageDeduplicationId}`;
    const toldMs = work.kind === "tick" ? work.minute * MINUTE_MS : (this.#toldAt.get(id) ?? 0) + STORED_MS;
    const lookedMs = this.#lookedAt.get(work.sidecarSet) ?? 0;
    if (lookedMs < toldMs - 2 * MOST_SKEW_MS)
      this.#world.violated(
        `${message.MessageBody} of ${toldMs} is skipped, though looked at ${lookedMs} the last time`,
      );
  }

  #planOf(sidecarSet: string): Omit<PassPlan, "startMs"> {
    const plan = { deadlineMs: LIMIT_MS, isFollowing: true, sidecarSet };
    if (!this.#isTrouble(this.#isLong ? 1 : 0.1, "worker killed")) return plan;
    const blow = { atCall: this.#chance.below(25), ofPods: false, lateMs: this.#chance.below(MINUTE_MS), frozenMs: 0 };
    const killed = this.#chance.pick(["killBefore", "killAfter", "killLate"] as const);
    if (this.#isLong) return { ...plan, blow: { ...blow, atCall: this.#chance.below(4), kind: killed } };
    const kind = this.#chance.pick([killed, killed, killed, "freezeBefore", "freezeAfter"] as const);
    const frozenMs = this.#chance.pick([2_000, 20_000, FROZEN_MS]);
    return { ...plan, blow: { ...blow, ofPods: this.#chance.isLucky(0.3), kind, frozenMs } };
  }

  #isTrouble(rate: number, trouble: Trouble | undefined): boolean {
    if (this.#isCalm || !this.#chance.isLucky(rate)) return false;
    if (trouble) this.#note(trouble);
    return true;
  }

  #sleep = (ms: number): Promise<void> => new Promise((resolve) => void this.#world.scheduler.after(ms, resolve));

  #note(trouble: Trouble): void {
    this.#happened[trouble] = (this.#happened[trouble] ?? 0) + 1;
  }
}

/** A scenario without scheduled passes: only the queue starts them. */
function scenarioOf(seed: number): Scenario {
  // Some passes end before they have read anything.
  const slow = { slowRate: 0.5, faultRate: 0.1, networkFaults: ["timeout, not applied", "503"] } as const;
  return { ...ordinaryScenarioOf(seed), passes: [], ...(seed % 15 === 3 ? slow : {}) };
}

function requestOf(uid: string, object: SidecarSet | Pod, before: SidecarSet | Pod | undefined): AdmissionRequest {
  return {
    uid,
    operation: before ? "UPDATE" : "CREATE",
    resource: { group: "", version: "v1", resource: "any" },
    object: object as unknown as KubernetesObject,
    oldObject: (before ?? null) as unknown as KubernetesObject | null,
  };
}
