/** Why a pod has or lacks the sidecars of a SidecarSet: the rules in their order. */
import type {
  ControllerRevision,
  LabelSelector,
  LabelSelectorRequirement,
  Labels,
  Namespace,
  Pod,
} from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, INJECT_KEY, MIRROR_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { editDistance } from "../../../go/unseen.ts";
import { matches, replaceByCanary } from "../../injection/match/matches.ts";
import { commandText } from "../../pod/command-text.ts";
import { declinesSidecars, hasAllSidecars, isInjected } from "../../pod/is-matched.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import { isHotUpgrade, slotNames } from "../../pod/sidecar-containers.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import { wantedRevision } from "../../sidecarset/revision/wanted-revision.ts";
import { validateConflicts } from "../../sidecarset/validate/conflict.ts";
import { restartAdvice } from "../restart-advice.ts";
import { type AskedFacts, traceRegistration, whyUnasked } from "./registration.ts";
import { note, ok, type Reason, type Step, stop } from "./step.ts";
import { nameOf } from "./trace-updated.ts";

export interface InjectionFacts extends AskedFacts {
  /** revisions of this SidecarSet */
  readonly revisions: readonly ControllerRevision[];
  readonly settings: RolloutSettings;
}

/** The steps up to the first rule that excludes the pod, or up to "Injected" when the pod has the sidecars. */
export function traceInjection(pod: Pod, sidecarSet: SidecarSet, facts: InjectionFacts): readonly Step[] {
  const isThere = isInjected(pod, nameOf(sidecarSet));
  // A rule that excludes the pod now did not when the pod was created.
  const asSeen = (step: Step): Step => (isThere && step.verdict === "stop" ? seenLater(step) : step);
  const steps = untilStop([() => traceState(pod), ...rulesOf(pod, sidecarSet, facts)], asSeen);
  if (steps.at(-1)?.verdict === "stop") return steps;
  return [...steps, isThere ? traceInjected(pod, sidecarSet, facts) : traceMissing(pod, sidecarSet, facts)];
}

const LEFT_ALONE: ReadonlySet<Reason> = new Set<Reason>([
  ...(["PodFinished", "PodTerminating", "NamespaceNotSelected"] as const),
  ...(["SelectorMissing", "SelectorInvalid", "SelectorNotMatched"] as const),
]);

/** True when no pass counts the pod, whatever it runs. */
export function isLeftAlone(injection: readonly Step[]): boolean {
  return injection.some(({ reason, verdict }) => LEFT_ALONE.has(reason) && verdict !== "ok");
}

function seenLater(step: Step): Step {
  if (step.reason === "PodFinished") return step;
  const left = LEFT_ALONE.has(step.reason) ? ", so passes leave its sidecars as they are" : "";
  return { ...step, verdict: "note", message: `${step.message}${left}` };
}

/** The steps for a pod that does not exist yet. */
export function traceTemplate(pod: Pod, sidecarSet: SidecarSet, facts: InjectionFacts): readonly Step[] {
  return untilStop(rulesOf(pod, sidecarSet, facts), (step) => step);
}

function traceMirror({ metadata }: Pod): Step | undefined {
  if (metadata?.annotations?.[MIRROR_ANNOTATION] === undefined) return undefined;
  return stop(
    "ObjectExcluded",
    "the pod is the mirror of a static pod: the API server does not ask the webhook, for a node runs it from a file",
    "a static pod gets no sidecars: write them into its file, or leave the pod out of the selector",
  );
}

type Rule = () => Step | undefined;

function rulesOf(pod: Pod, sidecarSet: SidecarSet, facts: InjectionFacts): readonly Rule[] {
  return [
    () => traceMirror(pod),
    () => traceRegistration(pod, facts),
    () => traceNamespace(pod, sidecarSet, facts.namespace),
    () => traceSelector(pod, sidecarSet),
    () => traceOptOut(pod, facts.settings),
    () => traceCanary(pod, sidecarSet, facts),
    () => traceRevision(sidecarSet, facts.revisions),
  ];
}

function untilStop(rules: readonly Rule[], asSeen: (step: Step) => Step): readonly Step[] {
  const steps: Step[] = [];
  for (const rule of rules) {
    const step = rule();
    if (step !== undefined) steps.push(asSeen(step));
    if (steps.at(-1)?.verdict === "stop") break;
  }
  return steps;
}

function traceState({ status, metadata }: Pod): Step | undefined {
  if (status?.phase === "Succeeded" || status?.phase === "Failed")
    return stop("PodFinished", `the pod has finished (${status.phase})`, "pods that are done are left as they are");
  if (metadata?.deletionTimestamp)
    return stop("PodTerminating", "the pod is being deleted", "its successor gets its sidecars when it is created");
  return undefined;
}

export function traceNamespace(pod: Pod, sidecarSet: SidecarSet, namespace: Namespace | undefined): Step | undefined {
  const selector = sidecarSet.spec.namespaceSelector;
  if (!selector) return undefined;
  const name = pod.metadata?.namespace ?? "";
  const missed = failing(selector, namespace?.metadata?.labels);
  if (missed === undefined) return ok("NamespaceSelected", `namespaceSelector selects the namespace ${name}`);
  return stop(
    "NamespaceNotSelected",
    `namespaceSelector does not select the namespace ${name}: ${namespace === undefined ? "its labels cannot be read" : missed}`,
    `label the namespace, or change spec.namespaceSelector of ${nameOf(sidecarSet)}`,
  );
}

export function traceSelector({ metadata }: Pod, sidecarSet: SidecarSet): Step {
  const { selector } = sidecarSet.spec;
  if (!selector || isEmptySelector(selector))
    return stop("SelectorMissing", "the SidecarSet has no selector, so it selects no pod", "give it a spec.selector");
  const matched = selectorMatches(selector, metadata?.labels);
  if (typeof matched === "object")
    return stop(
      "SelectorInvalid",
      `the selector cannot be evaluated: ${matched.message}`,
      "use In, NotIn, Exists or DoesNotExist",
    );
  if (matched) return ok("SelectorMatched", "the selector matches the pod's labels");
  return stop(
    "SelectorNotMatched",
    `the selector does not match the pod's labels: ${failing(selector, metadata?.labels)}`,
    "labels count at the moment a pod is created: change its template, or spec.selector",
  );
}

function traceOptOut(pod: Pod, { PodOptOut }: RolloutSettings): Step | undefined {
  if (!declinesSidecars(pod)) return undefined;
  const said = `the pod has ${INJECT_KEY}: "false"`;
  if (!PodOptOut) return note("OptOutIgnored", `${said}, which counts only where the feature gate PodOptOut is on`);
  return stop("OptedOut", `${said}: it declines all sidecars`, "remove that from its template, and recreate it");
}

/** All requirements that fail; undefined: none. */
function failing(selector: LabelSelector, labels: Labels | undefined): string | undefined {
  const texts = missedRequirements(selector, labels).map(({ text }) => text);
  return texts.length === 0 ? undefined : texts.join("; ");
}

function traceCanary(pod: Pod, sidecarSet: SidecarSet, { sidecarSets, namespace }: InjectionFacts): Step | undefined {
  const podLabels = pod.metadata?.labels;
  const all = sidecarSets.filter(
    (one) => !one.spec.injectionStrategy?.paused && matches(one, { namespace, podLabels }) === true,
  );
  const isBoth = all.some((one) => nameOf(one) === nameOf(sidecarSet));
  if (!isBoth || replaceByCanary(all).some((one) => nameOf(one) === nameOf(sidecarSet))) return undefined;
  return stop(
    "ReplacedByCanary",
    "a canary of this SidecarSet matches the pod and takes its place",
    "see the SidecarSets with the annotation apps.kruise.io/sidecarset-base",
  );
}

/** The revision that new pods get; undefined: the newest. */
export function traceRevision(sidecarSet: SidecarSet, revisions: readonly ControllerRevision[]): Step | undefined {
  if (sidecarSet.spec.injectionStrategy?.paused)
    return stop(
      "InjectionPaused",
      "injection is paused: new pods come without its sidecars",
      "set spec.injectionStrategy.paused to false; then recreate pods that came without them",
    );
  const wanted = wantedRevision(sidecarSet);
  if (wanted === undefined) return undefined;
  const { revisionName, customVersion } = wanted;
  const name = revisionName ?? `custom version ${customVersion}`;
  const isThere = revisions.some(({ metadata }) =>
    revisionName === undefined
      ? metadata?.labels?.["apps.kruise.io/sidecarset-custom-version"] === customVersion
      : metadata?.name === revisionName,
  );
  if (isThere) return note("RevisionPinned", pinnedText(sidecarSet, name));
  return stop(
    "RevisionMissing",
    `injectionStrategy.revision names ${name}, which does not exist: new pods are refused`,
    `name a revision that there is: ${commandText`sidecarset history ${sidecarSet.metadata?.name}`}`,
  );
}

function traceInjected(pod: Pod, sidecarSet: SidecarSet, facts: InjectionFacts): Step {
  const missing = hasAllSidecars(pod, sidecarSet) ? [] : missingContainers(pod, sidecarSet);
  if (missing.length > 0)
    return stop(
      "ContainersMissing",
      `the pod was injected before the SidecarSet had ${missing.join(", ")}, and is in none of its counts`,
      `containers are added to new pods only: ${restartAdvice([pod], sidecarSet, { unasked: (one) => whyUnasked(one, facts) })}`,
    );
  const record = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]).records[nameOf(sidecarSet)];
  const since = record?.updateTimestamp ? `, as of ${record.updateTimestamp}` : "";
  return ok("Injected", `the pod has the sidecars of ${nameOf(sidecarSet)}${since}`);
}

function missingContainers(pod: Pod, { spec }: SidecarSet): readonly string[] {
  const names = new Set([...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name));
  const wanted = (spec.containers ?? []).flatMap((one) => (isHotUpgrade(one) ? slotNames(one.name) : [one.name]));
  return wanted.filter((name) => !names.has(name));
}

function traceMissing(pod: Pod, sidecarSet: SidecarSet, { sidecarSets, registrations }: InjectionFacts): Step {
  const [conflict] = validateConflicts(sidecarSet, sidecarSets);
  if (conflict)
    return stop(
      "ConflictsWithSidecarSet",
      `the SidecarSet is in conflict with another one: ${conflict.detail}`,
      "rename what both have, or make their selectors exclude each other",
    );
  const [made, setMade] = [pod.metadata?.creationTimestamp ?? "", sidecarSet.metadata?.creationTimestamp ?? ""];
  const age = secondsBetween(setMade, made);
  if (age !== undefined && age <= 0)
    return stop(
      "CreatedBeforeSidecarSet",
      `the pod was created at ${made}, the SidecarSet at ${setMade}: sidecars come with creation only`,
      restartAdvice([pod], sidecarSet, { promised: "any" }),
    );
  const policy = registrations?.[0]?.failurePolicy ?? "Ignore";
  return stop(
    "WebhookMissed",
    `the pod was created at ${made} and should have the sidecars: the webhook was not reached then (failurePolicy ${policy}), or labels or the SidecarSet were changed later`,
    `${restartAdvice([pod], sidecarSet, { promised: "any" })}; sidecarset check tells whether the webhook can be reached now`,
  );
}

// Tells which new pods get the revision that injectionStrategy names, in words.

/** With policy Partial, pods beyond the partition get it, or all pods while the rollout is paused. */
function pinnedText({ spec }: SidecarSet, name: string): string {
  const { injectionStrategy, updateStrategy = {} } = spec;
  const { partition, selector, paused } = updateStrategy;
  if (injectionStrategy?.revision?.policy !== "Partial" || paused)
    return `new pods get the revision ${name}, not the newest (injectionStrategy.revision)`;
  const share = typeof partition === "string" ? partition : "0%";
  const others = selector ? `, and all that updateStrategy.selector leaves out,` : "";
  return `${share} of new pods${others} get the revision ${name}, the others the newest (injectionStrategy.revision, policy Partial: the share is the partition's)`;
}

// Tells which requirements of a selector some labels miss, and how narrowly.

export interface Miss {
  /** such as `app is web, wanted shop` */
  readonly text: string;
  /** 0 to 1: a value with one different letter is near, an unrelated value is 1, and a missing one is further */
  readonly distance: number;
}

const ABSENT = 2;

/** In order: matchLabels, then matchExpressions. */
export function missedRequirements(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  labels: Labels = {},
): readonly Miss[] {
  const exact = Object.entries(matchLabels ?? {})
    .filter(([key, value]) => labels[key] !== value)
    .map(([key, value]) => miss(labels, key, value, [value]));
  const others = matchExpressions
    .filter((one) => selectorMatches({ matchExpressions: [one] }, labels) !== true)
    .map((one) => miss(labels, one.key, wantedText(one), one.operator === "In" ? (one.values ?? []) : []));
  return [...exact, ...others];
}

function wantedText({ operator, values }: LabelSelectorRequirement): string {
  return values?.length ? `${operator} ${values.join(", ")}` : operator;
}

function miss(labels: Labels, key: string, wanted: string, values: readonly string[]): Miss {
  const has = labels[key];
  const shown = has === undefined ? "absent" : has || '""';
  return { text: `${key} is ${shown}, wanted ${wanted}`, distance: distanceTo(has, values) };
}

function distanceTo(has: string | undefined, values: readonly string[]): number {
  if (has === undefined) return ABSENT;
  return Math.min(1, ...values.map((one) => editDistance(has, one) / Math.max(has.length, one.length, 1)));
}
