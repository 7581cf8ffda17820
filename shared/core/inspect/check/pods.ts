/** Faults of a SidecarSet's pods: pods that lack sidecars, and pods that a rollout skips. */
import type { LabelSelector, Namespace, Pod } from "../../../api/kubernetes.ts";
import { NAMESPACE_NAME_LABEL, NEEDS_WEBHOOK_CONDITION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { isEmptySelector, selectorMatches, selectorsOverlap } from "../../../go/label-selector.ts";
import { callCondition, widenedBySidecarSet } from "../../injection/match/call-condition.ts";
import { NO_MIRROR_PODS, namespaceKeys } from "../../injection/match/matches.ts";
import { isActive, isInjected, isMatched, podName } from "../../pod/is-matched.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { noPodsText } from "../explain/explain.ts";
import { restartAdvice } from "../restart-advice.ts";
import { type Facts, seenOf } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";
import { leavesNothingOut, type Registered, type Registrations, selects } from "./webhooks.ts";

/** One SidecarSet, its intended pods, and the state of its rollout. */
export interface Rollout {
  readonly sidecarSet: SidecarSet;
  readonly pods: readonly Pod[];
  /** pods that should have its sidecars but do not */
  readonly missed: readonly Pod[];
  /** number of its ControllerRevisions */
  readonly revisions: number;
  /** how many of them the next pass deletes */
  readonly deletable: number;
  readonly notUpgradable: number;
  /** advice for recreating those pods; "" when there are none */
  readonly renewal: string;
  /** the fields that differ in those pods */
  readonly immutableFields: readonly string[];
  /** skipped pods, each with the reason */
  readonly refused: readonly string[];
}

const DEFAULT_LIMIT = 10;

export function checkRollout(rollout: Rollout): readonly Finding[] {
  return [...checkInjection(rollout), ...checkUpdates(rollout), ...checkHistory(rollout)];
}

function aboutOf({ sidecarSet }: Rollout): string {
  return `SidecarSet ${sidecarSet.metadata?.name}`;
}

function checkInjection(rollout: Rollout): readonly Finding[] {
  const { sidecarSet, pods, missed } = rollout;
  const { selector } = sidecarSet.spec;
  const about = aboutOf(rollout);
  const older = pods.filter(
    (pod) => isActive(pod) && isInjected(pod, sidecarSet.metadata?.name ?? "") && !isMatched(pod, sidecarSet),
  );
  const names = sidecarContainerNames(sidecarSet);
  const taken = pods.filter(
    (pod) =>
      isActive(pod) &&
      !isInjected(pod, sidecarSet.metadata?.name ?? "") &&
      pod.spec.containers.some(({ name }) => names.has(name)),
  );
  return [
    ...where(
      pods.length === 0 && !!selector && !isEmptySelector(selector),
      finding("MatchesNoPods", about, noPodsText(sidecarSet), "see its selector, and that of its namespaces"),
    ),
    ...where(
      missed.length > 0,
      finding(
        "InjectionMissed",
        about,
        `${counted(missed.length, "pod was made after it, matches it, and lacks", "pods were made after it, match it, and lack")} its sidecars, as happens while the webhook is down: ${someOf(missed.map(podName))}`,
        restartAdvice(missed, sidecarSet, { promised: "any" }),
      ),
    ),
    ...where(
      older.length > 0,
      finding(
        "ContainersMissing",
        about,
        `${counted(older.length, "pod was injected before it had all of its containers, and is", "pods were injected before it had all of its containers, and are")} in none of its counts: ${someOf(older.map(podName))}`,
        `containers are added to new pods only: ${restartAdvice(older, sidecarSet)}`,
      ),
    ),
    ...where(
      taken.length > 0,
      finding(
        "ContainerNameTaken",
        about,
        `${counted(taken.length, "pod has", "pods have")} a container of its own with the name of one of its sidecars, which takes its place once the pod is recreated: ${someOf(taken.map(podName))}`,
        "give one of the two another name",
      ),
    ),
  ];
}

function checkUpdates(rollout: Rollout): readonly Finding[] {
  const { notUpgradable, immutableFields, refused } = rollout;
  const about = aboutOf(rollout);
  const fields = immutableFields.length > 0 ? ` (${someOf(immutableFields)})` : "";
  return [
    ...where(
      notUpgradable > 0,
      finding(
        "PodsNotUpgradable",
        about,
        `${counted(notUpgradable, "pod")} cannot be updated in place, since more than images changed${fields}`,
        rollout.renewal,
      ),
    ),
    ...where(
      refused.length > 0,
      finding(
        "PodsRefused",
        about,
        `${counted(refused.length, "pod is", "pods are")} left alone: ${someOf(refused)}`,
        "fix that, or recreate them",
      ),
    ),
  ];
}

function checkHistory(rollout: Rollout): readonly Finding[] {
  const { revisions, deletable, sidecarSet } = rollout;
  const limit = Math.max(1, sidecarSet.spec.revisionHistoryLimit ?? DEFAULT_LIMIT);
  const used = revisions - deletable - limit;
  const reason =
    used > 0
      ? `${used} more than the limit are in use by pods, or by injectionStrategy`
      : `${deletable} of them are to be deleted, which no pass has done`;
  return where(
    revisions > limit,
    finding(
      "RevisionsBeyondLimit",
      aboutOf(rollout),
      `it has ${counted(revisions, "revision")}, its revisionHistoryLimit is ${limit}: ${reason}`,
      "finish its rollout (partition, pods that are not upgradable), or raise the limit",
    ),
  );
}

// Tells whether API servers ask the pod webhook about the pods that SidecarSets select, and about how many others.

const SYSTEM: Namespace = { metadata: { name: "kube-system", labels: { [NAMESPACE_NAME_LABEL]: "kube-system" } } };

export function checkCoverage(facts: Facts, { pods }: Registrations): readonly Finding[] {
  const [first] = pods;
  if (first === undefined) return [];
  const sets = (seenOf(facts.sidecarSets) ?? []).filter(isMeantForSome);
  const namespaces = seenOf(facts.namespaces) ?? [];
  return [
    ...pods.flatMap((one) => checkSystem(one, namespaces)),
    ...sets.flatMap((one) => checkSet(one, pods, namespaces)),
    ...checkStale(pods, sets, facts),
    ...pods.flatMap((one) => checkConditions(one, sets, facts)),
  ];
}

function isMeantForSome({ spec: { selector } }: SidecarSet): boolean {
  return !!selector && !isEmptySelector(selector);
}

function checkSystem({ webhook, configuration }: Registered, namespaces: readonly Namespace[]): readonly Finding[] {
  const system = namespaces.find(({ metadata }) => metadata?.name === SYSTEM.metadata?.name) ?? SYSTEM;
  return where(
    selects(webhook.namespaceSelector, system.metadata?.labels),
    finding(
      "KubeSystemAsked",
      `webhook ${configuration}/${webhook.name}`,
      "API servers ask about pods in kube-system: while the webhook is down, what the cluster itself needs comes up late, or not at all",
      "leave it out by the namespaceSelector, as sidecarset webhooks prints it",
    ),
  );
}

/** Checks that a registration covers the SidecarSet's pods. */
function checkSet(
  sidecarSet: SidecarSet,
  pods: readonly Registered[],
  namespaces: readonly Namespace[],
): readonly Finding[] {
  const about = `SidecarSet ${sidecarSet.metadata?.name}`;
  const meant = namespaces.filter((one) => isSelected(sidecarSet, one));
  const isLeftOut = ({ metadata }: Namespace) =>
    !pods.some(({ webhook }) => selects(webhook.namespaceSelector, metadata?.labels));
  const leftOut = meant.filter(isLeftOut).map(({ metadata }) => metadata?.name ?? "");
  if (meant.length > 0 && leftOut.length === meant.length)
    return [
      finding(
        "SidecarSetNotAsked",
        about,
        `API servers ask about no pod of it: the webhook's namespaceSelector leaves out ${someOf(leftOut)}`,
        "choose other namespaces, or change the namespaceSelector of the registration",
      ),
    ];
  const named = leftOut.filter((name) => namespaceKeys(sidecarSet)?.includes(name));
  return [...where(named.length > 0, partly(about, named)), ...checkObjects(sidecarSet, pods)];
}

function partly(about: string, named: readonly string[]): Finding {
  return finding(
    "SidecarSetPartlyAsked",
    about,
    `it names ${someOf(named)}, which the webhook's namespaceSelector leaves out: pods there get no sidecars`,
    "take them out of the SidecarSet, or change the namespaceSelector of the registration",
  );
}

function isSelected({ spec: { namespaceSelector } }: SidecarSet, { metadata }: Namespace): boolean {
  return !namespaceSelector || selectorMatches(namespaceSelector, metadata?.labels) === true;
}

function checkObjects({ metadata, spec: { selector } }: SidecarSet, pods: readonly Registered[]): readonly Finding[] {
  const about = `SidecarSet ${metadata?.name}`;
  const narrowing = pods.map(({ webhook }) => webhook.objectSelector ?? {});
  const isWhole = narrowing.some((one) => isEmptySelector(one) || implies(selector, one));
  if (isWhole) return [];
  if (narrowing.some((one) => selector && selectorsOverlap(one, selector)))
    return [
      finding(
        "SidecarSetPartlyAsked",
        about,
        "the webhook's objectSelector may leave out some of its pods, which get no sidecars then",
        "take the objectSelector out of the registration",
      ),
    ];
  return [
    finding(
      "SidecarSetNotAsked",
      about,
      "API servers ask about no pod of it: the webhook's objectSelector wants other labels",
      "take the objectSelector out of the registration",
    ),
  ];
}

/** True when everything that the selector matches has the wanted labels. */
function implies(selector: LabelSelector | undefined, wanted: LabelSelector): boolean {
  if ((wanted.matchExpressions ?? []).length > 0) return false;
  return Object.entries(wanted.matchLabels ?? {}).every(([key, value]) => selector?.matchLabels?.[key] === value);
}

/** Registrations add up: API servers ask about a pod that any of them covers. */
function checkStale(pods: readonly Registered[], sets: readonly SidecarSet[], { settings }: Facts): readonly Finding[] {
  const conditions = pods.map(conditionOf);
  const isLeftOut = (one: SidecarSet) =>
    conditions.every((known) => known !== undefined && widenedBySidecarSet(known, one) !== known);
  return [
    ...sets.filter(isLeftOut).map(staleFor),
    ...where(
      settings.KruisePodReadinessGate && !conditions.includes(undefined),
      finding(
        "ConditionStale",
        "registration",
        "FEATURE_GATES has KruisePodReadinessGate, which is for every pod, and API servers do not ask about those that no SidecarSet is meant for",
        "print it again with sidecarset webhooks, without --from-cluster, and apply it, or set KEEP_REGISTRATION",
      ),
    ),
  ];
}

function conditionOf({ webhook }: Registered): string | undefined {
  return webhook.matchConditions?.find(({ name }) => name === NEEDS_WEBHOOK_CONDITION)?.expression;
}

function checkConditions(one: Registered, sets: readonly SidecarSet[], { settings }: Facts): readonly Finding[] {
  const { webhook, configuration } = one;
  const about = `webhook ${configuration}/${webhook.name}`;
  const conditions = webhook.matchConditions ?? [];
  const known = [NEEDS_WEBHOOK_CONDITION, NO_MIRROR_PODS.name];
  const foreign = conditions.map(({ name }) => name).filter((name) => !known.includes(name));
  const isWhole = conditionOf(one) === undefined && leavesNothingOut(webhook.objectSelector);
  const could = isWhole && !settings.KruisePodReadinessGate && sets.length > 0 && callCondition(sets);
  return [
    ...where(
      foreign.length > 0,
      finding(
        "ConditionUnknown",
        about,
        `matchConditions that are not ours decide too which pods are asked about: ${someOf(foreign)}`,
        "see that they are true for every pod that a SidecarSet is meant for",
      ),
    ),
    ...where(
      !!could,
      finding(
        "EveryPodAsked",
        about,
        "API servers ask about every new pod, also where no SidecarSet is meant for it",
        "sidecarset webhooks --from-cluster has them ask about fewer, and KEEP_REGISTRATION keeps that up to date",
      ),
    ),
  ];
}

function staleFor({ metadata }: SidecarSet): Finding {
  return finding(
    "ConditionStale",
    `SidecarSet ${metadata?.name}`,
    "API servers do not ask about all of its pods: the condition of the registration was made before the SidecarSet, or before its selector",
    "print it again with sidecarset webhooks --from-cluster and apply it, or set KEEP_REGISTRATION (docs/deploy-scale.md)",
  );
}
