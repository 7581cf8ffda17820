/**
 * A world about the condition in the pod webhook's registration. Admissions widen it before a SidecarSet is stored.
 * Passes narrow it after one is deleted. Calls fail or arrive late, processes stop and continue, clocks differ, people
 * install the registration again. The judge: API servers send the pods of every stored SidecarSet from the moment it is
 * stored, and at the end no other pods.
 */
import { evaluate } from "@marcbachmann/cel-js";
import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { NEEDS_WEBHOOK_CONDITION, POD_WEBHOOK, WEBHOOK_CONFIGURATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { keepRegistration } from "../../../shared/controller/rollout/keep-registration.ts";
import { callCondition } from "../../../shared/core/injection/match/call-condition.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { webhookConfigurations } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, SIDECARSETS } from "../../../shared/kube/port.ts";
import { widening } from "../../../shared/webhook/handlers/widen-registration.ts";
import { ApiServer } from "../api-server.ts";
import { type Chance, seededChance } from "../chance.ts";
import { NETWORK_FAULTS, type NetworkFault } from "../faults.ts";
import { type Blow, connectProcess, type NetworkSite, type Weather } from "../network.ts";
import { Process } from "../process.ts";
import { Scheduler } from "../scheduler.ts";
import type { ViewResult } from "./world.ts";

export const REGISTRATION_TROUBLE = [
  "admission refused or too late",
  "SidecarSet stored long after its admission",
  "keeper killed or frozen",
  "registration installed again",
  "condition narrowed",
  "condition widened",
] as const;
type Trouble = (typeof REGISTRATION_TROUBLE)[number];

const START_MS = Date.parse("2026-11-23T00:00:00Z");
const NAMES = ["a", "b", "c"];
const DURATION_MS = 30 * 60_000;
/**
 * Limits of API servers in milliseconds: the wait for the webhook, the time until an admitted object is stored, and the
 * delay of a registration.
 */
const TIMEOUT_MS = 10_000;
const LONGEST_WRITE_MS = 55_000;
const SPREAD_MS = 1_000;
/** The difference between clocks. Together with a minute for the write it is less than the wait. */
const SKEW_MS = 110_000;
const SENT = NETWORK_FAULTS.filter(
  (fault): fault is Exclude<NetworkFault, "403 in one namespace"> => fault !== "403 in one namespace",
);

interface InForce {
  readonly fromMs: number;
  /** the condition; undefined: every pod is sent; null: there is no registration */
  readonly condition: string | undefined | null;
}

export class RegistrationWorld {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #scheduler = new Scheduler(START_MS);
  readonly #server: ApiServer;
  readonly #weather: Weather;
  readonly #happened: Partial<Record<Trouble, number>> = {};
  readonly #violations: string[] = [];
  readonly #trace: string[] = [];
  #inForce: InForce[] = [];
  #processes = 0;
  #writes = 0;
  #judged = 0;
  #isCalm = false;

  constructor(seed: number) {
    this.#seed = seed;
    this.#chance = seededChance(seed);
    const random = seededChance(seed, 2).next;
    this.#server = new ApiServer({ scheduler: this.#scheduler, random, onWrite: () => this.#look(), pageSize: 2 });
    const isRough = this.#chance.isLucky(0.8);
    this.#weather = {
      faults: SENT,
      faultRate: isRough ? this.#chance.pick([0.02, 0.1]) : 0,
      slowRate: isRough ? this.#chance.pick([0.02, 0.1]) : 0,
      expireRate: 0.05,
      eventRate: 0,
      forbiddenNamespace: undefined,
    };
  }

  async run(): Promise<ViewResult> {
    this.#install();
    for (const name of NAMES) void this.#user(name);
    void this.#keepers();
    if (this.#chance.isLucky(0.3)) void this.#people();
    await this.#scheduler.runFor(DURATION_MS);
    this.#isCalm = true;
    Object.assign(this.#weather, { faultRate: 0, slowRate: 0, expireRate: 0 });
    await this.#scheduler.runFor(20 * 60_000);
    const wanted = callCondition(this.#stored);
    if (this.#newest?.condition !== wanted)
      this.#violated(`in the end it is ${this.#newest?.condition}, and is to be ${wanted}`);
    const [seed, violations, happened, trace] = [this.#seed, this.#violations, this.#happened, this.#trace];
    const counts = { pods: this.#judged, warned: 0, unasked: 0, writes: this.#writes };
    return { seed, violations, happened, counts, trace };
  }

  get #stored(): readonly SidecarSet[] {
    return this.#server.all<SidecarSet>(SIDECARSETS);
  }

  get #newest(): InForce | undefined {
    return this.#inForce.at(-1);
  }

  #install(): void {
    const [mutation] = webhookConfigurations({ url: "https://webhooks.example.com" });
    const stored = this.#server.peek(MUTATING_WEBHOOK_CONFIGURATIONS, { name: WEBHOOK_CONFIGURATION });
    const metadata = { uid: "registration", ...mutation?.metadata, ...stored?.metadata, name: WEBHOOK_CONFIGURATION };
    this.#server.put("user", MUTATING_WEBHOOK_CONFIGURATIONS, { ...mutation, metadata });
  }

  /** Runs after each write: reads the valid registration, and judges whether it sends all pods that it must. */
  #look(): void {
    const condition = conditionIn(this.#server.peek(MUTATING_WEBHOOK_CONFIGURATIONS, { name: WEBHOOK_CONFIGURATION }));
    if (!this.#newest || this.#newest.condition !== condition) this.#seeChange(condition);
    // The newest registration counts, and so do older ones that an API server may still use.
    const since = this.#scheduler.nowMs - SPREAD_MS;
    const isOver = (at: number) => (this.#inForce[at + 1]?.fromMs ?? Number.POSITIVE_INFINITY) <= since;
    this.#inForce = this.#inForce.filter((_, at) => !isOver(at));
    for (const sidecarSet of this.#stored) for (const one of this.#inForce) this.#judge(sidecarSet, one);
  }

  #seeChange(condition: InForce["condition"]): void {
    const before = this.#newest;
    const isWider = (condition?.length ?? Number.POSITIVE_INFINITY) > (before?.condition?.length ?? 0);
    if (before) this.#note(isWider ? "condition widened" : "condition narrowed");
    this.#say(`in force: ${condition}`);
    this.#inForce.push({ fromMs: this.#scheduler.nowMs, condition });
  }

  #judge({ metadata, spec }: SidecarSet, { condition }: InForce): void {
    if (condition === null) return;
    this.#judged++;
    const labels = spec.selector?.matchLabels ?? {};
    if (!isAsked(condition, labels))
      this.#violated(
        `${metadata?.name}, stored for pods ${JSON.stringify(labels)}, is not asked about by ${condition}`,
      );
  }

  /** Creates, changes and deletes one SidecarSet, with an admission for each write. */
  async #user(name: string): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.pick([300, 5_000, 60_000, 60_000, 400_000]));
      if (this.#isCalm) return;
      const before = this.#server.peek<SidecarSet>(SIDECARSETS, { name });
      if (before && this.#chance.isLucky(0.4)) {
        this.#server.remove("user", SIDECARSETS, before);
        this.#writes++;
      } else await this.#write(name, before);
    }
  }

  async #write(name: string, before: SidecarSet | undefined): Promise<void> {
    const matchLabels = { app: name, tier: this.#chance.pick(["x", "y", "z"]) };
    const metadata = { uid: `${name}-${this.#writes}`, ...before?.metadata, name };
    const spec = { selector: { matchLabels }, containers: [{ name: "agent", image: "agent:1" }] };
    const object = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata, spec };
    if (!(await this.#isAdmitted({ ...requestOf(name, before), object: object as unknown as KubernetesObject }))) {
      this.#note("admission refused or too late");
      return;
    }
    const isLong = this.#chance.isLucky(0.2);
    if (isLong) this.#note("SidecarSet stored long after its admission");
    await this.#sleep(isLong ? this.#chance.between(5_000, LONGEST_WRITE_MS) : this.#chance.between(1, 20));
    this.#writes++;
    this.#server.put("user", SIDECARSETS, object as unknown as KubernetesObject);
  }

  async #isAdmitted(request: AdmissionRequest): Promise<boolean> {
    const process = this.#newProcess("admission");
    const admit = widening({
      connect: async () => connectProcess(this.#site, process),
      now: process.clock.epochMs,
      sleep: process.clock.sleep,
    })(() => ({ kind: "allowed" }));
    const answering = Promise.resolve(admit(request)).then(
      () => true,
      () => false,
    );
    return await Promise.race([answering, this.#sleep(TIMEOUT_MS).then(() => false)]);
  }

  /** Runs passes that overlap, stop and continue. */
  async #keepers(): Promise<void> {
    for (;;) {
      await this.#sleep(this.#isCalm ? 60_000 : this.#chance.pick([1_000, 10_000, 60_000]));
      const process = this.#newProcess("pass");
      void keepRegistration({
        cluster: connectProcess(this.#site, process),
        clock: process.clock,
        isDryRun: false,
        settings: DEFAULT_ROLLOUT_SETTINGS,
        problems: [],
      });
    }
  }

  async #people(): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.between(60_000, 400_000));
      if (this.#isCalm) return;
      this.#note("registration installed again");
      this.#install();
    }
  }

  #newProcess(kind: string): Process {
    const name = `${kind}-${++this.#processes}`;
    const process = new Process(this.#scheduler, seededChance(this.#seed, 100 + this.#processes), name);
    process.jump(this.#chance.between(-SKEW_MS, SKEW_MS));
    return process;
  }

  get #site(): NetworkSite {
    return {
      scheduler: this.#scheduler,
      server: this.#server,
      counts: new Map(),
      chance: this.#chance,
      weather: this.#weather,
      trace: (line) => this.#say(line),
      violated: (what) => this.#violated(what),
      blowAt: () => this.#blow(),
    };
  }

  #blow(): Blow | undefined {
    if (this.#isCalm || !this.#chance.isLucky(this.#weather.slowRate / 2)) return undefined;
    this.#note("keeper killed or frozen");
    const ms = this.#chance.pick([2_000, 30_000, 400_000]);
    const kind = this.#chance.pick(["killBefore", "killAfter", "killLate", "freezeBefore", "freezeAfter"] as const);
    if (kind === "killLate") return { kind, lateMs: ms };
    return kind === "freezeBefore" || kind === "freezeAfter" ? { kind, ms } : { kind };
  }

  #sleep = (ms: number): Promise<void> => new Promise((resolve) => void this.#scheduler.after(ms, resolve));

  #note(trouble: Trouble): void {
    this.#happened[trouble] = (this.#happened[trouble] ?? 0) + 1;
  }

  #say(line: string): void {
    if (this.#trace.length < 20_000) this.#trace.push(`${this.#scheduler.nowMs - START_MS} ${line}`);
  }

  #violated(what: string): void {
    this.#say(`VIOLATION ${what}`);
    this.#violations.push(what);
  }
}

function requestOf(name: string, before: SidecarSet | undefined): Omit<AdmissionRequest, "object"> {
  return {
    uid: "u",
    operation: before ? "UPDATE" : "CREATE",
    resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
    name,
    oldObject: (before ?? null) as unknown as KubernetesObject | null,
  };
}

function conditionIn(configuration: KubernetesObject | undefined): string | undefined | null {
  if (!configuration) return null;
  const { webhooks = [] } = configuration as {
    readonly webhooks?: readonly {
      readonly name: string;
      readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
    }[];
  };
  const own = webhooks.find(({ name }) => name === POD_WEBHOOK)?.matchConditions ?? [];
  return own.find(({ name }) => name === NEEDS_WEBHOOK_CONDITION)?.expression;
}

const answers = new Map<string, boolean>();

/** Evaluates the condition as an API server does. */
function isAsked(condition: string | undefined, labels: Readonly<Record<string, string>>): boolean {
  if (condition === undefined) return true;
  const key = `${condition} ${JSON.stringify(labels)}`;
  const known = answers.get(key);
  if (known !== undefined) return known;
  const object = { metadata: { labels }, spec: { containers: [{ name: "main" }] } };
  const answer = evaluate(condition, { object, request: { namespace: "shop" } }) === true;
  answers.set(key, answer);
  return answer;
}
