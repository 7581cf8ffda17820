/** Decides why a pod runs the newest version of its sidecars, or what it waits for: the rules in the order in which they are looked at. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { HALT_ON_ANNOTATION, HASH_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { failureOf, failureText, isStartedSoon, waitingReasonOf } from "../../pod/container-failure.ts";
import { isConsistent } from "../../pod/is-consistent.ts";
import { isRunningAndReady } from "../../pod/is-ready.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import { type PodState, podStateOf } from "../../pod/pod-state.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { renewalHint } from "../../pod/workload.ts";
import { lastRefusal } from "../../rollout/approval.ts";
import { haltRoom } from "../../rollout/halt/halt-room.ts";
import { standstillOf } from "../../rollout/halt/standstill.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import type { Claims } from "../../rollout/select/budget.ts";
import { canBeUpdated, classify } from "../../rollout/select/classify.ts";
import { type Observed, sceneOf, stateReader } from "../../rollout/select/observed-states.ts";
import { outOfTurn } from "../../rollout/select/ordinal-turn.ts";
import { ownerInTheWay } from "../../rollout/select/owner-budget.ts";
import { canFlip } from "../../rollout/upgrade/hot-slot.ts";
import { immutableFields } from "../../rollout/upgrade/immutable-fields.ts";
import { planUpgrade } from "../../rollout/upgrade/plan-upgrade.ts";
import { resizeStanding } from "../../rollout/upgrade/resize.ts";
import { shareText } from "./budget-text.ts";
import { type SharedFacts, sharedFacts } from "./shared-facts.ts";
import { note, ok, type Step, stop, wait } from "./step.ts";
import { traceNext, traceStandstill } from "./trace-care.ts";

export interface UpdateFacts extends Omit<Observed, "sidecarSet"> {
  /** selected by the SidecarSet, this one among them */
  readonly pods: readonly Pod[];
  readonly settings: RolloutSettings;
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
}

/** `pod` is one that the SidecarSet has injected and that has all of its containers. */
export function traceUpdate(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): readonly Step[] {
  const { settings } = facts;
  const state = stateReader({ ...facts, sidecarSet }, settings)(pod);
  const plain = podStateOf(pod, sidecarSet, undefined);
  const resize = settings.InPlaceResize ? resizeStanding(plain, sidecarSet) : undefined;
  if (resize !== undefined && state.isUpdated) return [resizeStep(resize)];
  if (state.isUpdated) return [traceUpdated(state, sidecarSet)];
  const strategy = sidecarSet.spec.updateStrategy;
  const outdated = note("OutOfDate", outdatedText(pod, sidecarSet, facts.revisions));
  if (strategy?.type === "NotUpdate")
    return [
      outdated,
      stop(
        "StrategyNotUpdate",
        "the update strategy is NotUpdate: only new pods get the new version",
        `set spec.updateStrategy.type to RollingUpdate, or ${renewalHint([pod])}`,
      ),
    ];
  if (strategy?.paused)
    return [outdated, stop("StrategyPaused", "the rollout is paused", `sidecarset resume ${nameOf(sidecarSet)}`)];
  const shared = sharedFacts(
    sidecarSet,
    facts,
    () => traceStill(sidecarSet, facts) ?? traceUnproven(sidecarSet, facts),
  );
  const still = shared.still();
  if (still) return [outdated, still];
  if (resize !== undefined) return [outdated, resizeStep(resize)];
  const own = traceOwn(state, sidecarSet, facts);
  return [outdated, ...(own ? [own] : traceTurn(pod, sidecarSet, { reserved: facts.reserved, shared }))];
}

function traceStill(sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  const { revisions, now } = facts;
  const states = statesOf(sidecarSet, facts);
  const areAllUpdated = states.every(({ isUpdated }) => isUpdated);
  const { latestRevision } = sidecarSet.status ?? {};
  const still = standstillOf(sidecarSet, { areAllUpdated, latestRevision, pods: states, revisions, now });
  return still && traceStandstill(sidecarSet, still);
}

export function traceUnproven(sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  if (haltRoom(sidecarSet, statesOf(sidecarSet, facts)) > 0) return undefined;
  return wait(
    "ReleaseUnproven",
    `as many pods as may were given the release and are not seen to be ready with it, while ${HALT_ON_ANNOTATION} is there: more follow as they come back`,
  );
}

function statesOf(sidecarSet: SidecarSet, facts: UpdateFacts): readonly PodState[] {
  return [...sceneOf({ ...facts, sidecarSet }, facts).states];
}

/** What its node cannot give stops the rollout until somebody asks for less. */
function resizeStep(standing: string): Step {
  const message = `${standing}; the pod uses a share of maxUnavailable until then`;
  if (!standing.startsWith("resize Infeasible")) return wait("ResizeUnderWay", message);
  return stop("ResizeUnderWay", message, "give the SidecarSet resources that the node has, or its old ones");
}

/** Of a pod that has the newest version: whether it runs and is ready. */
function traceUpdated(state: PodState, sidecarSet: SidecarSet): Step {
  const { pod, isConsistent: isRunning, isReady } = state;
  if (isRunning && isReady) return ok("UpdatedAndReady", "the pod runs the newest version and is ready");
  const waiting = traceFailure(pod, sidecarSet) ?? traceStart(pod, sidecarSet);
  if (waiting) return waiting;
  if (!isRunning)
    return wait("WaitingForImage", `${lateContainer(state, sidecarSet)}: its node has not started the new image yet`);
  if (isRunningAndReady(pod)) return wait("HotUpgradeUnderWay", hotText(pod, sidecarSet));
  return wait("PodNotReady", `the pod has the newest version and is not ready yet; ${shareText(pod, sidecarSet)}`);
}

function hotText(pod: Pod, sidecarSet: SidecarSet): string {
  if (canFlip(pod, sidecarSet)) return "hot upgrade: the new container works, the next pass empties the old one";
  return "hot upgrade: the new container starts beside the old one, which works until then";
}

/** The SidecarSet's own containers first. */
function traceFailure(pod: Pod, sidecarSet: SidecarSet): Step | undefined {
  const failure = failureOf(pod, sidecarContainerNames(sidecarSet)) ?? failureOf(pod);
  if (failure === undefined) return undefined;
  const { container, kind } = failure;
  const { namespace, name } = pod.metadata ?? {};
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const image = all.find(({ name }) => name === container)?.image ?? "";
  if (kind === "pull")
    return stop(
      "ImagePullError",
      `${failureText(failure)}: the image ${image} cannot be pulled`,
      `set an image that can: sidecarset set image ${nameOf(sidecarSet)} ${container}=IMAGE, or sidecarset undo ${nameOf(sidecarSet)}`,
    );
  const look =
    kind === "crash"
      ? `kubectl logs -n ${namespace} ${name} -c ${container} --previous`
      : `kubectl describe pod -n ${namespace} ${name}`;
  return stop("ContainerFailing", failureText(failure), look);
}

function traceStart(pod: Pod, sidecarSet: SidecarSet): Step | undefined {
  const ours = sidecarContainerNames(sidecarSet);
  const starting = (pod.status?.containerStatuses ?? []).filter((one) => one.ready !== true && isStartedSoon(one));
  const first = starting.find(({ name }) => ours.has(name)) ?? starting[0];
  return first && wait("WaitingForImage", `${first.name}: ${waitingReasonOf(first)}: its node is starting it`);
}

function lateContainer({ pod, native }: PodState, sidecarSet: SidecarSet): string {
  const late = [...sidecarContainerNames(sidecarSet)].find(
    (name) => !isConsistent(pod, nameOf(sidecarSet), new Set([name])),
  );
  return late ?? (native?.isConsistent === false ? "a native sidecar" : "a container");
}

function outdatedText(pod: Pod, sidecarSet: SidecarSet, revisions: readonly ControllerRevision[]): string {
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
  const revisionOf = (hash: string | undefined) =>
    revisions.findLast(({ metadata }) => hash !== undefined && metadata?.annotations?.[HASH_ANNOTATION] === hash)
      ?.metadata?.name;
  const [has, wanted] = [records[nameOf(sidecarSet)]?.hash, sidecarSet.metadata?.annotations?.[HASH_ANNOTATION]];
  const name = revisionOf(has) ?? records[nameOf(sidecarSet)]?.controllerRevision ?? "an older version";
  return `the pod has ${name}, the newest is ${revisionOf(wanted) ?? "not recorded yet"}`;
}

/** What of the pod itself is in the way. */
function traceOwn(
  state: PodState,
  sidecarSet: SidecarSet,
  { revisions, now, settings }: UpdateFacts,
): Step | undefined {
  const { pod, native, resize } = state;
  const selector = sidecarSet.spec.updateStrategy?.selector;
  if (selector && selectorMatches(selector, pod.metadata?.labels) !== true)
    return stop(
      "UpdateSelectorNotMatched",
      "updateStrategy.selector leaves the pod out",
      "remove the selector when all pods are to follow",
    );
  if (native?.hindrance !== undefined)
    return stop("NotUpgradable", native.hindrance, "only a new pod gets there, or one on a newer node");
  if (!canBeUpdated(state, sidecarSet)) {
    const fields = immutableFields(sidecarSet, [pod], revisions);
    const which = fields.length > 0 ? fields.join(", ") : "no revision is left that tells what";
    return stop(
      "NotUpgradable",
      `more than images changed since the pod was made: ${which}`,
      `only a new pod gets there: ${renewalHint([pod])}`,
    );
  }
  if (classify(state, sidecarSet) === "inFlight" && resize?.step !== "wait")
    return wait(
      "PreviousUpdateUnderWay",
      `${lateContainer(state, sidecarSet)}: its node has not started the image of the previous update yet`,
    );
  const withNatives = settings.NativeSidecarInPlaceUpdate;
  const plan = planUpgrade(pod, sidecarSet, { now, latestRevision: "", withNatives });
  if (plan.kind === "planned") return undefined;
  return stop("UpdateRefused", `the pod is left alone: ${plan.message}`, `fix that, or ${renewalHint([pod])}`);
}

interface Turn {
  readonly reserved: UpdateFacts["reserved"];
  readonly shared: SharedFacts;
}

/** What of the others is in the way. */
function traceTurn(pod: Pod, sidecarSet: SidecarSet, { reserved, shared }: Turn): readonly Step[] {
  const uid = uidOf(pod);
  if (reserved.uids.has(uid)) return [wait("Reserved", "a pass has reserved the pod and is writing to it")];
  const [flips, shrinks] = [shared.flips(), shared.shrinks()];
  if (flips > 0)
    return [wait("HotUpgradesFirst", `${counted(flips, "hot upgrade is", "hot upgrades are")} finished first`)];
  if (shrinks > 0) return [traceShrinks(shrinks)];
  const selection = shared.selection();
  const place = shared.places().get(uid) ?? 0;
  const ofAll = `${place} of ${selection.waiting.length} that wait`;
  const first = selection.waiting.length - selection.kept;
  if (place > first)
    return [
      stop(
        "KeptByPartition",
        `the pod is ${ofAll}, and the partition keeps the last ${selection.kept}`,
        `sidecarset promote ${nameOf(sidecarSet)} when the updated ones are fine`,
      ),
    ];
  if (shared.next().has(uid)) return [traceNext(sidecarSet, `the pod is ${ofAll}, the next pass updates it`)];
  const { states, claims } = shared.scene();
  // Those before it are refused, so that it waits for the gate and not for them to come back.
  if (isRefused(sidecarSet, selection.selected, claims)) return [traceNext(sidecarSet, `the pod is ${ofAll}`)];
  const order = selection.turn && outOfTurn(pod, selection.turn);
  if (order !== undefined) return [wait("OrderOfSets", `the pod is ${ofAll}: ${order}`)];
  const owner = ownerInTheWay(sidecarSet, selection.crowded, { pods: states, claims }, pod);
  if (owner !== undefined) return [wait("OwnerBudgetUsed", `the pod is ${ofAll}; ${owner}`)];
  return [wait("BudgetUsed", `the pod is ${ofAll}; ${shared.budget()}`)];
}

export function traceShrinks(count: number): Step {
  return wait("ResizeUnderWay", `${counted(count, "pod is", "pods are")} given smaller cpu and memory first`);
}

/** The gate said no to pods that are next, and are not reserved yet. */
function isRefused(sidecarSet: SidecarSet, next: Iterable<PodState>, { reserved }: Claims): boolean {
  return lastRefusal(sidecarSet) !== undefined && [...next].some(({ pod }) => !reserved.has(uidOf(pod)));
}

function uidOf({ metadata }: Pod): string {
  return metadata?.uid ?? "";
}

function nameOf({ metadata }: SidecarSet): string {
  return metadata?.name ?? "";
}
