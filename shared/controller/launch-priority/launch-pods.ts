/** Selects pending pods: a container that waits for a ConfigMap's key and never ran keeps its pod pending. */
import type { ConfigMap, Pod } from "../../api/kubernetes.ts";
import { LAUNCH_COMPLETED_ANNOTATION } from "../../api/names.ts";
import {
  barrierName,
  isLeftBehind,
  type LaunchAction,
  needsLaunchStep,
  planLaunch,
  projectLaunch,
} from "../../core/launch-priority/plan-launch.ts";
import { podName } from "../../core/pod/is-matched.ts";
import { isLately } from "../../core/pod/is-ready.ts";
import { uidOf } from "../../core/pod/pod-state.ts";
import { ifThere, isKubeError, isPassing, unless } from "../../kube/error.ts";
import { type Cluster, CONFIG_MAPS, PODS, type WatchEvent } from "../../kube/port.ts";
import { errorMessage, note, timestamp } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { type EventFeed, openFeed } from "../loop/event-feed.ts";
import { namespaceOf, serveInTurns } from "../loop/fair-turns.ts";
import { keepSmall } from "../loop/pages.ts";
import { listAll } from "../rollout/observe-pods.ts";
import type { LaunchReport } from "../rollout/report.ts";
import type { Service } from "../rollout/service.ts";

/** Milliseconds to collect events, which come in bursts. */
const WAITING = { fieldSelector: "status.phase=Pending" };
const STEPS_AT_ONCE = 16;
/** Milliseconds before a failed action is tried again. */
const GATHER_MS = 100;
/** Milliseconds between searches for new pods while the pass has other work. */
const RETRY_MS = 1_000;
/** Interval of searches for new pods while the pass has other work. */
const RELIST_MS = 10_000;
/** Milliseconds without a step after which the rest waits for a later pass. */
const IDLE_MS = 30_000;
/** Milliseconds reserved for the last writes. */
const RESERVE_MS = 2_000;
const MAX_NAMED = 10;
/** Limit of the wait in milliseconds after a failed step. The wait begins with a second and doubles each time. */
const LONGEST_WAIT_MS = 30_000;

interface Retry {
  readonly notBeforeMs: number;
  readonly waitMs: number;
  /** true: the step cannot succeed until somebody changes something */
  readonly isHopeless: boolean;
}

interface Launch {
  readonly service: Service;
  /** pods with waiting containers, by uid */
  readonly pods: Map<string, Pod>;
  /** barriers by uid of the pod */
  readonly barriers: Map<string, ConfigMap>;
  /** uids of pods for the next round */
  readonly due: Set<string>;
  /** time of the next try after a failed step, by uid of the pod */
  readonly retries: Map<string, Retry>;
  /** namespaces that are already reported for stuck pods */
  readonly told: Set<string>;
  readonly report: LaunchReport;
  /** time at which this pass began, or took its last step */
  movedAtMs: number;
  hasMoved: boolean;
  /** the trouble of the last pod, if it may end soon */
  passing?: string;
}

/** Starts pods. Ends when no launch moves and `served` signals the pass's end. Problems go into the service's list. */
export async function launchPods(service: Service, served: AbortSignal): Promise<LaunchReport> {
  const report: LaunchReport = { opened: 0, completed: 0, waiting: 0, waitingPods: [] };
  const launch: Launch = {
    service,
    pods: new Map(),
    barriers: new Map(),
    due: new Set(),
    retries: new Map(),
    told: new Set(),
    report,
    movedAtMs: service.clock.now(),
    hasMoved: false,
  };
  try {
    if (service.isDryRun) report.planned = await plan(launch);
    else await run(launch, served);
  } catch (error) {
    note(service, `the launch order of containers: ${errorMessage(error)}`);
  }
  if (launch.passing !== undefined && launch.pods.size > 0) note(service, launch.passing);
  report.waiting = launch.pods.size;
  report.waitingPods = [...launch.pods.values()].slice(0, MAX_NAMED).map(podName);
  return report;
}

async function plan(launch: Launch): Promise<readonly string[]> {
  await list(launch);
  const pods = [...launch.pods.values()];
  const steps = await mapLimited(pods, STEPS_AT_ONCE, (pod) => nextStep(launch.service.cluster, pod, undefined));
  return steps.flatMap(({ actions }) => actions.map(describe));
}

async function run(launch: Launch, served: AbortSignal): Promise<void> {
  const { clock, limits, isFollowing } = launch.service;
  for (;;) {
    const resourceVersion = await list(launch);
    await stepAll(launch);
    if (!isFollowing) return;
    await follow(launch, resourceVersion);
    if (isTimeUp(launch)) return;
    if (isMoving(launch)) {
      await clock.sleep(RETRY_MS, limits.signal);
      continue;
    }
    await clock.sleep(RELIST_MS, served);
    if (served.aborted) return;
  }
}

/** Follows the pods by a watch from the list's version, until nothing moves or the watch is lost. */
async function follow(launch: Launch, resourceVersion: string): Promise<void> {
  if (!isMoving(launch)) return;
  const { service } = launch;
  const feed = openFeed<Pod>(service, PODS, { ...WAITING, resourceVersion }, projectLaunch);
  try {
    while (isMoving(launch) && !isTimeUp(launch)) {
      if (!(await hasNews(launch, feed))) return;
      for (const event of feed.take()) see(launch, event);
      await stepAll(launch);
    }
  } finally {
    feed.close();
  }
}

async function hasNews({ service }: Launch, feed: EventFeed<Pod>): Promise<boolean> {
  const { clock, limits } = service;
  await feed.wait(RETRY_MS, limits.signal);
  await clock.sleep(GATHER_MS, limits.signal);
  return await feed.wait(0);
}

/** Lists all waiting pods. Returns the version from which a watch continues. */
async function list(launch: Launch): Promise<string> {
  const { pods, due, retries, service } = launch;
  const { items, resourceVersion } = await listAll<Pod, Pod>(service.cluster, PODS, WAITING, keepLaunching(service));
  pods.clear();
  due.clear();
  for (const pod of items) {
    const retry = retries.get(uidOf(pod));
    if (retry?.isHopeless && service.clock.now() < retry.notBeforeMs) continue;
    pods.set(uidOf(pod), pod);
    due.add(uidOf(pod));
  }
  return resourceVersion;
}

/** Handles an event. DELETED also means that the pod is no longer pending. */
function see(launch: Launch, { type, object }: WatchEvent<Pod>): void {
  const { pods, barriers, due } = launch;
  const uid = uidOf(object);
  const kept = type === "DELETED" ? undefined : keepLaunching(launch.service)(object);
  if (kept !== undefined) {
    pods.set(uid, kept);
    due.add(uid);
    return;
  }
  if (pods.delete(uid)) move(launch);
  barriers.delete(uid);
  due.delete(uid);
}

function keepLaunching(service: Service): (pod: Pod) => Pod | undefined {
  return keepSmall(service, "the launch order of pod", (pod) => (isLaunching(pod) ? projectLaunch(pod) : undefined));
}

function isLaunching(pod: Pod): boolean {
  return !pod.metadata?.deletionTimestamp && needsLaunchStep(pod, undefined);
}

/** A failure of one pod affects no other pod, and failures in one namespace affect no other namespace. */
async function stepAll(launch: Launch): Promise<void> {
  const { due, pods, retries, service } = launch;
  const now = service.clock.now();
  const ready = [...due].filter((uid) => (retries.get(uid)?.notBeforeMs ?? now) <= now);
  for (const uid of ready) due.delete(uid);
  const looked = ready.flatMap((uid) => pods.get(uid) ?? []);
  const left = await serveInTurns(looked, { clock: service.clock, atOnce: STEPS_AT_ONCE, namespaceOf }, (pod) =>
    hasStepped(launch, pod),
  );
  for (const pod of left) due.add(uidOf(pod));
}

/** False: the step failed or was blocked. */
async function hasStepped(launch: Launch, pod: Pod): Promise<boolean> {
  try {
    const isBlocked = await step(launch, pod);
    if (!isBlocked) launch.retries.delete(uidOf(pod));
    return !isBlocked;
  } catch (error) {
    trouble(launch, pod, error);
    return false;
  }
}

function postpone({ retries, due, service }: Launch, pod: Pod, isHopeless = false): void {
  const last = retries.get(uidOf(pod))?.waitMs ?? RETRY_MS / 2;
  const waitMs = Math.min(2 * last, LONGEST_WAIT_MS);
  retries.set(uidOf(pod), { notBeforeMs: service.clock.now() + waitMs, waitMs, isHopeless });
  due.add(uidOf(pod));
}

/** Takes a step; true: it is blocked. */
async function step(launch: Launch, pod: Pod): Promise<boolean> {
  const { service, barriers, report } = launch;
  const uid = uidOf(pod);
  const next = await nextStep(service.cluster, pod, barriers.get(uid));
  const taken = next.actions.length === 0 ? next : await takeStep(service.cluster, pod, next);
  if (taken.barrier) barriers.set(uid, taken.barrier);
  if (taken.isBlocked) postpone(launch, pod);
  if (taken.isBlocked || taken.actions.length === 0) return taken.isBlocked;
  move(launch);
  report.opened += opens(taken);
  if (!taken.actions.some(({ kind }) => kind === "CompleteLaunch")) return false;
  report.completed++;
  launch.pods.delete(uid);
  return false;
}

function opens({ actions }: LaunchStep): number {
  return actions.filter(({ kind }) => kind !== "CompleteLaunch").length;
}

/** Handles an error. A pod or barrier that is gone or was replaced shows in the next list. */
function trouble(launch: Launch, pod: Pod, error: unknown): void {
  const { service, barriers, told } = launch;
  barriers.delete(uidOf(pod));
  const isOutdated = isKubeError(error, 404, 409);
  const isHopeless = !isOutdated && !isPassing(error);
  postpone(launch, pod, isHopeless);
  if (isOutdated) return;
  const help = isKubeError(error, 403) ? "; infra/rbac/optional/launch-order.yaml grants what is missing" : "";
  const problem = `pods wait for their launch order, such as ${podName(pod)}: ${errorMessage(error)}${help}`;
  if (!isHopeless) {
    launch.passing = problem;
    return;
  }
  if (!told.has(namespaceOf(pod))) note(service, problem);
  told.add(namespaceOf(pod));
  launch.pods.delete(uidOf(pod));
  launch.due.delete(uidOf(pod));
}

function move(launch: Launch): void {
  launch.movedAtMs = launch.service.clock.now();
  launch.hasMoved = true;
}

/** True if launches move. A pod without a node starts nothing. If no pod moves, the pass waits only for new pods. */
function isMoving({ pods, service, movedAtMs, hasMoved }: Launch): boolean {
  if (service.clock.now() - movedAtMs >= IDLE_MS) return false;
  const now = timestamp(service.clock);
  return [...pods.values()].some((pod) => pod.spec.nodeName && (hasMoved || hasBegunLately(pod, now)));
}

/** Returns true if the pod was created, or its node began with it, lately. A pass waits for its next step. */
function hasBegunLately({ metadata, status }: Pod, now: string): boolean {
  const times = [metadata?.creationTimestamp, ...(status?.conditions ?? []).map((one) => one.lastTransitionTime)];
  return times.some((time) => isLately(time, now));
}

function isTimeUp({ service: { clock, limits } }: Launch): boolean {
  return limits.signal?.aborted === true || clock.now() >= limits.endsAtMs - RESERVE_MS;
}

function describe(action: LaunchAction): string {
  switch (action.kind) {
    case "CreateBarrier": {
      const { metadata, data = {} } = action.configMap;
      return `create ConfigMap ${metadata?.namespace}/${metadata?.name} with ${Object.keys(data).join(", ")}`;
    }
    case "OpenBarrier":
      return `open ${action.key} in ConfigMap ${action.namespace}/${action.name}`;
    case "CompleteLaunch":
      return `mark the launch of pod ${action.namespace}/${action.name} as completed`;
    default:
      return action satisfies never;
  }
}

/** Moves the launch of one pod by one step. */
interface LaunchStep {
  /** the actions in order; a new barrier comes with its first key */
  readonly actions: readonly LaunchAction[];
  readonly barrier: ConfigMap | undefined;
  /** true: the barrier of an earlier pod with this name prevents the step for now */
  readonly isBlocked: boolean;
}

const NO_STEP = { actions: [], isBlocked: false } as const;

/** `known`: the barrier as this pass last saw it. Reads what is missing. Throws KubeError. */
export async function nextStep(cluster: Cluster, pod: Pod, known: ConfigMap | undefined): Promise<LaunchStep> {
  // A pod that has started nothing probably has no barrier. If it has one, the create call fails and says so.
  const barrier = known ?? (hasStarted(pod) ? await readBarrier(cluster, pod) : undefined);
  return stepFrom(pod, barrier);
}

/** Makes the step; returns the new barrier. Throws KubeError. */
export async function takeStep(cluster: Cluster, pod: Pod, { actions, barrier }: LaunchStep): Promise<LaunchStep> {
  let current = barrier;
  for (const action of actions) {
    if (action.kind !== "CreateBarrier") current = await write(cluster, pod, current, action);
    else {
      const created = await createBarrier(cluster, action.configMap);
      if (!created) return { ...stepFrom(pod, await readBarrier(cluster, pod)), isBlocked: true };
      current = created;
    }
  }
  return { actions, barrier: current, isBlocked: false };
}

function stepFrom(pod: Pod, barrier: ConfigMap | undefined): LaunchStep {
  if (barrier && isLeftBehind(barrier, pod)) return { ...NO_STEP, barrier: undefined, isBlocked: true };
  if (!needsLaunchStep(pod, barrier)) return { ...NO_STEP, barrier };
  return { actions: withFirstKey(pod, planLaunch(pod, barrier)), barrier, isBlocked: false };
}

/** Merges two writes: the barrier is created with the key that would be opened next. */
function withFirstKey(pod: Pod, actions: readonly LaunchAction[]): readonly LaunchAction[] {
  const [first] = actions;
  if (first?.kind !== "CreateBarrier") return actions;
  const next = planLaunch(pod, first.configMap);
  const keys = next.flatMap((action) => (action.kind === "OpenBarrier" ? [action.key] : []));
  const data = Object.fromEntries(keys.map((key) => [key, "true"]));
  const created = { ...first, configMap: { ...first.configMap, data } };
  return [created, ...next.filter(({ kind }) => kind === "CompleteLaunch")];
}

function hasStarted({ status }: Pod): boolean {
  return (status?.containerStatuses ?? []).some(({ containerID }) => Boolean(containerID));
}

async function readBarrier(cluster: Cluster, pod: Pod): Promise<ConfigMap | undefined> {
  const { namespace = "" } = pod.metadata ?? {};
  return ifThere(cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name: barrierName(pod) }));
}

/** Creates a barrier; undefined: a barrier with that name exists. */
function createBarrier(cluster: Cluster, barrier: ConfigMap): Promise<ConfigMap | undefined> {
  return unless(409, cluster.create<ConfigMap>(CONFIG_MAPS, barrier));
}

async function write(
  cluster: Cluster,
  pod: Pod,
  barrier: ConfigMap | undefined,
  action: Exclude<LaunchAction, { kind: "CreateBarrier" }>,
): Promise<ConfigMap | undefined> {
  const { namespace } = action;
  if (action.kind === "OpenBarrier") {
    const body = { metadata: { uid: barrier?.metadata?.uid }, data: { [action.key]: "true" } };
    return await cluster.patch<ConfigMap>(CONFIG_MAPS, { namespace, name: action.name }, { type: "merge", body });
  }
  const annotations = { [LAUNCH_COMPLETED_ANNOTATION]: "true" };
  const body = { metadata: { uid: pod.metadata?.uid, annotations } };
  await cluster.patch(PODS, { namespace, name: action.name }, { type: "merge", body }, { answer: "metadata" });
  return barrier;
}
