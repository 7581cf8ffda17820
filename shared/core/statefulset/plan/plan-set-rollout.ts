/** Predicts the passes over a set to its end, for nodes that start every pod after the same time. */
import type { Pod } from "../../../api/kubernetes.ts";
import { type SetStanding, setStanding } from "../explain/explain-set.ts";
import { revisionOf } from "../pods/pod-phase.ts";
import type { SetObservation } from "../reconcile.ts";
import { atLeastOne } from "../rolling-update.ts";
import type { Request } from "../step.ts";
import { planSet, type SetSurroundings, SimulatedWorld } from "./simulated-world.ts";

interface PlannedImage {
  readonly container: string;
  readonly from: string;
  readonly to: string;
}

/** The change of one pod. */
export interface PlannedSetPod {
  readonly name: string;
  /** replace: the pod is deleted and recreated; update: it is updated in place */
  readonly action: "create" | "replace" | "delete" | "update";
  /** images of an update in place */
  readonly images?: readonly PlannedImage[];
}

/** The actions of one pass on pods. */
export interface PlannedSetStep {
  /** seconds since the start of the plan */
  readonly atSeconds: number;
  /** pods in the order of their turns */
  readonly pods: readonly PlannedSetPod[];
  /** number of pods with the newest template before the step */
  readonly updated: number;
  /** numbers after the step: ready pods, and wanted pods that are not available */
  readonly ready: number;
  readonly unavailable: number;
  /** maxUnavailable of the update; creations and removals of pods do not count */
  readonly maxUnavailable: number;
}

export interface SetRolloutPlan {
  readonly readyAfterSeconds: number;
  readonly steps: readonly PlannedSetStep[];
  /** seconds until the last pod is ready */
  readonly seconds: number;
  /** true: at the end all wanted pods exist, updated and available, and no other pods */
  readonly isComplete: boolean;
  /** the plan has more steps than the caller asked for */
  readonly isCutShort: boolean;
  readonly before: SetStanding;
  readonly after: SetStanding;
  /** the error that ends every pass at the end of the plan */
  readonly problem?: string;
}

export interface SetPlanOptions {
  /** seconds that a pod is not ready after its creation or a change of its images; more than 0 */
  readonly readyAfterSeconds: number;
  /** largest number of steps; absent: as many as take some seconds, such as 500 for a set of 300 pods */
  readonly maxSteps?: number;
}

/** Limit of looks at pods. Every step looks at every pod. */
const MAX_LOOKS = 150_000;
/** Limit of passes for one moment, because each pod changes a few times at most. */
const PASSES_AT_LEAST = 50;
const PASSES_FOR_EACH_POD = 4;

/**
 * The plan, without side effects. Passes follow each other without a gap. Pods that cannot recover stay unchanged:
 * images that cannot be pulled, containers that crash, no node with room. So do pods that a hook holds.
 */
export function planSetRollout(
  seen: SetObservation,
  surroundings: SetSurroundings,
  { readyAfterSeconds, maxSteps = Math.ceil(MAX_LOOKS / Math.max(1, seen.pods.length)) }: SetPlanOptions,
): SetRolloutPlan {
  const world = new SimulatedWorld(seen, surroundings, readyAfterSeconds);
  const steps: PlannedSetStep[] = [];
  const before = setStanding(seen, planSet(seen, surroundings).outcome.updateRevision);
  for (let isMoving = true, idle = 0; isMoving && steps.length < maxSteps; ) {
    const { writes, waitSeconds, pods } = passesNow(world, steps, maxSteps);
    idle = writes > 0 ? 0 : idle + 1;
    isMoving = idle <= pods + 1 && world.advance(waitSeconds);
  }
  const end = world.observe();
  const { writes, outcome } = planSet(end, world.surroundings());
  const after = setStanding(end, outcome.updateRevision);
  return {
    readyAfterSeconds,
    steps,
    seconds: steps.length === 0 ? 0 : world.atSeconds,
    isComplete: isComplete(after),
    isCutShort: changesOf(writes).length > 0,
    before,
    after,
    ...(outcome.failure ? { problem: outcome.failure.message } : {}),
  };
}

interface Passes {
  readonly writes: number;
  /** seconds until the last pass looks again; 0: it waits for nothing */
  readonly waitSeconds: number;
  readonly pods: number;
}

/** Runs passes until one has no work. */
function passesNow(world: SimulatedWorld, steps: PlannedSetStep[], maxSteps: number): Passes {
  for (let writes = 0, count = 1; ; count++) {
    const seen = world.observe();
    const plan = planSet(seen, world.surroundings());
    const isMoved = world.carryOut(plan.writes);
    writes += Number(isMoved);
    const pods = changesOf(plan.writes);
    if (pods.length > 0) addStep(steps, stepOf(seen, world, { pods, revision: plan.outcome.updateRevision }));
    const most = PASSES_AT_LEAST + PASSES_FOR_EACH_POD * seen.pods.length;
    if (isMoved && count < most && steps.length < maxSteps) continue;
    return { writes, waitSeconds: plan.outcome.requeueAfterSeconds, pods: seen.pods.length };
  }
}

function isComplete({ desired, existing, ready, updated, outOfRange, waitingFor }: SetStanding): boolean {
  const areThere = existing === desired && ready === desired && updated === desired;
  return areThere && outOfRange === 0 && waitingFor.length === 0;
}

/** The first write to each pod that changes it. */
function changesOf(writes: readonly Request[]): readonly PlannedSetPod[] {
  const changes = new Map<string, PlannedSetPod>();
  for (const change of writes.flatMap((request) => changeOf(request) ?? []))
    if (!changes.has(change.name)) changes.set(change.name, change);
  return [...changes.values()];
}

function changeOf(request: Request): PlannedSetPod | undefined {
  switch (request.kind) {
    case "CreatePod":
      return { name: nameOf(request.pod), action: "create" };
    case "DeletePod":
      return { name: nameOf(request.pod), action: "delete" };
    case "UpdatePod":
      return updateOf(request);
    default:
      return undefined;
  }
}

/** The pod's update; undefined: the write changes only labels or other records. */
function updateOf({ before, after }: { readonly before: Pod; readonly after: Pod }): PlannedSetPod | undefined {
  const old = new Map(before.spec.containers.map(({ name, image = "" }) => [name, image]));
  const images = after.spec.containers.flatMap(({ name: container, image: to = "" }) => {
    const from = old.get(container) ?? "";
    return from === to ? [] : [{ container, from, to }];
  });
  if (images.length === 0 && revisionOf(before) === revisionOf(after)) return undefined;
  return { name: nameOf(before), action: "update", images };
}

function stepOf(
  before: SetObservation,
  world: SimulatedWorld,
  { pods, revision }: { readonly pods: readonly PlannedSetPod[]; readonly revision: string | undefined },
): PlannedSetStep {
  const { replicas = 1, updateStrategy } = before.set.spec;
  const { updated } = setStanding(before, revision);
  const { ready, waitingFor } = setStanding(world.observe(), revision);
  const maxUnavailable = atLeastOne(updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, replicas);
  return { atSeconds: world.atSeconds, pods, updated, ready, unavailable: waitingFor.length, maxUnavailable };
}

/** Adds a step. A pod that is recreated right after its deletion counts as replaced. */
function addStep(steps: PlannedSetStep[], step: PlannedSetStep): void {
  const last = steps.at(-1);
  const gone = new Set(last?.pods.filter(({ action }) => action === "delete").map(({ name }) => name));
  const isReplacing = step.pods.every(({ name, action }) => action === "create" && gone.has(name));
  if (!last || last.atSeconds !== step.atSeconds || !isReplacing) {
    steps.push(step);
    return;
  }
  const again = new Set(step.pods.map(({ name }) => name));
  const pods = last.pods.map((pod) => (again.has(pod.name) ? { name: pod.name, action: "replace" as const } : pod));
  steps[steps.length - 1] = { ...step, pods, updated: last.updated };
}

function nameOf({ metadata }: Pod): string {
  return metadata?.name ?? "";
}
