/** The states of all matched pods, computed once per decision and kept in one byte each. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { each, type Sequence } from "../../go/sequence.ts";
import { isMatched } from "./is-matched.ts";
import type { NativeState } from "./native-sidecars.ts";
import type { DrainHold } from "./pod-records.ts";
import type { PodState, ResizeState } from "./pod-state.ts";

const UPDATED = 1;
const CONSISTENT = 2;
const READY = 4;
const RESERVED = 8;
const DOUBTED = 16;
const IGNORED = 32;
const WORKING = 64;
const DRAINED_ELSEWHERE = 128;

/** Parts of a state that only few pods have. */
interface Extras {
  readonly native: NativeState | undefined;
  readonly resize: ResizeState | undefined;
  readonly drain: DrainHold | undefined;
}

/**
 * The states of the pods in a rollout, in order, as from `stateOf`. Each access creates a new object. They are valid as
 * long as `pods` are.
 */
export function matchedStates(
  pods: Sequence<Pod>,
  sidecarSet: SidecarSet,
  stateOf: (pod: Pod) => PodState,
  isReservedNow: (state: PodState) => boolean,
): Sequence<PodState> {
  const places = new Uint32Array(pods.length);
  const flags = new Uint8Array(pods.length);
  const extras = new Map<number, Extras>();
  let count = 0;
  each(pods, (pod, place) => {
    if (!isMatched(pod, sidecarSet)) return;
    const state = stateOf(pod);
    const { native, resize, drain } = state;
    if (native || resize || drain) extras.set(count, { native, resize, drain });
    flags[count] = flagsOf(state) | (isReservedNow(state) ? RESERVED : 0);
    places[count++] = place;
  });
  return new PodStates(pods, { places: places.subarray(0, count), flags, extras });
}

function flagsOf(state: PodState): number {
  const { isUpdated, isConsistent, isReady, isWorking, isDoubted, isIgnored, isDrainedElsewhere } = state;
  const stands = (isUpdated ? UPDATED : 0) | (isConsistent ? CONSISTENT : 0) | (isReady ? READY : 0);
  const rest = (isWorking ? WORKING : 0) | (isDoubted ? DOUBTED : 0) | (isIgnored ? IGNORED : 0);
  return stands | rest | (isDrainedElsewhere ? DRAINED_ELSEWHERE : 0);
}

/** Yields the pods, one after another. */
export function* podsOf(states: Iterable<PodState>): Generator<Pod> {
  for (const { pod } of states) yield pod;
}

interface Columns {
  /** indexes of pods in their sequence */
  readonly places: Uint32Array;
  readonly flags: Uint8Array;
  readonly extras: ReadonlyMap<number, Extras>;
}

class PodStates implements Sequence<PodState> {
  readonly #pods: Sequence<Pod>;
  readonly #columns: Columns;

  constructor(pods: Sequence<Pod>, columns: Columns) {
    this.#pods = pods;
    this.#columns = columns;
  }

  get length(): number {
    return this.#columns.places.length;
  }

  at(place: number): PodState | undefined {
    const { places, flags, extras } = this.#columns;
    const there = places[place];
    return there === undefined
      ? undefined
      : new StateOfOne(this.#pods, there, flags[place] ?? 0, extras.size === 0 ? undefined : extras.get(place));
  }

  *[Symbol.iterator](): Generator<PodState> {
    for (let place = 0; place < this.length; place++) yield this.at(place) as PodState;
  }
}

/** A state that creates its pod on demand, because most states are read only for their flags. */
class StateOfOne implements PodState {
  readonly #pods: Sequence<Pod>;
  readonly #place: number;
  readonly #flags: number;
  readonly #extras: Extras | undefined;
  #pod: Pod | undefined;

  constructor(pods: Sequence<Pod>, place: number, flags: number, extras: Extras | undefined) {
    this.#pods = pods;
    this.#place = place;
    this.#flags = flags;
    this.#extras = extras;
  }

  /** The pod; each read of this state returns the same object. */
  get pod(): Pod {
    this.#pod ??= this.#pods.at(this.#place) as Pod;
    return this.#pod;
  }

  get isUpdated(): boolean {
    return (this.#flags & UPDATED) !== 0;
  }

  get isConsistent(): boolean {
    return (this.#flags & CONSISTENT) !== 0;
  }

  get isReady(): boolean {
    return (this.#flags & READY) !== 0;
  }

  get isWorking(): boolean {
    return (this.#flags & WORKING) !== 0;
  }

  get isDoubted(): boolean {
    return (this.#flags & DOUBTED) !== 0;
  }

  get isIgnored(): boolean {
    return (this.#flags & IGNORED) !== 0;
  }

  get isDrainedElsewhere(): boolean {
    return (this.#flags & DRAINED_ELSEWHERE) !== 0;
  }

  get isReservedNow(): boolean {
    return (this.#flags & RESERVED) !== 0;
  }

  get native(): NativeState | undefined {
    return this.#extras?.native;
  }

  get resize(): ResizeState | undefined {
    return this.#extras?.resize;
  }

  get drain(): DrainHold | undefined {
    return this.#extras?.drain;
  }
}
