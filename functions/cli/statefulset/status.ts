/** `status` of an Advanced StatefulSet: its revisions, its pods and its progress. */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import { STATEFUL_SET_KIND } from "../../../shared/api/names.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { SetKey } from "../../../shared/controller/statefulset/observe.ts";
import { isBeyondHelp } from "../../../shared/core/pod/container-failure.ts";
import { readyCondition } from "../../../shared/core/pod/is-ready.ts";
import { ordinalOf, parsePodName } from "../../../shared/core/pod/workload.ts";
import {
  explainSet,
  isPodOfSet,
  isSetSettled,
  type SetStanding,
  setStanding,
  whyNotAvailable,
} from "../../../shared/core/statefulset/explain/explain-set.ts";
import { explainSetPod, isMonotonic, type SetStep } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { explainWholeSet } from "../../../shared/core/statefulset/explain/trace-set.ts";
import { readState } from "../../../shared/core/statefulset/in-place/update-spec.ts";
import { planSetRollout } from "../../../shared/core/statefulset/plan/plan-set-rollout.ts";
import { revisionOf } from "../../../shared/core/statefulset/pods/pod-phase.ts";
import { restoreTemplate } from "../../../shared/core/statefulset/revisions.ts";
import { secondsBetween } from "../../../shared/go/seconds-between.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { duration } from "../../terminal/duration.ts";
import type { Part, Screen } from "../../terminal/screen.ts";
import { bar, showSteps, showTree, wrap } from "../../terminal/table.ts";
import type { Input } from "../command.ts";
import { NOT_DONE, watch } from "../input/progress.ts";
import type { SetTarget } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { type AdvancedStatefulSet, findStatefulSet, readStatefulSet } from "./read-statefulset.ts";

interface Status {
  readonly facts: AdvancedStatefulSet;
  readonly progress: SetProgress;
}

/** @returns the exit code */
export async function showStatefulSetStatus(input: Input, session: Session, target: SetTarget): Promise<number> {
  const cluster = await session.cluster();
  const look = async () => lookAt(await readStatus(session, cluster, target), input.isSet("pods"));
  if (input.isSet("watch")) return await watch(input, session, look);
  const { data, show } = await look();
  session.print(data, show);
  return 0;
}

async function readStatus(session: Session, cluster: Cluster, target: SetTarget): Promise<Status> {
  const facts = await readStatefulSet(session, cluster, target);
  return { facts, progress: progressOfSet(facts) };
}

function lookAt(status: Status, hasAll: boolean) {
  const { facts, progress } = status;
  const why = explainSet(progress.standing);
  const data = { ...facts.key, why, ...progress };
  return { why, data, show: (screen: Screen) => show(status, screen, hasAll), code: codeOf(progress) };
}

function show({ facts, progress }: Status, screen: Screen, hasAll: boolean): void {
  const { standing, pods, etaSeconds, isSeen } = progress;
  const { namespace, name } = facts.key;
  const ready = pods.filter((pod) => pod.isUpdated && pod.isReady).length;
  const eta = etaSeconds === undefined ? "" : `  about ${duration(etaSeconds)} left`;
  screen.line(
    { text: `${namespace}/${name}`, color: "bold" },
    "  ",
    ...bar(ready, standing.updated, standing.desired),
    eta,
  );
  for (const line of wrap(explainSet(standing), screen.width)) screen.line(line);
  if (!isSeen) screen.line({ text: "No pass has seen the latest change yet.", color: "yellow" });
  const leaves = pods.map((row) => ({ ...row, label: row.name, state: stateOf(row) }));
  showTree({ revisions: facts.snapshot.revisions, pods: leaves, imagesOf: templateImages, hasAll }, screen);
}

function stateOf({ state, isReady, isUpdated }: SetPodRow): Part {
  if (!isReady) return { text: state, color: "red" };
  return { text: state, color: isUpdated ? "green" : "yellow" };
}

/** The exit code; undefined: the rollout still moves without help. */
function codeOf({ standing, isSeen, isStuck }: SetProgress): number | undefined {
  if (isStuck) return NOT_DONE;
  if (!isSetSettled(standing) || !isSeen) return undefined;
  return standing.hold === "none" || standing.hold === "partition" ? 0 : NOT_DONE;
}

/** A revision's pod template in one line. */
const NOTHING: StatefulSet = { spec: {} };

/** The template's images as text: `db=postgres:18, agent=agent:2`. */
export function templateImages(revision: ControllerRevision): string {
  const { spec } = restoreTemplate(NOTHING, revision).spec.template ?? {};
  return (spec?.containers ?? []).map(({ name, image }) => `${name}=${image}`).join(", ");
}

// The progress of an Advanced StatefulSet, the revisions of its pods, and an estimate of the remaining time.

/** Most steps of a simulated plan. A longer plan takes too long for every look. */
const MAX_STEPS = 200;
const MAX_PODS = 200;

interface SetPodRow {
  readonly name: string;
  readonly ordinal: number;
  readonly node: string;
  /** name of the ControllerRevision */
  readonly revision: string;
  readonly isUpdated: boolean;
  readonly isReady: boolean;
  /** state of the pod, such as `ready`, `is not ready (container main: ImagePullBackOff)` */
  readonly state: string;
}

interface SetProgress {
  readonly standing: SetStanding;
  /** a pass has seen the newest change */
  readonly isSeen: boolean;
  /** every pod that the rollout waits for fails, and only a person can help */
  readonly isStuck: boolean;
  /** seconds until all allowed pods are updated; undefined: no updated pod shows the pace yet, or no pod is left */
  readonly etaSeconds?: number;
  /** pods of the set, highest ordinal first, in the order of updates */
  readonly pods: readonly SetPodRow[];
}

function progressOfSet({ set, seen, plan, snapshot }: AdvancedStatefulSet): SetProgress {
  const { updateRevision } = plan.outcome;
  const standing = setStanding(seen, updateRevision);
  const { generation = 0 } = set.metadata ?? {};
  const own = seen.pods.filter((pod) => isPodOfSet(set, pod));
  const pods = own.map((pod) => rowOf(pod, seen, updateRevision)).toSorted((a, b) => b.ordinal - a.ordinal);
  const failing = new Set(own.filter(isBeyondHelp).map(({ metadata }) => metadata?.name));
  const waited = isMonotonic(seen) ? standing.waitingFor.slice(0, 1) : standing.waitingFor;
  const isStuck = waited.length > 0 && waited.every(({ name }) => failing.has(name));
  const base = { standing, isSeen: (set.status?.observedGeneration ?? 0) >= generation, isStuck, pods };
  const readyAfterSeconds = usualSeconds(own, updateRevision);
  if (readyAfterSeconds === undefined || isSetSettled(standing) || own.length > MAX_PODS) return base;
  const foreseen = planSetRollout(seen, snapshot, { readyAfterSeconds, maxSteps: MAX_STEPS });
  return foreseen.isCutShort || foreseen.seconds === 0 ? base : { ...base, etaSeconds: foreseen.seconds };
}

function rowOf(pod: Pod, { set, now }: AdvancedStatefulSet["seen"], updateRevision: string | undefined): SetPodRow {
  const why = whyNotAvailable(pod, set.spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0, now);
  const isUpdated = revisionOf(pod) === updateRevision;
  return {
    name: pod.metadata?.name ?? "",
    ordinal: ordinalOf(pod),
    node: pod.spec.nodeName ?? "",
    revision: revisionOf(pod),
    isUpdated,
    isReady: why === undefined,
    state: why ?? (isUpdated ? "ready" : "ready, of an older template"),
  };
}

/** The median time from the creation or update in place of a pod until it was ready. */
function usualSeconds(pods: readonly Pod[], updateRevision: string | undefined): number | undefined {
  const times = pods.flatMap((pod) => {
    const state = readState(pod);
    const begun = state.kind === "present" ? state.value.updateTimestamp : pod.metadata?.creationTimestamp;
    const ready = readyCondition(pod);
    if (revisionOf(pod) !== updateRevision || ready?.status !== "True" || !ready.lastTransitionTime || !begun)
      return [];
    const seconds = secondsBetween(begun, ready.lastTransitionTime);
    return seconds === undefined || seconds < 0 ? [] : [Math.max(1, seconds)];
  });
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
}

// `explain` of an Advanced StatefulSet, and of its present and future pods.

export async function printStatefulSetExplanation(
  session: Session,
  cluster: Cluster,
  target: SetTarget,
): Promise<void> {
  const facts = await readStatefulSet(session, cluster, target);
  const { namespace, name } = facts.key;
  const steps = explainWholeSet(facts);
  session.print({ statefulSet: { namespace, name }, steps }, (screen) =>
    showSteps(`StatefulSet ${namespace}/${name}`, steps, screen),
  );
}

interface SetPodTrace {
  /** name of the set */
  readonly statefulSet: string;
  readonly steps: readonly SetStep[];
}

/** Traces the Advanced StatefulSet that owns the pod; undefined: there is none, or the caller may not read it. */
export async function traceSetPod(session: Session, cluster: Cluster, pod: Pod): Promise<SetPodTrace | undefined> {
  const { namespace = "", name = "", ownerReferences = [] } = pod.metadata ?? {};
  const owner = ownerReferences.find(({ controller }) => controller === true);
  const isOfSet = owner?.kind === STATEFUL_SET_KIND && owner.apiVersion.startsWith("apps.kruise.io/");
  return isOfSet ? await trace(session, cluster, { namespace, name: owner.name }, name) : undefined;
}

/** Traces a missing pod that has a name of an Advanced StatefulSet. */
export async function traceMissingPod(
  session: Session,
  cluster: Cluster,
  { namespace, name }: SetKey,
): Promise<SetPodTrace | undefined> {
  const { parent, ordinal } = parsePodName(name);
  if (ordinal < 0 || parent === "" || name !== `${parent}-${ordinal}`) return undefined;
  return await trace(session, cluster, { namespace, name: parent }, name);
}

async function trace(session: Session, cluster: Cluster, key: SetKey, pod: string): Promise<SetPodTrace | undefined> {
  try {
    const facts = await findStatefulSet(session, cluster, key);
    return facts && { statefulSet: key.name, steps: explainSetPod(pod, facts) };
  } catch (error) {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  }
}
