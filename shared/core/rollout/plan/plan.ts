/** Decides how a rollout would go from here to its end, with nodes that start every container after the same time. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { addSeconds, secondsBetween } from "../../../go/seconds-between.ts";
import { where } from "../../../go/sequence.ts";
import type { Action } from "../../actions.ts";
import { uidOf } from "../../pod/pod-state.ts";
import { gateOf } from "../approval.ts";
import { evaluated } from "../checks/check-records.ts";
import { checksOf } from "../checks/metric-checks.ts";
import { type DecideContext, type Decision, decide, type Observation } from "../decide.ts";
import { isChecking } from "../last-answers.ts";
import { stateReader } from "../select/observed-states.ts";
import { NOTHING_RESERVED } from "../select/reserved.ts";
import type { Summary } from "../summary.ts";
import { checksNow } from "../waves/wave-checks.ts";
import { wavesOf } from "../waves/waves.ts";
import { downNow } from "./down-now.ts";
import { type PlannedStep, type PodWrite, restartedPods, stepOf, writesOf } from "./planned-step.ts";
import { type BudgetsAhead, budgetsAhead } from "./simulated-budgets.ts";
import { isStarting, patched, started } from "./simulated-kubelet.ts";
import {
  begun,
  ended,
  nextToRecreate,
  type Rolling,
  restartsOf,
  underWay,
  without,
  withWorkloads,
  workloadsOf,
} from "./simulated-restarts.ts";
import { successorOf } from "./simulated-successor.ts";
import { stepHeld, stepWaves } from "./step-notes.ts";

export interface RolloutPlan {
  readonly readyAfterSeconds: number;
  /** pods that are down before the first step */
  readonly downBefore: number;
  readonly steps: readonly PlannedStep[];
  /** until the last pod that comes back is ready */
  readonly seconds: number;
  /** every matched pod is updated and ready in the end */
  readonly isComplete: boolean;
  /** there are more steps than were asked for */
  readonly isCutShort: boolean;
  /** host of the gate that passes ask before each batch; absent: there is none */
  readonly gate?: string;
  /** of metrics, which passes evaluate before each batch, so far apart at least; a plan does not. Absent: there are none */
  readonly checks?: { readonly names: readonly string[]; readonly intervalSeconds: number };
  /** counts and reasons before the first step … */
  readonly before: Summary;
  /** … and after the last: what holds the rest back */
  readonly after: Summary;
}

export interface PlanOptions extends DecideContext {
  /** how long a pod is not ready after its images were changed; more than 0 */
  readonly readyAfterSeconds: number;
  /** absent: 10,000 */
  readonly maxSteps?: number;
}

const MAX_STEPS = 10_000;

interface Simulation {
  readonly observation: Observation;
  readonly atSeconds: number;
  /** seconds → uids of pods that are ready then; later ones behind */
  readonly starting: ReadonlyMap<number, ReadonlySet<string>>;
  readonly budgetsAhead: BudgetsAhead;
  readonly rolling: Rolling;
}

/**
 * Pure. Passes are taken to follow each other without a gap, as they do while a rollout is under way. Pods that cannot
 * come back (images that cannot be pulled, containers that crash, pods without a node) stay as they are.
 * @throws TypeError for a spec that the API server would not have stored
 */
export function planRollout(observation: Observation, options: PlanOptions): RolloutPlan {
  const { readyAfterSeconds, maxSteps = MAX_STEPS } = options;
  const steps: PlannedStep[] = [];
  let simulation = begin(observation, options);
  let decision = decideAt(simulation, options);
  const before = decision.summary;
  const downBefore = downNow(observation, options).all;
  // Pods of a restarted workload come without a step of ours, and are moments of computing all the same.
  let moments = 0;
  for (let isMoving = true; isMoving && steps.length + moments < maxSteps; ) {
    const writes = writesOf(decision);
    const restarts = restartsOf(decision);
    const written = write(simulation, decision, writes, options);
    simulation = roll({ ...written, ...begun(written, restarts) }, decision, options);
    if (writes.length + restarts.length > 0) steps.push(stepAt(simulation, decision, options));
    else moments += Math.min(1, simulation.rolling.size);
    const next = nextMoment(simulation, decision, options);
    isMoving = next !== undefined || writes.length + restarts.length > 0;
    simulation = roll(withRecord(next ?? simulation, decision), decision, options);
    decision = decideAt(simulation, options);
  }
  const after = decision.summary;
  const isComplete = after.updated === after.matched && after.updatedReady === after.updated;
  const isCutShort = writesOf(decision).length + restartsOf(decision).length + simulation.rolling.size > 0;
  const seconds = simulation.atSeconds;
  const host = gateOf(observation.sidecarSet)?.host;
  const gate = host === undefined ? {} : { gate: host };
  const checks = checksAhead(observation);
  return { readyAfterSeconds, downBefore, steps, seconds, isComplete, isCutShort, ...gate, ...checks, before, after };
}

function stepAt({ observation, atSeconds }: Simulation, decision: Decision, options: PlanOptions): PlannedStep {
  const restarts = restartsOf(decision).map(({ workload }) => workload);
  const done = { writes: writesOf(decision), restarts, pods: restartedPods(observation.pods, restarts) };
  const step = stepOf(atSeconds, done, decision, downNow(observation, options));
  const namespaces = step.pods.map(({ namespace }) => namespace);
  return { ...step, ...stepWaves(observation, namespaces), ...stepHeld(decision.summary) };
}

function checksAhead({ sidecarSet }: Observation): Pick<RolloutPlan, "checks"> {
  const checks = checksOf(sidecarSet);
  if (checks.length === 0) return {};
  const intervalSeconds = Math.max(...checks.map((one) => one.intervalSeconds));
  return { checks: { names: checks.map(({ name }) => name), intervalSeconds } };
}

/** When anything else is to be decided; undefined: never. Where a wave was passed its successor begins at once. */
function nextMoment(simulation: Simulation, decision: Decision, options: PlanOptions): Simulation | undefined {
  if (decision.summary.waves?.isTurning) return simulation;
  return advance(simulation) ?? soaked(simulation, decision, options);
}

/** Time goes on where waves or disruption budgets look at it; else the plan is what is decided now. */
function decideAt({ observation, atSeconds, budgetsAhead: ahead }: Simulation, options: PlanOptions): Decision {
  const isTimed = wavesOf(observation.sidecarSet) !== undefined || observation.disruptionBudgets.length > 0;
  const now = isTimed ? (addSeconds(options.now, atSeconds) ?? options.now) : options.now;
  const observed = { ...observation, disruptionBudgets: ahead(observation.pods) };
  const { sidecarSet } = observation;
  const decision = decide(observed, { ...options, now });
  if (!isChecking(decision)) return decision;
  // As if the checks of the wave had passed now.
  const known = checksNow(sidecarSet, observation.checks, decision.summary.waves);
  const checks = known.map((one) => evaluated(one, sidecarSet, { outcome: "pass", told: "" }, now).record);
  return decide({ ...observed, checks }, { ...options, now });
}

/** What the status says of waves is what later decisions go by. */
function withRecord(simulation: Simulation, { waves }: Decision): Simulation {
  if (waves === undefined) return simulation;
  const { observation } = simulation;
  const { sidecarSet } = observation;
  const status = { ...sidecarSet.status, waves };
  return { ...simulation, observation: { ...observation, sidecarSet: { ...sidecarSet, status } } };
}

/** To when the wave has soaked that others wait for; undefined: none is soaking. */
function soaked(
  simulation: Simulation,
  { summary: { waves } }: Decision,
  { now }: PlanOptions,
): Simulation | undefined {
  const until = waves !== undefined && waves.behind > 0 ? waves.holder?.soaksUntil : undefined;
  const atSeconds = until === undefined ? undefined : secondsBetween(now, until);
  return atSeconds === undefined || atSeconds <= simulation.atSeconds ? undefined : { ...simulation, atSeconds };
}

/** Pods that come back without our help do so with the first. */
function begin(observed: Observation, { readyAfterSeconds, settings }: PlanOptions): Simulation {
  const observation = withWorkloads(observed);
  const stateOf = stateReader(observation, settings);
  const uids = where(observation.pods, (pod) => isStarting(stateOf(pod))).map(uidOf);
  const starting = new Map(uids.length === 0 ? [] : [[readyAfterSeconds, new Set(uids)]]);
  return {
    observation,
    atSeconds: 0,
    starting,
    budgetsAhead: budgetsAhead(observation.disruptionBudgets, observation.pods),
    rolling: underWay(observation, (pod) => stateOf(pod).isUpdated),
  };
}

function write(
  simulation: Simulation,
  decision: Decision,
  writes: readonly PodWrite[],
  options: PlanOptions,
): Simulation {
  const { sidecarSet, revisions } = simulation.observation;
  const byUid = new Map(writes.map((one) => [one.pod.uid, one]));
  const facts = factsOf(decision, options);
  const next = changed(simulation, options, (pod) => {
    const one = byUid.get(uidOf(pod));
    if (one === undefined) return undefined;
    return one.kind === "PatchPod" ? patched(pod, one) : successorOf(pod, sidecarSet, facts);
  });
  // What was reserved has been written to by the first pass, or is given up.
  const known = { revisions: registered(revisions, decision.actions), reserved: NOTHING_RESERVED };
  return { ...next, observation: { ...next.observation, ...known } };
}

function factsOf({ status }: Decision, { now }: PlanOptions) {
  return { now, latestRevision: status.latestRevision ?? "" };
}

/** Pods that `change` has something for start now. */
function changed(
  simulation: Simulation,
  { readyAfterSeconds, settings }: PlanOptions,
  change: (pod: Pod) => Pod | undefined,
): Simulation {
  const { observation, atSeconds, starting } = simulation;
  const stateOf = stateReader(observation, settings);
  const down: string[] = [];
  const pods = Array.from(observation.pods, (pod) => {
    const next = change(pod);
    if (next && isStarting(stateOf(next))) down.push(uidOf(next));
    return next ?? pod;
  });
  const next = { ...observation, pods };
  return { ...simulation, observation: next, starting: later(starting, atSeconds + readyAfterSeconds, down) };
}

/** The next pods of workloads that are restarted come, where the ones before them are there. */
function roll(simulation: Simulation, decision: Decision, options: PlanOptions): Simulation {
  if (simulation.rolling.size === 0) return simulation;
  const { sidecarSet } = simulation.observation;
  const rest = { ...simulation, ...ended(simulation, onTheirWay(simulation)) };
  const next = nextToRecreate(rest, onTheirWay(rest));
  if (next.size === 0) return rest;
  const uids = new Set([...next.values()].flat());
  const facts = factsOf(decision, options);
  const recreated = changed(rest, options, (pod) =>
    uids.has(uidOf(pod)) ? successorOf(pod, sidecarSet, facts) : undefined,
  );
  return { ...recreated, rolling: without(rest.rolling, next, onTheirWay(recreated)) };
}

/** Keys of workloads of which pods are starting. */
function onTheirWay({ observation, starting }: Simulation): ReadonlySet<string> {
  return workloadsOf(observation, new Set([...starting.values()].flatMap((uids) => [...uids])));
}

/** A pod that is written to again starts again. */
function later(starting: Simulation["starting"], at: number, uids: readonly string[]): Simulation["starting"] {
  if (uids.length === 0) return starting;
  const again = new Set(uids);
  const others = [...starting].map(([time, old]): [number, ReadonlySet<string>] => [
    time,
    new Set([...old].filter((uid) => !again.has(uid))),
  ]);
  const together = new Set([...(starting.get(at) ?? []), ...uids]);
  return new Map([...others.filter(([time, left]) => left.size > 0 && time !== at), [at, together]]);
}

function registered(
  revisions: readonly ControllerRevision[],
  actions: readonly Action[],
): readonly ControllerRevision[] {
  const created = actions.flatMap((action) => (action.kind === "CreateRevision" ? [action.revision] : []));
  const numbers = new Map(
    actions.flatMap((action) => (action.kind === "RenumberRevision" ? [[action.name, action.revision]] : [])),
  );
  const renumbered = revisions.map((one) => {
    const revision = numbers.get(one.metadata?.name ?? "");
    return revision === undefined ? one : { ...one, revision };
  });
  return [...renumbered, ...created];
}

/** To when the next pods are ready; undefined: none will be. */
function advance(simulation: Simulation): Simulation | undefined {
  const { observation, starting } = simulation;
  const [next] = [...starting.keys()].toSorted((a, b) => a - b);
  const uids = next === undefined ? undefined : starting.get(next);
  if (next === undefined || uids === undefined) return undefined;
  const pods = Array.from(observation.pods, (pod) =>
    uids.has(uidOf(pod)) ? started(pod, observation.sidecarSet) : pod,
  );
  const left = new Map([...starting].filter(([time]) => time !== next));
  return { ...simulation, observation: { ...observation, pods }, atSeconds: next, starting: left };
}
