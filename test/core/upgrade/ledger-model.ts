/**
 * Searches every order of steps in a small case. Two passes may stop anywhere. Patches may arrive late. A kubelet
 * finishes restarts or changes a status. A user pauses the SidecarSet. An API server may refuse patches and fences. The
 * rules of the ledger are the product's own. Two promises hold in each state. budget: pods that passes took down never
 * exceed maxUnavailable. fence: after observedGeneration shows the pause, no update arrives. If any rule is left out, a
 * promise breaks. This shows that the search can find an error.
 */
import {
  EMPTY_LEDGER,
  isGenerationObservable,
  isSameLedger,
  type Ledger,
  type LedgerPlan,
  type PodState,
  type Reservation,
  reconcileLedger,
  type Subject,
  takenOver,
  withReservations,
} from "../../../shared/core/ledger.ts";

interface Pod {
  readonly version: number;
  readonly isUpdated: boolean;
  readonly isReady: boolean;
}

interface Write {
  readonly pod: number;
  readonly version: number;
  readonly kind: "update" | "fence";
  /** rounds that the patch's pass had left; a patch is sent again while the first one has no answer */
  readonly round: number;
}

interface Stored {
  readonly version: number;
  readonly ledger: Ledger;
}

interface Tick {
  readonly step: "idle" | "ledger" | "list" | "decide";
  readonly seen?: Stored;
  readonly listed?: { readonly generation: number; readonly pods: readonly Pod[] };
  readonly flying: readonly Write[];
  readonly left: number;
  /** reserved states of pods, and the states for which a patch was refused */
  readonly own: readonly string[];
  readonly refused: readonly string[];
  /** patches of this pass without an answer; the pass never learns whether they were applied */
  readonly unanswered: readonly string[];
}

interface State {
  readonly pods: readonly Pod[];
  readonly stored: Stored;
  readonly ticks: readonly Tick[];
  readonly clock: number;
  /** generation of the SidecarSet; 2: paused */
  readonly generation: number;
  readonly observed: number;
  /** number of writes that the API server may still refuse */
  readonly refusals: number;
}

type Omission =
  | "none"
  | "noLedger"
  | "listFirst"
  | "freeEarly"
  | "noPrecondition"
  | "noGeneration"
  | "noFence"
  | "noMark"
  | "remembersFreed"
  | "freeShared"
  | "freeOthers"
  | "freeUnanswered";

interface Setting {
  readonly podCount: number;
  readonly maxUnavailable: number;
  /** number of rounds of each tick */
  readonly rounds: readonly number[];
  readonly refusals: number;
  readonly omitted: Omission;
}

interface Successor {
  readonly state: State;
  readonly hasUpdated: boolean;
}

const isDown = (pod: Pod) => pod.isUpdated && !pod.isReady;
const stateOf = (pod: number | string, version: number | string) => `${pod} ${version}`;
const same = (a: Write, b: Write) =>
  a.pod === b.pod && a.version === b.version && a.kind === b.kind && a.round === b.round;
const attempt = ({ pod, version, round }: Write) => `${stateOf(pod, version)} ${round}`;
const withItem = <T>(items: readonly T[], index: number, item: T) => items.map((old, i) => (i === index ? item : old));
const subjectOf = (generation: number): Subject => ({ uid: "set", generation, revision: "new" });
const podState = (index: number, version: number): PodState => ({
  namespace: "n",
  name: `p${index}`,
  uid: String(index),
  resourceVersion: String(version),
});

function start({ podCount, rounds, refusals }: Setting): State {
  const ledger: Ledger = { ...EMPTY_LEDGER, uid: "set", generation: 1 };
  return {
    pods: Array.from({ length: podCount }, () => ({ version: 1, isUpdated: false, isReady: true })),
    stored: { version: 0, ledger },
    ticks: rounds.map((left) => ({ step: "idle", flying: [], left, own: [], refused: [], unanswered: [] })),
    clock: 1,
    generation: 1,
    observed: 1,
    refusals,
  };
}

/** Lists steps outside the passes: a pause, and the kubelet's steps. */
function* worldSteps(state: State): Generator<Successor> {
  const { pods, clock } = state;
  if (state.generation === 1) yield { state: { ...state, generation: 2 }, hasUpdated: false };
  for (const [index, pod] of pods.entries()) {
    const touched = { ...pod, version: clock + 1, isReady: isDown(pod) ? true : pod.isReady };
    const isTouchable = isDown(pod) || (!pod.isUpdated && clock <= 1);
    if (isTouchable)
      yield { state: { ...state, pods: withItem(pods, index, touched), clock: clock + 1 }, hasUpdated: false };
  }
}

/** A write may arrive at any time, even long after its tick continued. */
function* arrivals(state: State, index: number, { omitted }: Setting): Generator<Successor> {
  const { pods, clock } = state;
  const tick = state.ticks[index] as Tick;
  for (const write of tick.flying) {
    const flying = tick.flying.filter((other) => !same(other, write));
    const ticks = withItem(state.ticks, index, { ...tick, flying });
    if (state.refusals > 0) yield { state: refuse(state, index, write, flying), hasUpdated: false };
    const pod = pods[write.pod] as Pod;
    const isInTime = pod.version === write.version || omitted === "noPrecondition";
    if (!isInTime || pod.isUpdated) {
      yield { state: { ...state, ticks }, hasUpdated: false };
      continue;
    }
    const isUpdated = write.kind === "update";
    const written = { version: clock + 1, isUpdated, isReady: pod.isReady && !isUpdated };
    yield {
      state: { ...state, ticks, pods: withItem(pods, write.pod, written), clock: clock + 1 },
      hasUpdated: isUpdated,
    };
  }
}

/** Returns the state after the API server refused the write. */
function refuse(state: State, index: number, write: Write, flying: readonly Write[]): State {
  const tick = state.ticks[index] as Tick;
  const at = stateOf(write.pod, write.version);
  const isNews = write.kind === "update" && tick.own.includes(at) && !tick.refused.includes(at);
  const refused = isNews ? [...tick.refused, at].sort() : tick.refused;
  const unanswered = tick.unanswered.filter((one) => one !== attempt(write));
  const ticks = withItem(state.ticks, index, { ...tick, flying, refused, unanswered });
  return { ...state, ticks, refusals: state.refusals - 1 };
}

function* tickSteps(state: State, index: number, setting: Setting): Generator<Successor> {
  const tick = state.ticks[index] as Tick;
  const becomes = (next: Tick): Successor => ({
    state: { ...state, ticks: withItem(state.ticks, index, next) },
    hasUpdated: false,
  });
  const [first, second] = setting.omitted === "listFirst" ? ["list", "ledger"] : ["ledger", "list"];
  const after = { idle: first, [first as string]: second, [second as string]: "decide" } as Record<
    string,
    Tick["step"]
  >;
  const step = after[tick.step] ?? "idle";
  if (tick.step === "idle" && tick.left > 0) yield becomes({ ...tick, step, left: tick.left - 1 });
  if (tick.step === "ledger") yield becomes({ ...tick, step, seen: state.stored });
  if (tick.step === "list")
    yield becomes({ ...tick, step, listed: { generation: state.generation, pods: state.pods } });
  if (tick.step === "decide")
    for (const next of decisions(state, index, setting)) yield { state: next, hasUpdated: false };
}

/** Makes the decisions of the product's rules; `omitted` leaves one rule out. */
function* decisions(state: State, index: number, setting: Setting): Generator<State> {
  const { omitted } = setting;
  const tick = state.ticks[index] as Required<Tick>;
  const { seen, listed, flying, left, own, refused, unanswered } = tick;
  const idle: Tick = { step: "idle", flying, left, own, refused, unanswered };
  const becomes = (next: Partial<State>, more: readonly Write[] = [], memory: Partial<Tick> = {}): State => ({
    ...state,
    ...next,
    ticks: withItem(state.ticks, index, { ...idle, flying: union(flying, more), ...memory }),
  });
  const subject = subjectOf(listed.generation);
  const versions = new Map(listed.pods.map((pod, i) => [String(i), String(pod.version)]));
  const stored = omitted === "freeShared" ? unmarked(seen.ledger) : seen.ledger;
  const reconciled = reconcileLedger(stored, versions, subject, (one) => isRefused(tick, one, setting));
  if (!reconciled) return yield becomes({});
  const kept = omitted === "freeEarly" ? [] : reconciled.kept;
  for (const wanted of wishes(listed, kept, setting)) {
    const plan = takenOver(withReservations(kept, wanted, subject), kept, (one) => isOwn(tick, one, setting));
    const writes = writesOf(plan, left, setting);
    const memory = memoryAfter(tick, kept, { plan, writes }, setting);
    if (omitted === "noLedger") yield becomes({}, writes);
    else if (state.stored.version !== seen.version) yield becomes({});
    else yield becomes(swap(state, plan.ledger, subject, setting), writes, memory);
  }
}

function isOwn({ own }: Tick, { uid, resourceVersion }: PodState, { omitted }: Setting): boolean {
  return omitted === "noMark" || own.includes(stateOf(uid, resourceVersion));
}

/** True if the pass reserved the state and every patch for it was refused. Then none can arrive late. */
function isRefused(
  { refused, unanswered, left }: Tick,
  { uid, resourceVersion }: Reservation,
  { omitted }: Setting,
): boolean {
  const at = stateOf(uid, resourceVersion);
  if (omitted === "freeOthers" && left === 0) return true;
  const isUnanswered = unanswered.some((one) => one.startsWith(`${at} `));
  return refused.includes(at) && (!isUnanswered || omitted === "freeUnanswered");
}

function unmarked(ledger: Ledger): Ledger {
  return { ...ledger, reservations: ledger.reservations.map(({ isShared: _, ...one }) => one) };
}

/**
 * Returns what the pass knows about its own reservations after its swap. It learns nothing about released reservations.
 */
function memoryAfter(
  { own, refused, unanswered }: Tick,
  kept: readonly Reservation[],
  { plan, writes }: { readonly plan: LedgerPlan; readonly writes: readonly Write[] },
  { omitted, refusals }: Setting,
): Pick<Tick, "own" | "refused" | "unanswered"> {
  const isKept = new Set(kept.map(({ uid }) => uid));
  const states = plan.ledger.reservations.map((one) => ({ ...one, at: stateOf(one.uid, one.resourceVersion) }));
  const added = states.filter(({ uid }) => !isKept.has(uid)).map(({ at }) => at);
  const isKnown = (at: string) =>
    omitted === "remembersFreed" || states.some((one) => one.at === at && isKept.has(one.uid));
  const known = [...new Set([...own.filter(isKnown), ...added])].sort();
  const patches = refusals > 0 ? writes : [];
  const sent = patches.filter(({ kind, pod, version }) => kind === "update" && known.includes(stateOf(pod, version)));
  return {
    own: known,
    refused: refused.filter(isKnown),
    unanswered: [
      ...unanswered.filter((one) => known.some((at) => one.startsWith(`${at} `))),
      ...sent.map(attempt),
    ].sort(),
  };
}

function swap(state: State, planned: Ledger, subject: Subject, setting: Setting): Partial<State> {
  const { version, ledger: old } = state.stored;
  const ledger = setting.omitted === "noGeneration" ? { ...planned, generation: 1 } : planned;
  const stored = isSameLedger(old, ledger) ? state.stored : { version: version + 1, ledger };
  const observed = isObservable(ledger, subject, setting)
    ? Math.max(state.observed, subject.generation)
    : state.observed;
  return { stored, observed };
}

function union(flying: readonly Write[], more: readonly Write[]): readonly Write[] {
  return [...flying, ...more.filter((write) => !flying.some((other) => same(other, write)))].sort(order);
}

/** Lists the possible decisions: no new pod, or one more within the budget; no pod at all when paused. */
function wishes(
  { generation, pods }: Required<Tick>["listed"],
  kept: readonly PodState[],
  { maxUnavailable }: Setting,
): readonly (readonly PodState[])[] {
  if (generation === 2) return [[]];
  const reserved = new Set(kept.map(({ uid }) => Number(uid)));
  const used = pods.filter((pod, i) => isDown(pod) || reserved.has(i)).length;
  const isFree = (pod: Pod, i: number) => used < maxUnavailable && !pod.isUpdated && !reserved.has(i);
  return [kept, ...pods.flatMap((pod, i) => (isFree(pod, i) ? [[...kept, podState(i, pod.version)]] : []))];
}

function writesOf(
  { ledger, granted, fenced }: LedgerPlan,
  left: number,
  { omitted, refusals }: Setting,
): readonly Write[] {
  const round = refusals > 0 ? left : 0;
  const updates = ledger.reservations.filter(({ uid }) => granted.has(uid)).map((pod) => writeOf(pod, "update", round));
  return omitted === "noFence" ? updates : [...updates, ...fenced.map((pod) => writeOf(pod, "fence", 0))];
}

function isObservable(ledger: Ledger, subject: Subject, { omitted }: Setting): boolean {
  if (omitted === "noFence") return true;
  return omitted === "noGeneration" ? ledger.reservations.length === 0 : isGenerationObservable(ledger, subject);
}

const writeOf = ({ uid, resourceVersion }: PodState, kind: Write["kind"], round: number): Write => ({
  pod: Number(uid),
  version: Number(resourceVersion),
  kind,
  round,
});
const order = (a: Write, b: Write) =>
  a.pod - b.pod || a.version - b.version || a.kind.localeCompare(b.kind) || a.round - b.round;

function* successors(state: State, setting: Setting): Generator<Successor> {
  yield* worldSteps(state);
  for (const index of state.ticks.keys()) {
    yield* arrivals(state, index, setting);
    yield* tickSteps(state, index, setting);
  }
}

/** Explores all states that a setting reaches. Returns their number, and the first promise that breaks. */
export function explore(setting: Setting): { readonly states: number; readonly broken?: "budget" | "fence" } {
  const known = new Map([start(setting)].map((state) => [JSON.stringify(state), state]));
  let states = 0;
  // Iterating a Map also visits entries that are added during the iteration.
  for (const state of known.values()) {
    states++;
    if (state.pods.filter(isDown).length > setting.maxUnavailable) return { states, broken: "budget" };
    const following = [...successors(state, setting)];
    if (state.observed === 2 && following.some(({ hasUpdated }) => hasUpdated)) return { states, broken: "fence" };
    for (const { state: next } of following) known.set(JSON.stringify(next), next);
  }
  return { states };
}

export const SMALL = { podCount: 2, maxUnavailable: 1, rounds: [2, 2], refusals: 0 };
/**
 * A setting in which a pass sends a patch again while the first one has no answer, or another pass uses its
 * reservations.
 */
export const REFUSING = { podCount: 2, maxUnavailable: 1, rounds: [3, 1], refusals: 1 };
