/** The explanation of a pod or a rollout: an ordered trace of every rule. */
import type { Namespace, Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { isEmptySelector } from "../../../go/label-selector.ts";
import { declinesSidecars, isActive, isInjected, isMatched } from "../../pod/is-matched.ts";
import { controllerOf, evictsMissed, mayEvictMissed, restartsMissed, whyNotRecreated } from "../../pod/replaced.ts";
import { BOOK } from "../../rollout/book.ts";
import { decide } from "../../rollout/decide.ts";
import { asLastAnswered } from "../../rollout/narrow.ts";
import { lastFailure } from "../../rollout/pass-trouble.ts";
import type { Summary } from "../../rollout/summary.ts";
import { isTooLarge, TOO_LARGE } from "../../rollout/upgrade/project-pod.ts";
import { validateConflicts } from "../../sidecarset/validate/conflict.ts";
import { restartAdvice, whyNoSidecars } from "../restart-advice.ts";
import { whyUnasked } from "./registration.ts";
import { note, ok, type Reason, type Step, stop, told, wait } from "./step.ts";
import { traceGeneration, tracePaused, traceRestart, traceTick, traceTrouble } from "./trace-hold.ts";
import {
  type InjectionFacts,
  isLeftAlone,
  type Miss,
  missedRequirements,
  traceInjection,
  traceNamespace,
  traceRevision,
  traceSelector,
} from "./trace-injection.ts";
import { type SetFacts, traceRollout } from "./trace-rollout.ts";
import { traceInTheWay, traceUpdate, traceUpdateAlone, type UpdateFacts } from "./trace-update.ts";

/** Pure. First why the pod has the sidecars or not, then whether they are the newest, then whether passes run. */
export function explainPod(pod: Pod, sidecarSet: SidecarSet, given: SetFacts & InjectionFacts): readonly Step[] {
  const facts = withUnasked(given);
  const injection = traceInjection(pod, sidecarSet, facts);
  const { reason } = injection.at(-1) ?? {};
  if (reason === "WebhookMissed") return withMissed(injection, traceMissed(pod, sidecarSet, facts));
  if (reason !== "Injected") return injection;
  const isLeft = isLeftAlone(injection) && !isCounted(pod, facts);
  if (isTooLarge(pod, sidecarSet) && !isLeft) return [...injection, tooLarge()];
  const update = traceUpdate(pod, sidecarSet, facts);
  const isDone = update.at(-1)?.reason === "UpdatedAndReady";
  if (isLeft && !isDone) return injection;
  return [...injection, ...update, ...(isDone ? [] : traceWork(sidecarSet, facts))];
}

/** True when a pass has selected the pod. */
function isCounted(pod: Pod, { pods }: SetFacts): boolean {
  return isActive(pod) && pods.some(({ metadata }) => metadata?.uid === pod.metadata?.uid);
}

function tooLarge(): Step {
  return stop("PodTooLarge", `the pod ${TOO_LARGE}`, "take away labels or annotations of kruise.io, or recreate it");
}

const knownFacts = new WeakMap<object, SetFacts & InjectionFacts>();

/** The same object for the same facts, because other caches use it as a key. */
function withUnasked(facts: SetFacts & InjectionFacts): SetFacts & InjectionFacts {
  const known = knownFacts.get(facts) ?? { ...facts, unasked: (pod: Pod) => whyUnasked(pod, facts) };
  knownFacts.set(facts, known);
  return known;
}

/** Replaces the last step if the pod missed its sidecars. A step that continues by itself needs no advice. */
function withMissed(injection: readonly Step[], missed: Step | undefined): readonly Step[] {
  if (missed === undefined) return injection;
  const { message } = injection.at(-1) as Step;
  return [...injection.slice(0, -1), note("WebhookMissed", message), missed];
}

/** Pure. The explanation from the pod and its SidecarSet alone, for callers that may not read other pods. */
export function explainPodAlone(pod: Pod, sidecarSet: SidecarSet, given: SetFacts & InjectionFacts): readonly Step[] {
  const facts = withUnasked(given);
  const injection = traceInjection(pod, sidecarSet, facts);
  if (injection.at(-1)?.reason !== "Injected" || isLeftAlone(injection)) return injection;
  if (isTooLarge(pod, sidecarSet)) return [...injection, tooLarge()];
  return [...injection, ...traceUpdateAlone(pod, sidecarSet, facts)];
}

/** Pure. The state of the rollout, and everything that blocks it. */
export function explainSidecarSet(
  sidecarSet: SidecarSet,
  facts: SetFacts & Pick<InjectionFacts, "sidecarSets">,
): readonly Step[] {
  const { selector } = sidecarSet.spec;
  if (!selector || isEmptySelector(selector))
    return [stop("SelectorMissing", "the SidecarSet has no selector, so it selects no pod", "give it a spec.selector")];
  const decided = decide({ ...facts, sidecarSet }, facts);
  const decision = asLastAnswered({ ...facts, sidecarSet }, decided, facts.now);
  const { summary } = decision;
  return [
    ...traceNewPods(sidecarSet, facts),
    ...traceMatched(sidecarSet, facts, summary),
    ...traceRollout(sidecarSet, facts, decision),
    ...(BOOK[summary.hold].reason === "Finished" && summary.updated === summary.updatedReady
      ? []
      : traceWork(sidecarSet, facts)),
  ];
}

function traceWork(sidecarSet: SidecarSet, { lastPass, now }: SetFacts): readonly Step[] {
  return [traceGeneration(sidecarSet) ?? [], traceTick(lastPass, now)].flat();
}

/** The sidecars that new pods get. */
function traceNewPods(
  sidecarSet: SidecarSet,
  { sidecarSets, revisions }: Pick<InjectionFacts, "sidecarSets" | "revisions">,
): readonly Step[] {
  const [conflict] = validateConflicts(sidecarSet, sidecarSets);
  return [
    ...[traceRevision(sidecarSet, revisions) ?? []].flat(),
    ...(conflict
      ? [
          stop(
            "ConflictsWithSidecarSet",
            `it is in conflict with another SidecarSet: ${conflict.detail}`,
            "rename what both have, or make their selectors exclude each other",
          ),
        ]
      : []),
  ];
}

/** The condition MissedInjection is False while injection is paused, so nobody has to act on the pods. */
function traceLacking(lacking: readonly Pod[], sidecarSet: SidecarSet, unasked: SetFacts["unasked"]): readonly Step[] {
  if (lacking.length === 0) return [];
  const text = `${counted(lacking.length, "pod matches and has", "pods match and have")} none of its sidecars`;
  if (sidecarSet.spec.injectionStrategy?.paused)
    return [note("PodsLackSidecars", `${text}; while injection is paused no pod counts as missed`)];
  const advice = restartAdvice(lacking, sidecarSet, { promised: "any", unasked });
  const hint = `sidecarset explain pod/NAMESPACE/NAME says why of each; sidecars come when a pod is created: ${advice}`;
  return [stop("PodsLackSidecars", text, hint)];
}

/** Pods that it selected earlier may still have its sidecars. */
export function noPodsText({ spec }: SidecarSet): string {
  return spec.namespaceSelector
    ? "its selector matches no pod that runs in a namespace that its namespaceSelector selects"
    : "its selector matches no pod that runs";
}

function traceMatched(sidecarSet: SidecarSet, { pods, unasked }: SetFacts, { matched }: Summary): readonly Step[] {
  const active = pods.filter(isActive);
  const name = sidecarSet.metadata?.name ?? "";
  const lacking = active.filter(
    (pod) => !isInjected(pod, name) && !declinesSidecars(pod) && whyNoSidecars(pod) === undefined,
  );
  const older = active.filter((pod) => isInjected(pod, name) && !isMatched(pod, sidecarSet));
  return [
    active.length === 0
      ? note("NoPods", noPodsText(sidecarSet))
      : ok(
          "PodsMatched",
          `${counted(matched, "pod has", "pods have")} its sidecars, of ${active.length} that its selector matches`,
        ),
    ...traceLacking(lacking, sidecarSet, unasked),
    ...(older.length > 0
      ? [
          stop(
            "ContainersMissing",
            `${counted(older.length, "pod was made before the SidecarSet had all of its containers, and is", "pods were made before the SidecarSet had all of its containers, and are")} in none of its counts`,
            `containers are added to new pods only: ${restartAdvice(older, sidecarSet, { unasked })}`,
          ),
        ]
      : []),
  ];
}

/** The explanations of many pods at once, each by its decisive rule. */
interface PodTrace {
  readonly pod: string;
  readonly steps: readonly Step[];
}

/** Steps about running passes, which are the same for all pods. */
const WORK: ReadonlySet<Reason> = new Set(["ChangeNotSeen", "TickNotRunning", "TickUnknown", "TickRunning"]);

/** One step per reason, with its number of pods. Steps that need somebody come first, running passes last. */
export function groupTraces(traces: readonly PodTrace[]): readonly Step[] {
  const groups = Map.groupBy(traces, ({ steps }) => decisive(steps)?.reason);
  const rank = { stop: 0, wait: 1, note: 2, ok: 3 };
  const grouped = [...groups.values()]
    .flatMap((those) => groupStep(those, traces.length))
    .toSorted((a, b) => rank[a.verdict] - rank[b.verdict]);
  const work = traces.map(({ steps }) => steps.filter(({ reason }) => WORK.has(reason)));
  return [...grouped, ...(work.find((steps) => steps.length > 0) ?? [])];
}

function decisive(all: readonly Step[]): Step | undefined {
  const steps = all.filter(({ reason }) => !WORK.has(reason));
  return (
    steps.find(({ verdict }) => verdict === "stop") ?? steps.find(({ verdict }) => verdict === "wait") ?? steps.at(-1)
  );
}

function groupStep(traces: readonly PodTrace[], all: number): readonly Step[] {
  const [first] = traces;
  const step = first && decisive(first.steps);
  if (first === undefined || step === undefined) return [];
  const which = traces.length === 1 ? first.pod : `such as ${first.pod}`;
  return [{ ...step, message: `${traces.length} of ${all} pods, ${which}: ${step.message}` }];
}

/** The SidecarSets that come nearest to an unselected pod, and the requirements that it misses. */
export interface NearSet {
  readonly sidecarSet: string;
  /** rules that exclude the pod, each with everything it misses */
  readonly steps: readonly Step[];
}

const NAMED = 3;

/** The nearest first: fewer missed requirements, then more similar values. `namespace`: undefined: unreadable. */
export function nearestSets(
  pod: Pod,
  namespace: Namespace | undefined,
  sidecarSets: readonly SidecarSet[],
): readonly NearSet[] {
  return sidecarSets
    .map((one) => ({ sidecarSet: one.metadata?.name ?? "", ...farness(pod, namespace, one), one }))
    .toSorted((a, b) => a.misses - b.misses || a.distance - b.distance || compareUtf8(a.sidecarSet, b.sidecarSet))
    .slice(0, NAMED)
    .map(({ sidecarSet, one }) => ({ sidecarSet, steps: stepsOf(pod, namespace, one) }));
}

/** A SidecarSet without a selector selects no pod. */
function farness({ metadata }: Pod, namespace: Namespace | undefined, { spec }: SidecarSet) {
  const all: readonly Miss[] = [
    ...(spec.selector ? missedRequirements(spec.selector, metadata?.labels) : []),
    ...(spec.namespaceSelector ? missedRequirements(spec.namespaceSelector, namespace?.metadata?.labels) : []),
  ];
  const misses = all.length === 0 ? Number.POSITIVE_INFINITY : all.length;
  return { misses, distance: all.reduce((sum, { distance }) => sum + distance, 0) };
}

function stepsOf(pod: Pod, namespace: Namespace | undefined, sidecarSet: SidecarSet): readonly Step[] {
  const steps = [traceSelector(pod, sidecarSet), traceNamespace(pod, sidecarSet, namespace)];
  return steps.flatMap((step) => (step?.verdict === "stop" ? [step] : []));
}

// The steps about a pod that missed its sidecars.

/** Undefined: the SidecarSet does not recreate such pods. */
function traceMissed(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  if (evictsMissed(sidecarSet)) return traceEviction(pod, sidecarSet, facts);
  return restartsMissed(sidecarSet) ? traceOwnRestart(pod, sidecarSet, facts) : undefined;
}

function traceEviction(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): Step {
  if (!mayEvictMissed(pod, sidecarSet))
    return stop(
      "NotEvicted",
      `it is not evicted: ${whyNotRecreated(pod, sidecarSet)}`,
      restartAdvice([pod], sidecarSet, { promised: "any", unasked: facts.unasked }),
    );
  const inTheWay = tracePaused(sidecarSet) ?? (lastFailure(sidecarSet) && traceTrouble(sidecarSet));
  if (inTheWay) return inTheWay;
  const { kind, name } = controllerOf(pod) ?? {};
  return wait(
    "Evicting",
    `passes evict it, within maxUnavailable, and the ${kind} ${name} creates another with sidecars`,
  );
}

function traceOwnRestart(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  const { still, shared } = traceInTheWay(pod, sidecarSet, facts);
  if (still.length > 0) return still[0];
  const { budgetUse, waves } = shared.scene();
  const stopped = budgetUse.rules.replacement?.plan?.isStopped(pod)
    ? budgetUse.rules.replacement?.plan.stop
    : undefined;
  const why = whyNotRecreated(pod, sidecarSet) ?? stopped;
  if (why !== undefined)
    return told("restart", `its workload is not restarted: ${why}`, {
      hint: restartAdvice([pod], sidecarSet, { promised: "any", unasked: facts.unasked }),
    });
  return traceRestart(pod, sidecarSet, { ...facts, waves: waves?.summary }, shared.restarts());
}
