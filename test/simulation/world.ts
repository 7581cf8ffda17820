/** One world: built from a scenario, run to its end, judged on the way. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/report.ts";
import { NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { ApiServer, type Write } from "./api-server.ts";
import { seededChance } from "./chance.ts";
import { Collector } from "./collector.ts";
import { finalViolations } from "./end-state.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import { Kubelet } from "./kubelet.ts";
import { type Blow, connectProcess, type NetworkSite, type Sending, type Weather } from "./network.ts";
import { KRUISE_NAMESPACE, POD_NAMESPACES, runningStatus } from "./objects.ts";
import { budgetOf } from "./permission.ts";
import { FROZEN_MS, type PassPlan, TROUBLE_MS } from "./plans.ts";
import { Process } from "./process.ts";
import type { Scenario } from "./scenario.ts";
import { Scheduler } from "./scheduler.ts";
import { Users } from "./users.ts";
import { Witness } from "./witness.ts";

const START_MS = Date.parse("2026-01-01T00:00:00Z");

export interface WorldResult {
  readonly seed: number;
  readonly violations: readonly string[];
  /** everything that happened, in order */
  readonly trace: readonly string[];
  readonly counts: FaultCounts;
  readonly calls: number;
  readonly writes: number;
  readonly upgrades: number;
  readonly fences: number;
  readonly flips: number;
}

/** What a run does otherwise than its scenario says. */
export interface Intervention {
  readonly blowAt?: (sending: Sending) => Blow | undefined;
  readonly gate?: NetworkSite["gate"];
}

export class World {
  readonly scheduler = new Scheduler(START_MS);
  readonly counts: FaultCounts = new Map();
  readonly server: ApiServer;
  readonly kubelet: Kubelet;
  readonly collector: Collector;
  readonly users: Users;
  readonly witness: Witness;
  readonly scenario: Scenario;
  readonly violations: string[] = [];
  readonly #lines: string[] = [];
  readonly #weather: Weather;
  readonly #intervention: Intervention;
  readonly #plans = new Map<string, PassPlan>();
  #passes = 0;
  #running = 0;
  calls = 0;

  constructor(scenario: Scenario, intervention: Intervention = {}) {
    const { seed, sets, isStrict, strategy } = scenario;
    const { scheduler, counts } = this;
    this.scenario = scenario;
    this.#intervention = intervention;
    const stream = (index: number) => seededChance(seed, index);
    const { pageSize } = scenario;
    const onWrite = (write: Write) => this.#see(write);
    this.server = new ApiServer({ scheduler, random: stream(2).next, onWrite, pageSize });
    const { server } = this;
    this.kubelet = new Kubelet({ ...scenario, scheduler, server, counts, chance: stream(3) });
    this.collector = new Collector({ scheduler, server, chance: stream(5) });
    const first = { version: 1, shape: 0, strategy };
    this.users = new Users({ ...scenario, scheduler, server, counts, chance: stream(4) }, first);
    const report = (what: string) => this.#violated(what);
    this.witness = new Witness({ sets, isStrict, pods: () => server.all<Pod>(PODS), report });
    const { networkFaults: faults, faultRate, slowRate, expireRate, eventRate, isForbidden } = scenario;
    const forbiddenNamespace = isForbidden ? POD_NAMESPACES[0] : undefined;
    this.#weather = { faults, faultRate, slowRate, expireRate, eventRate, forbiddenNamespace };
    this.#furnish();
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Starts a pass in a process of its own. */
  startPass(plan: Omit<PassPlan, "startMs">): Promise<PassReport> {
    const { scenario, scheduler, server, counts } = this;
    const name = `pass-${++this.#passes}`;
    const chance = seededChance(scenario.seed, 100 + this.#passes);
    const process = new Process(scheduler, chance, name);
    this.#plans.set(name, { ...plan, startMs: 0 });
    const { jump, deadlineMs, isFollowing, sidecarSet } = plan;
    if (jump)
      process.deliver(jump.afterMs, () => {
        process.jump(jump.byMs);
        countFault(counts, "clock jumped by an hour");
      });
    const { gate, blowAt = (sending: Sending) => this.#plannedBlow(sending) } = this.#intervention;
    const site: NetworkSite = {
      scheduler,
      server,
      counts,
      chance,
      weather: this.#weather,
      trace: (line) => this.#trace(line),
      violated: (what) => this.#violated(what),
      blowAt: (sending) => {
        this.calls++;
        return blowAt(sending);
      },
      ...(gate ? { gate } : {}),
    };
    const options: PassOptions = {
      deadlineMs,
      kruiseNamespace: KRUISE_NAMESPACE,
      follow: isFollowing,
      clock: process.clock,
      over: process.over,
      isBudgetStrict: scenario.isStrict,
      ...(sidecarSet === undefined ? {} : { sidecarSet }),
    };
    if (this.#running++ > 0) countFault(counts, "overlapping passes");
    this.#trace(`${name} starts`);
    this.witness.passStarts();
    const report = runPass(connectProcess(site, process), options);
    report.then(
      ({ sidecarSets }) => {
        this.#running--;
        this.#trace(`${name} ends ${sidecarSets.map(({ stop }) => stop).join()}`);
      },
      (error: unknown) => this.#violated(`${name} rejected: ${error instanceof Error ? error.stack : error}`),
    );
    return report;
  }

  /** Everything that the scenario has in store. */
  async run(): Promise<WorldResult> {
    const { passes, strikes, sets } = this.scenario;
    const { scheduler } = this;
    for (const { name } of sets) scheduler.after(0, () => this.users.releases.releaseNext(name));
    for (const { atMs, fault } of strikes) scheduler.after(atMs, () => this.users.strike(fault));
    for (const { startMs, ...plan } of passes) scheduler.after(startMs, () => void this.startPass(plan));
    await this.scheduler.runFor(TROUBLE_MS + 60_000);
    this.calm();
    // Who was frozen comes back now.
    if (passes.some(({ blow }) => blow?.kind.startsWith("freeze"))) await this.scheduler.runFor(FROZEN_MS + 60_000);
    await this.settle();
    return this.result();
  }

  /** No more faults; what was broken is mended. */
  calm(): void {
    Object.assign(this.#weather, {
      faultRate: 0,
      slowRate: 0,
      expireRate: 0,
      eventRate: 0,
      forbiddenNamespace: undefined,
    });
    this.users.mend();
    this.kubelet.heal();
  }

  /** Passes one a minute until the wanted state is there, at most as many as that may take, and then silence. */
  async settle(): Promise<void> {
    // Once a world the event loop has its turn: whoever waits for a sign of life of this thread gets one.
    await new Promise((resolve) => setImmediate(resolve));
    const pods = this.server.all(PODS).length;
    const windows = this.#sets.map(({ name }) => this.#windowOf(name, pods));
    const most = Math.ceil(pods / Math.min(...windows)) + 3;
    let left = this.#unsettled();
    let written = -1;
    for (let pass = 0; pass < most && (left.length > 0 || written !== 0); pass++) {
      written = await this.#writtenByPass();
      left = this.#unsettled();
    }
    for (const problem of left) this.#violated(`after ${most} passes: ${problem}`);
    if (left.length > 0 || written === 0) return;
    written = await this.#writtenByPass();
    if (written > 0) this.#violated(`${written} writes although there was nothing to do`);
  }

  result(): WorldResult {
    const { witness, counts, calls, violations } = this;
    const { writes, upgrades, fences, flips } = witness;
    const numbers = { calls, writes, upgrades, fences, flips };
    return { seed: this.scenario.seed, violations, trace: this.#lines, counts, ...numbers };
  }

  async #writtenByPass(): Promise<number> {
    const before = this.witness.passWrites;
    let isOver = false;
    const report = this.startPass({ deadlineMs: 55_000, isFollowing: true });
    void report.finally(() => {
      isOver = true;
    });
    await this.scheduler.runUntil(() => isOver);
    await this.scheduler.runFor(60_000);
    return this.witness.passWrites - before;
  }

  #unsettled(): readonly string[] {
    return this.#sets.flatMap(({ name }) => finalViolations(this.server, name, this.witness.ledgerOf(name)));
  }

  get #sets() {
    return this.scenario.sets;
  }

  #windowOf(set: string, pods: number): number {
    const stored = this.users.releases.stored(set);
    if (this.#sets.some(({ isOrdinal, perOwner }) => isOrdinal || perOwner !== undefined)) return 1;
    return Math.max(1, stored ? budgetOf(stored, pods) : 1);
  }

  #plannedBlow({ process, index, nth, call }: Sending): Blow | undefined {
    const blow = this.#plans.get(process.name)?.blow;
    const isThere = blow?.ofPods ? call === "PATCH pods" && nth === blow.atCall : index === blow?.atCall;
    if (!blow || !isThere) return undefined;
    const { kind, lateMs, frozenMs } = blow;
    const isFrozen = kind === "freezeBefore" || kind === "freezeAfter";
    const frozen = frozenMs === FROZEN_MS ? "pass frozen for 15 minutes" : "pass held up for seconds";
    countFault(this.counts, isFrozen ? frozen : "pass killed");
    if (isFrozen) return { kind, ms: frozenMs };
    return kind === "killLate" ? { kind, lateMs } : { kind };
  }

  #see(write: Write): void {
    const { resource, name, object, userAgent } = write;
    this.witness.see(write);
    this.kubelet.see(write);
    this.collector.see(write);
    this.#trace(`${userAgent} ${write.verb} ${resource} ${name} → ${object.metadata.resourceVersion}`);
  }

  #trace(line: string): void {
    this.#lines.push(`${this.scheduler.nowMs - START_MS} ${line}`);
  }

  #violated(what: string): void {
    this.#trace(`VIOLATION ${what}`);
    this.violations.push(what);
  }

  #furnish(): void {
    const { server, scenario, users } = this;
    for (const name of [KRUISE_NAMESPACE, "default", ...POD_NAMESPACES])
      server.put("user", NAMESPACES, { metadata: { name } });
    users.releases.createAll();
    for (let index = 0; index < scenario.pods; index++) {
      const namespace = POD_NAMESPACES[index % POD_NAMESPACES.length] ?? "shop";
      const pod = users.createPod(namespace, `web-${index}`);
      const stored = server.peek<Pod>(PODS, { namespace, name: `web-${index}` }) ?? pod;
      server.put("kubelet", PODS, { ...stored, status: runningStatus(stored, START_MS) } as Pod);
    }
    for (let index = 0; index < (scenario.tenantPods ?? 0); index++) users.createPod("shop", `tenant-${index}`);
  }
}
