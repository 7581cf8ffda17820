/** Predicts a rollout from the present to its end, for nodes that start every container after the same time. */
import { addSeconds } from "../../../go/seconds-between.ts";
import { where } from "../../../go/sequence.ts";
import type { PodPurpose } from "../../actions.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { waveOf } from "../../pod/steering/waves.ts";
import { type Decision, decide, type Observation } from "../decide.ts";
import { nextEnd } from "../hold-effects.ts";
import { asLastAnswered, isChecking } from "../narrow.ts";
import { evaluated } from "../rules/checks/check-records.ts";
import { drainsAhead } from "../rules/drain/drain.ts";
import { checksNow } from "../rules/waves/standing.ts";
import { type Observed, sceneOf } from "../select/observed-states.ts";
import type { Summary } from "../summary.ts";
import {
  downNow,
  type PlannedStep,
  type PodWrite,
  podWrites,
  type RolloutPlan,
  restartedPods,
  stepOf,
  usingBudget,
} from "./planned-step.ts";
import { begun, restartsOf } from "./simulated-restarts.ts";
import { advance, begin, roll, type Simulation, type SimulationOptions, write } from "./simulated-rollout.ts";

export interface PlanOptions extends SimulationOptions {
  /** the largest number of steps; absent: 10,000 */
  readonly maxSteps?: number;
}

const MAX_STEPS = 10_000;

/**
 * The plan, without side effects. Passes follow each other without a gap, as in a running rollout. Pods that cannot
 * recover stay down: images that cannot be pulled, containers that crash, pods without a node. @throws TypeError for a
 * spec that the API server would not have stored
 */
export function planRollout(observation: Observation, options: PlanOptions): RolloutPlan {
  const { readyAfterSeconds, maxSteps = MAX_STEPS } = options;
  const steps: PlannedStep[] = [];
  let simulation = begin(withPullsDone(observation), options);
  let decision = decideAt(simulation, options);
  const before = asLastAnswered(observation, decide(observation, options), options.now).summary;
  const downBefore = downNow(observation, options).all;
  // New pods of a restarted workload add no step, but they take computing time.
  let moments = 0;
  for (let isMoving = true; isMoving && steps.length + moments < maxSteps; ) {
    const writes = podWrites(decision);
    const restarts = restartsOf(decision);
    const counted = countedBefore(simulation, decision, options);
    const written = write(simulation, decision, writes, options);
    simulation = roll({ ...written, ...begun(written, restarts) }, decision, options);
    for (const together of stepsIn(writes, restarts.length))
      steps.push(stepAt(simulation, decision, options, { writes: together, counted }));
    if (writes.length + restarts.length === 0) moments += Math.min(1, simulation.rolling.size);
    const next = nextMoment(simulation, decision, options);
    isMoving = next !== undefined || writes.length + restarts.length > 0;
    simulation = roll(withRecord(next ?? simulation, decision), decision, options);
    decision = decideAt(simulation, options);
  }
  const after = decision.summary;
  const isComplete = after.updated === after.matched && after.updatedReady === after.updated;
  const isCutShort = podWrites(decision).length + restartsOf(decision).length + simulation.rolling.size > 0;
  const seconds = simulation.atSeconds;
  const host = steeringOf(observation.sidecarSet).gate?.host;
  const gate = host === undefined ? {} : { gate: host };
  const checks = { ...checksAhead(observation), ...drainAhead(observation, options) };
  return { readyAfterSeconds, downBefore, steps, seconds, isComplete, isCutShort, ...gate, ...checks, before, after };
}

/** The plan treats image pulls as done, because their duration is unknown. A failed pull stays failed. */
function withPullsDone(observation: Observation): Observation {
  return observation.pulls ? { ...observation, pulls: { ...observation.pulls, isPlanned: true } } : observation;
}

/** Splits the writes of one moment into steps. A drain is a step of its own; a restore is no step. */
function stepsIn(writes: readonly PodWrite[], restarts: number): readonly (readonly PodWrite[])[] {
  const isOf = (purpose: PodPurpose) => (write: PodWrite) => write.kind === "PatchPod" && write.purpose === purpose;
  const drains = writes.filter(isOf("drain"));
  const others = writes.filter((write) => !isOf("drain")(write) && !isOf("putBack")(write));
  return [...(drains.length > 0 ? [drains] : []), ...(others.length + restarts > 0 ? [others] : [])];
}

function stepAt(
  { observation, atSeconds }: Simulation,
  decision: Decision,
  options: PlanOptions,
  before: { readonly writes: readonly PodWrite[]; readonly counted: ReadonlySet<string> },
): PlannedStep {
  const restarts = restartsOf(decision).map(({ workload }) => workload);
  const done = { ...before, restarts, pods: restartedPods(observation.pods, restarts) };
  const step = stepOf(atSeconds, done, decision, downNow(observation, options));
  const namespaces = step.pods.map(({ namespace }) => namespace);
  return { ...step, ...stepWaves(observation, namespaces), ...stepHeld(decision.summary) };
}

/** uids of pods that are down or drained before the decision. The next write to one of them takes no other pod down. */
function countedBefore(
  { observation, atSeconds }: Simulation,
  { summary }: Decision,
  options: PlanOptions,
): ReadonlySet<string> {
  if (summary.used === 0) return new Set();
  return usingBudget(observation, { ...options, now: addSeconds(options.now, atSeconds) ?? options.now });
}

function drainAhead(observation: Observation, options: PlanOptions): Pick<RolloutPlan, "drain"> {
  const { states } = sceneOf(observation, options);
  const drain = drainsAhead(
    observation.sidecarSet,
    where(states, ({ isUpdated }) => !isUpdated),
  );
  return drain ? { drain } : {};
}

function checksAhead({ sidecarSet }: Observation): Pick<RolloutPlan, "checks"> {
  const { checks } = steeringOf(sidecarSet);
  if (checks.length === 0) return {};
  const intervalSeconds = Math.max(...checks.map((one) => one.intervalSeconds));
  return { checks: { names: checks.map(({ name }) => name), intervalSeconds } };
}

/** The next moment at which a decision may change; undefined: none. After a passed wave the next begins at once. */
function nextMoment(simulation: Simulation, decision: Decision, options: PlanOptions): Simulation | undefined {
  if (decision.summary.rules.waves?.isTurning) return simulation;
  const [next, ended] = [advance(simulation), afterWait(simulation, decision, options)];
  const isDrainFirst = decision.summary.rules.drain && next && ended && ended.atSeconds < next.atSeconds;
  return isDrainFirst ? ended : (next ?? ended);
}

function decideAt({ observation, atSeconds, budgetsAhead: ahead }: Simulation, options: PlanOptions): Decision {
  const now = addSeconds(options.now, atSeconds) ?? options.now;
  const observed = { ...observation, disruptionBudgets: ahead(observation.pods) };
  const { sidecarSet } = observation;
  const decision = decide(observed, { ...options, now });
  if (!isChecking(decision)) return decision;
  // The plan assumes that the checks of the wave pass now.
  const known = checksNow(sidecarSet, observation.checks, decision.summary.rules.waves);
  const checks = known.map((one) => evaluated(one, sidecarSet, { outcome: "pass", told: "" }, now).record);
  return decide({ ...observed, checks }, { ...options, now });
}

/** Stores the waves in the simulated status, because later decisions read them there. */
function withRecord(simulation: Simulation, { waves }: Decision): Simulation {
  if (waves === undefined) return simulation;
  const { observation } = simulation;
  const { sidecarSet } = observation;
  const status = { ...sidecarSet.status, waves };
  return { ...simulation, observation: { ...observation, sidecarSet: { ...sidecarSet, status } } };
}

/** The simulation at the moment when a hold ends by the clock; undefined: none does. */
function afterWait(simulation: Simulation, { summary }: Decision, { now }: PlanOptions): Simulation | undefined {
  const seconds = nextEnd(summary, addSeconds(now, simulation.atSeconds) ?? now);
  if (seconds === undefined || seconds <= 0) return undefined;
  return { ...simulation, atSeconds: simulation.atSeconds + seconds };
}

// Finds the waves of a planned step, and the budgets that hold other pods.

/** Names of a step's waves. `namespaces`: namespaces of the step's pods. */
function stepWaves({ sidecarSet, namespaceLabels }: Observed, namespaces: readonly string[]) {
  const { waves } = steeringOf(sidecarSet);
  if (waves === undefined) return {};
  const names = namespaces.map((namespace) => waves[waveOf(waves, namespaceLabels.get(namespace))]?.name ?? "");
  return { waves: [...new Set(names)] };
}

function stepHeld({ rules: { disruptionBudgets } }: Summary) {
  if (disruptionBudgets === undefined) return {};
  return { held: { pods: disruptionBudgets.waiting, budgets: disruptionBudgets.names } };
}
