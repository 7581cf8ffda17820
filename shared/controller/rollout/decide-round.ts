/** Decision of a round: the core decides, then checks, gate and budgets remove actions. An answer is for one batch. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import {
  type LedgerPlan,
  ledgerSubject,
  MAX_RESERVATIONS,
  type Reservation,
  type Subject,
  takenOver,
  withReservations,
} from "../../core/ledger.ts";
import { steeringOf } from "../../core/pod/steering/steering.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { type Answers, type Checked, isChecking, narrow } from "../../core/rollout/narrow.ts";
import {
  dueChecks,
  evaluated,
  failedCheck,
  formatRecords,
  judge,
  type KnownCheck,
  type Measured,
} from "../../core/rollout/rules/checks/check-records.ts";
import {
  answerInHaste,
  type GateAnswer,
  type GateRequest,
  gateRequest,
  newlyWanted,
  no,
} from "../../core/rollout/rules/gate/approval.ts";
import { wantedPods } from "../../core/rollout/rules/replacement/plan-replacement.ts";
import { checksNow } from "../../core/rollout/rules/waves/standing.ts";
import { countDisruptions } from "./count-disruptions.ts";
import { type Context, checksIn, decideContext, decideOn, decideUntilKnown, type Snapshot } from "./observe.ts";
import { isOwnReservation } from "./refused-pods.ts";
import { nameRevision } from "./register-revision.ts";
import { readAsked } from "./workloads.ts";

/** Milliseconds until a gate that refused is asked again. */
const AGAIN_MS = 30_000;
const TIMEOUT_MS = 5_000;
const LEAST_TIMEOUT_MS = 500;
/** Milliseconds that the pass needs after the answers. */
const RESERVE_MS = 2_000;
/** Milliseconds after which an answer is outdated: the process was frozen meanwhile. */
const LATE_MS = 10_000;

/** The pods and the mode for which an answer is valid. */
interface Asking {
  /** uids of pods that were allowed when any pass reserved them */
  readonly reserved: ReadonlySet<string>;
  /** false: no server is asked, and the last answers count */
  readonly mayAsk: boolean;
}

interface AskedChecks extends Checked {
  /** true: the decision must be made again with the results, because a wave or a halt depends on them */
  readonly isOther: boolean;
}

/**
 * Asks the checks. A passed check allows one batch: the write to the ledger uses it up. If two processes saw the same
 * check pass, only one can write; the other one starts again.
 */
async function askChecks(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
  { reserved, mayAsk }: Asking,
): Promise<AskedChecks> {
  const at = decideContext(context, snapshot.sidecarSet, snapshot.stored.ledger).now;
  const before = checksNow(snapshot.sidecarSet, checksIn(snapshot), decision.summary.rules.waves);
  const isAsked = isChecking(decision) || (before.length > 0 && newlyWanted(decision, reserved).length > 0);
  const known = isAsked && mayAsk ? await evaluate(context, snapshot.sidecarSet, before, at) : before;
  // A wave without pods passes by the known results of its checks, including these. Each result keeps its own time:
  // with a later one, a wave that just became complete would ignore it.
  const isOther = isChecking(decision) || decision.summary.rules.waves?.isTurning || failedCheck(known) !== undefined;
  return { known, at, isOther: isAsked && isOther };
}

/** The ledger with check results. Without an annotation it stays unchanged. */
export function withChecks(
  plan: LedgerPlan,
  decision: Decision,
  { known }: Checked,
  reserved: ReadonlySet<string>,
): LedgerPlan {
  const isBatch = newlyWanted(decision, reserved).some(({ uid }) => plan.granted.has(uid));
  const checks = formatRecords(known, isBatch);
  return checks === undefined ? plan : { ...plan, ledger: { ...plan.ledger, checks } };
}

/** The reason why the gate does not allow the batch; undefined: it allows it, or there is no gate or batch. */
export async function askGate(
  context: Context,
  snapshot: Snapshot,
  decision: Decision,
  { reserved, mayAsk }: Asking,
): Promise<string | undefined> {
  const { metadata } = snapshot.sidecarSet;
  const gate = steeringOf(snapshot.sidecarSet).gate;
  const batch = gate ? newlyWanted(decision, reserved) : [];
  if (!gate || batch.length === 0) return undefined;
  const about = `${metadata?.generation} ${gate.href}`;
  const last = context.gates?.refusals.get(metadata?.uid ?? "");
  const isKnown = last?.about === about;
  if (isKnown && (!mayAsk || isFresh(last.askedAtMs, context.clock.epochMs()))) return last.reason;
  if (!mayAsk) return undefined;
  // A round reserves at most as many pods as the ledger can hold.
  const asked = batch.slice(0, Math.max(0, MAX_RESERVATIONS - reserved.size));
  const { latestRevision = "" } = decision.status;
  return await refusalOf(context, gate, about, gateRequest(snapshot.sidecarSet, latestRevision, decision, asked));
}

/** A function may be frozen between two passes without noticing, and its clock may jump. */
function isFresh(askedAtMs: number, nowMs: number): boolean {
  return nowMs >= askedAtMs && nowMs - askedAtMs < AGAIN_MS;
}

/** The refusal; undefined: the batch is allowed. `about`: the subject of a refusal. */
async function refusalOf(
  context: Context,
  gate: URL,
  about: string,
  request: GateRequest,
): Promise<string | undefined> {
  const { gates, clock } = context;
  const { uid } = request.sidecarSet;
  const answer = await ask(context, gate, request);
  if (answer.allow) gates?.refusals.delete(uid);
  else gates?.refusals.set(uid, { about, reason: answer.reason, askedAtMs: clock.epochMs() });
  return answer.allow ? undefined : answer.reason;
}

async function ask(context: Context, gate: URL, request: GateRequest): Promise<GateAnswer> {
  const { gates } = context;
  if (!gates?.ask) return no(gate.host, "may not be asked: GATE_HOSTS names no host");
  const { ask: askOne } = gates;
  const asking = async (timeoutMs: number) => {
    const answer = await askOne(gate, request, timeoutMs);
    return timeoutMs < TIMEOUT_MS ? answerInHaste(gate.host, answer, timeoutMs / 1_000) : answer;
  };
  const answer = await unlessSilent(context, `gate ${gate.host}`, asking, ({ allow }) => !allow);
  const { uid, generation } = request.sidecarSet;
  const last = gates.refusals.get(uid);
  const isAboutThis = last?.about === `${generation} ${gate.href}`;
  return !answer.allow && answer.isUnanswered && isAboutThis ? { allow: false, reason: last.reason } : answer;
}

const QUERY = "query ";

interface Silence {
  readonly answer: unknown;
  readonly askedAtMs: number;
}

/** servers and queries without an answer in time, and the consequence, by process */
const silent = new WeakMap<object, Map<string, Silence>>();

/** Shares timeouts between SidecarSets. A silent server occupies a place of the pass, so only one asker waits. */
async function unlessSilent<T>(
  context: Context,
  server: string,
  ask: (timeoutMs: number) => Promise<T>,
  isNone: (answer: T) => boolean,
): Promise<T> {
  const { clock } = context;
  const known = silentNow(context);
  const last = known.get(server);
  if (last) return last.answer as T;
  const timeoutMs = timeoutOf(context);
  const askedAtMs = clock.epochMs();
  const answer = await ask(timeoutMs);
  // Only a missing answer concerns others; a late one is for this batch and query. With a short timeout a slow server
  // looks the same.
  const isSilent = timeoutMs === TIMEOUT_MS && clock.epochMs() - askedAtMs >= timeoutMs && isNone(answer);
  if (isSilent) known.set(server, { answer, askedAtMs: clock.epochMs() });
  else known.delete(server);
  return answer;
}

/** The servers and queries that were silent within the last half minute. */
function silentNow({ gates, clock }: Context): Map<string, Silence> {
  const known = (gates && silent.get(gates)) ?? new Map<string, Silence>();
  if (gates) silent.set(gates, known);
  for (const [server, { askedAtMs }] of known) if (!isFresh(askedAtMs, clock.epochMs())) known.delete(server);
  return known;
}

async function evaluate(
  context: Context,
  sidecarSet: SidecarSet,
  known: readonly KnownCheck[],
  at: string,
): Promise<readonly KnownCheck[]> {
  const due = new Set(dueChecks(known, at));
  return await Promise.all(
    known.map(async (one) => {
      if (!due.has(one)) return one;
      return evaluated(one, sidecarSet, judge(one.check, await measure(context, one.check.query)), at);
    }),
  );
}

async function measure(context: Context, query: string): Promise<Measured> {
  const { gates, clock } = context;
  if (!gates?.measure) return { nothing: "no server may be asked, since PROMETHEUS_SERVER names none" };
  const askedAtMs = clock.epochMs();
  const { measure: measureOne } = gates;
  const asking = (timeoutMs: number) => measureOne(query, timeoutMs);
  // A single query may be slow. Two queries without an answer mean that the server is silent.
  const silentQueries = [...silentNow(context).keys()].filter((key) => key.startsWith(QUERY) && key !== QUERY + query);
  if (silentQueries.length > 1)
    return { nothing: "two other queries had no answer, so it is asked half a minute later" };
  const measured = await unlessSilent(context, QUERY + query, asking, (answer) => "nothing" in answer);
  const tookMs = Math.abs(clock.epochMs() - askedAtMs);
  return tookMs > LATE_MS ? { nothing: `the answer came ${Math.round(tookMs / 1_000)} s late` } : measured;
}

function timeoutOf({ clock, endsAtMs }: Context): number {
  const leftMs = Math.floor(endsAtMs - RESERVE_MS - clock.now());
  return Math.max(LEAST_TIMEOUT_MS, Math.min(TIMEOUT_MS, leftMs));
}

/**
 * The decision of a round: decide, ask others, remove actions. New facts become part of the observation, and the same
 * function decides again; no step replaces a decision.
 */
export interface Decided {
  readonly decision: Decision;
  /** reservations of the round */
  readonly plan: LedgerPlan;
  /** check results to store together with the reservations */
  readonly checked: Checked;
  /** true: a budget has been written to, so the pods that it holds may be allowed now */
  readonly isCountOutdated: boolean;
}

/** A round's decision. `kept`: valid reservations. "record" asks no gate or metrics server, and reserves nothing new. */
export async function decideRound(
  context: Context,
  snapshot: Snapshot,
  kept: readonly Reservation[],
  mode: "act" | "record",
): Promise<Decided> {
  const isActing = mode === "act";
  const subject = ledgerSubject(snapshot.sidecarSet);
  const reserved = new Set(kept.map(({ uid }) => uid));
  const asking = { reserved, mayAsk: isActing };
  const learners = isActing ? [nameRevision(context, snapshot), readAsked(context, snapshot)] : [];
  const wishBy = (checked?: Checked) => {
    const seen = checked && { checks: checked.known.flatMap(({ record }) => record ?? []), now: checked.at };
    return decideUntilKnown(() => decideOn(context, snapshot, kept, { mode, ...seen }), learners);
  };
  const planOf = (made: Decision) => (isActing ? reserve(context, kept, made, subject) : keep(kept, subject));

  const first = await wishBy();
  const checked = await askChecks(context, snapshot, first, asking);
  const wish = checked.isOther ? await wishBy(checked) : first;
  const narrowed = (answers: Answers) => narrow(wish, { checked, ...answers }, reserved);
  const gate = await askGate(context, snapshot, narrowed({}), asking);
  const allowed = narrowed({ gate });
  const { uncounted, isOutdated } = await countDisruptions(context, snapshot, allowed, planOf(allowed));
  const decision = narrowed({ gate, uncounted });
  return { decision, plan: planOf(decision), checked, isCountOutdated: isOutdated };
}

function reserve(
  context: Context,
  kept: readonly Reservation[],
  { actions, counted }: Decision,
  subject: Subject,
): LedgerPlan {
  const plan = withReservations(kept, wantedPods(actions, new Set(kept.map(({ uid }) => uid))), subject, { counted });
  return takenOver(plan, kept, (one) => isOwnReservation(context, one));
}

function keep(kept: readonly Reservation[], { uid, generation }: Subject): LedgerPlan {
  return { ledger: { uid, generation, reservations: kept }, granted: new Set(), fenced: [] };
}
