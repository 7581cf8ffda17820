/** Writes into the status why a pass over a SidecarSet did not come to a decision. */
import { isDeepStrictEqual } from "node:util";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { conditionsOfFailure, type PassFailure } from "../../core/rollout/pass-trouble.ts";
import { isPassing, KubeError } from "../../kube/error.ts";
import { timestamp } from "../loop/clock.ts";
import { messageOf } from "../loop/problems.ts";
import { act } from "./act.ts";
import type { Context } from "./observe.ts";
import { readSidecarSet } from "./observe-pods.ts";
import { transitions } from "./status-additions.ts";

/** A status has to have counts; without `observedGeneration` they say nothing. The first pass that reserves names the ledger. */
const UNSEEN = { matchedPods: 0, updatedPods: 0, readyPods: 0, ledgerNamespace: "" } as const;

/** The failure as the status tells it. Undefined: the time of the pass is over, so the next one tries. */
export function failureOf(error: unknown): PassFailure | undefined {
  const message = messageOf(error);
  if (isPassing(error)) return { hold: "unreachable", text: `the API server gave a pass no usable answer: ${message}` };
  if (!(error instanceof KubeError)) return { hold: "passFailed", text: `a pass failed: ${message}` };
  if (error.reason === "DeadlineExceeded") return undefined;
  if (error.code >= 400) return { hold: "passRefused", text: `the API server refuses a pass: ${message}` };
  return { hold: "passFailed", text: `a pass failed: ${message}` };
}

/**
 * Returns the SidecarSet with what was written. Undefined: nothing was, because the status cannot be written either, says
 * so already, or keeps no conditions (OpenKruise's definition).
 */
export async function writeFailure(
  context: Context,
  name: string,
  failure: PassFailure,
): Promise<SidecarSet | undefined> {
  const sidecarSet = await readSidecarSet(context.cluster, name).catch(() => undefined);
  if (sidecarSet === undefined) return undefined;
  const { status } = sidecarSet;
  if (status !== undefined && status.conditions === undefined) return undefined;
  const conditions = conditionsOfFailure(sidecarSet, failure, timestamp(context.clock));
  if (isDeepStrictEqual(conditions, status?.conditions)) return sidecarSet;
  const next = { ...UNSEEN, ...status, conditions };
  const outcome = await act({ kind: "PatchStatus", sidecarSet: name, status: next }, { ...context, sidecarSet });
  if (outcome.kind !== "done") return undefined;
  const written = outcome.object as SidecarSet;
  for (const event of transitions(sidecarSet, written)) await act(event, { ...context, sidecarSet });
  return written;
}
