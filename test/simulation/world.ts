/** Builds a world from a scenario, runs it to its end, and judges every step. */

import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Gates } from "../../shared/approval/batch-gates.ts";
import { type PassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { judgeAdvice } from "./advice.ts";
import { ApiServer, type ApiServerOptions, type Write } from "./api-server.ts";
import { Approver } from "./approver.ts";
import { Bystanders } from "./bystanders.ts";
import { type Chance, seededChance } from "./chance.ts";
import { Collector } from "./collector.ts";
import { DisruptionWitness } from "./disruption-witness.ts";
import { Disruptions } from "./disruptions.ts";
import { DrainWitness } from "./drain-witness.ts";
import { isGuarded } from "./evictions.ts";
import { countFault, type Fault, type FaultCounts } from "./faults.ts";
import { FixedImages } from "./fixed-images.ts";
import { furnish } from "./furnish.ts";
import { judgeGated } from "./gated.ts";
import { hinderBy } from "./hindrances.ts";
import type { WorldKind } from "./kinds.ts";
import { Kubelet, type KubeletOptions } from "./kubelet.ts";
import { type Blow, connectProcess, type NetworkSite, type Sending, type Weather } from "./network.ts";
import { isInjected, KRUISE_NAMESPACE, POD_NAMESPACES } from "./objects.ts";
import { Owners } from "./owners.ts";
import { pairsIn } from "./pairs.ts";
import { PassJudge } from "./pass-judge.ts";
import { judgePlaces } from "./places-judge.ts";
import { FROZEN_MS, type PassPlan, TROUBLE_MS } from "./plans.ts";
import { Process } from "./process.ts";
import { Prometheus } from "./prometheus.ts";
import { isPull, judgePulls, Pulls } from "./pulls.ts";
import type { ReaderOptions } from "./read-now.ts";
import type { ReleasesOptions } from "./releases.ts";
import { RestartWitness } from "./restart-witness.ts";
import type { Scenario } from "./scenario.ts";
import { Scheduler } from "./scheduler.ts";
import { settle } from "./settle.ts";
import { judgeFixed, judgeStanding } from "./standing-refusals.ts";
import { Tenant } from "./tenant.ts";
import { Users } from "./users.ts";
import { ValuesWitness } from "./values-witness.ts";
import { judgeWatch } from "./watch-judge.ts";
import { WaveWitness } from "./wave-witness.ts";
import { Witness } from "./witness.ts";
import { Workloads } from "./workloads.ts";

/** Errors of clocks that nobody has changed, in milliseconds. */
const SKEWS_MS = [-86_400_000, -3_600_000, -40_000, -5_000, 5_000, 40_000, 3_600_000, 86_400_000] as const;
const TAKES_DOWN: ReadonlySet<string> = new Set([
  "PATCH pods",
  "CREATE pods/eviction",
  "PATCH deployments",
  "PATCH statefulsets",
  "PATCH daemonsets",
]);
/** Faults that refuse a write to a pod, or undo it. */
const REFUSALS = [
  "refused by a policy",
  "403 in one namespace",
  "expired token",
  "page of a proxy",
  "429 with Retry-After",
  "429 without Retry-After",
  "429 for many seconds",
  "422 on a test",
  "records forged",
  "values forged",
] as const satisfies readonly Fault[];
/** The most pods of a world in which the exit code of `status -w` is judged. */
const MOST_WATCHED = 15;
/** One status write of this many triggers a comparison of all texts about a rollout. */
const EVERY_STATUS = 8;
const START_MS = Date.parse("2026-01-01T00:00:00Z");

export interface WorldResult {
  readonly seed: number;
  readonly kind?: WorldKind | undefined;
  readonly violations: readonly string[];
  /** everything that happened, in order */
  readonly trace: readonly string[];
  readonly counts: FaultCounts;
  /** kind of judgement → number of times */
  readonly looks: ReadonlyMap<string, number>;
  readonly calls: number;
  readonly writes: number;
  readonly upgrades: number;
  readonly fences: number;
  readonly flips: number;
}

/** A pass to start. */
interface Start {
  readonly plan: Omit<PassPlan, "startMs">;
  /** what the process remembers; absent: nothing */
  readonly memory?: PassMemory;
  /** error of the process' clock; absent: the scenario's */
  readonly skewMs?: number;
}

/** The surroundings in which a pass starts. */
export interface WorkSite {
  readonly cluster: Cluster;
  readonly options: PassOptions;
  readonly process: Process;
}

/** A run's changes to its scenario. */
export interface Intervention {
  readonly blowAt?: (sending: Sending) => Blow | undefined;
  readonly gate?: NetworkSite["gate"];
  /** the admission of SidecarSets and of pods' statuses */
  readonly admit?: ReleasesOptions["admit"];
  readonly tell?: KubeletOptions["tell"];
  /** returns the process' sender of notifications; absent: there are none */
  readonly notifyBy?: (process: Process, isCalm: () => boolean) => Gates["notify"];
  /** called with every write */
  readonly see?: (write: Write) => void;
}

export class World {
  readonly scheduler = new Scheduler(START_MS);
  readonly counts: FaultCounts = new Map();
  readonly server: ApiServer;
  readonly kubelet: Kubelet;
  readonly collector: Collector;
  readonly users: Users;
  readonly owners: Owners;
  readonly approver: Approver;
  readonly prometheus: Prometheus;
  readonly witness: Witness;
  /** a witness for each SidecarSet of a world with waves */
  readonly waves: readonly WaveWitness[];
  /** a witness for each SidecarSet of a world with restarts of workloads */
  readonly restarts: readonly RestartWitness[];
  readonly workloads: Workloads;
  readonly disruptions: Disruptions;
  readonly tenant: Tenant;
  readonly bystanders: Bystanders;
  readonly values: ValuesWitness;
  readonly drains: DrainWitness;
  readonly pulls: Pulls;
  readonly #fixed = new FixedImages((pod) => this.workloads.uidOf(pod));
  readonly #disruptionWitness: DisruptionWitness;
  readonly scenario: Scenario;
  readonly violations: string[] = [];
  readonly #lines: string[] = [];
  readonly #weather: Weather;
  /** pass' name → its judge */
  readonly #judges = new Map<string, PassJudge>();
  readonly #intervention: Intervention;
  readonly #plans = new Map<string, PassPlan>();
  /** kind of judgement → number of times */
  readonly looks = new Map<string, number>();
  #passes = 0;
  /** number of statuses that passes wrote */
  #statuses = 0;
  #running = 0;
  #isCalm = false;
  calls = 0;

  constructor(scenario: Scenario, intervention: Intervention = {}) {
    const { seed, sets, isStrict, strategy } = scenario;
    const { scheduler, counts } = this;
    this.scenario = scenario;
    this.#intervention = intervention;
    const stream = (index: number) => seededChance(seed, index);
    const { pageSize, firstVersion = 1 } = scenario;
    const onWrite = (write: Write) => this.#see(write);
    const disruption = stream(32);
    const isKept = (pod: Pod) => this.#isKept(pod, disruption);
    const isAside = scenario.pulls ? isPull : undefined;
    const refuse: ApiServerOptions["refuse"] = (next, current) => this.#fixed.refuse(next, current);
    this.server = new ApiServer({
      scheduler,
      random: stream(2).next,
      onWrite,
      pageSize,
      firstVersion,
      isKept,
      isAside,
      refuse,
    });
    const { server } = this;
    const { admit, tell } = intervention;
    this.values = new ValuesWitness({ server, chance: stream(61), violated: (what) => this.violated(what) });
    const { drain } = scenario.release ?? {};
    const violated = (what: string) => this.violated(what);
    this.drains = new DrainWitness({ server, sets, drain, nowMs: () => scheduler.nowMs, violated });
    this.pulls = new Pulls({ server, sets, plan: scenario.pulls, scheduler, counts, chance: stream(62), violated });
    const started: KubeletOptions["started"] = (pod, id) => this.values.started(pod, id);
    this.kubelet = new Kubelet({ ...scenario, tell, started, scheduler, server, counts, chance: stream(3) });
    this.collector = new Collector({ ...scenario, scheduler, server, counts, chance: stream(5) });
    const first = { version: 1, shape: 0, strategy, ...scenario.release };
    this.users = new Users({ ...scenario, admit, scheduler, server, counts, chance: stream(4) }, first);
    this.owners = new Owners({
      ...scenario,
      server,
      kubelet: this.kubelet,
      scheduler,
      users: this.users,
      counts,
      chance: stream(33),
    });
    const { plans: own = [], lagMs = 0, outages } = scenario.restarts ?? {};
    this.workloads = new Workloads({
      plans: own,
      lagMs,
      outages,
      scheduler,
      server,
      users: this.users,
      chance: stream(38),
    });
    const { workloads } = this;
    const report = (what: string) => this.violated(what);
    const pods = () => server.all<Pod>(PODS);
    const plan = scenario.approver;
    this.approver = new Approver({ plan, sets, scheduler, server, counts, chance: stream(34), violated: report });
    const told = { plan: scenario.prometheus, sets, scheduler, server, counts, violated: report };
    this.prometheus = new Prometheus({ ...told, chance: stream(35) });
    this.witness = new Witness({
      sets,
      isStrict,
      pods,
      nowMs: () => scheduler.nowMs,
      lagMs: scenario.lag?.ms ?? 0,
      wasRefused: () => REFUSALS.some((fault) => (counts.get(fault) ?? 0) > 0),
      report,
    });
    const { namespaces } = this.witness;
    const clock = () => this.witness.writes;
    const beganOf = (pass: string) => this.witness.beganOf(pass);
    const podsOf = (uid: string) => workloads.podsOf(uid);
    const eye = { namespaces, clock, beganOf, podsOf, nowMs: () => scheduler.nowMs, violated: report };
    const restartsOf = (set: string) => this.restarts.find((one) => one.set === set);
    const waveWitnessOf = (set: string) =>
      new WaveWitness({
        set,
        ...eye,
        restartedSince: (time) => restartsOf(set)?.openSince(time) ?? [],
        owedSince: (pass, status) =>
          this.#judges.get(pass)?.hasFailed ? [] : (restartsOf(set)?.owedSince(beganOf(pass), status) ?? []),
      });
    this.waves = scenario.release?.waves ? sets.map(({ name }) => waveWitnessOf(name)) : [];
    const seen = { workloads, witness: this.witness, pods, violated: report };
    this.restarts = scenario.restarts ? sets.map(({ name }) => new RestartWitness({ set: name, ...seen })) : [];
    const { networkFaults: faults, faultRate, slowRate, expireRate, eventRate, isForbidden } = scenario;
    const forbiddenNamespace = isForbidden ? POD_NAMESPACES[0] : undefined;
    this.#weather = { faults, faultRate, slowRate, expireRate, eventRate, forbiddenNamespace };
    const { hindrances, lag } = scenario;
    this.#weather.lag = lag;
    if (hindrances) this.#weather.hinder = hinderBy(hindrances, stream(31));
    const plans = scenario.disruptions ?? [];
    this.disruptions = new Disruptions({ plans, scheduler, server, counts, chance: stream(37) });
    this.#disruptionWitness = new DisruptionWitness({ server, nowMs: () => scheduler.nowMs, violated: report });
    this.tenant = new Tenant({ server, scheduler, counts, chance: stream(52), everyMs: scenario.forgedEveryMs });
    this.bystanders = new Bystanders({
      plans: scenario.bystanders ?? [],
      server,
      scheduler,
      counts,
      users: this.users,
    });
    furnish({ server, users: this.users, workloads, scenario, startMs: START_MS });
    this.disruptions.createAll();
    this.bystanders.createAll();
    this.#fixed.areFixed = scenario.release?.areImagesFixed === true;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Starts a pass in its own process. */
  startPass(plan: Omit<PassPlan, "startMs">): Promise<PassReport> {
    return this.start({ plan }, ({ cluster, options }) => runPass(cluster, options));
  }

  /** Starts a command or a function that runs one pass, in a process of its own. */
  start<R extends PassReport | undefined>(
    { plan, memory, skewMs }: Start,
    work: (site: WorkSite) => Promise<R>,
  ): Promise<R> {
    const { scenario, scheduler, server, counts } = this;
    const name = `pass-${++this.#passes}`;
    const chance = seededChance(scenario.seed, 100 + this.#passes);
    const process = new Process(scheduler, chance, name, memory);
    this.#plans.set(name, { ...plan, startMs: 0 });
    if (skewMs !== undefined) process.jump(skewMs);
    else if (scenario.areClocksSkewed) {
      process.jump(seededChance(scenario.seed, 1_000 + this.#passes).pick(SKEWS_MS));
      countFault(counts, "skewed clock");
    }
    const { jump, deadlineMs, isFollowing, sidecarSet } = plan;
    if (jump)
      process.deliver(jump.afterMs, () => {
        process.jump(jump.byMs);
        countFault(counts, "clock jumped by an hour");
      });
    const { gate, blowAt = (sending: Sending) => this.#plannedBlow(sending) } = this.#intervention;
    const judge = this.#judgeOf(name, sidecarSet);
    const site: NetworkSite = {
      judge,
      scheduler,
      server,
      counts,
      chance,
      weather: this.#weather,
      trace: (line) => this.say(line),
      violated: (what) => this.violated(what),
      blowAt: (sending) => {
        this.calls++;
        return blowAt(sending);
      },
      ...(gate ? { gate } : {}),
    };
    const options: PassOptions = {
      deadlineMs,
      kruiseNamespace: KRUISE_NAMESPACE,
      settings: this.#settings,
      follow: isFollowing,
      clock: process.clock,
      memory: process.memory,
      gates: {
        refusals: new Map(),
        notify: this.#intervention.notifyBy?.(process, () => this.#isCalm),
        ...(scenario.prometheus ? this.prometheus.gatesOf(process) : {}),
        ...(scenario.approver ? this.approver.gatesOf(process) : {}),
      },
      ...(sidecarSet === undefined ? {} : { sidecarSet }),
    };
    if (this.#running++ > 0) countFault(counts, "overlapping passes");
    this.say(`${name} starts`);
    this.witness.passStarts(name, this.#isCalm && sidecarSet === undefined, process.memory);
    const ending = work({ cluster: connectProcess(site, process), options, process });
    ending.then(
      (ended) => {
        this.#running--;
        this.say(`${name} ends ${ended?.sidecarSets.map(({ stop }) => stop).join() ?? "with nothing to do"}`);
        if (ended) judge.ends(ended);
        if (ended) this.approver.ends(process, ended);
      },
      (error: unknown) => this.violated(`${name} rejected: ${error instanceof Error ? error.stack : error}`),
    );
    return ending;
  }

  /** Returns the server, settings and clock for a reader of the cluster. */
  get reader(): ReaderOptions {
    return { server: this.server, settings: this.#settings, nowMs: () => this.scheduler.nowMs };
  }

  get #settings(): RolloutSettings {
    const { isStrict, disruptions } = this.scenario;
    const RespectDisruptionBudgets = disruptions !== undefined;
    return { ...DEFAULT_ROLLOUT_SETTINGS, StrictMaxUnavailable: isStrict, RespectDisruptionBudgets };
  }

  #judgeOf(name: string, sidecarSet: string | undefined): PassJudge {
    const { server, users, scheduler } = this;
    const uidOf = (set: string) => users.releases.stored(set)?.metadata?.uid;
    const meant = this.#sets.filter(({ name }) => [undefined, name].includes(sidecarSet)).map((set) => set.name);
    const began = new Map(meant.map((set) => [set, uidOf(set)]));
    let most = 0;
    const judge = new PassJudge({
      name,
      sets: () => meant.filter((set) => began.get(set) !== undefined && began.get(set) === uidOf(set)),
      wish: () => JSON.stringify(meant.map((set) => wishOf(users.releases.stored(set)))),
      pods: () => {
        most = Math.max(most, server.all(PODS).length);
        return most;
      },
      podsLike: (start) => {
        const pods = server
          .all<Pod>(PODS)
          .filter((pod) => `${pod.metadata?.namespace}/${pod.metadata?.name}`.startsWith(start));
        return new Set(pods.map(({ metadata }) => metadata?.uid ?? ""));
      },
      restartsAtOnce: Number(/Restart=(\d+)/.exec(users.releases.first.replaced ?? "")?.[1] ?? 1),
      pageSize: this.scenario.pageSize,
      nowMs: () => scheduler.nowMs,
      violated: (what) => this.violated(what),
    });
    this.#judges.set(name, judge);
    return judge;
  }

  /** Runs all events of the scenario. */
  async run(): Promise<WorldResult> {
    const { passes, strikes, sets, standing } = this.scenario;
    const { scheduler } = this;
    for (const { name } of sets) scheduler.after(0, () => this.users.releases.releaseNext(name));
    for (const { atMs, fault } of strikes) scheduler.after(atMs, () => this.#strike(fault));
    for (const { startMs, ...plan } of passes) scheduler.after(startMs, () => void this.startPass(plan));
    await this.scheduler.runFor(TROUBLE_MS + 60_000);
    this.calm();
    if (standing) this.#weather.hinder = hinderBy(standing, seededChance(this.scenario.seed, 31));
    // The wait lets frozen processes continue.
    if (passes.some(({ blow }) => blow?.kind.startsWith("freeze"))) await this.scheduler.runFor(FROZEN_MS + 60_000);
    if (standing) await judgeStanding(this, standing);
    this.#weather.hinder = undefined;
    await this.#thaw();
    if (this.scenario.pulls) await judgePulls(this, this.scenario.pulls);
    this.pulls.heal();
    this.disruptions.calm();
    this.tenant.stop();
    if (this.scenario.bystanders) await judgeGated(this);
    this.bystanders.calm();
    await this.settle();
    for (const problem of [...this.values.problems(), ...this.drains.problems()]) this.violated(problem);
    await judgeAdvice(this);
    return this.result();
  }

  /** Allows changes of images again, in worlds that forbade them. */
  async #thaw(): Promise<void> {
    if (!this.#fixed.areFixed) return;
    await judgeFixed(this);
    this.#fixed.areFixed = false;
    for (const { name } of this.#sets) {
      this.users.releases.apply(name, { areImagesFixed: false });
      // The next release tries the refused writes again.
      this.users.releases.releaseNext(name, true);
    }
  }

  /** Faults that no user causes. A fault returns false if there was nothing that it could break. */
  readonly #strikes: Partial<Record<Fault, () => boolean>> = {
    "workload changed": () => this.workloads.change(),
    "disruption budget changed": () => this.disruptions.change(),
    "values forged": () => this.values.forge(),
    "container crashed": () => this.server.all<Pod>(PODS).filter((pod) => this.kubelet.crash(pod)).length > 0,
    "node lost": () => this.owners.loseNode(),
  };

  #strike(fault: Fault): void {
    const strike = this.#strikes[fault];
    if (!strike) this.users.strike(fault);
    else if (strike()) countFault(this.counts, fault);
  }

  /** Ends faults, and repairs what is broken. */
  calm(): void {
    this.#isCalm = true;
    Object.assign(this.#weather, {
      faultRate: 0,
      slowRate: 0,
      expireRate: 0,
      eventRate: 0,
      forbiddenNamespace: undefined,
      hinder: undefined,
      lag: undefined,
    });
    this.users.fix();
    this.owners.calm();
    this.workloads.calm();
    if (!this.scenario.standing) this.disruptions.calm();
    this.approver.calm();
    this.prometheus.calm();
    this.kubelet.heal();
  }

  /** Runs until the wanted state is reached, and then expects silence. */
  async settle(): Promise<void> {
    // The event loop runs after each world, so that other processes know that this thread is alive.
    await new Promise((resolve) => setImmediate(resolve));
    await settle(this);
  }

  result(): WorldResult {
    for (const pair of pairsIn(this.scenario)) this.looked(pair);
    const { witness, counts, looks, calls, violations } = this;
    const { writes, upgrades, fences, flips } = witness;
    const numbers = { calls, writes, upgrades, fences, flips };
    const { seed, kind } = this.scenario;
    return { seed, kind, violations, trace: this.#lines, counts, looks, ...numbers };
  }

  get #sets() {
    return this.scenario.sets;
  }

  #plannedBlow({ process, index, nth, call }: Sending): Blow | undefined {
    const blow = this.#plans.get(process.name)?.blow;
    const isThere = blow?.ofPods ? TAKES_DOWN.has(call) && nth === blow.atCall : index === blow?.atCall;
    if (!blow || !isThere) return undefined;
    const { kind, lateMs, frozenMs } = blow;
    const isFrozen = kind === "freezeBefore" || kind === "freezeAfter";
    const frozen = frozenMs === FROZEN_MS ? "pass frozen for 15 minutes" : "pass held up for seconds";
    countFault(this.counts, isFrozen ? frozen : "pass killed");
    if (isFrozen) return { kind, ms: frozenMs };
    return kind === "killLate" ? { kind, lateMs } : { kind };
  }

  #isKept(pod: Pod, chance: Chance): boolean {
    const { keptRate = 0 } = this.scenario;
    const isKept = isGuarded(pod) || (!this.#isCalm && keptRate > 0 && chance.isLucky(keptRate));
    if (isKept) countFault(this.counts, "eviction refused by a PodDisruptionBudget");
    return isKept;
  }

  #see(write: Write): void {
    const { resource, name, userAgent } = write;
    this.#intervention.see?.(write);
    if (this.pulls.see(write)) {
      this.collector.see(write);
      this.say(lineOf(write));
      return;
    }
    this.witness.see(write);
    this.values.see(write);
    this.drains.see(write);
    const isOurs = (pod: Pod) => this.#sets.some(({ name }) => isInjected(pod, name));
    const early = this.#fixed.areFixed ? this.#fixed.problemOf(write, isOurs) : undefined;
    if (early !== undefined) this.violated(early);
    this.kubelet.see(write);
    this.collector.see(write);
    if (this.scenario.restarts) this.workloads.see(write);
    else this.owners.see(write);
    for (const witness of this.restarts) witness.see(write);
    this.approver.see(write);
    this.prometheus.see(write);
    for (const witness of this.waves) witness.see(write);
    this.disruptions.see(write);
    this.#disruptionWitness.see(write);
    if (resource === "sidecarsets" && userAgent.startsWith("pass")) this.#askReaders(name);
    this.say(lineOf(write));
  }

  /** Asks the readers only in small worlds: lists of many pods would cost more than the world itself. */
  #askReaders(name: string): void {
    if (this.server.all(PODS).length > MOST_WATCHED) return;
    const options = {
      ...this.reader,
      isIn: this.witness.namespaces.now,
      violated: (what: string) => this.violated(what),
    };
    const failed = (what: string) => (error: unknown) =>
      this.violated(`${what} ${name} fails: ${error instanceof Error ? error.stack : error}`);
    judgeWatch(options, name).catch(failed("status -w"));
    if (this.#statuses++ % EVERY_STATUS !== this.scenario.seed % EVERY_STATUS) return;
    const compared = (combination: string) => this.looked(`holds: ${combination}`);
    judgePlaces({ ...options, compared }, name).catch(failed("a reader of"));
  }

  /** Counts a judgement. */
  looked(what: string): void {
    this.looks.set(what, (this.looks.get(what) ?? 0) + 1);
  }

  /** Adds a line to the trace. */
  say(line: string): void {
    this.#lines.push(`${this.scheduler.nowMs - START_MS} ${line}`);
  }

  /** Records a broken promise. */
  violated(what: string): void {
    this.say(`VIOLATION ${what}`);
    this.violations.push(what);
  }
}

function lineOf({ userAgent, verb, resource, name, object }: Write): string {
  return `${userAgent} ${verb} ${resource} ${name} → ${object.metadata.resourceVersion}`;
}

function wishOf(sidecarSet: SidecarSet | undefined) {
  const { generation, annotations } = sidecarSet?.metadata ?? {};
  return [generation, annotations];
}
