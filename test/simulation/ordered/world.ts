/** Builds a world with an ordered set from a scenario, runs it to its end, and judges every step. */
import type { ControllerRevision, KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import { runSetPass } from "../../../shared/controller/statefulset/pass.ts";
import type { SetPassReport } from "../../../shared/controller/statefulset/report.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import {
  CLAIMS,
  type Cluster,
  CONTROLLER_REVISIONS,
  NAMESPACES,
  PODS,
  STATEFUL_SETS,
} from "../../../shared/kube/port.ts";
import { ApiServer, type Write } from "../api-server.ts";
import { seededChance } from "../chance.ts";
import { countFault, type FaultCounts } from "../faults.ts";
import { type Hinder, hinderBy } from "../hindrances.ts";
import { type Blow, connectProcess, type NetworkSite, type Sending, type Weather } from "../network.ts";
import { Process } from "../process.ts";
import { Scheduler } from "../scheduler.ts";
import { setProblems } from "./end-state.ts";
import { Jury } from "./jury.ts";
import { Nodes } from "./nodes.ts";
import { KRUISE_NAMESPACE, NAMESPACE, SET } from "./objects.ts";
import { FROZEN_MS, type SetPlan, type SetScenario, type Strike, TROUBLE_MS } from "./scenario.ts";
import { SetUsers } from "./users.ts";
import { SetWitness } from "./witness.ts";

const START_MS = Date.parse("2026-01-01T00:00:00Z");
const MOST_PASSES = 6;

export interface SetWorldResult {
  readonly seed: number;
  readonly violations: readonly string[];
  /** everything that happened, in order */
  readonly trace: readonly string[];
  readonly counts: FaultCounts;
  readonly strikes: ReadonlyMap<Strike, number>;
  readonly calls: number;
  readonly writes: number;
  readonly created: number;
  readonly taken: number;
  readonly fences: number;
}

export class SetWorld {
  readonly #scheduler = new Scheduler(START_MS);
  readonly #counts: FaultCounts = new Map();
  readonly #strikes = new Map<Strike, number>();
  readonly #server: ApiServer;
  readonly #nodes: Nodes;
  readonly #users: SetUsers;
  readonly #witness: SetWitness;
  readonly #jury: Jury;
  readonly #scenario: SetScenario;
  readonly #weather: Weather;
  readonly #hinder: Hinder;
  readonly #violations: string[] = [];
  readonly #lines: string[] = [];
  readonly #plans = new Map<string, Omit<SetPlan, "startMs">>();
  #passes = 0;
  #running = 0;
  #calls = 0;

  constructor(scenario: SetScenario) {
    this.#scenario = scenario;
    const scheduler = this.#scheduler;
    const stream = (index: number) => seededChance(scenario.seed, index);
    const { pageSize, networkFaults: faults, faultRate, slowRate, expireRate, eventRate } = scenario;
    const onWrite = (write: Write) => this.#see(write);
    const server = new ApiServer({ scheduler, random: stream(2).next, onWrite, pageSize });
    this.#server = server;
    this.#nodes = new Nodes({ ...scenario, scheduler, server, chance: stream(3) });
    this.#users = new SetUsers({ scheduler, server, scenario, chance: stream(4) });
    const report = (what: string) => this.#violated(what);
    const facts = {
      pods: () => server.all<Pod>(PODS),
      claims: () => server.all<PersistentVolumeClaim>(CLAIMS),
      revisions: () => server.all<ControllerRevision>(CONTROLLER_REVISIONS),
      nowMs: () => scheduler.nowMs,
      ledger: () => this.#witness.ledger,
    };
    this.#witness = new SetWitness({ ...facts, report });
    this.#jury = new Jury(facts, report);
    this.#weather = { faults, faultRate, slowRate, expireRate, eventRate, forbiddenNamespace: undefined };
    this.#hinder = hinderBy(scenario.hindrances, stream(31));
    for (const name of [KRUISE_NAMESPACE, "default", NAMESPACE]) server.put("user", NAMESPACES, { metadata: { name } });
    this.#users.apply({});
  }

  /** Runs all events of the scenario, on a set that has come to rest first. */
  async run(): Promise<SetWorldResult> {
    const { passes, strikes } = this.#scenario;
    const scheduler = this.#scheduler;
    const { faultRate, slowRate, expireRate, eventRate } = this.#weather;
    this.#calm();
    await this.#settle();
    Object.assign(this.#weather, { faultRate, slowRate, expireRate, eventRate, hinder: this.#hinder });
    scheduler.after(0, () => this.#strike("new template"));
    for (const { atMs, strike } of strikes) scheduler.after(atMs, () => this.#strike(strike));
    for (const { startMs, ...plan } of passes) scheduler.after(startMs, () => void this.#startPass(plan));
    await scheduler.runFor(TROUBLE_MS + 60_000);
    this.#calm();
    // The wait lets frozen processes continue.
    if (passes.some(({ blow }) => blow?.kind.startsWith("freeze"))) await scheduler.runFor(FROZEN_MS + 60_000);
    await this.#settle();
    const { writes, created, taken, fences } = this.#witness;
    const numbers = { calls: this.#calls, writes, created, taken, fences };
    const result = { trace: this.#lines, counts: this.#counts, strikes: this.#strikes, violations: this.#violations };
    return { seed: this.#scenario.seed, ...result, ...numbers };
  }

  #strike(strike: Strike): void {
    const isDone = this.#users.strike(strike);
    this.#trace(`user: ${strike}${isDone ? "" : ", not now"}`);
    if (isDone) this.#strikes.set(strike, (this.#strikes.get(strike) ?? 0) + 1);
  }

  #calm(): void {
    Object.assign(this.#weather, { faultRate: 0, slowRate: 0, expireRate: 0, eventRate: 0, hinder: undefined });
  }

  /** Runs one pass a minute until the wanted state is reached, and then a pass without work. */
  async #settle(): Promise<void> {
    let left: readonly string[] = ["not begun"];
    for (let pass = 0; pass < MOST_PASSES && left.length > 0; pass++) {
      await this.#runPass();
      left = setProblems(this.#server, this.#witness.ledger, this.#scenario.isUnblocked);
    }
    for (const problem of left) this.#violated(`after ${MOST_PASSES} passes: ${problem}`);
    const before = this.#witness.writes;
    await this.#runPass();
    const written = this.#witness.writes - before;
    if (left.length === 0 && written > 0) this.#violated(`${written} writes although there was nothing to do`);
  }

  async #runPass(): Promise<void> {
    let isOver = false;
    const report = this.#startPass({ deadlineMs: 55_000, isFollowing: true, isByName: false });
    void report.finally(() => {
      isOver = true;
    });
    await this.#scheduler.runUntil(() => isOver);
    await this.#scheduler.runFor(60_000);
  }

  /** Starts a pass in its own process. */
  #startPass(plan: Omit<SetPlan, "startMs">): Promise<SetPassReport> {
    const name = `pass-${++this.#passes}`;
    const chance = seededChance(this.#scenario.seed, 100 + this.#passes);
    const process = new Process(this.#scheduler, chance, name);
    this.#plans.set(name, plan);
    if (this.#running++ > 0) countFault(this.#counts, "overlapping passes");
    this.#trace(`${name} starts`);
    const site: NetworkSite = {
      scheduler: this.#scheduler,
      server: this.#server,
      counts: this.#counts,
      chance,
      weather: this.#weather,
      trace: (line) => this.#trace(line),
      violated: (what) => this.#violated(what),
      blowAt: (sending) => this.#blowAt(sending),
    };
    const report = runSetPass(this.#jury.watched(name, this.#watched(name, connectProcess(site, process))), {
      deadlineMs: plan.deadlineMs,
      kruiseNamespace: KRUISE_NAMESPACE,
      gates: { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, StatefulSetUnblocked: this.#scenario.isUnblocked },
      follow: plan.isFollowing,
      clock: process.clock,
      over: process.memory.over,
      ...(plan.isByName ? { set: { namespace: NAMESPACE, name: SET } } : {}),
    });
    report.then(
      ({ sets, problems }) => {
        this.#running--;
        this.#trace(`${name} ends ${sets.map(({ stop, why }) => `${stop}: ${why}`).join()} ${problems}`);
      },
      (error: unknown) => this.#violated(`${name} rejected: ${error instanceof Error ? error.stack : error}`),
    );
    return report;
  }

  /** Shows the witness every answer that a pass gets. */
  #watched(pass: string, cluster: Cluster): Cluster {
    let pages: KubernetesObject[] = [];
    return {
      ...cluster,
      get: async (resource, key) => {
        const object = await cluster.get<never>(resource, key);
        const setAtMs = this.#scheduler.nowMs;
        if (resource === STATEFUL_SETS) this.#witness.given(pass, { set: object as StatefulSet, setAtMs });
        return object;
      },
      create: (resource, object, options) => {
        this.#witness.sending(pass, `CREATE ${resource.plural}`, object.metadata?.name ?? "");
        return cluster.create(resource, object, options);
      },
      delete: (resource, key, options) => {
        this.#witness.sending(pass, `DELETE ${resource.plural}`, key.name);
        return cluster.delete(resource, key, options);
      },
      list: async (resource, options) => {
        const list = await cluster.list<never>(resource, options);
        if (resource === PODS) {
          pages = [...(options?.continue ? pages : []), ...(list.items as readonly KubernetesObject[])];
          this.#witness.given(pass, { pods: pages as unknown as readonly Pod[] });
        }
        return list;
      },
    };
  }

  #blowAt({ process, index, nth, call }: Sending): Blow | undefined {
    this.#calls++;
    const blow = this.#plans.get(process.name)?.blow;
    const isThere = blow?.ofDeletions ? isTaking(call) && nth === blow.atCall : index === blow?.atCall;
    if (!blow || !isThere) return undefined;
    const { kind, lateMs } = blow;
    const isFrozen = kind === "freezeBefore" || kind === "freezeAfter";
    countFault(this.#counts, isFrozen ? "pass frozen for 15 minutes" : "pass killed");
    if (isFrozen) return { kind, ms: FROZEN_MS };
    return kind === "killLate" ? { kind, lateMs } : { kind };
  }

  #see(write: Write): void {
    this.#witness.see(write);
    this.#jury.see(write);
    this.#nodes.see(write);
    const { userAgent, verb, resource, subresource, name, object } = write;
    this.#trace(
      `${userAgent} ${verb} ${resource}${subresource ? `/${subresource}` : ""} ${name} → ${object.metadata.resourceVersion}`,
    );
  }

  #trace(line: string): void {
    this.#lines.push(`${this.#scheduler.nowMs - START_MS} ${line}`);
  }

  #violated(what: string): void {
    this.#trace(`VIOLATION ${what}`);
    this.#violations.push(what);
  }
}

function isTaking(call: string): boolean {
  return call === "DELETE pods" || call === "PATCH pods" || call === "CREATE pods";
}
