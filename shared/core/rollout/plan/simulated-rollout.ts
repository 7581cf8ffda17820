/** Changes the simulated pods after a pass has written to them, and while time passes. */
import type { Container, ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence, where } from "../../../go/sequence.ts";
import type { Action } from "../../actions.ts";
import { isPodReady } from "../../pod/is-ready.ts";
import { uidOf } from "../../pod/pod-state.ts";
import { alsoRefused, forbiddenPods, NONE_PASSED_OVER } from "../../refused-pods.ts";
import type { DecideContext, Decision, Observation } from "../decide.ts";
import { coverageBy, type DisruptionBudget } from "../rules/disruption-budgets/disruption-budget.ts";
import { sceneOf, stateReader } from "../select/observed-states.ts";
import { NOTHING_RESERVED } from "../select/reserved.ts";
import { recordHash, recordWithoutImage, type UpgradeFacts } from "../upgrade/record-upgrade.ts";
import type { PodWrite } from "./planned-step.ts";
import { isStarting, patched, started, stopped } from "./simulated-kubelet.ts";
import {
  ended,
  nextToRecreate,
  type Rolling,
  runningRestart,
  without,
  withWorkloads,
  workloadsOf,
} from "./simulated-restarts.ts";

export interface SimulationOptions extends DecideContext {
  /** seconds until a pod is ready after a change of its images; more than 0 */
  readonly readyAfterSeconds: number;
}

export interface Simulation {
  readonly observation: Observation;
  readonly atSeconds: number;
  /** uids of pods by the second at which they become ready, sorted by time */
  readonly starting: ReadonlyMap<number, ReadonlySet<string>>;
  readonly budgetsAhead: BudgetsAhead;
  readonly rolling: Rolling;
}

/** Starts the simulation. Pods that recover without help become ready together with the pods of the first step. */
export function begin(observed: Observation, options: SimulationOptions): Simulation {
  const { readyAfterSeconds, settings } = options;
  const observation = whereImagesAreFixed(withWorkloads(observed), options);
  const stateOf = stateReader(observation, settings);
  const uids = where(observation.pods, (pod) => isStarting(stateOf(pod))).map(uidOf);
  const starting = new Map(uids.length === 0 ? [] : [[readyAfterSeconds, new Set(uids)]]);
  return {
    observation,
    atSeconds: 0,
    starting,
    budgetsAhead: budgetsAhead(observation.disruptionBudgets, observation.pods),
    rolling: runningRestart(observation, (pod) => stateOf(pod).isUpdated),
  };
}

/** Refuses every write to a pod, as the API server does if Kubernetes forbids changing images. */
function whereImagesAreFixed(observation: Observation, options: SimulationOptions): Observation {
  if (observation.reserved.refused.named.length === 0) return observation;
  const { refused, states } = sceneOf(observation, options);
  const old = where(states, ({ isUpdated }) => !isUpdated).map(({ pod }) => pod);
  if (forbiddenPods(refused).size === 0) return observation;
  const named = alsoRefused(refused, old);
  const passedOver = { ...NONE_PASSED_OVER, uids: new Set(named.map(({ uid }) => uid)) };
  return {
    ...observation,
    reserved: { ...observation.reserved, refused: { named, passedOver, areImagesFixed: true } },
  };
}

export function write(
  simulation: Simulation,
  decision: Decision,
  writes: readonly PodWrite[],
  options: SimulationOptions,
): Simulation {
  const { sidecarSet, revisions } = simulation.observation;
  const byUid = new Map(writes.map((one) => [one.pod.uid, one]));
  const facts = factsOf(decision, options);
  const next = changed(simulation, options, (pod) => {
    const one = byUid.get(uidOf(pod));
    if (one === undefined) return undefined;
    return one.kind === "PatchPod" ? patched(pod, one) : successorOf(pod, sidecarSet, facts);
  });
  // The first pass has written to all reserved pods, or has released them.
  const { refused } = simulation.observation.reserved;
  const isFixed = refused.areImagesFixed === true;
  const reserved = isFixed ? { ...NOTHING_RESERVED, refused } : NOTHING_RESERVED;
  const known = { revisions: registered(revisions, decision.actions), reserved };
  return { ...next, observation: { ...next.observation, ...known } };
}

function factsOf({ status }: Decision, { now }: SimulationOptions) {
  return { now, latestRevision: status.latestRevision ?? "" };
}

/** Starts the pods for which `change` returns a new pod. Others stay. */
function changed(
  simulation: Simulation,
  { readyAfterSeconds, settings }: SimulationOptions,
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

/** Recreates the next pods of restarted workloads whose earlier pods are ready. */
export function roll(simulation: Simulation, decision: Decision, options: SimulationOptions): Simulation {
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

/** Keys of workloads with pods that are starting. */
function onTheirWay({ observation, starting }: Simulation): ReadonlySet<string> {
  return workloadsOf(observation, new Set([...starting.values()].flatMap((uids) => [...uids])));
}

/** The new times at which pods become ready. A second write to a pod restarts its time. */
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

/** Advances the time until the next pods are ready; undefined: no pod is starting. */
export function advance(simulation: Simulation): Simulation | undefined {
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

// Creates the pod that replaces an evicted one. It has the current SidecarSet and is not ready yet.

/** The successor of a pod. Unlike with most controllers, it has the old pod's name. */
function successorOf(pod: Pod, sidecarSet: SidecarSet, facts: UpgradeFacts): Pod {
  const { metadata, spec, status } = pod;
  const wanted = new Map((sidecarSet.spec.containers ?? []).map((container) => [container.name, container]));
  const containers = spec.containers.map((container) => withImage(container, wanted.get(container.name)));
  const known = new Set(containers.map(({ name }) => name));
  const added = [...wanted.values()].filter(({ name }) => !known.has(name));
  const all = [...containers, ...added];
  const annotations = {
    ...metadata?.annotations,
    ...recordHash(pod, sidecarSet, facts),
    ...recordWithoutImage(pod, sidecarSet, facts),
  };
  const conditions = (status?.conditions ?? []).map((one) =>
    one.type === "Ready" ? { ...one, status: "False" } : one,
  );
  const containerStatuses = all.map(({ name, image = "" }) => stopped({ name, image }));
  return {
    ...pod,
    metadata: { ...metadata, uid: `${metadata?.uid}-successor`, annotations },
    spec: { ...spec, containers: all },
    status: { ...status, conditions, containerStatuses },
  };
}

function withImage(container: Container, wanted: SidecarContainer | undefined): Container {
  return wanted?.image === undefined ? container : { ...container, image: wanted.image };
}

// Simulates disruption budgets while a planned rollout takes pods down and they recover.

/** returns the budgets for the given pods of the SidecarSet; other pods stay unchanged */
type BudgetsAhead = (pods: Sequence<Pod>) => readonly DisruptionBudget[];

/**
 * Calculates as the budget's controller does: allowed is healthy minus desired. A budget without changed pods keeps its
 * answer. `pods`: pods at the start of the plan.
 */
function budgetsAhead(budgets: readonly DisruptionBudget[], pods: Sequence<Pod>): BudgetsAhead {
  if (budgets.length === 0) return () => budgets;
  const before = new Map<string, Pod>();
  each(pods, (pod) => before.set(uidOf(pod), pod));
  const coverageOf = coverageBy(budgets);
  return (now) => {
    const changes = new Map<DisruptionBudget, Change>();
    each(now, (pod) => {
      const was = before.get(uidOf(pod)) ?? pod;
      if (was !== pod) for (const budget of coverageOf(pod).budgets) note(changes, budget, was, pod);
    });
    return budgets.map((budget) => changedBudgets(budget, changes.get(budget)));
  };
}

/** The change in one budget's pods. */
interface Change {
  healthy: number;
  /** names of written pods that the budget may stop counting as going down */
  readonly through: Set<string>;
}

function note(changes: Map<DisruptionBudget, Change>, budget: DisruptionBudget, was: Pod, pod: Pod): void {
  const change = changes.get(budget) ?? { healthy: 0, through: new Set() };
  changes.set(budget, change);
  const name = pod.metadata?.name ?? "";
  const wasHealthy = isPodReady(was) && !budget.disrupted.has(name);
  change.healthy += Number(isPodReady(pod)) - Number(wasHealthy);
  change.through.add(name);
}

function changedBudgets(budget: DisruptionBudget, change: Change | undefined): DisruptionBudget {
  if (change === undefined || !budget.isObserved) return budget;
  const healthy = budget.healthy + change.healthy;
  const disrupted = new Map([...budget.disrupted].filter(([name]) => !change.through.has(name)));
  return { ...budget, healthy, allowed: Math.max(0, healthy - budget.desired), disrupted };
}
