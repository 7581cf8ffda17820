/** The question to a gate before a batch, and the meaning of its answer. */
import type { SidecarSet, StatusCondition } from "../../../../api/sidecarset.ts";
import { isJsonObject, jsonOf } from "../../../../go/json/json-object.ts";
import { shortText } from "../../../../go/unseen.ts";
import type { Action, PodPrecondition, Restarted } from "../../../actions.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import type { Hold } from "../../hold.ts";
import { EFFECTS } from "../../hold-effects.ts";
import { unavailableOf } from "../../summary.ts";
import type { BudgetsInTheWay } from "../disruption-budgets/guard.ts";
import type { AtWork } from "../waves/standing.ts";

/** A pod, or a workload to restart. */
export type Subject = PodPrecondition & Partial<Pick<Restarted, "workload">>;

/** The body of a request to a gate. */
export interface GateRequest {
  readonly sidecarSet: { readonly name: string; readonly uid: string; readonly generation: number };
  /** ControllerRevision that the pods will get; "" until it is recorded */
  readonly revision: string;
  /** name of the last wave that has begun; "" if all have begun; absent: there are no waves */
  readonly wave?: string;
  readonly counts: {
    readonly matched: number;
    readonly updated: number;
    readonly updatedReady: number;
    readonly unavailable: number;
    readonly maxUnavailable: number;
  };
  /** the pods of the batch */
  readonly pods: readonly { readonly namespace: string; readonly name: string; readonly uid: string }[];
  /** workloads to restart, with their pods; absent: none */
  readonly workloads?: readonly Restarted[];
}

/** A gate's answer. A refusal always has a reason. Everything except a clear yes is a refusal. */
export type GateAnswer = { readonly allow: true } | GateNo;

export interface GateNo {
  readonly allow: false;
  readonly reason: string;
  /** true: the gate had too little time to answer, so its last refusal still holds; absent: it answered */
  readonly isUnanswered?: true;
}

const MOST_REASON = 200;

/** The part of a decision that a gate may refuse: a decision with a batch. */
export interface Batched {
  readonly actions: readonly Action[];
  readonly summary: {
    readonly hold: Hold;
    readonly selected: number;
    readonly beyondRoom?: number;
    readonly matched: number;
    readonly updated: number;
    readonly updatedReady: number;
    readonly used: number;
    readonly drainedElsewhere?: number;
    readonly maxUnavailable: number;
    readonly rules: {
      readonly replacement?: { readonly selected: number; readonly kept: number };
      readonly disruptionBudgets?: BudgetsInTheWay;
      readonly waves?: AtWork & { readonly holder?: { readonly name: string } };
    };
  };
}

/** Pods and workloads that need approval. Reserved ones were approved at their reservation. */
export function newlyWanted({ actions, summary }: Batched, reserved: ReadonlySet<string>): readonly Subject[] {
  if (EFFECTS[summary.hold].batch === "later") return [];
  const isAllowed = (action: Action) => action.kind === "PatchPod" && action.isAllowed === true;
  return actions
    .flatMap((action) => (isAllowed(action) ? [] : (subjectOf(action) ?? [])))
    .filter(({ uid }) => !reserved.has(uid));
}

/** The pod or workload that the action takes down; undefined: none. */
export function subjectOf(action: Action): Subject | undefined {
  if (action.kind === "RestartWorkload") return action.workload;
  return action.kind === "PatchPod" || action.kind === "EvictPod" ? action.pod : undefined;
}

/** The request to a gate. `batch`: the result of `newlyWanted`, cut to what is reserved now. */
export function gateRequest(
  { metadata }: SidecarSet,
  revision: string,
  { summary }: Batched,
  batch: readonly Subject[],
): GateRequest {
  const { name = "", uid = "", generation = 0 } = metadata ?? {};
  const {
    matched,
    updated,
    updatedReady,
    maxUnavailable,
    rules: { waves },
  } = summary;
  const workloads = batch.flatMap(({ workload, namespace, name: of, uid: id }) =>
    workload ? [{ workload, namespace, name: of, uid: id }] : [],
  );
  return {
    sidecarSet: { name, uid, generation },
    revision,
    ...(waves ? { wave: waves.holder?.name ?? "" } : {}),
    counts: { matched, updated, updatedReady, unavailable: unavailableOf(summary), maxUnavailable },
    pods: batch.flatMap(({ workload, namespace, name, uid: of }) => (workload ? [] : [{ namespace, name, uid: of }])),
    ...(workloads.length > 0 ? { workloads } : {}),
  };
}

export interface GateHold {
  readonly hold: "gate" | "gateDown";
  readonly rules: { readonly gate: string };
}

/** The hold of a gate. `reason`: why the gate has not allowed a batch. */
export function gateHold(reason: string): GateHold {
  return { hold: isPlainNo(reason) ? "gate" : "gateDown", rules: { gate: reason } };
}

/** A gate's last refusal, from the stored status; undefined: no refusal blocks. */
export function lastRefusal(sidecarSet: SidecarSet): StatusCondition | undefined {
  const blocked = sidecarSet.status?.conditions?.find(({ type }) => type === "Blocked");
  const isRefusal =
    steeringOf(sidecarSet).gate !== undefined &&
    blocked?.status === "True" &&
    (blocked.reason === "Gate" || blocked.reason === "GateDown");
  return isRefusal ? blocked : undefined;
}

/** True if the gate itself refused, or a pass ended before the answer. Otherwise a person has to correct something. */
export function isPlainNo(reason: string): boolean {
  return /^the gate at \S+ (says no|has not answered yet)/.test(reason);
}

/** The answer of a gate that was asked at the end of a pass. A short timeout does not mean that the gate is down. */
export function answerInHaste(host: string, answer: GateAnswer, seconds: number): GateAnswer {
  if (answer.allow || !answer.reason.startsWith(`the gate at ${host} did not answer within`)) return answer;
  const reason = `has not answered yet: a pass had ${seconds} s left for it, and another one asks again`;
  return { ...no(host, reason), isUnanswered: true };
}

/** The answer in a response. `body`: body of the response, cut at the read limit. */
export function gateAnswer(host: string, code: number, body: string): GateAnswer {
  if (code !== 200) return no(host, `answered ${code} rather than 200`);
  const answer = jsonOf(body);
  const { allow, reason } = isJsonObject(answer) ? answer : {};
  if (allow === true) return { allow };
  if (allow !== false) return no(host, "did not answer with JSON that says allow: true or false");
  const why = typeof reason === "string" ? plainText(reason) : "";
  return no(host, `says no${why === "" ? "" : `: ${why}`}`);
}

/** A gate's refusal. `did`: the words that follow the gate's host. */
export function no(host: string, did: string): GateNo {
  return { allow: false, reason: `the gate at ${host} ${did}` };
}

/** The text in one short line. */
function plainText(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  return shortText(plain, MOST_REASON);
}
