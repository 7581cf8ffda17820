/** An approver of batches: it says yes or no, answers late, or never answers. It judges whether passes wait for it. */
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Gates } from "../../shared/approval/batch-gates.ts";
import type { PassMemory } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { type Ledger, parseLedger, type Reservation } from "../../shared/core/ledger.ts";
import { type GateAnswer, type GateRequest, gateAnswer, no } from "../../shared/core/rollout/rules/gate/approval.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { isHalfUpgraded } from "./end-state.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import { hashOfPod, isInjected, type SetPlan } from "./objects.ts";
import { drainOf } from "./pod-change.ts";
import type { Process } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

export const GATE = "https://gate.example/batch";
/** The longest time that a pass waits for an approver. */
const MOST_WAIT_MS = 5_000;
/** The shortest time between a no and the next question. */
const AGAIN_MS = 30_000;

export interface ApproverPlan {
  readonly noRate: number;
  readonly slowRate: number;
  /** share of questions without an answer */
  readonly deafRate: number;
}

export interface ApproverOptions {
  /** the approver's behaviour; absent: the SidecarSets name no approver */
  readonly plan: ApproverPlan | undefined;
  readonly sets: readonly SetPlan[];
  readonly server: ApiServer;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  readonly violated: (what: string) => void;
}

/** An answer that a process got. */
interface Told {
  readonly process: string;
  /** the memory that the processes of one place share, one after the other */
  readonly memory: PassMemory;
  readonly request: GateRequest;
  readonly answer: GateAnswer;
  /** the time on the process' clock */
  readonly atMs: number;
}

export class Approver {
  readonly #options: ApproverOptions;
  #told: Told[] = [];
  /** A place remembers a no, as `serve` and a warm function do. */
  readonly #refusals = new WeakMap<PassMemory, Gates["refusals"]>();
  /** SidecarSet → writer of its newest write */
  readonly #writers = new Map<string, string>();
  #isCalm = false;

  constructor(options: ApproverOptions) {
    this.#options = options;
  }

  /** Says yes to everything from now on. */
  calm(): void {
    this.#isCalm = true;
  }

  gatesOf(process: Process): Gates {
    const refusals = this.#refusals.get(process.memory) ?? new Map();
    this.#refusals.set(process.memory, refusals);
    return {
      refusals,
      ask: (url, request, timeoutMs) => {
        this.#judgeAsking(process, url, request, timeoutMs);
        const { answer, afterMs } = this.#answer(timeoutMs);
        return new Promise((resolve) => {
          process.deliver(afterMs, () => {
            const { name, memory, clock } = process;
            this.#told.push({ process: name, memory, request, answer, atMs: clock.epochMs() });
            resolve(answer);
          });
        });
      },
    };
  }

  #answer(timeoutMs: number): { readonly answer: GateAnswer; readonly afterMs: number } {
    const { chance, plan, counts } = this.#options;
    const yes = { allow: true } as const;
    if (!plan || this.#isCalm) return { answer: yes, afterMs: 10 };
    const isSlow = chance.isLucky(plan.slowRate);
    if (isSlow) countFault(counts, "approver slow");
    const afterMs = isSlow ? chance.between(1_000, 2 * MOST_WAIT_MS) : chance.between(1, 200);
    if (afterMs >= timeoutMs || chance.isLucky(plan.deafRate)) {
      countFault(counts, "approver without an answer");
      return { answer: no("gate.example", "did not answer in time"), afterMs: timeoutMs };
    }
    if (!chance.isLucky(plan.noRate)) return { answer: yes, afterMs };
    countFault(counts, "approval refused");
    const body = JSON.stringify({ allow: false, reason: `not now, ${chance.below(1_000)}` });
    return { answer: gateAnswer("gate.example", 200, body), afterMs };
  }

  #judgeAsking(
    { name, memory, clock }: Process,
    url: URL,
    { sidecarSet, pods, workloads = [] }: GateRequest,
    timeoutMs: number,
  ): void {
    const { violated } = this.#options;
    if (url.href !== GATE) violated(`${name} asks ${url.href}`);
    if (pods.length + workloads.length === 0) violated(`${name} asks for a batch without pods`);
    if (timeoutMs > MOST_WAIT_MS) violated(`${name} waits for an approver for ${timeoutMs} ms`);
    const last = this.#told.findLast((one) => one.memory === memory && one.request.sidecarSet.uid === sidecarSet.uid);
    const sinceMs = clock.epochMs() - (last?.atMs ?? Number.NEGATIVE_INFINITY);
    const isSoon = sinceMs >= 0 && sinceMs < AGAIN_MS;
    if (isSoon && last?.answer.allow === false && last.request.sidecarSet.generation === sidecarSet.generation)
      violated(`${name} asks again ${sinceMs} ms after a no`);
  }

  /** A yes allows one batch, for every pass that asks about this batch. */
  see({ resource, object, previous, userAgent, isRemoved, name }: Write): void {
    if (resource === SIDECARSETS.plural) this.#writers.set(name, userAgent);
    if (!this.#options.plan || resource !== "configmaps" || isRemoved || !userAgent.startsWith("pass")) return;
    const [next, before] = [object, previous].map((one) => parseLedger((one as ConfigMap | undefined)?.data));
    const fresh = next && freshIn(next, before).filter((one) => isUpgrade(this.#options, one));
    if (!next || !fresh || fresh.length === 0) return;
    const yes = this.#told.find((told) => isYes(told, userAgent, next, fresh));
    this.#told = this.#told.filter((one) => one !== yes);
    const names = fresh.map(({ name }) => name);
    if (!yes) this.#options.violated(`${userAgent} reserves ${names}, and nobody has allowed that`);
  }

  /** If the last answer was no, the report must give it as the reason, unless the SidecarSet was deleted. */
  ends({ name: process, memory }: Process, { sidecarSets }: PassReport): void {
    for (const { name, stop, why, summary, generation } of sidecarSets) {
      if (stop === "gone" || summary?.hold !== "gate") continue;
      const reason = this.#refusalOf(memory, name, generation);
      if (reason === undefined) this.#options.violated(`${process} stops ${name} by a no that nobody has said: ${why}`);
      else if (!why.includes(reason))
        this.#options.violated(`${process} stops ${name} without saying ${reason}: ${why}`);
      else this.#judgeTold(process, name, reason);
    }
  }

  /** The status must also give the reason if this pass wrote it last. */
  #judgeTold(process: string, name: string, reason: string): void {
    const { server, violated } = this.#options;
    const { status } = server.peek<SidecarSet>(SIDECARSETS, { name }) ?? {};
    const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
    if (this.#writers.get(name) !== process || blocked?.message.includes(reason)) return;
    violated(`${process} stops ${name} by ${reason}, and its status says ${blocked?.status}: ${blocked?.message}`);
  }

  /** Returns the reason of the place's last answer if that was a no to this generation. */
  #refusalOf(memory: PassMemory, set: string, generation: number | undefined): string | undefined {
    const own = this.#told.findLast((one) => one.memory === memory && one.request.sidecarSet.name === set);
    if (own?.answer.allow !== false || own.request.sidecarSet.generation !== generation) return undefined;
    return own.answer.reason;
  }
}

/** True for an update; false for an eviction or the end of a hot upgrade. */
export function isUpgrade(
  { server, sets }: Pick<ApproverOptions, "server" | "sets">,
  { namespace, name, revision }: Reservation,
): boolean {
  const pod = server.peek<Pod>(PODS, { namespace, name });
  if (!pod) return true;
  const injected = sets.filter(({ name: set }) => isInjected(pod, set));
  // The approver allowed a drained pod before the drain. The write that ends the drain needs no new yes.
  const isEnding = injected.some(
    ({ name: set }) => hashOfPod(pod, set) === revision || isHalfUpgraded(pod, set) || drainOf(pod, set) !== undefined,
  );
  return injected.length > 0 && !isEnding;
}

export function freshIn({ reservations }: Ledger, before: Ledger | undefined): readonly Reservation[] {
  const known = new Set((before?.reservations ?? []).map(stateOf));
  return reservations.filter((one) => !known.has(stateOf(one)));
}

function isYes(told: Told, process: string, { uid, generation }: Ledger, fresh: readonly Reservation[]): boolean {
  const { sidecarSet, pods, workloads = [] } = told.request;
  const isFor = told.process === process && sidecarSet.uid === uid && sidecarSet.generation === generation;
  return (
    told.answer.allow &&
    isFor &&
    fresh.every(({ uid: of, workload }) => (workload ? workloads : pods).some((one) => one.uid === of))
  );
}

function stateOf({ uid, resourceVersion }: Reservation): string {
  return `${uid} ${resourceVersion}`;
}
