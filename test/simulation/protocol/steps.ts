/**
 * Lists the possible next steps of pods, users and ticks. The rules of the ledger and of the budget are the product's
 * own.
 */

import {
  areReservedFor,
  isGenerationObservable,
  isSameLedger,
  type LedgerPlan,
  type PodState,
  reconcileLedger,
  type Subject,
  withReservations,
} from "../../../shared/core/ledger.ts";
import type { PodState as CorePod } from "../../../shared/core/pod/pod-state.ts";
import { type BudgetUse, takeWithin, usedBudget } from "../../../shared/core/rollout/select/budget.ts";
import { type Flying, OLD, type Pod, type Setting, type Spec, type State, type Stored, type Tick } from "./state.ts";

export interface Step {
  readonly state: State;
  /** index of the pod that got an update */
  readonly updated?: number;
}

const withItem = <T>(items: readonly T[], index: number, item: T) => items.map((old, i) => (i === index ? item : old));

function specAt({ specs }: Setting, index: number): Spec {
  const spec = specs[index];
  if (!spec) throw new Error(`there is no spec ${index}`);
  return spec;
}

export function* steps(state: State, setting: Setting): Generator<Step> {
  yield* worldSteps(state, setting);
  for (const [index, tick] of state.ticks.entries()) {
    yield* arrivals(state, index, tick, setting);
    yield* tickSteps(state, index, tick, setting);
  }
}

function* worldSteps(state: State, { specs }: Setting): Generator<Step> {
  if (state.spec + 1 < specs.length) {
    const isAnew = specs[state.spec + 1]?.uid !== specs[state.spec]?.uid;
    yield { state: { ...state, spec: state.spec + 1, observed: isAnew ? -1 : state.observed } };
  }
  for (const [index, pod] of state.pods.entries())
    for (const [next, rest] of podSteps(state, pod))
      yield { state: { ...state, ...rest, pods: withItem(state.pods, index, next) } };
}

function* podSteps(state: State, pod: Pod): Generator<readonly [Pod, Partial<State>]> {
  const { touches, flaps, replacements } = state;
  const moved = { ...pod, version: pod.version + 1 };
  if (!pod.isReady) yield [{ ...moved, isReady: true, limit: 0 }, {}];
  if (touches > 0) yield [moved, { touches: touches - 1 }];
  if (flaps > 0 && pod.isReady) yield [{ ...moved, isReady: false }, { flaps: flaps - 1 }];
  const another = { uid: `${pod.uid}'`, version: 1, hash: OLD, isReady: true, limit: 0 };
  if (replacements > 0) yield [another, { replacements: replacements - 1 }];
}

/** A write may arrive at any time, also long after its tick moved on or stopped. */
function* arrivals(state: State, index: number, tick: Tick, setting: Setting): Generator<Step> {
  for (const write of tick.flying) {
    const ticks = withItem(state.ticks, index, { ...tick, flying: tick.flying.filter((other) => other !== write) });
    const pod = state.pods[write.pod];
    if (pod?.uid !== write.uid || pod.version !== write.version) {
      yield { state: { ...state, ticks } };
      continue;
    }
    const moved = { ...pod, version: pod.version + 1 };
    const isUpdate = write.hash !== "";
    const next = isUpdate ? taken(state, moved, write.hash, setting) : moved;
    const pods = withItem(state.pods, write.pod, next);
    yield { state: { ...state, ticks, pods }, ...(isUpdate ? { updated: write.pod } : {}) };
  }
}

function taken({ observed }: State, pod: Pod, hash: string, { specs, isStrict = false }: Setting): Pod {
  const limits = specs
    .filter((spec, index) => index >= observed && spec.hash === hash)
    .map((one) => one.maxUnavailable);
  const kept = isStrict ? pod.limit : 0;
  return { ...pod, hash, isReady: false, limit: pod.isReady ? Math.max(0, ...limits) : kept };
}

function* tickSteps(state: State, index: number, tick: Tick, setting: Setting): Generator<Step> {
  const become = (next: Tick, rest: Partial<State> = {}): Step => ({
    state: { ...state, ...rest, ticks: withItem(state.ticks, index, next) },
  });
  const { flying, left } = tick;
  switch (tick.step) {
    case "idle":
      if (left > 0) yield become({ step: "ledger", left: left - 1, flying });
      return;
    case "ledger":
      return yield become({ ...tick, step: "spec", read: state.stored });
    case "spec":
      return yield become({ ...tick, step: "pods", spec: state.spec });
    case "pods":
      return yield become({ ...tick, step: "swap", pods: state.pods });
    case "swap":
      return yield* swaps(state, tick, setting, become);
    case "status":
      return yield* writeStatus(state, tick, become);
    default:
      tick.step satisfies never;
  }
}

type Become = (next: Tick, rest?: Partial<State>) => Step;

function* swaps(state: State, tick: Tick, setting: Setting, become: Become): Generator<Step> {
  const { flying, left, read, spec: seenSpec = 0, pods = [] } = tick;
  const idle: Tick = { step: "idle", left, flying };
  const spec = specAt(setting, seenSpec);
  const subject: Subject = { uid: spec.uid, generation: spec.generation, revision: spec.hash };
  const plans = read && state.stored.version === read.version ? plansOf(read, spec, pods, setting) : undefined;
  if (!read || !plans) return yield become(idle);
  for (const plan of plans) {
    const stored = swapped(read, plan, state.stored);
    const sent = { ...idle, flying: union(flying, writesOf(plan, pods)) };
    const isShown = isGenerationObservable(plan.ledger, subject);
    yield become(isShown ? { ...sent, step: "status", spec: seenSpec } : sent, { stored });
    if (state.lostAnswers > 0) yield become(idle, { stored, lostAnswers: state.lostAnswers - 1 });
  }
}

function swapped(read: Stored, { ledger }: LedgerPlan, stored: Stored): Stored {
  return isSameLedger(read.ledger, ledger) ? stored : { version: read.version + 1, ledger };
}

/** Returns the plans; undefined: the pass knows a newer generation. */
function plansOf(
  { ledger }: Stored,
  spec: Spec,
  pods: readonly Pod[],
  { isStrict = false, hasUnfenced = false, isPlaceOmitted = false }: Setting,
): readonly LedgerPlan[] | undefined {
  const subject: Subject = { uid: spec.uid, generation: spec.generation, revision: spec.hash };
  const seen = new Map<string, string | null>(pods.map(({ uid, version }) => [uid, String(version)]));
  // Reserved pods that the list does not show are deleted here.
  for (const { uid } of ledger.reservations) if (!seen.has(uid)) seen.set(uid, null);
  const kept = reconcileLedger(ledger, seen, subject)?.kept;
  if (!kept) return undefined;
  const isReservedForThis = areReservedFor(kept, subject);
  const budgetUse = {
    reserved: new Set(kept.map(({ uid }) => uid)),
    StrictMaxUnavailable: isStrict,
    rules: {},
    isReservedForThis,
  };
  const plans = wishes(spec, pods, budgetUse).map((wanted) => withReservations(kept, wanted, subject));
  const isOld = ({ uid, hash }: Pod) => hash !== spec.hash && budgetUse.reserved.has(uid);
  const counted = new Set(pods.filter(isOld).map(({ uid }) => uid));
  if (!hasUnfenced || counted.size === 0 || counted.size < kept.length) return distinct(plans);
  const beside = wishes(spec, pods, isPlaceOmitted ? budgetUse : { ...budgetUse, counted });
  return distinct([...plans, ...beside.map((wanted) => withReservations(kept, wanted, subject, { counted }))]);
}

/** The status is written only if the SidecarSet is the one that was read. Otherwise it is left for later. */
function* writeStatus(state: State, { left, flying, spec }: Tick, become: Become): Generator<Step> {
  const idle: Tick = { step: "idle", left, flying };
  yield become(idle);
  if (spec !== undefined && state.spec === spec) yield become(idle, { observed: Math.max(state.observed, spec) });
}

/** Returns the wanted writes for each possible order of pods. */
function wishes(
  { hash, isPaused, maxUnavailable, partition = 0 }: Spec,
  pods: readonly Pod[],
  budgetUse: BudgetUse,
): readonly (readonly PodState[])[] {
  if (isPaused) return [[]];
  const states = pods.map((pod): CorePod => {
    const { uid, version, isReady } = pod;
    const metadata = { uid, name: uid, namespace: "n", resourceVersion: String(version) };
    const stands = { isUpdated: pod.hash === hash, isConsistent: true, isReady, isWorking: isReady };
    return { pod: { metadata, spec: { containers: [] } }, ...stands };
  });
  const budget = { used: usedBudget(states, budgetUse), maxUnavailable };
  const waiting = states.filter(({ isUpdated }) => !isUpdated);
  return waiting.length === 0
    ? [[]]
    : waiting.map((_, turn) => {
        const inTurn = [...waiting.slice(turn), ...waiting.slice(0, turn)];
        const isCounted = ({ pod }: CorePod) => budgetUse.counted?.has(pod.metadata?.uid ?? "") === true;
        const line = [...inTurn.filter(isCounted), ...inTurn.filter((state) => !isCounted(state))];
        const { taken } = takeWithin(
          line.slice(0, Math.max(0, line.length - partition)),
          budget,
          budgetUse,
          (state) => !isCounted(state),
        );
        return taken.map(({ pod: { metadata } }) => ({
          namespace: "n",
          name: metadata?.name ?? "",
          uid: metadata?.uid ?? "",
          resourceVersion: metadata?.resourceVersion ?? "",
        }));
      });
}

function distinct(plans: readonly LedgerPlan[]): readonly LedgerPlan[] {
  const textOf = ({ ledger, granted }: LedgerPlan) =>
    JSON.stringify([ledger.reservations.map(({ uid, revision }) => `${uid} ${revision}`).sort(), [...granted].sort()]);
  return [...new Map(plans.map((plan) => [textOf(plan), plan])).values()];
}

function writesOf({ ledger, granted, fenced }: LedgerPlan, pods: readonly Pod[]): readonly Flying[] {
  const flying = ({ uid, resourceVersion }: PodState, hash: string): Flying[] => {
    const pod = pods.findIndex((one) => one.uid === uid);
    return pod < 0 ? [] : [{ pod, uid, version: Number(resourceVersion), hash }];
  };
  const updates = ledger.reservations.filter(({ uid }) => granted.has(uid));
  return [...updates.flatMap((one) => flying(one, one.revision)), ...fenced.flatMap((one) => flying(one, ""))];
}

const textOfWrite = ({ uid, version, hash }: Flying) => `${uid} ${version} ${hash}`;
const byText = (a: Flying, b: Flying) => (textOfWrite(a) < textOfWrite(b) ? -1 : 1);

function union(flying: readonly Flying[], more: readonly Flying[]): readonly Flying[] {
  const known = new Set(flying.map(textOfWrite));
  return [...flying, ...more.filter((write) => !known.has(textOfWrite(write)))].sort(byText);
}
