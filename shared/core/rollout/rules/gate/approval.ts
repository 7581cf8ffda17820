/** Decides what a gate is asked before a batch, and what its answer means. */
import type { SidecarSet, StatusCondition } from "../../../../api/sidecarset.ts";
import { isJsonObject, jsonOf } from "../../../../go/json/json-object.ts";
import { shortText } from "../../../../go/unseen.ts";
import type { Action, PodPrecondition, Restarted } from "../../../actions.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";
import type { Hold } from "../../hold.ts";
import { EFFECTS } from "../../hold-effects.ts";
import { unavailableOf } from "../../summary.ts";
import type { BudgetsInTheWay } from "../disruption-budgets/guard.ts";
import type { AtWork } from "../waves/wave-checks.ts";

/** A pod, or a workload that is restarted. */
export type Subject = PodPrecondition & Partial<Pick<Restarted, "workload">>;

/** What the body of a request to a gate holds. */
export interface GateRequest {
  readonly sidecarSet: { readonly name: string; readonly uid: string; readonly generation: number };
  /** ControllerRevision that the pods shall get; "" while it is not recorded yet */
  readonly revision: string;
  /** the last one that has begun, "" when all have; absent: there are none */
  readonly wave?: string;
  readonly counts: {
    readonly matched: number;
    readonly updated: number;
    readonly updatedReady: number;
    readonly unavailable: number;
    readonly maxUnavailable: number;
  };
  /** the batch */
  readonly pods: readonly { readonly namespace: string; readonly name: string; readonly uid: string }[];
  /** that are restarted, and their pods with them; absent: none is */
  readonly workloads?: readonly Restarted[];
}

/** `no` with a reason, which is never empty. Whatever is no clear yes is a no. */
export type GateAnswer = { readonly allow: true } | { readonly allow: false; readonly reason: string };

const MOST_REASON = 200;

/** What a gate has a say in: a decision with a batch. */
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

/** Pods and workloads that need approval. Reserved ones were approved when they were reserved. */
export function newlyWanted({ actions, summary }: Batched, reserved: ReadonlySet<string>): readonly Subject[] {
  if (EFFECTS[summary.hold].batch === "later") return [];
  const isAllowed = (action: Action) => action.kind === "PatchPod" && action.isAllowed === true;
  return actions
    .flatMap((action) => (isAllowed(action) ? [] : (subjectOf(action) ?? [])))
    .filter(({ uid }) => !reserved.has(uid));
}

/** What the action takes down; undefined: nothing. */
export function subjectOf(action: Action): Subject | undefined {
  if (action.kind === "RestartWorkload") return action.workload;
  return action.kind === "PatchPod" || action.kind === "EvictPod" ? action.pod : undefined;
}

/** What the gate is told. `batch`: what `newlyWanted` gave, as far as it is to be reserved now. */
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

/** `reason`: why the gate has not allowed a batch. */
export function gateHold(reason: string): GateHold {
  return { hold: isPlainNo(reason) ? "gate" : "gateDown", rules: { gate: reason } };
}

/** A gate's last no, as a pass was told and the stored status tells; undefined: none is in the way. */
export function lastRefusal(sidecarSet: SidecarSet): StatusCondition | undefined {
  const blocked = sidecarSet.status?.conditions?.find(({ type }) => type === "Blocked");
  const isRefusal =
    steeringOf(sidecarSet).gate !== undefined &&
    blocked?.status === "True" &&
    (blocked.reason === "Gate" || blocked.reason === "GateDown");
  return isRefusal ? blocked : undefined;
}

/** The gate was asked and does not want the batch, or a pass ended before it answered; else somebody has to fix something. */
export function isPlainNo(reason: string): boolean {
  return /^the gate at \S+ (says no|has not answered yet)/.test(reason);
}

/** The answer of a gate that was asked at the end of a pass. One that gave none in so short a time may well be up. */
export function answerInHaste(host: string, answer: GateAnswer, seconds: number): GateAnswer {
  if (answer.allow || !answer.reason.startsWith(`the gate at ${host} did not answer within`)) return answer;
  return no(host, `has not answered yet: a pass had ${seconds} s left for it, and another one asks again`);
}

/** `body`: what came with the code, at most as much as is read. */
export function gateAnswer(host: string, code: number, body: string): GateAnswer {
  if (code !== 200) return no(host, `answered ${code} rather than 200`);
  const answer = jsonOf(body);
  const { allow, reason } = isJsonObject(answer) ? answer : {};
  if (allow === true) return { allow };
  if (allow !== false) return no(host, "did not answer with JSON that says allow: true or false");
  const why = typeof reason === "string" ? plainText(reason) : "";
  return no(host, `says no${why === "" ? "" : `: ${why}`}`);
}

/** A no of a gate: what it did, in words that go on after its host. */
export function no(host: string, did: string): GateAnswer {
  return { allow: false, reason: `the gate at ${host} ${did}` };
}

/** One line, and not a long one. */
function plainText(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
  return shortText(plain, MOST_REASON);
}
