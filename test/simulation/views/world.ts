/**
 * A world of pod webhooks that learn of SidecarSets from announcements. Users write SidecarSets and then create pods.
 * API servers lag, processes stop and continue, clocks differ, people delete the ConfigMap. The judge: a pod gets every
 * state that was answered before its creation began. Otherwise the admission must say that some may be missing.
 */

import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP, KRUISE_NAMESPACE, VALIDATING_CONFIGURATION } from "../../../shared/api/names.ts";
import { webhookConfigurations } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  type ObjectList,
  SIDECARSETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from "../../../shared/kube/port.ts";
import { announcing } from "../../../shared/webhook/handlers/announce.ts";
import type { Admit } from "../../../shared/webhook/review/app.ts";
import { IN_FORCE_MS } from "../../../shared/webhook/view/announcement-trust.ts";
import { type ClusterView, clusterView } from "../../../shared/webhook/view/cluster-view.ts";
import { type Chance, seededChance } from "../chance.ts";
import { Scheduler } from "../scheduler.ts";
import type { SeedResult } from "../seeds-main.ts";
import { Truth } from "./truth.ts";

export const TROUBLE = [
  "call failed",
  "answer lost",
  "call held up",
  "list from before",
  "process frozen",
  "process begun anew",
  "write long under way",
  "write refused by others",
  "ConfigMap deleted",
  "ConfigMap emptied",
  "registration taken away",
  "many writes at once",
] as const;
type Trouble = (typeof TROUBLE)[number];

/**
 * Counts of pods: all, those with a warning or refused, and those admitted without a call to the API server; and of
 * writes of SidecarSets.
 */
export type ViewResult = SeedResult<"pods" | "warned" | "unasked" | "writes">;

interface Process {
  readonly name: string;
  /** error of the process' clock in milliseconds */
  readonly skewMs: number;
  /** virtual time until which the process is frozen */
  frozenUntil: number;
  /** virtual time until which the process gets no pods, while others do */
  restsUntil: number;
  calls: number;
}

interface Seeing {
  readonly process: Process;
  readonly view: ClusterView;
}

const START_MS = Date.parse("2026-11-23T00:00:00Z");
const LONG_AGO = "2026-01-01T00:00:00Z";
const TIMEOUT_MS = 5_000;
const DURATION_MS = 200_000;
/** Milliseconds until announcements work again after somebody removed something. */
const LONG_DURATION_MS = 500_000;
const NAMES = ["a", "b", "c", "d"];
/** More names than announcements are kept for. */
const MANY_NAMES = Array.from({ length: 150 }, (_, at) => `many-${at}`);
/** docs/read-your-writes.md: a removed registration is noticed after this many milliseconds. */
const NOTICED_MS = 2_500;
/** Milliseconds until API servers see a changed registration. */
const REGISTERED_MS = 2_000;

export class ViewWorld {
  readonly #chance: Chance;
  readonly #scheduler = new Scheduler(START_MS);
  readonly #truth: Truth;
  readonly #happened: Partial<Record<Trouble, number>> = {};
  readonly #violations: string[] = [];
  readonly #trace: string[] = [];
  readonly #rates: Readonly<Record<"trouble" | "slow" | "stale" | "people" | "crowds" | "refused", number>>;
  readonly #seed: number;
  #pods = 0;
  #warned = 0;
  #unasked = 0;
  #views: Seeing[] = [];
  #announcers: Admit[] = [];
  /** true while API servers send their writes to be announced */
  #isRegistered = true;

  constructor(seed: number) {
    this.#seed = seed;
    this.#chance = seededChance(seed);
    const calm = this.#chance.isLucky(0.2);
    // Without announcements nobody can recognize an API server with an older list.
    const isStale = this.#chance.isLucky(0.5);
    this.#rates = {
      trouble: calm ? 0 : 0.02,
      slow: calm ? 0 : 0.03,
      stale: calm || !isStale ? 0 : 0.3,
      people: calm || isStale ? 0 : 0.3,
      crowds: calm || isStale ? 0 : 0.04,
      refused: this.#chance.pick([0.01, 0.05]),
    };
    // The start is shortly before a new digit, so that versions get longer during the run.
    this.#truth = new Truth(this.#scheduler, this.#chance.pick([3, 93, 985, 9_990]));
  }

  async run(): Promise<ViewResult> {
    this.#install();
    this.#views = Array.from({ length: this.#chance.between(1, 3) }, (_, at) => this.#newView(`webhook-${at}`));
    this.#announcers = Array.from({ length: this.#chance.between(1, 2) }, (_, at) =>
      this.#newAnnouncer(`validate-${at}`),
    );
    for (const name of NAMES) void this.#user(name);
    for (let others = 0; others < this.#chance.below(3); others++) void this.#others();
    void this.#people();
    await this.#scheduler.runFor(this.#rates.people > 0 ? LONG_DURATION_MS : DURATION_MS);
    const { writes } = this.#truth;
    const [seed, violations, happened, trace] = [this.#seed, this.#violations, this.#happened, this.#trace];
    const [pods, warned, unasked] = [this.#pods, this.#warned, this.#unasked];
    return { seed, violations, happened, counts: { pods, warned, unasked, writes }, trace };
  }

  #install(): void {
    this.#register(LONG_AGO);
    this.#truth.put(CONFIG_MAPS, ANNOUNCEMENTS_CONFIG_MAP, {}, LONG_AGO);
  }

  #register(createdAt: string): void {
    const [, validation] = webhookConfigurations({ url: "https://webhooks.example.com" });
    this.#truth.put(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_CONFIGURATION, { ...validation }, createdAt);
  }

  #note(trouble: Trouble): void {
    this.#happened[trouble] = (this.#happened[trouble] ?? 0) + 1;
  }

  #say(line: string): void {
    if (this.#trace.length < 20_000) this.#trace.push(`${this.#scheduler.nowMs - START_MS} ${line}`);
  }

  #sleep = (ms: number): Promise<void> => new Promise((resolve) => void this.#scheduler.after(ms, resolve));

  #newProcess(name: string): Process {
    return { name, skewMs: this.#chance.between(-200_000, 200_000), frozenUntil: 0, restsUntil: 0, calls: 0 };
  }

  #newView(name: string) {
    const process = this.#newProcess(name);
    const view = clusterView({
      connect: async () => this.#clusterOf(process),
      kruiseNamespace: KRUISE_NAMESPACE,
      freshnessMs: 0,
      isAnnounced: true,
      now: () => this.#scheduler.nowMs + process.skewMs,
      steady: () => this.#scheduler.nowMs,
    });
    return { process, view };
  }

  #newAnnouncer(name: string): Admit {
    const process = this.#newProcess(name);
    return announcing({
      connect: async () => this.#clusterOf(process),
      kruiseNamespace: KRUISE_NAMESPACE,
      now: () => this.#scheduler.nowMs + process.skewMs,
      sleep: this.#sleep,
      random: this.#chance.next,
    })(() => ({ kind: "allowed" }));
  }

  /** A call takes time in both directions. A frozen process gets its answer when it continues. */
  async #call<T>(process: Process, what: string, carryOut: () => T): Promise<T> {
    process.calls++;
    const held = this.#chance.isLucky(this.#rates.slow);
    if (held) this.#note("call held up");
    await this.#sleep(held ? this.#chance.between(500, 5_000) : this.#chance.between(0, 4));
    const failure = new KubeError(`${what}: no answer`, { code: 0, reason: "ConnectionReset", isOutcomeKnown: false });
    if (this.#chance.isLucky(this.#rates.trouble)) {
      this.#note("call failed");
      throw failure;
    }
    const answer = this.#carriedOut(process, what, carryOut);
    await this.#sleep(held ? this.#chance.between(0, 3_000) : this.#chance.between(0, 4));
    if (this.#chance.isLucky(this.#rates.trouble)) {
      this.#note("answer lost");
      throw failure;
    }
    if (this.#chance.isLucky(this.#rates.slow / 3)) {
      this.#note("process frozen");
      process.frozenUntil = this.#scheduler.nowMs + this.#chance.between(100, 60_000);
    }
    await this.#sleep(process.frozenUntil - this.#scheduler.nowMs);
    return answer;
  }

  #carriedOut<T>(process: Process, what: string, carryOut: () => T): T {
    try {
      const answer = carryOut();
      this.#say(`${process.name} ${what} ${JSON.stringify((answer as { metadata?: object }).metadata)}`);
      return answer;
    } catch (error) {
      this.#say(`${process.name} ${what}: ${error}`);
      throw error;
    }
  }

  #clusterOf(process: Process): Cluster {
    const truth = this.#truth;
    const cluster: Pick<Cluster, "get" | "list" | "patch"> = {
      get: <T>(resource: { readonly plural: string }, { name }: { readonly name: string }) =>
        this.#call(process, `GET ${resource.plural}`, () => truth.get(resource, name) as T),
      list: <T>() => this.#call(process, "LIST sidecarsets", () => this.#listed() as ObjectList<T>),
      patch: <T>(resource: { readonly plural: string }, { name }: { readonly name: string }, patch: object) =>
        this.#call(process, `PATCH ${resource.plural}`, () => truth.patch(resource, name, patch) as T),
    };
    return cluster as Cluster;
  }

  #listed(): ObjectList<KubernetesObject> {
    if (!this.#chance.isLucky(this.#rates.stale)) return this.#truth.listAt(0);
    this.#note("list from before");
    return this.#truth.listAt(this.#chance.between(1, 4));
  }

  /** Writes one SidecarSet, waits for the answer, and creates a pod. */
  async #user(name: string): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.pick([1, 30, 400, 4_000, 20_000]));
      await this.#write(name);
      if (this.#chance.isLucky(0.3)) await this.#sleep(this.#chance.between(0, 400));
      await this.#pod();
    }
  }

  async #others(): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.between(5, 300));
      void this.#pod();
    }
  }

  /** Writes as an API server does: it repeats a review of an object that has changed. */
  async #write(name: string): Promise<void> {
    const isDeletion = this.#chance.isLucky(0.25);
    for (let attempt = 0; attempt < 5; attempt++) {
      const before = this.#truth.peek(SIDECARSETS, name);
      const request = requestFor(name, before, isDeletion);
      const isNothing = request.object === null && before === undefined;
      if (isNothing || !(await this.#isAdmitted(request))) return;
      if (!this.#truth.store(name, before?.metadata?.resourceVersion, request.object)) continue;
      this.#say(`${name}: ${request.operation}, ${this.#truth.version}`);
      await this.#sleep(this.#chance.between(0, 3));
      return this.#truth.answered(name);
    }
  }

  /** Has the product and others admit a write. The admitted object may be stored much later. */
  async #isAdmitted(request: AdmissionRequest): Promise<boolean> {
    await this.#sleep(this.#chance.between(0, 3));
    if (this.#isRegistered) {
      const review = Promise.resolve(this.#chance.pick(this.#announcers)(request)).then(() => true);
      if (!(await this.#inTime(review))) return false;
    }
    if (this.#chance.isLucky(this.#rates.refused)) {
      this.#note("write refused by others");
      return false;
    }
    const isLong = this.#chance.isLucky(this.#rates.slow);
    if (isLong) this.#note("write long under way");
    await this.#sleep(isLong ? this.#chance.between(1_000, 55_000) : this.#chance.between(0, 3));
    return true;
  }

  /** Returns the answer within the time that API servers wait; undefined: the webhook failed. */
  #inTime<T>(answering: Promise<T>): Promise<T | undefined> {
    return Promise.race([answering.catch(() => undefined), this.#sleep(TIMEOUT_MS).then(() => undefined)]);
  }

  #pod(): Promise<void> {
    const awake = this.#views.filter(({ process }) => process.restsUntil <= this.#scheduler.nowMs);
    return this.#podBy(this.#chance.pick(awake.length > 0 ? awake : this.#views));
  }

  async #podBy({ process, view }: Seeing): Promise<void> {
    const before = this.#truth.answeredSoFar();
    await this.#sleep(this.#chance.between(0, 3));
    const { calls } = process;
    await this.#sleep(process.frozenUntil - this.#scheduler.nowMs);
    this.#pods++;
    const listing = view.listSidecarSets();
    if (!(listing instanceof Promise)) this.#unasked++;
    const listed = await this.#inTime(Promise.resolve(listing));
    if (listed === undefined || listed.staleBecause !== undefined) this.#warned++;
    if (listed === undefined) return;
    const ghosts = this.#truth.neverStored(listed.value.sidecarSets);
    const missed = listed.staleBecause === undefined ? this.#truth.missedOf(before, listed.value.sidecarSets) : [];
    this.#say(`pod by ${process.name} after ${process.calls - calls} calls: ${missed.join("; ") || "complete"}`);
    for (const what of [...ghosts, ...missed]) this.#violations.push(`${process.name}: ${what}`);
  }

  /** Sometimes makes a change that people are told not to make. */
  async #people(): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.between(2_000, 30_000));
      if (this.#chance.isLucky(0.2)) {
        this.#note("process begun anew");
        this.#views = this.#views.map(({ process, view }) =>
          this.#chance.isLucky(0.5) ? this.#newView(`${process.name}'`) : { process, view },
        );
      }
      if (this.#chance.isLucky(this.#rates.people)) await this.#handleConfigMap();
      if (this.#chance.isLucky(this.#rates.people / 3)) await this.#handleRegistration();
      if (this.#chance.isLucky(this.#rates.crowds)) this.#writeMany();
    }
  }

  #writeMany(): void {
    this.#note("many writes at once");
    for (const name of MANY_NAMES) void this.#write(name);
  }

  /** Sends a pod to a process after a rest, and the next one when the process trusts the registration again. */
  async #rest(): Promise<void> {
    const [resting, ...others] = this.#views;
    if (resting === undefined || others.length === 0) return;
    resting.process.restsUntil = this.#scheduler.nowMs + IN_FORCE_MS + 5_000;
    await this.#sleep(REGISTERED_MS);
    await this.#podBy(resting);
  }

  async #handleRegistration(): Promise<void> {
    this.#note("registration taken away");
    this.#say("the registration is taken away");
    this.#truth.remove(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_CONFIGURATION);
    await this.#sleep(NOTICED_MS);
    this.#isRegistered = false;
    await this.#sleep(this.#chance.between(0, 30_000));
    this.#say("the registration is put back");
    this.#register(new Date(this.#scheduler.nowMs).toISOString());
    await this.#sleep(this.#chance.between(0, REGISTERED_MS));
    await this.#rest();
    // No announcement has ever named this version.
    await this.#write(`unannounced-${this.#truth.version}`);
    this.#isRegistered = true;
  }

  async #handleConfigMap(): Promise<void> {
    if (this.#chance.isLucky(0.5)) {
      this.#note("ConfigMap emptied");
      this.#say("the ConfigMap is emptied");
      this.#truth.put(CONFIG_MAPS, ANNOUNCEMENTS_CONFIG_MAP, {}, LONG_AGO);
      return;
    }
    this.#note("ConfigMap deleted");
    this.#say("the ConfigMap is deleted");
    this.#truth.remove(CONFIG_MAPS, ANNOUNCEMENTS_CONFIG_MAP);
    await this.#sleep(this.#chance.between(0, 90_000));
    // A write without an announcement was admitted earlier.
    this.#say("the ConfigMap is created");
    const createdAt = new Date(this.#scheduler.nowMs).toISOString();
    this.#truth.put(CONFIG_MAPS, ANNOUNCEMENTS_CONFIG_MAP, {}, createdAt);
  }
}

/** The update changes a field, because an API server stores no update without a change. */
let created = 0;
function requestFor(name: string, before: KubernetesObject | undefined, isDeletion: boolean): AdmissionRequest {
  const spec = { selector: { matchLabels: { app: name, before: before?.metadata?.resourceVersion ?? "" } } };
  const object = { metadata: { uid: `set-${++created}`, ...before?.metadata, name }, spec };
  const operation = isDeletion ? "DELETE" : before === undefined ? "CREATE" : "UPDATE";
  return {
    uid: "u",
    operation,
    resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
    name,
    object: isDeletion ? null : (object as KubernetesObject),
    oldObject: before ?? null,
  };
}
