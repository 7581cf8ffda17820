/** Pods with a refused write. The API server seldom accepts a write that it has just refused. */
import { ledgerSubject, type PodState, stateOf } from "../../core/ledger.ts";
import { isOfImages, refusalText } from "../../core/refused-pods.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { isOfWrites } from "../../core/rollout/pass-trouble.ts";
import type { Context, Snapshot } from "./observe.ts";
import { noteUnfenced, refusedNow } from "./refused-pods.ts";
import { isRefused, noteRefusal, refusedInARow } from "./refused-writes.ts";

/** Milliseconds until the next write; the time doubles with each refusal. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 16_000;
/** Milliseconds to wait after the fourth refusal, seven seconds after the first. */
const HOPELESS_WAIT_MS = 8_000;
const HOPELESS_TIMES = 4;
/** Limit of refusals in a row while no write is accepted. */
const MOST_IN_A_ROW = 50;

interface Refused {
  readonly notBeforeMs: number;
  readonly waitMs: number;
}

/** refusals of each rollout, over its batches */
const refusals = new WeakMap<Context, Map<string, Refused>>();

/** True if the pod may be tried. After a change of its state it is tried at once: a policy may accept it. */
export function isDue(context: Context, state: PodState): boolean {
  const refused = refusals.get(context)?.get(stateOf(state));
  return refused === undefined || context.clock.now() >= refused.notBeforeMs;
}

/**
 * True if the pass can stop trying. The API server refused four writes to each remaining pod or fence of each reserved
 * one, or many pods in a row.
 */
export function isRefusedThroughout(
  context: Context,
  { stored, sidecarSet }: Snapshot,
  { summary }: Decision,
): boolean {
  const { reservations } = stored.ledger;
  if (reservations.length === 0) {
    if (refusedInARow(context) >= MOST_IN_A_ROW) return true;
    const { pods } = refusedNow(context, { stored }, ledgerSubject(sidecarSet));
    return isOfWrites(summary.hold) && summary.used === 0 && pods.every(({ times }) => times >= HOPELESS_TIMES);
  }
  const ofRollout = refusals.get(context);
  const isHopeless = (state: PodState) => (ofRollout?.get(stateOf(state))?.waitMs ?? 0) >= HOPELESS_WAIT_MS;
  return isRefused(context) && reservations.every(isHopeless);
}

/** The status says it while no write is accepted. `message`: the words of the API server. */
export function sayRefusal(context: Context, { namespace, name }: PodState, message: string): void {
  noteRefusal(
    context,
    `the API server refuses to change pod ${namespace}/${name}: ${message}`,
    isOfImages(refusalText(message)),
  );
}

/** Records a refused fence. It is retried, later after each refusal. */
export function noteRefused(context: Context, state: PodState, message: string): void {
  sayRefusal(context, state, message);
  noteUnfenced(context, state);
  const ofRollout = refusals.get(context) ?? new Map<string, Refused>();
  refusals.set(context, ofRollout);
  const last = ofRollout.get(stateOf(state));
  const waitMs = last ? Math.min(2 * last.waitMs, LONGEST_WAIT_MS) : FIRST_WAIT_MS;
  ofRollout.set(stateOf(state), { notBeforeMs: context.clock.now() + waitMs, waitMs });
}
