/** Decides why a pod runs the newest version of its sidecars, or what it waits for: the rules in the order in which they are looked at. */
import type { ContainerStatus, ControllerRevision, Pod } from "../../api/kubernetes.ts";
import { HALT_ON_ANNOTATION, HASH_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { haltRoom } from "../halt/halt-room.ts";
import { standstillOf } from "../halt/standstill.ts";
import { parseUpgradeRecords } from "../hash/pod-records.ts";
import { counted } from "../lib/counted.ts";
import { selectorMatches } from "../lib/label-selector.ts";
import { isConsistent } from "../pod/is-consistent.ts";
import { isMatched } from "../pod/is-matched.ts";
import { isRunningAndReady } from "../pod/is-ready.ts";
import { isUpgradable, type PodState, podStateOf } from "../pod/pod-state.ts";
import { sidecarContainerNames } from "../pod/sidecar-containers.ts";
import type { Claims } from "../upgrade/budget.ts";
import { hasSettled } from "../upgrade/classify.ts";
import { canFlip } from "../upgrade/hot-slot.ts";
import { immutableFields } from "../upgrade/immutable-fields.ts";
import { downBeside, outOfTurn } from "../upgrade/ordinal-turn.ts";
import { ownerInTheWay } from "../upgrade/owner-budget.ts";
import { planUpgrade } from "../upgrade/plan-upgrade.ts";
import { resizeStanding } from "../upgrade/resize.ts";
import { selectPods } from "../upgrade/select.ts";
import { budgetText, shareText } from "./budget-text.ts";
import { note, ok, type Step, stop, wait } from "./step.ts";
import { traceNext, traceStandstill } from "./trace-care.ts";

export interface UpdateFacts {
  /** selected by the SidecarSet, this one among them */
  readonly pods: readonly Pod[];
  readonly revisions: readonly ControllerRevision[];
  readonly claims: Claims;
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
}

const PULL_ERRORS: ReadonlySet<string> = new Set([
  "ImagePullBackOff",
  "ErrImagePull",
  "ErrImageNeverPull",
  "InvalidImageName",
]);

/** `pod` is one that the SidecarSet has injected and that has all of its containers. */
export function traceUpdate(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): readonly Step[] {
  const state = podStateOf(pod, sidecarSet);
  const resize = resizeStanding(state, sidecarSet);
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
        "set spec.updateStrategy.type to RollingUpdate, or make the pod anew",
      ),
    ];
  if (strategy?.paused)
    return [outdated, stop("StrategyPaused", "the rollout is paused", `sidecarset resume ${nameOf(sidecarSet)}`)];
  const still = traceStill(sidecarSet, facts) ?? traceUnproven(sidecarSet, facts);
  if (still) return [outdated, still];
  if (resize !== undefined) return [outdated, resizeStep(resize)];
  const own = traceOwn(pod, sidecarSet, facts);
  return [outdated, ...(own ? [own] : traceTurn(pod, sidecarSet, facts))];
}

function traceStill(sidecarSet: SidecarSet, { pods, revisions, now }: UpdateFacts): Step | undefined {
  const states = statesOf(pods, sidecarSet);
  const areAllUpdated = states.every(({ isUpdated }) => isUpdated);
  const { latestRevision } = sidecarSet.status ?? {};
  const still = standstillOf(sidecarSet, { areAllUpdated, latestRevision, pods: states, revisions, now });
  return still && traceStandstill(sidecarSet, still);
}

export function traceUnproven(sidecarSet: SidecarSet, { pods }: Pick<UpdateFacts, "pods">): Step | undefined {
  if (haltRoom(sidecarSet, statesOf(pods, sidecarSet)) > 0) return undefined;
  return wait(
    "ReleaseUnproven",
    `as many pods as may were given the release and are not seen to be ready with it, while ${HALT_ON_ANNOTATION} is there: more follow as they come back`,
  );
}

function statesOf(pods: readonly Pod[], sidecarSet: SidecarSet): readonly PodState[] {
  return pods.filter((one) => isMatched(one, sidecarSet)).map((one) => podStateOf(one, sidecarSet));
}

/** What its node cannot give stops the rollout until somebody asks for less. */
function resizeStep(standing: string): Step {
  const message = `${standing}; the pod uses a share of maxUnavailable until then`;
  if (!standing.startsWith("resize Infeasible")) return wait("ResizeUnderWay", message);
  return stop("ResizeUnderWay", message, "give the SidecarSet resources that the node has, or its old ones");
}

/** Of a pod that has the newest version: whether it runs and is ready. */
function traceUpdated({ pod, isConsistent: isRunning, isReady }: PodState, sidecarSet: SidecarSet): Step {
  if (isRunning && isReady) return ok("UpdatedAndReady", "the pod runs the newest version and is ready");
  const failing = failingContainer(pod, sidecarSet);
  if (failing) return failing;
  if (!isRunning)
    return wait("WaitingForImage", `${lateContainer(pod, sidecarSet)}: its node has not started the new image yet`);
  if (isRunningAndReady(pod)) return wait("HotUpgradeUnderWay", hotText(pod, sidecarSet));
  return wait("PodNotReady", `the pod has the newest version and is not ready yet; ${shareText(pod, sidecarSet)}`);
}

function hotText(pod: Pod, sidecarSet: SidecarSet): string {
  if (canFlip(pod, sidecarSet)) return "hot upgrade: the new container works, the next pass empties the old one";
  return "hot upgrade: the new container starts beside the old one, which works until then";
}

function failingContainer(pod: Pod, sidecarSet: SidecarSet): Step | undefined {
  const ours = sidecarContainerNames(sidecarSet);
  const unready = (pod.status?.containerStatuses ?? []).filter(({ ready }) => ready !== true);
  const worst = unready.find(({ name }) => ours.has(name)) ?? unready[0];
  const reason = worst && reasonOf(worst);
  if (!worst || !reason) return undefined;
  const image = pod.spec.containers.find(({ name }) => name === worst.name)?.image ?? "";
  if (PULL_ERRORS.has(reason))
    return stop(
      "ImagePullError",
      `${worst.name}: ${reason}: the image ${image} cannot be pulled`,
      `set an image that can: sidecarset set image ${nameOf(sidecarSet)} ${worst.name}=IMAGE, or sidecarset undo ${nameOf(sidecarSet)}`,
    );
  if (reason === "ContainerCreating" || reason === "PodInitializing")
    return wait("WaitingForImage", `${worst.name}: ${reason}: its node is starting it`);
  return stop(
    "ContainerFailing",
    `${worst.name}: ${reason}`,
    `kubectl logs -n ${pod.metadata?.namespace} ${pod.metadata?.name} -c ${worst.name} --previous`,
  );
}

function reasonOf({ state }: ContainerStatus): string | undefined {
  return state?.waiting?.reason ?? state?.terminated?.reason;
}

function lateContainer(pod: Pod, sidecarSet: SidecarSet): string {
  const late = [...sidecarContainerNames(sidecarSet)].find(
    (name) => !isConsistent(pod, nameOf(sidecarSet), new Set([name])),
  );
  return late ?? "a container";
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
function traceOwn(pod: Pod, sidecarSet: SidecarSet, { revisions, now }: UpdateFacts): Step | undefined {
  const selector = sidecarSet.spec.updateStrategy?.selector;
  if (selector && selectorMatches(selector, pod.metadata?.labels) !== true)
    return stop(
      "UpdateSelectorNotMatched",
      "updateStrategy.selector leaves the pod out",
      "remove the selector when all pods are to follow",
    );
  if (!isUpgradable(pod, sidecarSet)) {
    const fields = immutableFields(sidecarSet, [pod], revisions);
    const which = fields.length > 0 ? fields.join(", ") : "no revision is left that tells what";
    return stop(
      "NotUpgradable",
      `more than images changed since the pod was made: ${which}`,
      "only a new pod gets there: kubectl rollout restart of its workload",
    );
  }
  if (!hasSettled(pod, sidecarSet))
    return wait(
      "PreviousUpdateUnderWay",
      `${lateContainer(pod, sidecarSet)}: its node has not started the image of the previous update yet`,
    );
  const plan = planUpgrade(pod, sidecarSet, { now, latestRevision: "" });
  if (plan.kind === "planned") return undefined;
  return stop("UpdateRefused", `the pod is left alone: ${plan.message}`, "mend that, or make the pod anew");
}

/** What of the others is in the way. */
function traceTurn(pod: Pod, sidecarSet: SidecarSet, { pods, claims, now }: UpdateFacts): readonly Step[] {
  const uid = pod.metadata?.uid ?? "";
  const states = statesOf(pods, sidecarSet);
  if (claims.reserved.has(uid)) return [wait("Reserved", "a pass has reserved the pod and is writing to it")];
  const flips = states.filter((state) => canFlip(state.pod, sidecarSet)).length;
  if (flips > 0)
    return [wait("HotUpgradesFirst", `${counted(flips, "hot upgrade is", "hot upgrades are")} finished first`)];
  const canTake = ({ pod }: PodState) => planUpgrade(pod, sidecarSet, { now, latestRevision: "" }).kind === "planned";
  const beside = downBeside(sidecarSet, pods);
  const selection = selectPods(sidecarSet, states, { ...claims, downBeside: beside }, canTake);
  const place = [...selection.waiting].findIndex((state) => state.pod.metadata?.uid === uid) + 1;
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
  if (selection.selected.some((state) => state.pod.metadata?.uid === uid))
    return [traceNext(sidecarSet, `the pod is ${ofAll}, the next pass updates it`)];
  const order = selection.turn && outOfTurn(pod, selection.turn);
  if (order !== undefined) return [wait("OrderOfSets", `the pod is ${ofAll}: ${order}`)];
  const owner = ownerInTheWay(sidecarSet, selection.crowded, { pods: states, claims }, pod);
  if (owner !== undefined) return [wait("OwnerBudgetUsed", `the pod is ${ofAll}; ${owner}`)];
  return [wait("BudgetUsed", `the pod is ${ofAll}; ${budgetText(sidecarSet, states, selection)}`)];
}

function nameOf({ metadata }: SidecarSet): string {
  return metadata?.name ?? "";
}
