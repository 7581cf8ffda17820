/** Explores every state that can be reached, and finds the first one that breaks a promise. */
import { keyOf, type Pod, type Setting, type State, start } from "./state.ts";
import { type Step, steps } from "./steps.ts";

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  readonly updates: number;
  /** true if every pod is as the last spec wants it, nothing is reserved, and the status shows that spec */
  readonly isEndReached: boolean;
  readonly broken: string | undefined;
}

export function explore(setting: Setting): Explored {
  const first = start(setting);
  const known = new Set([keyOf(first)]);
  const open = [first];
  let [transitions, updates, isEndReached] = [0, 0, false];
  let broken: string | undefined;
  for (let state = open.pop(); state && broken === undefined; state = open.pop()) {
    isEndReached ||= isEnd(state, setting);
    for (const step of steps(state, setting)) {
      transitions++;
      updates += Number(step.updated !== undefined);
      broken ??= brokenBy(state, step, setting);
      const key = keyOf(step.state);
      if (isNew(known, key)) open.push(step.state);
    }
  }
  return { states: known.size, transitions, updates, isEndReached, broken };
}

function isNew(known: Set<string>, key: string): boolean {
  const before = known.size;
  return known.add(key).size > before;
}

/** Checks every step for broken promises. */
function brokenBy(before: State, step: Step, setting: Setting): string | undefined {
  return brokenByUpdate(before, step, setting) ?? brokenByReservation(before, step, setting);
}

/**
 * A tick's reservation for the newest spec must leave enough old pods for the partition, even if every reserved pod is
 * updated.
 */
function brokenByReservation(before: State, { state }: Step, { specs }: Setting): string | undefined {
  const { ledger } = state.stored;
  const spec = specs[state.spec];
  const known = new Set(before.stored.ledger.reservations.map(({ uid }) => uid));
  const isNews = ledger.reservations.some(({ uid, generation }) => !known.has(uid) && generation === spec?.generation);
  if (!spec || !isNews || ledger.uid !== spec.uid) return undefined;
  const reserved = new Set(ledger.reservations.map(({ uid }) => uid));
  const left = state.pods.filter(({ uid, hash }) => hash !== spec.hash && !reserved.has(uid)).length;
  return left < (spec.partition ?? 0) ? "what is reserved crosses the partition" : undefined;
}

function brokenByUpdate(before: State, { state, updated }: Step, setting: Setting): string | undefined {
  const [was, pod] = [before.pods[updated ?? -1], state.pods[updated ?? -1]];
  if (!pod || !was) return undefined;
  const isReserved = before.stored.ledger.reservations.some(
    ({ uid, resourceVersion }) => uid === was.uid && resourceVersion === String(was.version),
  );
  if (!isReserved) return `${was.uid} is updated without a reservation`;
  if (was.hash === pod.hash) return `${was.uid} is updated twice`;
  const allowed = setting.specs.filter(
    (spec, index) => index >= before.observed && index <= before.spec && !spec.isPaused && spec.hash === pod.hash,
  );
  if (allowed.length === 0) return `${was.uid} is updated under a spec that is over`;
  const old = state.pods.filter(({ hash }) => hash !== pod.hash).length;
  if (allowed.every(({ partition = 0 }) => old < partition)) return `the partition is crossed by ${was.uid}`;
  return overBudget(state.pods, pod.hash, setting);
}

function overBudget(pods: readonly Pod[], hash: string, { isStrict = false }: Setting): string | undefined {
  const down = pods.filter((pod) => pod.limit > 0 && (isStrict || pod.hash === hash));
  const most = Math.max(0, ...down.map(({ limit }) => limit));
  return down.length > most ? `${down.length} pods are down of ${most} at most` : undefined;
}

function isEnd({ pods, stored, spec, observed }: State, { specs }: Setting): boolean {
  const last = specs.at(-1);
  if (!last || spec !== specs.length - 1 || observed !== spec || stored.ledger.reservations.length > 0) return false;
  const old = pods.filter(({ hash }) => hash !== last.hash).length;
  return last.isPaused === true || (old <= (last.partition ?? 0) && pods.every(({ isReady }) => isReady));
}
