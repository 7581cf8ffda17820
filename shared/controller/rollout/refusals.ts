/** Pods that a write was refused for: who was refused a moment ago is seldom let pass a moment later. */

import type { PodState } from "../../core/ledger.ts";
import type { Context, Snapshot } from "./observe.ts";
import { isRefused, noteRefusal } from "./refused-writes.ts";

/** Until the next write, twice as long each time. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 16_000;
/** After the fourth refusal, seven seconds after the first. */
const HOPELESS_WAIT_MS = 8_000;

interface Refused {
  readonly notBeforeMs: number;
  readonly waitMs: number;
}

/** of each rollout, over its batches */
const refusals = new WeakMap<Context, Map<string, Refused>>();

/** A pod in another state than it was refused in is tried at once: a policy may think otherwise of it. */
export function isDue(context: Context, state: PodState): boolean {
  const refused = refusals.get(context)?.get(keyOf(state));
  return refused === undefined || context.clock.now() >= refused.notBeforeMs;
}

/** True if every reserved pod was refused four times and no write was accepted since: the pass need not try again. */
export function isRefusedThroughout(context: Context, { stored }: Snapshot): boolean {
  const { reservations } = stored.ledger;
  const ofRollout = refusals.get(context);
  const isHopeless = (state: PodState) => (ofRollout?.get(keyOf(state))?.waitMs ?? 0) >= HOPELESS_WAIT_MS;
  return isRefused(context) && reservations.length > 0 && reservations.every(isHopeless);
}

/** `message`: the words of the API server. */
export function noteRefused(context: Context, state: PodState, message: string): void {
  noteRefusal(context, `the API server refuses to change pod ${state.namespace}/${state.name}: ${message}`);
  const ofRollout = refusals.get(context) ?? new Map<string, Refused>();
  refusals.set(context, ofRollout);
  const last = ofRollout.get(keyOf(state));
  const waitMs = last ? Math.min(2 * last.waitMs, LONGEST_WAIT_MS) : FIRST_WAIT_MS;
  ofRollout.set(keyOf(state), { notBeforeMs: context.clock.now() + waitMs, waitMs });
}

function keyOf({ uid, resourceVersion }: PodState): string {
  return `${uid} ${resourceVersion}`;
}
