/** The loop of a pass: it reconciles every object once, then follows unfinished objects in parallel. */
import { isPassing, KubeError } from "../../kube/error.ts";
import { type Clock, errorMessage, type Limits, note } from "./clock.ts";
import { mapLimited } from "./concurrency-limit.ts";

const BEGUN_AT_ONCE = 4;
/**
 * Limit of followed objects, because each holds a watch. Others are reconciled again when due, and are first in the
 * next pass.
 */
const FOLLOWED_AT_ONCE = 16;
/** Milliseconds that must be left to begin with another object. */
const LAST_BEGIN_MS = 3_000;
/** Milliseconds after which an object without a watch is reconciled again. */
const RETURN_MS = 60_000;
/** Milliseconds before the first retry after trouble with the API server: 1, 2, 4, 8 seconds; then a later pass. */
const FIRST_RETRY_MS = 1_000;
const MAX_RETRIES = 4;
/** Limit in milliseconds of a wait that an API server may ask for. */
const MAX_RETRY_MS = 10_000;

/** An existing object: `key` is NAME, or NAMESPACE/NAME. */
export interface Listed {
  readonly key: string;
  readonly generation: number;
}

/** The parts of a pass that the loop needs. */
export interface LoopService {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly isFollowing: boolean;
  /** false: only the given objects are reconciled */
  readonly isRescanning: boolean;
  readonly problems: string[];
  /** keys of objects that the time did not reach */
  readonly notReached: string[];
  /** key of the object that began last */
  cursor: string;
}

interface Reported {
  readonly generation?: number;
}

/** The progress of an object in this pass. */
export interface Stand<Report, Progress> {
  readonly report: Report;
  /** set if the object can be continued */
  readonly progress?: Progress;
  /** set if the object should begin again soon */
  readonly trouble?: KubeError;
}

/** Reconciles one object. It never throws: an object's problems go into its report. */
export interface Reconciler<Report, Progress> {
  readonly begin: () => Promise<Stand<Report, Progress>>;
  readonly follow: (progress: Progress) => Promise<Stand<Report, Progress>>;
  /** makes the last write of an object that is not followed; absent: there is none */
  readonly settle?: (progress: Progress) => Promise<Stand<Report, Progress>>;
  /** called at the end; `beganAtMs`: time on the pass's clock */
  readonly onEnd?: (report: Report, beganAtMs: number) => void | Promise<void>;
}

export interface Kind<Report extends Reported, Progress> {
  /** milliseconds after which changes are seen while others are followed */
  readonly rescanMs: number;
  readonly list: () => Promise<readonly Listed[]>;
  /** returns a reconciler, once for each object and pass */
  readonly reconcilerOf: (key: string) => Reconciler<Report, Progress>;
}

interface State<Report, Progress> {
  readonly reconciler: Reconciler<Report, Progress>;
  report: Report;
  /** time of its last reconciliation, on the pass's clock */
  endedAtMs: number;
  following?: Promise<void> | undefined;
}

class States<Report, Progress> extends Map<string, State<Report, Progress>> {
  /** number of objects that are followed now */
  followed = 0;
  /** numbers of objects that start or are followed now, by namespace */
  readonly begun = new Map<string, number>();
  readonly followedOf = new Map<string, number>();
  /** namespaces in the order of their start */
  readonly order = new Set<string>();
  /** keys of objects that could continue, but are beyond the limit of followed ones */
  readonly unfollowed = new Set<string>();
}

/** Ends when all work has ended, or the time is up. Reports are in the order of `keys`. */
export async function reconcileAll<Report extends Reported, Progress>(
  service: LoopService,
  kind: Kind<Report, Progress>,
  keys: readonly string[],
): Promise<readonly Report[]> {
  const states = new States<Report, Progress>();
  await reconcileEach(service, kind, states, keys);
  for (;;) {
    const following = [...states.values()].flatMap((state) => state.following ?? []);
    if (following.length === 0) {
      service.cursor = cursorOf(service, states);
      return [...new Set([...keys, ...states.keys()])].flatMap((key) => states.get(key)?.report ?? []);
    }
    const all = Promise.all(following);
    if (!service.isRescanning || !isTimeLeft(service)) await all;
    else if ((await firstOf(service.clock, kind.rescanMs, all)) === "rescan")
      await reconcileEach(service, kind, states, await dueKeys(service, kind, states));
  }
}

/**
 * The keys in turns by namespace: first the namespaces after the cursor's. The cursor's namespace continues after the
 * cursor, and the others begin at a random place, because the cursor is in one namespace only.
 */
export function fromCursor(
  listed: readonly Listed[],
  cursor: string,
  { random }: Pick<Clock, "random">,
): readonly string[] {
  const keys = listed.map(({ key }) => key).sort();
  const namespaces = Map.groupBy(keys, namespaceOf);
  const last = namespaceOf(cursor);
  const order = rotated([...namespaces.keys()].sort(), (namespace) => namespace > last);
  return order.flatMap((namespace) => {
    const own = namespaces.get(namespace) ?? [];
    const first = own[Math.floor(random() * own.length)] ?? "";
    return rotated(own, namespace === last ? (key) => key > cursor : (key) => key >= first);
  });
}

/** The sorted texts, rotated so that matching ones come first. */
function rotated(sorted: readonly string[], isFirst: (text: string) => boolean): readonly string[] {
  return [...sorted.filter(isFirst), ...sorted.filter((text) => !isFirst(text))];
}

/** The namespace of a key; "" for an object without one. */
function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf("/")));
}

/** The state after a failure. A failure, even an error of this code, affects one object only. `why`: a sentence. */
export function failedStand<Report>(
  error: unknown,
  reportOf: (stop: "deadline" | "failed", why: string) => Report,
): Stand<Report, never> {
  const stop = error instanceof KubeError && error.reason === "DeadlineExceeded" ? "deadline" : "failed";
  return { report: reportOf(stop, errorMessage(error)), ...(isPassing(error) ? { trouble: error } : {}) };
}

/** The next pass's first key: the first object that began too late, or else the first that could not be followed. */
function cursorOf<Report, Progress>(
  { cursor, notReached }: LoopService,
  { order, unfollowed }: States<Report, Progress>,
): string {
  const begun = [...order];
  const late = notReached.length > 0 ? new Set(notReached) : unfollowed;
  const first = begun.findIndex((key) => late.has(key));
  const before = begun.slice(0, Math.max(0, first));
  return before.findLast((key) => namespaceOf(key) === namespaceOf(begun[first] ?? "")) ?? before.at(-1) ?? cursor;
}

async function firstOf(clock: Clock, rescanMs: number, all: Promise<unknown>): Promise<"all" | "rescan"> {
  const done = new AbortController();
  const rescan = clock.sleep(rescanMs, done.signal).then(() => "rescan" as const);
  const first = await Promise.race([all.then(() => "all" as const), rescan]);
  done.abort();
  return first;
}

/** Objects that are new, have changed, or have not been reconciled for a while. */
async function dueKeys<Report extends Reported, Progress>(
  service: LoopService,
  { list }: Kind<Report, Progress>,
  states: States<Report, Progress>,
): Promise<readonly string[]> {
  const isDue = ({ key, generation }: Listed) => {
    const state = states.get(key);
    if (!state) return true;
    if (state.following) return false;
    return state.report.generation !== generation || service.clock.now() - state.endedAtMs >= RETURN_MS;
  };
  try {
    return (await list()).filter(isDue).map(({ key }) => key);
  } catch (error) {
    note(service, errorMessage(error));
    return [];
  }
}

/** Namespaces take turns: one with slow objects does not delay the others. */
function reconcileEach<Report extends Reported, Progress>(
  service: LoopService,
  kind: Kind<Report, Progress>,
  states: States<Report, Progress>,
  keys: readonly string[],
): Promise<unknown> {
  const waiting = Map.groupBy(keys, namespaceOf);
  for (const own of waiting.values()) own.reverse();
  const next = () => {
    const namespace = nextNamespace(waiting.keys(), states);
    const own = waiting.get(namespace) ?? [];
    const key = own.pop() ?? "";
    // The namespace goes to the end of the line.
    waiting.delete(namespace);
    if (own.length > 0) waiting.set(namespace, own);
    return key;
  };
  return mapLimited(keys, BEGUN_AT_ONCE, () => reconcileOne(service, kind, states, next()));
}

/** The namespace with the fewest starting objects. Among several the one with the fewest followed objects. */
function nextNamespace<Report, Progress>(
  namespaces: Iterable<string>,
  { begun, followedOf }: States<Report, Progress>,
): string {
  let [next, least] = ["", Number.POSITIVE_INFINITY];
  for (const namespace of namespaces) {
    const places = (begun.get(namespace) ?? 0) * (FOLLOWED_AT_ONCE + 1) + (followedOf.get(namespace) ?? 0);
    if (places < least) [next, least] = [namespace, places];
    if (least === 0) break;
  }
  return next;
}

function count(counts: Map<string, number>, namespace: string, change: 1 | -1): void {
  counts.set(namespace, (counts.get(namespace) ?? 0) + change);
}

async function reconcileOne<Report extends Reported, Progress>(
  service: LoopService,
  kind: Kind<Report, Progress>,
  states: States<Report, Progress>,
  key: string,
): Promise<void> {
  const { clock } = service;
  if (!isTimeLeft(service)) return noteUnreached(service, states, key);
  service.cursor = key;
  states.order.add(key);
  const reconciler = states.get(key)?.reconciler ?? kind.reconcilerOf(key);
  const { settle, onEnd } = reconciler;
  const beganAtMs = clock.now();
  const namespace = namespaceOf(key);
  count(states.begun, namespace, 1);
  try {
    const begun = await reconciler.begin();
    const state: State<Report, Progress> = { reconciler, report: begun.report, endedAtMs: clock.now() };
    states.set(key, state);
    const isFollowed = service.isFollowing && states.followed < FOLLOWED_AT_ONCE;
    states.unfollowed.delete(key);
    if (service.isFollowing && !isFollowed) noteUnfollowed(states, key, begun);
    const going = isFollowed ? persisting(service, reconciler, begun) : begun.progress && settle?.(begun.progress);
    if (!going) return await onEnd?.(begun.report, beganAtMs);
    states.followed++;
    count(states.followedOf, namespace, 1);
    state.following = going.then(async (last) => {
      state.report = last.report;
      state.endedAtMs = clock.now();
      state.following = undefined;
      states.followed--;
      count(states.followedOf, namespace, -1);
      await onEnd?.(last.report, beganAtMs);
    });
    if (!isFollowed) await state.following;
  } finally {
    count(states.begun, namespace, -1);
  }
}

function noteUnreached<Report, Progress>({ notReached }: LoopService, states: States<Report, Progress>, key: string) {
  if (!states.has(key)) notReached.push(key);
}

function noteUnfollowed<Report, Progress>(
  { unfollowed }: States<Report, Progress>,
  key: string,
  begun: Stand<Report, Progress>,
): void {
  if (canGoOn(begun)) unfollowed.add(key);
}

function canGoOn<Report, Progress>({ progress, trouble }: Stand<Report, Progress>): boolean {
  return progress !== undefined || trouble !== undefined;
}

/** Continues an object; undefined: it cannot be continued. */
function persisting<Report, Progress>(
  service: LoopService,
  reconciler: Reconciler<Report, Progress>,
  begun: Stand<Report, Progress>,
): Promise<Stand<Report, Progress>> | undefined {
  return canGoOn(begun) ? persist(service, reconciler, begun) : undefined;
}

/** Follows an object to its end, and starts again if only trouble with the API server interrupts. */
async function persist<Report, Progress>(
  service: LoopService,
  { begin, follow }: Reconciler<Report, Progress>,
  begun: Stand<Report, Progress>,
): Promise<Stand<Report, Progress>> {
  let stand = begun;
  for (let failures = 0; ; failures++) {
    if (stand.progress) {
      failures = 0;
      stand = await follow(stand.progress);
    }
    if (!stand.trouble || failures === MAX_RETRIES) return stand;
    const { retryAfterSeconds = 0 } = stand.trouble;
    const waitMs = Math.max(FIRST_RETRY_MS * 2 ** failures, 1000 * retryAfterSeconds);
    await service.clock.sleep(Math.min(waitMs, MAX_RETRY_MS), service.limits.signal);
    if (!isTimeLeft(service)) return stand;
    stand = await begin();
  }
}

function isTimeLeft({ limits, clock }: LoopService): boolean {
  return limits.signal?.aborted !== true && clock.now() <= limits.endsAtMs - LAST_BEGIN_MS;
}
