/**
 * A world where the real webhooks admit pods, from the text of a review to the patch. Users write SidecarSets and
 * Namespaces and create pods. Passes record revisions and narrow the registration. Calls fail, answers are late,
 * processes freeze and restart. The judge is pod-judge.ts: each pod must have exactly what the SidecarSets inject that
 * its creator knew, or newer ones.
 */
import type { AdmissionRequest } from "../../../shared/api/admission.ts";
import type { KubernetesObject, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import {
  ANNOUNCE_SIDECARSET_PATH,
  ANNOUNCEMENTS_CONFIG_MAP,
  IS_INJECTED_ENV,
  KRUISE_NAMESPACE,
  VALIDATING_CONFIGURATION,
  WEBHOOK_CONFIGURATION,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { keepRegistration } from "../../../shared/controller/rollout/keep-registration.ts";
import { callCondition } from "../../../shared/core/injection/match/call-condition.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { webhookConfigurations } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { MUTATE_POD_PATH, MUTATE_SIDECARSET_PATH } from "../../../shared/webhook/server/paths.ts";
import { type Chance, seededChance } from "../chance.ts";
import { Scheduler } from "../scheduler.ts";
import type { SeedResult } from "../seeds-main.ts";
import { isAskedAbout, isExempt, isToBeAsked } from "./callers.ts";
import { ObjectStates, type Place } from "./object-states.ts";
import { type Asked, type Gates, PodJudge } from "./pod-judge.ts";
import { planPod } from "./pod-plans.ts";
import type { Registered } from "./registration-judge.ts";
import { type Answered, ask, WAIT_SECONDS } from "./reviews.ts";
import { PLAN_NAMES, planSidecarSet } from "./sidecarset-plans.ts";
import { planNamespace, planRevision } from "./surroundings.ts";
import { inVirtualTime } from "./virtual-world-clock.ts";
import { appOf, type Role, type ToldWork } from "./webhook-apps.ts";
import { clusterOf, type Surface, type WebhookProcess } from "./webhook-process.ts";

export const POD_TROUBLE = [
  "pod refused",
  "pod exempt",
  "pod not asked about",
  "pod admitted in doubt",
  "pod without an answer",
  "pod with sidecars",
  "pod left alone",
  "SidecarSet refused",
  "SidecarSet stored",
  "namespace relabelled",
  "namespace recreated",
  "revision recorded",
  "dry run",
] as const;
type Trouble = (typeof POD_TROUBLE)[number] | Parameters<Surface["note"]>[0] | "process begun anew";

const START_MS = Date.parse("2026-11-23T00:00:00Z");
const LONG_AGO = "2026-01-01T00:00:00Z";
const DURATION_MS = 30_000;
const REST_MS = 20_000;
/** Milliseconds after a process' last fault until it works normally again. */
const RECOVERY_MS = 10_000;
/** Milliseconds until API servers know a new registration. */
const SPREAD_MS = 1_000;
const NAMESPACE_NAMES = ["bakery", "default", "kube-system", "shop"] as const;
const REGISTRATION: Place = { plural: "mutatingwebhookconfigurations", name: WEBHOOK_CONFIGURATION };
const setPlace = (name: string): Place => ({ plural: "sidecarsets", name });
const namespacePlace = (name: string): Place => ({ plural: "namespaces", name });

export class PodWorld {
  readonly #chance: Chance;
  readonly #scheduler = new Scheduler(START_MS);
  readonly #states: ObjectStates;
  readonly #surface: Surface;
  readonly #judge: PodJudge;
  readonly #gates: Gates;
  readonly #happened: Partial<Record<Trouble, number>> = {};
  readonly #violations: string[] = [];
  readonly #trace: string[] = [];
  readonly #told: ToldWork[] = [];
  readonly #random: number;
  readonly #isKeeping: boolean;
  #processes: WebhookProcess[] = [];
  #serial = 0;
  #pods = 0;
  #judged = 0;
  #isCalm = false;

  constructor(seed: number) {
    this.#chance = seededChance(seed, 7);
    const chance = this.#chance;
    this.#random = chance.pick([0, 0.1, 0.5, 0.9]);
    this.#isKeeping = chance.isLucky(0.6);
    this.#gates = {
      PodOptOut: chance.isLucky(0.5),
      KruisePodReadinessGate: chance.isLucky(0.15),
      EnableSortSidecarContainerByName: chance.isLucky(0.3),
    };
    this.#states = new ObjectStates(this.#scheduler, chance.pick([3, 93, 985]));
    this.#judge = new PodJudge(this.#states, this.#gates, this.#random);
    const isRough = chance.isLucky(0.6);
    this.#surface = {
      scheduler: this.#scheduler,
      states: this.#states,
      chance,
      rates: isRough ? { trouble: 0.01, slow: 0.01, stale: 0.1 } : { trouble: 0, slow: 0, stale: 0 },
      note: (trouble) => this.#note(trouble),
      say: (line) => this.#say(line),
      violated: (what) => this.#violated(what),
    };
  }

  run(): Promise<SeedResult<"pods" | "judged">> {
    return inVirtualTime(
      this.#scheduler,
      () => this.#random,
      () => this.#run(),
    );
  }

  async #run() {
    this.#install();
    const roles = ["serve", this.#chance.pick(["serve", "pods"] as const)] as const;
    this.#processes = roles.map((role) => this.#newProcess(role));
    for (const name of PLAN_NAMES) void this.#user(name);
    void this.#creator();
    void this.#people();
    await this.#scheduler.runFor(DURATION_MS);
    this.#isCalm = true;
    Object.assign(this.#surface.rates, { trouble: 0, slow: 0, stale: 0 });
    await this.#scheduler.runFor(REST_MS);
    for (let count = 0; count < 6; count++) void this.#pod();
    await this.#scheduler.runFor(REST_MS);
    if (this.#isKeeping) await this.#end();
    const [violations, happened, trace] = [this.#violations, this.#happened, this.#trace];
    return { seed: 0, violations, happened, trace, counts: { pods: this.#pods, judged: this.#judged } };
  }

  #install(): void {
    const podCondition = this.#isKeeping && !this.#gates.KruisePodReadinessGate ? callCondition([]) : undefined;
    const address = { url: "https://webhooks.example.com" };
    const [mutation, validation] = webhookConfigurations(address, { podCondition });
    const { webhooks = [] } = mutation as Registered;
    const [own, ...others] = webhooks.map((webhook) => ({ ...webhook }));
    const foreign = { name: "a.example.com", matchConditions: [{ name: "needs-the-webhook", expression: "true" }] };
    const condition = { name: "of-others", expression: "object.spec.schedulerName != 'nobody'" };
    const extended = { ...own, matchConditions: [condition, ...(own?.matchConditions ?? [])] };
    const metadata = { ...mutation?.metadata, annotations: { "example.com/by": "us" }, labels: { app: "webhooks" } };
    const registration = { ...mutation, metadata, webhooks: [foreign, extended, ...others] } as KubernetesObject;
    this.#states.put(REGISTRATION, registration, LONG_AGO);
    const validating = { plural: "validatingwebhookconfigurations", name: VALIDATING_CONFIGURATION };
    this.#states.put(validating, { ...validation }, LONG_AGO);
    const notice = { plural: "configmaps", namespace: KRUISE_NAMESPACE, name: ANNOUNCEMENTS_CONFIG_MAP };
    this.#states.put(notice, {}, LONG_AGO);
    for (const name of NAMESPACE_NAMES) {
      this.#states.put(namespacePlace(name), planNamespace(name, this.#chance), LONG_AGO);
      this.#states.tell(namespacePlace(name));
    }
  }

  #newProcess(role: Role): WebhookProcess {
    const name = `${role}-${++this.#serial}`;
    const skewMs = this.#chance.between(-100_000, 100_000);
    const rights = role === "serve" ? "all" : role === "pass" ? "registration" : "none";
    const process: WebhookProcess = {
      ...{ name, rights, skewMs, frozenUntil: 0, troubledAt: 0, calls: 0 },
      app: async () => ({ status: 500, headers: {}, body: "" }),
    };
    process.app = appOf(role, {
      cluster: clusterOf(this.#surface, process),
      now: () => this.#scheduler.nowMs + skewMs,
      steady: () => this.#scheduler.nowMs,
      gates: this.#gates,
      isKeepingRegistration: this.#isKeeping,
      send: (work) => this.#told.push({ process: name, work }),
    });
    return process;
  }

  /** Returns the webhook's answer; undefined: no answer in time. */
  async #ask(process: WebhookProcess, path: string, request: AdmissionRequest): Promise<Answered | undefined> {
    await this.#sleep(this.#chance.between(0, 3));
    const version = this.#chance.pick(["admission.k8s.io/v1", "admission.k8s.io/v1", "admission.k8s.io/v1beta1"]);
    const late = this.#sleep(WAIT_SECONDS * 1000).then(() => undefined);
    const asked = this.#sleep(process.frozenUntil - this.#scheduler.nowMs);
    const answer = await Promise.race([asked.then(() => ask(process.app, path, version, request)), late]);
    if (answer?.kind === "malformed") this.#violated(`${process.name} ${path}: ${answer.message}`);
    return answer;
  }

  async #user(name: string): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.pick([100, 1_000, 5_000, 15_000]));
      if (this.#isCalm) return;
      const isStatus = this.#chance.isLucky(0.15) && this.#states.peek(setPlace(name)) !== undefined;
      await (isStatus ? this.#latest(name) : this.#write(name));
      if (this.#chance.isLucky(0.7)) void this.#pod();
    }
  }

  async #write(name: string): Promise<void> {
    const before = this.#states.peek(setPlace(name));
    const isDeletion = this.#chance.isLucky(0.15);
    const isDryRun = this.#chance.isLucky(0.1);
    if (isDeletion && !before) return;
    const revisions = this.#states.list("controllerrevisions");
    const object = isDeletion
      ? null
      : planSidecarSet(name, ++this.#serial, { chance: this.#chance, before, revisions });
    const request = requestFor(`w-${++this.#serial}`, setPlace(name), { object, oldObject: before, isDryRun });
    const admitted = await this.#admitted(name, request);
    if (admitted && isDryRun) this.#note("dry run");
    else if (admitted) await this.#store(name, before, admitted.object ?? undefined);
  }

  /** Returns the request after both webhooks; undefined: it was refused. */
  async #admitted(name: string, request: AdmissionRequest): Promise<AdmissionRequest | undefined> {
    const { dryRun, operation } = request;
    const process = dryRun ? this.#newProcess("dry") : this.#serving();
    const mutated = await this.#ask(process, MUTATE_SIDECARSET_PATH, request);
    if (mutated?.kind !== "allowed") return this.#refused(name, mutated);
    const admitted = operation === "DELETE" ? request : { ...request, object: mutated.object ?? null };
    const validated = await this.#ask(process, ANNOUNCE_SIDECARSET_PATH, admitted);
    this.#judgeHints(request, validated, operation === "DELETE" || dryRun ? 0 : 1);
    return validated?.kind === "allowed" ? admitted : this.#refused(name, validated);
  }

  async #store(
    name: string,
    before: KubernetesObject | undefined,
    object: KubernetesObject | undefined,
  ): Promise<void> {
    await this.#sleep(this.#chance.isLucky(0.1) ? this.#chance.between(500, 5_000) : this.#chance.between(0, 3));
    if (!this.#states.store(setPlace(name), before?.metadata?.resourceVersion, object)) return;
    this.#note("SidecarSet stored");
    this.#say(`${name} ${object ? "stored" : "deleted"} ${this.#states.version}`);
    await this.#sleep(this.#chance.between(0, 3));
    this.#states.tell(setPlace(name));
  }

  /** Records a revision as a pass does, and names it in the status. Pods get its name. */
  async #latest(name: string): Promise<void> {
    const before = this.#states.peek(setPlace(name));
    const object = { ...before, status: { latestRevision: `${name}-${++this.#serial}` } } as KubernetesObject;
    const request = requestFor(`s-${this.#serial}`, setPlace(name), { object, oldObject: before, isDryRun: false });
    const answer = await this.#ask(this.#serving(), ANNOUNCE_SIDECARSET_PATH, { ...request, subResource: "status" });
    if (answer?.kind === "allowed") await this.#store(name, before, object);
  }

  #refused(name: string, answer: Answered | undefined): undefined {
    this.#note("SidecarSet refused");
    this.#say(`${name} is refused: ${answer && "message" in answer ? answer.message : "no answer"}`);
  }

  #judgeHints({ uid, operation }: AdmissionRequest, answer: Answered | undefined, wanted: number): void {
    const count = this.#told.filter(({ work }) => work.kind === "change" && work.request === uid).length;
    if (answer?.kind === "allowed" && count !== wanted)
      this.#violated(`${count} hints are given about a ${operation} where ${wanted} are to be`);
    if (answer?.kind === "denied" && count > 0) this.#violated(`a hint is given about what was refused`);
  }

  #serving(): WebhookProcess {
    return this.#chance.pick(this.#processes.filter(({ rights }) => rights === "all"));
  }

  async #creator(): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.pick([10, 300, 2_000]));
      if (this.#isCalm) return;
      void this.#pod();
    }
  }

  async #pod(): Promise<void> {
    const [told, fromMs] = [this.#states.toldSoFar(), this.#scheduler.nowMs];
    const present = NAMESPACE_NAMES.filter((name) => this.#states.peek(namespacePlace(name)));
    const namespace = this.#chance.pick([...present, ...present.filter((name) => name !== "kube-system")]);
    const pod = planPod(++this.#serial, namespace, this.#chance);
    const isDryRun = this.#chance.isLucky(0.03);
    const process = isDryRun ? this.#newProcess("dry") : this.#chance.pick(this.#processes);
    this.#pods++;
    await this.#sleep(this.#chance.between(0, 3));
    const isCreated = !this.#chance.isLucky(0.06);
    if (isCreated && !this.#isAsked(pod, { told, namespace, fromMs })) return;
    const place = { plural: "pods", namespace, name: pod.metadata?.name ?? "" };
    const created = requestFor(`p-${this.#serial}`, place, { object: pod, oldObject: undefined, isDryRun });
    const request = isCreated ? created : { ...created, ...this.#chance.pick(NOT_INJECTED), oldObject: pod };
    const answer = await this.#ask(process, MUTATE_POD_PATH, request);
    this.#say(`${process.name} ${request.uid} ${namespace} ${answer?.kind}`);
    const asked = { pod, namespace, isCreated, told, fromMs, untilMs: this.#scheduler.nowMs };
    this.#judgePod(process, asked, answer);
  }

  /** Returns false if API servers do not send the pod to the webhook, which is judged too. */
  #isAsked(pod: Pod, { told, namespace, fromMs }: Pick<Asked, "told" | "namespace" | "fromMs">): boolean {
    const present = this.#states.peek(namespacePlace(namespace)) as Namespace | undefined;
    if (!present) return false;
    const { object } = this.#chance.pick(this.#states.lately(REGISTRATION, SPREAD_MS));
    const isAsked = isAskedAbout(object as Registered, pod, present);
    if (isExempt(pod, present)) {
      this.#note("pod exempt");
      if (isAsked) this.#violated(`a pod is asked about in ${namespace}, which is exempt`);
      return false;
    }
    if (isAsked) return true;
    this.#note("pod not asked about");
    const asked = { pod, namespace, isCreated: true, told, fromMs, untilMs: this.#scheduler.nowMs, isStale: false };
    const problem = this.#judge.problemOf(asked, pod);
    if (problem !== undefined) this.#violated(`no webhook is asked: ${problem}`);
    return false;
  }

  #judgePod(process: WebhookProcess, asked: Omit<Asked, "isStale">, answer: Answered | undefined): void {
    const isTroubled = Math.max(process.troubledAt, process.frozenUntil) > this.#scheduler.nowMs - RECOVERY_MS;
    if (answer?.kind === "allowed" || answer?.kind === "denied") {
      this.#judged++;
      const isStale = this.#isStale(process, answer, isTroubled);
      const problem = this.#problemOf({ ...asked, isStale }, answer);
      if (problem !== undefined) this.#violated(`${process.name}: ${problem}`);
      return;
    }
    this.#note("pod without an answer");
    if (!isTroubled) this.#violated(`${process.name} has no answer, and no reason: ${answer?.message}`);
  }

  #isStale(process: WebhookProcess, answer: Decided, isTroubled: boolean): boolean {
    // A refusal does not say which facts it used.
    if (answer.kind === "denied") return isTroubled;
    const doubts = answer.warnings.filter((warning) => warning.includes("earlier state"));
    if (doubts.length === 0) return false;
    this.#note("pod admitted in doubt");
    if (!isTroubled) this.#violated(`${process.name} doubts without a reason: ${doubts.join("; ")}`);
    return true;
  }

  #problemOf(asked: Asked, answer: Decided): string | undefined {
    if (answer.kind === "denied") {
      this.#note("pod refused");
      const problem = this.#judge.problemOf(asked, undefined);
      return problem && `${problem} (${answer.message})`;
    }
    const found = answer.object as Pod;
    this.#note(found === asked.pod ? "pod left alone" : "pod with sidecars");
    return this.#judge.problemOf(asked, found) ?? warningProblem(asked.pod, found, answer.warnings);
  }

  async #people(): Promise<void> {
    for (;;) {
      await this.#sleep(this.#chance.between(300, 3_000));
      if (this.#isCalm) return;
      await this.#chance.pick([
        () => this.#relabel(),
        () => this.#relabel(),
        () => this.#recreate(),
        () => this.#record(),
        () => this.#record(),
        () => this.#restart(),
        () => this.#keep(false),
      ])();
    }
  }

  async #relabel(): Promise<void> {
    const name = this.#chance.pick(NAMESPACE_NAMES);
    if (!this.#states.peek(namespacePlace(name))) return;
    this.#note("namespace relabelled");
    this.#states.put(namespacePlace(name), planNamespace(name, this.#chance));
    await this.#sleep(this.#chance.between(0, 3));
    this.#states.tell(namespacePlace(name));
    void this.#pod();
  }

  async #recreate(): Promise<void> {
    const place = namespacePlace(this.#chance.pick(["bakery", "shop"]));
    this.#note("namespace recreated");
    this.#states.remove(place);
    this.#states.tell(place);
    await this.#sleep(this.#chance.between(0, 2_000));
    this.#states.put(place, planNamespace(place.name, this.#chance));
    this.#states.tell(place);
    void this.#pod();
  }

  async #record(): Promise<void> {
    const sets = this.#states.list("sidecarsets");
    if (sets.length === 0) return;
    this.#note("revision recorded");
    const { place, object } = planRevision(this.#chance.pick(sets), ++this.#serial, this.#chance);
    this.#states.put(place, object);
    this.#states.tell(place);
  }

  async #restart(): Promise<void> {
    this.#note("process begun anew");
    const at = this.#chance.below(this.#processes.length);
    this.#processes = this.#processes.map((one, index) =>
      index === at ? this.#newProcess(one.rights === "all" ? "serve" : "pods") : one,
    );
  }

  async #keep(isDryRun: boolean): Promise<void> {
    if (!this.#isKeeping) return;
    const process = this.#newProcess(isDryRun ? "dry" : "pass");
    const epochMs = () => this.#scheduler.nowMs + process.skewMs;
    const clock = { now: () => this.#scheduler.nowMs, epochMs, sleep: this.#sleep, random: () => this.#random };
    await keepRegistration({
      cluster: clusterOf(this.#surface, process),
      clock,
      isDryRun,
      settings: { ...DEFAULT_ROLLOUT_SETTINGS, KruisePodReadinessGate: this.#gates.KruisePodReadinessGate },
      problems: [],
    });
  }

  /** Checks the end, long after the last write: API servers send the right pods, and nothing is written. */
  async #end(): Promise<void> {
    await this.#scheduler.runFor(10 * 60_000);
    void this.#keep(true);
    await this.#scheduler.runFor(5_000);
    void this.#keep(false);
    await this.#scheduler.runFor(5_000);
    const { version } = this.#states;
    void this.#keep(false);
    await this.#scheduler.runFor(5_000);
    if (this.#states.version !== version) this.#violated("at rest the registration is written again");
    const registration = this.#states.peek(REGISTRATION) as Registered;
    const sets = this.#states.list("sidecarsets") as readonly SidecarSet[];
    for (let count = 0; count < 12; count++) {
      const namespace = this.#states.peek(namespacePlace(this.#chance.pick(["bakery", "default"]))) as Namespace;
      const pod = planPod(++this.#serial, namespace.metadata?.name ?? "", this.#chance);
      if (isExempt(pod, namespace)) continue;
      const isAsked = isAskedAbout(registration, pod, namespace);
      const isWanted = this.#gates.KruisePodReadinessGate || isToBeAsked(sets, pod, namespace.metadata?.name ?? "");
      if (isAsked !== isWanted) this.#violated(`in the end ${JSON.stringify(pod.metadata)} is asked about: ${isAsked}`);
    }
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

/** Reviews of existing pods, or of their subresources. */
const NOT_INJECTED = [
  { operation: "UPDATE" },
  { operation: "UPDATE", subResource: "status" },
  { subResource: "eviction" },
];

type Decided = Extract<Answered, { readonly kind: "allowed" | "denied" }>;

interface Change {
  readonly object: KubernetesObject | null;
  readonly oldObject: KubernetesObject | undefined;
  readonly isDryRun: boolean;
}

function requestFor(uid: string, place: Place, { object, oldObject, isDryRun }: Change): AdmissionRequest {
  const isPod = place.plural === "pods";
  return {
    uid,
    kind: isPod
      ? { group: "", version: "v1", kind: "Pod" }
      : { group: "apps.kruise.io", version: "v1beta1", kind: "SidecarSet" },
    resource: isPod
      ? { group: "", version: "v1", resource: "pods" }
      : { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
    name: place.name,
    ...(place.namespace ? { namespace: place.namespace } : {}),
    operation: object === null ? "DELETE" : oldObject ? "UPDATE" : "CREATE",
    object,
    oldObject: oldObject ?? null,
    dryRun: isDryRun,
  };
}

/** The warning must name exactly the pod's containers that injection replaces. */
function warningProblem(pod: Pod, found: Pod | undefined, warnings: readonly string[]): string | undefined {
  const isInjected = (name: string) =>
    [...(found?.spec.initContainers ?? []), ...(found?.spec.containers ?? [])].some(
      (one) => one.name === name && one.env?.some((variable) => variable.name === IS_INJECTED_ENV),
    );
  const own = pod.spec.containers.filter(({ env }) => !env?.some((variable) => variable.name === IS_INJECTED_ENV));
  const replaced = found === undefined ? [] : own.filter(({ name }) => isInjected(name)).map(({ name }) => name);
  const told = warnings.filter((warning) => warning.includes("is replaced"));
  const isTold = replaced.every((name) => told.some((warning) => warning.includes(` ${name} `)));
  if (isTold && told.length === replaced.length) return undefined;
  return `of the replaced containers ${replaced.join(", ")} is told: ${told.join("; ")}`;
}
