/**
 * A small model of the protocol: pods, one ledger, ticks that may stop anywhere, and writes that may arrive at any
 * time.
 */
import { EMPTY_LEDGER, type Ledger } from "../../../shared/core/ledger.ts";

/** A generation of the SidecarSet. */
export interface Spec {
  /** uid of the SidecarSet; a new uid is another object of the same name */
  readonly uid: string;
  readonly generation: number;
  readonly hash: string;
  readonly isPaused?: boolean;
  readonly maxUnavailable: number;
  readonly partition?: number;
}

export interface Setting {
  readonly name: string;
  readonly pods: number;
  readonly ticks: number;
  /** number of rounds that each tick may begin */
  readonly rounds: number;
  /** the first spec, and then the user's changes, which may come at any moment */
  readonly specs: readonly Spec[];
  /** true if a run has too few rounds to reach its end */
  readonly isCutShort?: boolean;
  /** value of the feature gate StrictMaxUnavailable */
  readonly isStrict?: boolean;
  /** true if a tick may leave unwanted reserved pods without a fence, and count them as updated */
  readonly hasUnfenced?: boolean;
  /** true if one rule is left out: the pods of `hasUnfenced` keep their place in the partition */
  readonly isPlaceOmitted?: boolean;
  /** number of touches, which may hit any pod at any moment */
  readonly touches?: number;
  readonly flaps?: number;
  readonly replacements?: number;
  /** number of swaps that are carried out although their answer is lost */
  readonly lostAnswers?: number;
}

export interface Pod {
  /** uid of the pod; a new uid is another pod */
  readonly uid: string;
  readonly version: number;
  readonly hash: string;
  readonly isReady: boolean;
  /**
   * the most pods that could be down when a tick took this pod down; the value ends when the pod is ready; 0: no tick
   * did
   */
  readonly limit: number;
}

/** A patch that has not yet arrived at its pod. */
export interface Flying {
  readonly pod: number;
  readonly uid: string;
  readonly version: number;
  /** the hash that the patch writes; "" for a fence */
  readonly hash: string;
}

export interface Stored {
  readonly version: number;
  readonly ledger: Ledger;
}

export interface Tick {
  readonly step: "idle" | "ledger" | "spec" | "pods" | "swap" | "status";
  readonly left: number;
  readonly read?: Stored | undefined;
  /** index of the spec in `specs` */
  readonly spec?: number | undefined;
  readonly pods?: readonly Pod[] | undefined;
  readonly flying: readonly Flying[];
}

export interface State {
  readonly pods: readonly Pod[];
  readonly stored: Stored;
  readonly ticks: readonly Tick[];
  /** index in `specs` of the present spec, and of the spec that observedGeneration shows; -1: none yet */
  readonly spec: number;
  readonly observed: number;
  readonly touches: number;
  readonly flaps: number;
  readonly replacements: number;
  readonly lostAnswers: number;
}

export const OLD = "old";

export function start(setting: Setting): State {
  const { pods, ticks, rounds, touches = 0, flaps = 0, replacements = 0, lostAnswers = 0 } = setting;
  return {
    pods: Array.from({ length: pods }, (_, index) => ({
      uid: `p${index}`,
      version: 1,
      hash: OLD,
      isReady: true,
      limit: 0,
    })),
    stored: { version: 0, ledger: EMPTY_LEDGER },
    ticks: Array.from({ length: ticks }, () => ({ step: "idle", left: rounds, flying: [] })),
    spec: 0,
    observed: -1,
    touches,
    flaps,
    replacements,
    lostAnswers,
  };
}

/** Equal keys mean that the same steps can follow. Ticks are alike, so the key ignores their order. */
export function keyOf({ pods, stored, ticks, ...rest }: State): string {
  const ledger = `${stored.version};${textOf(stored.ledger)}`;
  const all = ticks.map((tick) => tickText(tick, stored)).sort();
  return `${pods.map(podText).join()}|${ledger}|${all.join("/")}|${Object.values(rest).join()}`;
}

function podText({ uid, version, hash, isReady, limit }: Pod): string {
  return `${uid}:${version}:${hash}:${isReady ? 1 : 0}${limit}`;
}

function flyingText(flying: readonly Flying[]): string {
  return flying.map(({ uid, version, hash }) => `${uid}:${version}:${hash}`).join();
}

function tickText({ step, left, read, spec, pods, flying }: Tick, stored: Stored): string {
  // A ledger that was read and then replaced can no longer be swapped. Its contents only affect what the tick tries.
  const seen = read ? (read.version === stored.version ? "=" : `${read.version};${textOf(read.ledger)}`) : "";
  return `${step}${left}!${seen}!${spec ?? ""}!${pods?.map(podText).join() ?? ""}!${flyingText(flying)}`;
}

function textOf({ uid, generation, reservations }: Ledger): string {
  const lines = reservations.map((one) => `${one.uid}:${one.resourceVersion}:${one.generation}:${one.revision}`);
  return `${uid};${generation};${lines.join()}`;
}
