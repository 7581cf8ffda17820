/** Why a pod runs the newest sidecars, or what it waits for: the rules in their order. */
import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import { HALT_ON_ANNOTATION, HASH_ANNOTATION, SERVING, TRAFFIC_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { selectorMatches } from "../../../go/label-selector.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { commandText } from "../../pod/command-text.ts";
import { containerFailure, failureText } from "../../pod/container-failure.ts";
import { isPodReady } from "../../pod/is-ready.ts";
import { otherDrains, parseUpgradeRecords } from "../../pod/pod-records.ts";
import { canBeUpdated, hasOtherValues, type PodState, podStateOf, uidOf } from "../../pod/pod-state.ts";
import { whyNotRecreated } from "../../pod/replaced.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { unreadableState } from "../../pod/update-state.ts";
import { refusedText } from "../../refused-pods.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import { heldBy } from "../../rollout/rules/checks/check-records.ts";
import { isDrainable } from "../../rollout/rules/drain/drain.ts";
import { lastRefusal } from "../../rollout/rules/gate/approval.ts";
import { haltRoom, standstillOf } from "../../rollout/rules/halt/standstill.ts";
import { outOfTurn } from "../../rollout/rules/ordinals/ordinal-turn.ts";
import { ownerInTheWay } from "../../rollout/rules/owner-budget/owner-budget.ts";
import { nodeText } from "../../rollout/rules/pre-pull/pull-words.ts";
import type { Replacement } from "../../rollout/rules/replacement/replacement.ts";
import { resizeStanding } from "../../rollout/rules/resize/resize.ts";
import { checksNow, type WavesSummary } from "../../rollout/rules/waves/standing.ts";
import type { BudgetUse } from "../../rollout/select/budget.ts";
import { classify } from "../../rollout/select/classify.ts";
import { insteadOfImages, type Observed, sceneOf, stateReader } from "../../rollout/select/observed-states.ts";
import { immutableFields } from "../../rollout/upgrade/immutable-fields.ts";
import { OTHER_VALUES } from "../../rollout/upgrade/plan-batch.ts";
import { planUpgrade } from "../../rollout/upgrade/plan-upgrade.ts";
import { restartAdvice, type Unasked } from "../restart-advice.ts";
import { type SharedFacts, sharedFacts } from "./shared-facts.ts";
import { note, type Step, stop, told, wait } from "./step.ts";
import { inWave, traceHalt, traceNext, tracePaused, traceRestart, traceTrouble, traceWave } from "./trace-hold.ts";
import { lateContainer, nameOf, traceUnreadable, traceUpdated } from "./trace-updated.ts";

export interface UpdateFacts extends Omit<Observed, "sidecarSet"> {
  /** all selected pods, including this one */
  readonly pods: readonly Pod[];
  readonly settings: RolloutSettings;
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  /** absent: the registrations are unknown */
  readonly unasked?: Unasked | undefined;
}

/** `pod`: an injected pod with all of its containers. */
export function traceUpdate(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): readonly Step[] {
  const { settings } = facts;
  const state = stateReader({ ...facts, sidecarSet }, settings)(pod);
  const plain = podStateOf(pod, sidecarSet, undefined);
  const resize = settings.InPlaceResize ? resizeStanding(plain, sidecarSet) : undefined;
  if (resize !== undefined && state.isUpdated) return [traceShrink(state, sidecarSet, facts, resize)];
  const hasWayBack = () => traceInTheWay(pod, sidecarSet, facts).shared.hasWayBack();
  if (state.isUpdated)
    return [traceUpdated(state, sidecarSet, hasWayBack), ...tracePutBack(state, sidecarSet, facts.now)];
  const outdated = traceOutdated(pod, sidecarSet, facts);
  const { still, shared } = traceInTheWay(pod, sidecarSet, facts);
  const replacement = shared.scene().budgetUse.rules.replacement?.plan;
  const own = resize === undefined ? traceOwn(state, sidecarSet, facts, replacement) : resizeStep(resize, state);
  const inTheWay = [
    ...still,
    ...[
      own ?? [],
      still.length > 0 || replacement?.isForbidden(pod) ? [] : (traceRefused(pod, sidecarSet, facts, shared) ?? []),
    ].flat(),
  ];
  if (inTheWay.length > 0) return [...outdated, ...inTheWay];
  return [...outdated, ...traceTurn(state, sidecarSet, { facts, shared })];
}

/** Everything that holds all pods, worst first, and a function for single pods when nothing does. */
export function traceInTheWay(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts) {
  const shared = sharedFacts(sidecarSet, facts, {
    still: () => traceStill(sidecarSet, facts),
    unproven: () => traceUnproven(sidecarSet, facts),
  });
  const still = [shared.still(), traceStrategy(pod, sidecarSet, facts), traceTrouble(sidecarSet)];
  const found = still.filter((step) => step !== undefined);
  return { still: found.length > 0 ? found : [shared.unproven() ?? []].flat(), shared };
}

function traceStrategy(pod: Pod, sidecarSet: SidecarSet, { unasked }: UpdateFacts): Step | undefined {
  const strategy = sidecarSet.spec.updateStrategy;
  if (strategy?.type === "NotUpdate")
    return told("NotUpdate", "the update strategy is NotUpdate: only new pods get the new version", {
      hint: `set spec.updateStrategy.type to RollingUpdate, or ${restartAdvice([pod], sidecarSet, { unasked })}`,
    });
  return tracePaused(sidecarSet);
}

/** The explanation from the pod and its SidecarSet alone, for callers that may not read other pods. */
export function traceUpdateAlone(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): readonly Step[] {
  const state = stateReader({ ...facts, sidecarSet }, facts.settings)(pod);
  if (state.isUpdated) return [traceUpdated(state, sidecarSet, () => false)];
  const outdated = traceOutdated(pod, sidecarSet, facts);
  const own = traceStrategy(pod, sidecarSet, facts) ?? traceTrouble(sidecarSet) ?? traceOwn(state, sidecarSet, facts);
  if (own) return [...outdated, own];
  const name = nameOf(sidecarSet);
  return [
    ...outdated,
    note(
      "OthersNotRead",
      `nothing of the pod itself is in the way; the others may not be read with these rights, so its turn is not known: ${commandText`sidecarset status ${name} says how far the rollout is`}`,
    ),
  ];
}

/** The API server refused the last write to the pod, and passes try other pods meanwhile. */
function traceRefused(
  pod: Pod,
  sidecarSet: SidecarSet,
  { reserved }: UpdateFacts,
  shared: SharedFacts,
): Step | undefined {
  const refused = reserved.refused.named.filter(({ uid }) => uid === pod.metadata?.uid);
  const words = refusedText(refused);
  if (words === undefined) return undefined;
  const text = `${words}${insteadOfImages(shared.scene(), sidecarSet, [pod])}`;
  return told("refused", text, { trouble: { text, isLasting: true } });
}

export function traceStill(sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  const { revisions, now } = facts;
  const { states, waves } = sceneOf({ ...facts, sidecarSet }, facts);
  const checks = checksNow(sidecarSet, facts.checks, waves?.summary);
  const areAllUpdated = [...states].every(({ isUpdated }) => isUpdated);
  const { latestRevision } = sidecarSet.status ?? {};
  const still = standstillOf(sidecarSet, { areAllUpdated, latestRevision, pods: states, revisions, checks, now });
  return still && traceHalt(sidecarSet, { ...still, hasWayBack: still.hasWayBack });
}

export function traceUnproven(sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  const { states, budgetUse } = sceneOf({ ...facts, sidecarSet }, facts);
  if (haltRoom(sidecarSet, states, budgetUse) > 0) return undefined;
  return wait(
    "ReleaseUnproven",
    `as many pods as may were given the release and are not seen to be ready with it, while ${HALT_ON_ANNOTATION} is there: more follow as they come back`,
  );
}

function traceShrink(state: PodState, sidecarSet: SidecarSet, facts: UpdateFacts, standing: string): Step {
  const { shared } = traceInTheWay(state.pod, sidecarSet, facts);
  return traceRefused(state.pod, sidecarSet, facts, shared) ?? resizeStep(standing, state);
}

/** A resize that the node cannot give waits until somebody asks for less. */
function resizeStep(standing: string, { isUpdated, resize }: PodState): Step {
  const isFree = isUpdated ? resize?.isFree : resize?.isUnderWay === false;
  const message = `${standing}; ${isFree ? "other pods go on" : "the pod uses a share of maxUnavailable until then"}`;
  const hint = "give the SidecarSet resources that the node has, or its old ones";
  const step = told("shrink", message);
  return standing.startsWith("resize Infeasible") ? stop(step.reason, message, hint) : step;
}

function traceOutdated(pod: Pod, sidecarSet: SidecarSet, { revisions }: UpdateFacts): readonly Step[] {
  const failure = containerFailure(pod, sidecarContainerNames(sidecarSet));
  return [
    note("OutOfDate", outdatedText(pod, sidecarSet, revisions)),
    ...(failure ? [note("ContainerFailing", `${failureText(failure)}, with the version that the pod has`)] : []),
  ];
}

function outdatedText(pod: Pod, sidecarSet: SidecarSet, revisions: readonly ControllerRevision[]): string {
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
  const revisionOf = (hash: string | undefined) =>
    revisions.findLast(({ metadata }) => hash !== undefined && metadata?.annotations?.[HASH_ANNOTATION] === hash)
      ?.metadata?.name;
  const [has, wanted] = [records[nameOf(sidecarSet)]?.hash, sidecarSet.metadata?.annotations?.[HASH_ANNOTATION]];
  const name = revisionOf(has) ?? records[nameOf(sidecarSet)]?.controllerRevision ?? "an older version";
  const others = hasOtherValues(pod, sidecarSet) ? `; ${OTHER_VALUES}` : "";
  return `the pod has ${name}, the newest is ${revisionOf(wanted) ?? "not recorded yet"}${others}`;
}

/** The pod's own obstacle. */
function traceOwn(
  state: PodState,
  sidecarSet: SidecarSet,
  { revisions, now, settings, unasked }: UpdateFacts,
  replacement?: Replacement,
): Step | undefined {
  const { pod, resize } = state;
  const selector = sidecarSet.spec.updateStrategy?.selector;
  if (selector && selectorMatches(selector, pod.metadata?.labels) !== true)
    return told("notSelected", "updateStrategy.selector leaves the pod out");
  if (!canBeUpdated(state, sidecarSet)) return traceLacking(state, sidecarSet, { revisions, replacement });
  if (classify(state, sidecarSet) === "inFlight" && resize?.step !== "wait")
    return (
      (!state.isConsistent && unreadableState(pod) && traceUnreadable(pod)) ||
      told(
        "inFlight",
        `${lateContainer(state, sidecarSet)}: its node has not started the image of the previous update yet`,
      )
    );
  const withNatives = settings.NativeSidecarInPlaceUpdate;
  const plan = planUpgrade(pod, sidecarSet, { now, latestRevision: "", withNatives });
  if (plan.kind === "planned") return undefined;
  return told("leftAlone", `the pod is left alone: ${plan.message}`, {
    hint: `fix that, or ${restartAdvice([pod], sidecarSet, { unasked })}`,
  });
}

interface Turn {
  readonly facts: UpdateFacts;
  readonly shared: SharedFacts;
}

/** The obstacles by other pods. */
function traceTurn(state: PodState, sidecarSet: SidecarSet, { facts, shared }: Turn): readonly Step[] {
  const { pod } = state;
  const uid = uidOf(pod);
  if (facts.reserved.uids.has(uid)) return [wait("Reserved", "a pass has reserved the pod and is writing to it")];
  const [flips, shrinks] = [shared.flips(), shared.shrinks()];
  if (flips > 0) return [told("flip", `${counted(flips, "hot upgrade is", "hot upgrades are")} finished first`)];
  if (shrinks > 0)
    return [told("shrink", `${counted(shrinks, "pod is", "pods are")} given smaller cpu and memory first`)];
  const selection = shared.selection();
  const place = shared.places().get(uid) ?? 0;
  const { states, waves } = shared.scene();
  const own = waves && states.find((state) => uidOf(state.pod) === uid);
  const ofAll = `${place} of ${selection.waiting.length} that wait${inWave(own, waves)}`;
  const first = selection.waiting.length - selection.kept;
  if (place > first)
    return [
      told("partition", `the pod is ${ofAll}, and the partition keeps the last ${selection.kept}`, {
        name: nameOf(sidecarSet),
      }),
    ];
  const later = traceWave(own, waves);
  if (later) return [later];
  const answers = { ...facts, waves: waves?.summary };
  const replacement = shared.scene().budgetUse.rules.replacement?.plan;
  const isRestarted = isReplacedBy(replacement, state, sidecarSet);
  const restart = isRestarted ? traceRestart(pod, sidecarSet, answers, shared.restarts()) : undefined;
  if (restart) return [restart];
  if (shared.next().has(uid)) return [traceFirst(state, sidecarSet, ofAll, { ...answers, replacement })];
  return [traceBehind(pod, sidecarSet, ofAll, { facts, shared })];
}

/** True when another pod replaces it, or would with the annotation. */
function isReplacedBy(replacement: Replacement | undefined, state: PodState, sidecarSet: SidecarSet): boolean {
  return replacement?.replaces(state) ?? !canBeUpdated(state, sidecarSet);
}

/** Explains the first action on a selected pod. */
function traceFirst(
  state: PodState,
  sidecarSet: SidecarSet,
  ofAll: string,
  answers: UpdateFacts & {
    readonly waves?: WavesSummary | undefined;
    readonly replacement?: Replacement | undefined;
  },
): Step {
  const isReplaced = isReplacedBy(answers.replacement, state, sidecarSet);
  const drain = state.drain && traceDrain(state.drain.since, sidecarSet, ofAll, answers.now);
  const why = answers.replacement?.isForbidden(state.pod) ? ", because Kubernetes lets no image change" : "";
  const act = isReplaced ? `evicts it, and another comes in its place${why}` : updateText(state.pod, sidecarSet);
  return drain ?? traceNext(sidecarSet, answers, `the pod is ${ofAll}, the next pass ${act}`);
}

function tracePutBack({ pod, isConsistent, drain }: PodState, { metadata }: SidecarSet, now: string): readonly Step[] {
  const others = otherDrains(pod, metadata?.name ?? "", now);
  if (others.length > 0)
    return [
      drainStep(`${others.join(", ")} drains the pod, which uses a share of maxUnavailable until it is put back`),
    ];
  if (!isConsistent || drain === undefined) return [];
  return [drainStep(`the pod is drained since ${drain.since}, the next pass puts it back`)];
}

function drainStep(message: string, seconds = 0): Step {
  return told("drain", message, { rules: { drain: { pods: 1, seconds } } });
}

function traceDrain(since: string, sidecarSet: SidecarSet, ofAll: string, now: string): Step | undefined {
  const left = (steeringOf(sidecarSet).drainSeconds ?? 0) - (secondsBetween(since, now) ?? 0);
  const next = left > 0 ? `its sidecars restart in ${counted(left, "second")}` : "the next pass updates it";
  return drainStep(`the pod is ${ofAll} and drained since ${since}: ${next}`, Math.max(0, left));
}

function updateText(pod: Pod, sidecarSet: SidecarSet): string {
  const { drainSeconds } = steeringOf(sidecarSet);
  if (drainSeconds === undefined) return "updates it";
  if (!isDrainable(pod)) return `updates it, without a drain: it has no label ${TRAFFIC_LABEL}=${SERVING}`;
  return isPodReady(pod) ? `drains it for ${counted(drainSeconds, "second")}, and then updates it` : "updates it";
}

/** The obstacle by pods ahead of this one. */
function traceBehind(
  pod: Pod,
  sidecarSet: SidecarSet,
  ofAll: string,
  { facts, shared }: Pick<Turn, "facts" | "shared">,
): Step {
  const { states, budgetUse, waves } = shared.scene();
  const selection = shared.selection();
  // The pods ahead are refused, so this one waits for the gate, not for them.
  const answers = { ...facts, waves: waves?.summary };
  if (isRefused(sidecarSet, answers, selection.selected, budgetUse))
    return traceNext(sidecarSet, answers, `the pod is ${ofAll}`);
  const order = selection.turn && outOfTurn(pod, selection.turn);
  if (order !== undefined) return told("order", `the pod is ${ofAll}: ${order}`);
  const owner = ownerInTheWay(selection.crowded, { pods: states, budgetUse }, pod);
  if (owner !== undefined) return told("ownerBudget", `the pod is ${ofAll}; ${owner}`);
  const disruption = selection.held.find((one) => one.uid === uidOf(pod));
  if (disruption) return told("disruptionBudget", `the pod is ${ofAll}; ${disruption.why}`);
  const { used, maxUnavailable, pulls } = selection;
  if (pulls?.summary && pulls.waiting.has(uidOf(pod)))
    return told("prePull", `the pod is ${ofAll}; ${nodeText(pulls.summary, pod.spec.nodeName ?? "")}`, {
      rules: { prePull: pulls.summary },
    });
  return told("budget", `the pod is ${ofAll}; ${shared.budget()}`, { used, maxUnavailable, matched: states.length });
}

/** True when the gate refused the next pods, or checks of metrics hold them, and they are not reserved yet. */
function isRefused(
  sidecarSet: SidecarSet,
  { checks, now, waves }: UpdateFacts & { readonly waves?: WavesSummary | undefined },
  next: Iterable<PodState>,
  { reserved }: BudgetUse,
): boolean {
  const isHeld = lastRefusal(sidecarSet) ?? heldBy(checksNow(sidecarSet, checks, waves), now);
  return isHeld !== undefined && [...next].some(({ pod }) => !reserved.has(uidOf(pod)));
}

// A pod that only a new pod can replace: its differing fields, and whether a pass replaces it.

interface Lacking {
  readonly unasked?: Unasked | undefined;
  readonly revisions: readonly ControllerRevision[];
  /** absent: no pod is replaced */
  readonly replacement: Replacement | undefined;
}

/** Undefined: a pass will replace it. */
function traceLacking(
  { pod, native }: PodState,
  sidecarSet: SidecarSet,
  { revisions, replacement, unasked }: Lacking,
): Step | undefined {
  if (replacement?.allows(pod)) return undefined;
  const why = replacement && (whyNotRecreated(pod, sidecarSet) ?? replacement.stop);
  const kept = why === undefined ? "" : `; it is not replaced: ${why}`;
  if (native?.hindrance !== undefined)
    return told("nothingWaits", `${native.hindrance}${kept}`, {
      hint: "only a new pod gets there, or one on a newer node",
    });
  const fields = immutableFields(sidecarSet, [pod], revisions);
  const which = fields.length > 0 ? fields.join(", ") : "no revision is left that tells what";
  return told("nothingWaits", `more than images changed since the pod was made: ${which}${kept}`, {
    hint: `only a new pod gets there: ${restartAdvice([pod], sidecarSet, { unasked })}`,
  });
}
