/** Asks a gate before each batch, where a SidecarSet names one; without its yes nothing new is reserved. */

import type { SidecarSet } from "../../api/sidecarset.ts";
import { MAX_RESERVATIONS, type Reservation } from "../../core/ledger.ts";
import { steeringOf } from "../../core/pod/steering/steering.ts";
import {
  type GateAnswer,
  type GateRequest,
  gateHold,
  gateRequest,
  newlyWanted,
  no,
  withoutBatch,
} from "../../core/rollout/approval.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import type { Context, Snapshot } from "./observe.ts";

/** A gate that says no is asked again this soon. */
const AGAIN_MS = 30_000;
const TIMEOUT_MS = 5_000;
const LEAST_TIMEOUT_MS = 500;
/** Left for the pass when the answer is there. */
const RESERVE_MS = 2_000;

/**
 * What may be done of the decision. Pods that are reserved were allowed when they were, by whichever pass; a yes is for
 * this batch only, and it is the ledger's swap that makes use of it. `mayAsk`: false goes by the last answer.
 */
export async function passGate(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
  { kept, mayAsk }: { readonly kept: readonly Reservation[]; readonly mayAsk: boolean },
): Promise<Decision> {
  const gate = steeringOf(snapshot.sidecarSet).gate;
  const uids = new Set(kept.map(({ uid }) => uid));
  const batch = gate ? newlyWanted(decision, uids) : [];
  if (!gate || batch.length === 0) return decision;
  const reason = await refusalOf(context, snapshot.sidecarSet, gate, {
    mayAsk,
    request: requestOf(snapshot, decision, uids),
  });
  return reason === undefined ? decision : withoutBatch(decision, batch, gateHold(reason));
}

/** As many as a ledger holds are reserved at a time. */
function requestOf({ sidecarSet }: Snapshot, decision: Decision, kept: ReadonlySet<string>): GateRequest {
  const batch = newlyWanted(decision, kept).slice(0, Math.max(0, MAX_RESERVATIONS - kept.size));
  return gateRequest(sidecarSet, decision.status.latestRevision ?? "", decision, batch);
}

/** undefined: it may go on. */
async function refusalOf(
  context: Context,
  { metadata }: SidecarSet,
  gate: URL,
  { mayAsk, request }: { readonly mayAsk: boolean; readonly request: GateRequest },
): Promise<string | undefined> {
  const { gates, clock } = context;
  const uid = metadata?.uid ?? "";
  const about = `${metadata?.generation} ${gate.href}`;
  const last = gates?.refusals.get(uid);
  const isKnown = last?.about === about;
  if (isKnown && (!mayAsk || isFresh(last.askedAtMs, clock.epochMs()))) return last.reason;
  if (!mayAsk) return undefined;
  const answer = await ask(context, gate, request);
  if (answer.allow) gates?.refusals.delete(uid);
  else gates?.refusals.set(uid, { about, reason: answer.reason, askedAtMs: clock.epochMs() });
  return answer.allow ? undefined : answer.reason;
}

/** A function may be frozen between two passes, when no time seems to go by, and its clock may be set. */
function isFresh(askedAtMs: number, nowMs: number): boolean {
  return nowMs >= askedAtMs && nowMs - askedAtMs < AGAIN_MS;
}

async function ask({ gates, clock, endsAtMs }: Context, gate: URL, request: GateRequest): Promise<GateAnswer> {
  if (!gates?.ask) return no(gate.host, "may not be asked: GATE_HOSTS names no host");
  const leftMs = Math.floor(endsAtMs - RESERVE_MS - clock.now());
  return await gates.ask(gate, request, Math.max(LEAST_TIMEOUT_MS, Math.min(TIMEOUT_MS, leftMs)));
}
