/** The actions of a pass for one SidecarSet now, without writing. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Action } from "../../core/actions.ts";
import { ledgerSubject, type Reservation, withReservations } from "../../core/ledger.ts";
import { steeringOf } from "../../core/pod/steering/steering.ts";
import { keyOfWorkload } from "../../core/pod/workload.ts";
import { BOOK, holdsIn } from "../../core/rollout/book.ts";
import { countsText } from "../../core/rollout/counts-text.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { isStill } from "../../core/rollout/hold-effects.ts";
import { leftDownText } from "../../core/rollout/hold-words.ts";
import { isChecking } from "../../core/rollout/narrow.ts";
import { planRollout } from "../../core/rollout/plan/plan.ts";
import { disruptionText } from "../../core/rollout/rules/disruption-budgets/guard.ts";
import { newlyWanted } from "../../core/rollout/rules/gate/approval.ts";
import { wantedPods } from "../../core/rollout/rules/replacement/plan-replacement.ts";
import { checksAsked } from "../../core/rollout/rules/waves/standing.ts";
import type { Summary } from "../../core/rollout/summary.ts";
import { counted } from "../../go/counted.ts";
import {
  type Context,
  decideContext,
  decideOn,
  decideUntilKnown,
  keptOf,
  observe,
  type Snapshot,
  surroundingsOf,
} from "./observe.ts";
import type { SidecarSetReport, Stop } from "./report.ts";
import { readAsked } from "./workloads.ts";

/** Options of a dry run for its plan. */
export interface PlanWish {
  /** seconds that a pod is not ready after a change of its images */
  readonly readyAfterSeconds: number;
  /** the SidecarSet to plan; absent: the stored one */
  readonly sidecarSet?: SidecarSet;
}

/** The default time until a pod is ready. */
export const READY_AFTER_SECONDS = 5;

/** The present actions, and with these options a plan. */
export async function planOnly(context: Context, name: string, wish?: PlanWish): Promise<SidecarSetReport> {
  const { tally } = context;
  const snapshot = await observe(context, name, wish?.sidecarSet);
  if (!snapshot) return { name, stop: "gone", why: explain("gone", undefined), tally };
  const subject = ledgerSubject(snapshot.sidecarSet);
  const kept = await keptOf(context, snapshot);
  const reserved = new Set(kept.map(({ uid }) => uid));
  const decision = await decideUntilKnown(() => decideOn(context, snapshot, kept), [readAsked(context, snapshot)]);
  const { actions, status, summary } = decision;
  const { granted, fenced } = withReservations(kept, wantedPods(actions, reserved), subject);
  const isGranted = (action: Action) =>
    action.kind === "PatchPod" || action.kind === "EvictPod" ? granted.has(action.pod.uid) : true;
  const planned = [
    ...stepsBefore(snapshot.sidecarSet, decision, reserved),
    ...fenced.map((pod) => `fence pod ${pod.namespace}/${pod.name}: it was reserved and is not wanted any more`),
    ...disruptionSteps(decision, granted),
    ...actions.filter(isGranted).map(describeAction),
  ];
  const why = explain("oneRound", summary);
  const plan = wish === undefined ? {} : { plan: foresee(context, snapshot, kept, wish) };
  return { name, stop: "oneRound", why, generation: subject.generation, status, summary, tally, planned, ...plan };
}

/** The steps of a pass before it writes to pods. A dry run asks no gate and no metrics server. */
function stepsBefore(sidecarSet: SidecarSet, decision: Decision, reserved: ReadonlySet<string>): readonly string[] {
  const gate = steeringOf(sidecarSet).gate;
  const checks = checksAsked(sidecarSet, decision.summary.rules.waves?.atWork).map(({ name }) => name);
  const batch = gate || checks.length > 0 ? newlyWanted(decision, reserved).length : 0;
  return [
    ...(checks.length > 0 && batch > 0
      ? [`evaluate ${checks.join(", ")} before ${counted(batch, "pod is", "pods are")} upgraded`]
      : []),
    ...(isChecking(decision)
      ? [`evaluate ${checks.join(", ")} before wave ${decision.summary.rules.waves?.atWork} is passed`]
      : []),
    ...(gate && batch > 0 ? [`ask the gate at ${gate.host} whether ${counted(batch, "pod")} may be upgraded`] : []),
    ...(decision.undo ? [`SidecarSet ${sidecarSet.metadata?.name}: ${decision.undo.message}`] : []),
  ];
}

function foresee(context: Context, snapshot: Snapshot, kept: readonly Reservation[], wish: PlanWish) {
  const observation = { ...surroundingsOf(context, snapshot, kept), pods: snapshot.observed.view.pods };
  return planRollout(observation, {
    ...decideContext(context, snapshot.sidecarSet, snapshot.stored.ledger),
    readyAfterSeconds: wish.readyAfterSeconds,
  });
}

// Describes the actions of a dry run in words.

/** One line for people about an action. */
export function describeAction(action: Action): string {
  switch (action.kind) {
    case "CreateRevision":
      return `create ControllerRevision ${action.revision.metadata?.name}, revision ${action.revision.revision}`;
    case "RenumberRevision":
      return `make ControllerRevision ${action.name} the newest, revision ${action.revision}`;
    case "LabelRevision":
      return `label ControllerRevision ${action.name} with custom version ${action.customVersion}`;
    case "DeleteRevision":
      return `delete ControllerRevision ${action.name}`;
    case "PatchStatus":
      return `write the status of SidecarSet ${action.sidecarSet}: ${JSON.stringify(action.status)}`;
    case "PatchPod": {
      const images = action.images.map(({ container, from, to }) => `${container} ${from} → ${to}`);
      return `${action.purpose === "putBack" ? "put back" : action.purpose} pod ${action.pod.namespace}/${action.pod.name}: ${images.join(", ") || labelsText(action.labels)}`;
    }
    case "EvictPod":
      return `evict pod ${action.pod.namespace}/${action.pod.name}: its controller creates another, with the sidecars of now`;
    case "CreatePullPod":
      return `create pod ${action.pod.metadata?.namespace}/${action.pod.metadata?.name}, which pulls images to node ${action.pod.spec.nodeName}`;
    case "DeletePullPod":
      return `delete pod ${action.namespace}/${action.name}, which pulled images`;
    case "RestartWorkload":
      return `restart ${keyOfWorkload(action.workload)}: it recreates its pods as its own strategy says, with the sidecars of now`;
    case "PatchPodCondition": {
      const { type, status, reason } = action.condition;
      return `set condition ${type}=${status} (${reason}) of pod ${action.pod.namespace}/${action.pod.name}`;
    }
    case "RecordEvent":
      return `record event ${action.reason} about ${action.regarding.kind} ${action.regarding.name}: ${action.message}`;
    default:
      return action satisfies never;
  }
}

// Describes for a dry run which disruption budgets would count pods, and which ones hold pods.

/** The sentences; empty if no budget is asked. `granted`: uids of pods with room in the ledger. */
export function disruptionSteps({ actions, summary }: Decision, granted: ReadonlySet<string>): readonly string[] {
  const counted = new Map<string, string[]>();
  for (const action of actions)
    if (action.kind === "PatchPod" && action.disruption && granted.has(action.pod.uid))
      for (const budget of action.disruption.budgets)
        counted.set(budget, [...(counted.get(budget) ?? []), action.pod.name]);
  const { disruptionBudgets } = summary.rules;
  return [
    ...[...counted].map(([budget, pods]) => `have ${budget} count ${pods.join(", ")} as going down`),
    ...(disruptionBudgets ? [`leave pods as they are: ${disruptionText(disruptionBudgets)}`] : []),
  ];
}

function labelsText(labels: Readonly<Record<string, string>> = {}): string {
  const texts = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return texts.join(", ") || "annotations only";
}

// The reason why a pass left a SidecarSet, in one sentence.

/** One sentence about the state of a rollout. */
export function explain(stop: Stop, summary: Summary | undefined): string {
  const standing = summary ? `: ${standingOf(summary)}` : "";
  switch (stop) {
    case "settled":
    case "oneRound":
      return summary ? standingOf(summary) : "nothing to do";
    case "deadline":
      return `the time is used up, the next pass goes on${standing}`;
    case "stalled":
      return `nothing moved for a while, the next pass looks again${standing}`;
    case "unchanged":
      return `the pods that are not ready have not changed for five minutes, the next pass looks again${standing}`;
    case "refused":
      return `the pass ended early, because every write that is left is refused; a later one tries again${standing}`;
    case "aborted":
      return `stopped from outside${standing}`;
    case "gone":
      return "there is no such SidecarSet";
    case "contention":
      return `others kept writing the same objects, the next pass goes on${standing}`;
    case "failed":
      return `failed${standing}`;
    default:
      return stop satisfies never;
  }
}

const PROBLEMS_NAMED = 3;

function standingOf(summary: Summary): string {
  const { leftDown } = summary;
  const left = leftDown ? `; ${leftDownText(leftDown)}` : "";
  return `${progressOf(summary)}${downText(summary)}${left}${problemText(summary)}`;
}

function progressOf(summary: Summary): string {
  const { hold } = summary;
  const count = countsText(summary);
  const clause = BOOK[hold].clause(summary);
  const beside = holdsIn(summary).filter((one) => one !== hold && BOOK[one].isBeside);
  const clauses = [clause, ...beside.map((one) => BOOK[one].clause(summary))].filter(Boolean);
  return `${(isStill(hold) ? [...clauses, count] : [count, ...clauses]).join("; ")}${immutableText(summary)}`;
}

function downText({ down, updated, updatedReady }: Summary): string {
  if (down.length === 0) return "";
  const named = down.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`);
  return `; not ready: ${enumerate(named, updated - updatedReady)}`;
}

function problemText({ problems }: Summary): string {
  if (problems.length === 0) return "";
  const named = problems
    .slice(0, PROBLEMS_NAMED)
    .map(({ namespace, name, message }) => `${namespace}/${name} (${message})`);
  return `; left alone: ${enumerate(named, problems.length)}`;
}

function enumerate(some: readonly string[], total: number): string {
  return [...some, ...(total > some.length ? [`${total - some.length} more`] : [])].join(", ");
}

function immutableText({ notUpgradable, immutableFields, rules: { replacement: replaced } }: Summary): string {
  if (replaced && replaced.waiting > 0)
    return `; ${counted(replaced.waiting, "pod")} cannot be upgraded in place and ${replaced.waiting === 1 ? "is" : "are"} to be replaced`;
  if (notUpgradable === 0) return "";
  const fields = immutableFields.length > 0 ? `, since more than images changed: ${immutableFields.join(", ")}` : "";
  const stop = replaced?.stop === undefined ? "" : `; none is replaced: ${replaced.stop}`;
  return `; ${notUpgradable} cannot be upgraded in place${fields}${stop}`;
}
