/** Compares every text about a rollout with the book of holds, for one cluster. */
import { isDeepStrictEqual } from "node:util";
import { standingOf } from "../../functions/cli/input/progress.ts";
import { createMetrics } from "../../functions/server/metrics.ts";
import type { Pod, PodCondition } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { explain } from "../../shared/controller/rollout/dry-run.ts";
import { newTally, type PassReport, type SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { transitions } from "../../shared/controller/rollout/status-additions.ts";
import { checkBlocked } from "../../shared/core/inspect/check/passes.ts";
import { explainPod, explainSidecarSet } from "../../shared/core/inspect/explain/explain.ts";
import { reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import { isMatched } from "../../shared/core/pod/is-matched.ts";
import { parseUpgradeRecords } from "../../shared/core/pod/pod-records.ts";
import { BOOK, endOf, holdOfBlocked, holdsIn, saidBy, wordsOf } from "../../shared/core/rollout/book.ts";
import { conditionsOf } from "../../shared/core/rollout/conditions/conditions.ts";
import {
  causeOfState,
  natureOf,
  ROLLOUT_VERDICTS,
  type RolloutVerdict,
  storedVerdict,
} from "../../shared/core/rollout/conditions/verdict.ts";
import { type DecideContext, decide, type Observation } from "../../shared/core/rollout/decide.ts";
import { CAUSES, type Hold } from "../../shared/core/rollout/hold.ts";
import { isStill } from "../../shared/core/rollout/hold-effects.ts";
import { asLastAnswered } from "../../shared/core/rollout/narrow.ts";
import { isPassTrouble } from "../../shared/core/rollout/pass-trouble.ts";
import { planRollout } from "../../shared/core/rollout/plan/plan.ts";
import { embeddedMetrics } from "../../shared/metrics/catalogue.ts";

/** A pass's observation, and the context of its decision. */
export interface HoldScene {
  readonly observation: Observation;
  readonly context: DecideContext;
}

export type Judged = ReturnType<typeof judged>;

/**
 * Returns what readers and passes say about one cluster. `sidecarSets`: all SidecarSets of the cluster; absent: only
 * this one.
 */
export function judged(
  { observation, context }: HoldScene,
  sidecarSets: readonly SidecarSet[] = [observation.sidecarSet],
) {
  const { sidecarSet, pods } = observation;
  const { now } = context;
  const name = sidecarSet.metadata?.name ?? "";
  const decision = asLastAnswered(observation, decide(observation, context), now);
  const { summary, failing, halt, status } = decision;
  const held = { ...summary, halt };
  const standing = { summary, failing, halt, latestRevision: status.latestRevision, missed: [] };
  const stored = { ...sidecarSet, status: { ...sidecarSet.status, ...status, conditions: [] } };
  const conditions = conditionsOf(stored, standing, now);
  const after = { ...stored, status: { ...stored.status, conditions } };
  const condition = (type: string) => conditions.find((one) => one.type === type);
  const state = ROLLOUT_VERDICTS.find((word) => word === condition("Ready")?.reason) as RolloutVerdict;
  const known = { ...stored, status: { ...stored.status, conditions: sidecarSet.status?.conditions ?? [] } };
  const stateSince = conditionsOf(known, standing, now).find(({ type }) => type === "Ready")?.reason;
  const words = wordsOf(summary.hold, held, name);
  const report: SidecarSetReport = {
    name,
    stop: "settled",
    why: "",
    summary,
    state,
    cause: causeOfState(state, words.cause),
    tally: newTally(),
  };
  const facts = {
    ...observation,
    ...context,
    pods: [...pods],
    registrations: [{ name: "mpod.kb.io" }],
    namespace: { metadata: { name: "default" } },
    sidecarSets,
    lastPass: now,
  };
  const isTrouble = natureOf(state).isTrouble === true;
  const text = BOOK[summary.hold].blocked?.text(held, failing);
  const reported = { ...observation, pods: [...pods] };
  const page = once(() =>
    reportOnSidecarSet({ observation: reported, events: [], missed: new Set(), lastPass: now }, context),
  );
  return {
    observation,
    context,
    name,
    now,
    decision,
    held,
    words,
    conditions,
    condition,
    state,
    /** the cause that metrics and logs name: that of the pods, if they determine the state */
    ownCause: OF_PODS[state] ?? words.cause,
    /** the state from a pass that remembers that the rollout was finished */
    stateSince,
    report,
    after,
    stored,
    facts,
    isTrouble,
    text,
    page,
  };
}

const OF_PODS: { readonly [State in RolloutVerdict]?: string } = {
  Degraded: "PodsFail",
  NotUpgradable: "NotUpgradable",
};

/** Returns a function that makes the value at its first call. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export function passOf(one: SidecarSetReport, startedAt: string): PassReport {
  const nothing = { problems: [], notReached: [], unread: [], calls: {} };
  return { ...nothing, startedAt, durationMs: 1, isDryRun: false, sidecarSets: [one] };
}

type Place = (one: Judged) => readonly (string | undefined)[];

/** Describes a difference; undefined: both are equal. */
function differs(what: string, said: unknown, wanted: unknown): string | undefined {
  return isDeepStrictEqual(said, wanted)
    ? undefined
    : `${what}: ${JSON.stringify(said)}, and the book ${JSON.stringify(wanted)}`;
}

function isOneOf(what: string, said: unknown, wanted: readonly unknown[]): string | undefined {
  return wanted.includes(said) ? undefined : `${what}: ${JSON.stringify(said)}, and the book ${JSON.stringify(wanted)}`;
}

function contains(what: string, text: string, part: string): string | undefined {
  return text.includes(part) ? undefined : `${what}: ${JSON.stringify(text)}, without ${JSON.stringify(part)}`;
}

/** Holds during which pods that were allowed earlier may still become ready. */
const OF_OUTSIDE: ReadonlySet<Hold> = new Set(["gateDown", "metrics"]);
/** The old pods for which `explain` names the hold. The compiler demands a row for a new hold. */
const NAMED_FOR: Readonly<Record<Hold, "every pod" | "a pod" | "no pod">> = {
  paused: "every pod",
  NotUpdate: "every pod",
  halted: "every pod",
  unreadable: "every pod",
  refused: "no pod",
  passRefused: "every pod",
  unreachable: "every pod",
  contention: "every pod",
  unread: "every pod",
  passFailed: "every pod",
  gate: "no pod",
  gateDown: "no pod",
  metrics: "no pod",
  finished: "no pod",
  flip: "no pod",
  shrink: "no pod",
  drain: "no pod",
  partition: "a pod",
  budget: "a pod",
  prePull: "a pod",
  order: "a pod",
  ownerBudget: "a pod",
  wave: "a pod",
  disruptionBudget: "a pod",
  evictionRefused: "no pod",
  restart: "no pod",
  leftAlone: "a pod",
  inFlight: "a pod",
  notSelected: "a pod",
  nothingWaits: "a pod",
  none: "no pod",
};

/** True if the scheduler, or a readiness gate of others, keeps the pod unready. */
function isOfOthers({ type, status, reason }: PodCondition): boolean {
  return (type === "PodScheduled" && status === "False") || (type === "Ready" && reason === "ReadinessGatesNotReady");
}

/** Reasons of the page about pods that may use the budget. */
const PODS_IN_BUDGET = ["ContainerFailing", "PodNotReady"];

export const PLACES = {
  "where the stored status is blocked by refusals, readers say that they block": ({ observation, held, text }) => {
    const stored = observation.sidecarSet.status?.conditions?.find(({ type }) => type === "Blocked");
    const isStored = stored?.status === "True" && holdOfBlocked(stored.reason) === held.hold;
    if (!(isStored && isPassTrouble(held.hold))) return [];
    return [differs(`readers of ${stored?.reason}`, text, stored?.message)];
  },

  "the condition Blocked has the reason and the words of the hold, or says that nothing blocks": ({
    held,
    text,
    condition,
  }) => {
    const [blocked, ready] = [condition("Blocked"), condition("Ready")];
    const status = differs("Blocked", blocked?.status, text === undefined ? "False" : "True");
    // The text names the refused pods, and passes continue with others.
    const warned = (BOOK[held.hold].blocked?.warning?.(held) ?? held.trouble?.text) !== undefined;
    if (text === undefined) return [status, differs("Blocked", blocked?.reason === "NotBlocked", !warned)];
    return [
      status,
      differs("Blocked", [blocked?.message, holdOfBlocked(blocked?.reason ?? "")], [text, held.hold]),
      differs(
        "Ready",
        [ready?.status, ready?.reason, ready?.message],
        ["False", saidBy(BOOK[held.hold].verdict, held), text],
      ),
    ];
  },

  "a rollout that is stalled is not progressing": ({ condition }) => [
    condition("Stalled")?.status === "True"
      ? differs("Progressing", condition("Progressing")?.status, "False")
      : undefined,
  ],

  "STATE, the page and the condition Ready say the same word": ({ page, after, state, stateSince }) => {
    return [differs("STATE", storedVerdict(after)?.verdict, state), differs("page", page().verdict, stateSince)];
  },

  "one Event names what begins to block the rollout": ({ stored, after, text }) => {
    const events = transitions(stored, after).filter(({ reason }) => reason === "Blocked");
    return [
      differs(
        "Event",
        events.map(({ type, message }) => [type, message]),
        text === undefined ? [] : [["Warning", text]],
      ),
    ];
  },

  "explain names the cause of the hold, as grave as the book has it": ({ observation, facts, decision, words }) => {
    const steps = explainSidecarSet(observation.sidecarSet, facts).filter(({ reason }) => reason === words.cause);
    // The words about a pod that is down may name its container instead.
    const areKeptElsewhere = facts.pods.some(
      ({ spec, status }) => (spec.schedulingGates ?? []).length > 0 || status?.conditions?.some(isOfOthers),
    );
    const verdicts = {
      trouble: ["stop"],
      wait: ["wait", ...(decision.failing.length > 0 || areKeptElsewhere ? ["stop"] : [])],
      held: ["stop", "wait"],
      none: ["ok", "note"],
    };
    // There are other words for pods that the next pass updates, and for a SidecarSet without pods.
    if (decision.summary.matched === 0 || (decision.summary.hold === "none" && steps.length === 0)) return [];
    return [isOneOf(`explain of ${words.cause}`, steps[0]?.verdict, verdicts[words.severity])];
  },

  "explain gives each reason once, and the page has every cause at which explain stops": ({
    observation,
    facts,
    decision,
    page,
  }) => {
    if (decision.summary.matched === 0) return [];
    const steps = explainSidecarSet(observation.sidecarSet, facts);
    const reasons = steps.map(({ reason }) => reason as string);
    const stops = steps.flatMap(({ verdict, reason }) => (verdict === "stop" && reason in CAUSES ? reason : []));
    const shown = new Set<string>(page().reasons.map(({ reason }) => reason));
    return [
      differs(
        "reasons given twice",
        // Pods of two releases may each be not ready.
        reasons.filter((one, index) => one in CAUSES && reasons.indexOf(one) !== index),
        [],
      ),
      differs(
        "causes missing on the page",
        // The page names pods that fail or are kept unready, and explain the budget that they use.
        stops.filter(
          (one) => !shown.has(one) && !(one === "BudgetUsed" && PODS_IN_BUDGET.some((pods) => shown.has(pods))),
        ),
        [],
      ),
    ];
  },

  "no sentence of the page has a value that is not there": ({ page }) =>
    page().reasons.map(({ title, text }) =>
      `${title} ${text}`.includes("undefined") ? `page: ${title}: ${text}` : undefined,
    ),

  "check finds pods that fail where the state is Degraded": ({ observation, decision, state }) => [
    state === "Degraded" && checkBlocked(observation.sidecarSet, decision).length === 0
      ? "check finds nothing where pods fail"
      : undefined,
  ],

  "explain of a pod that waits names the cause of the hold": ({ observation, facts, held, words, name }) => {
    const { sidecarSet } = observation;
    const hash = sidecarSet.metadata?.annotations?.[HASH_ANNOTATION];
    const isOld = (pod: Pod) =>
      isMatched(pod, sidecarSet) &&
      parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]).records[name]?.hash !== hash;
    const old = facts.pods.filter(isOld);
    const causes = old.map((pod) => explainPod(pod, sidecarSet, facts).map(({ reason }) => reason as string));
    const beside = holdsIn(held).map((hold) => wordsOf(hold, held, name).cause as string);
    const isNaming = (reasons: readonly string[]) =>
      reasons.some((reason) => [words.cause, ...beside].includes(reason));
    const naming = causes.filter(isNaming).length;
    const { paused, type } = sidecarSet.spec.updateStrategy ?? {};
    if (isPassTrouble(held.hold) && (paused || type === "NotUpdate")) return [];
    if (NAMED_FOR[held.hold] === "every pod") return [differs(`pods that name ${words.cause}`, naming, old.length)];
    // A pod has no reason to wait if a pass writes to it, if it cannot be written to, or if it stays unchanged.
    const others = ["Reserved", "WritesRefused", "UpdateRefused", "NotUpgradable"].filter((one) => one !== words.cause);
    const waits = causes.some((reasons) => !others.some((one) => reasons.includes(one)));
    if (!waits || NAMED_FOR[held.hold] === "no pod") return [];
    return [naming > 0 ? undefined : `no pod waits for ${words.cause}, but for ${JSON.stringify(causes)}`];
  },

  "explain advises about a rollout that stands still what the book advises": ({ observation, facts, held, words }) => {
    const [step] = explainSidecarSet(observation.sidecarSet, facts).filter(({ reason }) => reason === words.cause);
    if (!isStill(held.hold) || step?.verdict !== "stop") return [];
    return [differs(`advice about ${words.cause}`, step.hint, words.next)];
  },

  "a command that sets an image names a container of the SidecarSet": ({ observation: { sidecarSet }, facts }) => {
    const steps = facts.pods.flatMap((pod) => explainPod(pod, sidecarSet, facts));
    const names = sidecarSet.spec.containers?.map(({ name }) => name) ?? [];
    const set = steps.flatMap(({ hint = "" }) => /set image \S+ (\S+)=IMAGE/.exec(hint)?.[1] ?? []);
    return set.map((name) => isOneOf("container of set image", name, names));
  },

  "the page names the cause of the hold, as grave as the book has it": ({ page, held, words }) => {
    const found = page().reasons.find(({ reason }) => reason === words.cause);
    // While pods are being updated, the text need not name the cause for the other pods.
    if (found === undefined && !holdsIn(held).includes(held.hold)) return [];
    return [differs(`page about ${words.cause}`, found?.kind, words.severity === "none" ? undefined : words.severity)];
  },

  "the page is as grave about a pod as explain of that pod, where both give the same reason": ({
    observation: { sidecarSet },
    facts,
    page,
  }) =>
    page().reasons.flatMap(({ reason, kind, pods }) => {
      const named = facts.pods.filter(({ metadata: { namespace, name } = {} }) =>
        pods.some((one) => one.name === `${namespace}/${name}`),
      );
      const steps = named.flatMap((pod) => explainPod(pod, sidecarSet, facts).filter((step) => step.reason === reason));
      return steps.map(({ verdict }) => differs(`page about ${reason}`, kind === "wait", verdict === "wait"));
    }),

  "status, plan and the report say the clause of the hold": ({ observation, context, facts, held, decision }) => {
    const clause = BOOK[held.hold].clause(decision.summary);
    const { before } = planRollout(observation, { ...context, readyAfterSeconds: 5, maxSteps: 1 });
    return [
      contains("report", explain("oneRound", decision.summary), clause),
      contains("plan", explain("oneRound", before), clause),
      differs("status", standingOf(observation.sidecarSet, facts).summary, decision.summary),
    ];
  },

  "status -w ends where somebody has to act, and only there or where a person asked for the stop": ({
    observation,
    facts,
    held,
    words,
    text,
    isTrouble,
  }) => {
    const end = endOf(held);
    const arePodsMoving = held.selected > 0 || held.used > 0 || held.updated > held.updatedReady;
    // Restarts of workloads continue while a gate is down.
    const isMoving = arePodsMoving || (held.rules.restarts?.underWay.length ?? 0) > 0;
    const isStopped = standingOf(observation.sidecarSet, facts).isStopped === true;
    return [
      isStopped ? differs("stopped", [end === "well", isTrouble], [false, true]) : undefined,
      text !== undefined && words.severity === "trouble" && !(isMoving && OF_OUTSIDE.has(held.hold))
        ? differs("stopped", isStopped, true)
        : undefined,
      words.severity === "wait" ? differs("end", end, undefined) : undefined,
    ];
  },

  "check names the cause where the state is trouble and the rollout is blocked, with something else to do than check":
    ({ observation, decision, after, words, text, isTrouble, now }) => {
      const blockedIn = (set: SidecarSet, known?: typeof decision) =>
        checkBlocked(set, known).filter(({ id }) => id === "RolloutBlocked");
      const isSaid = text !== undefined && (isTrouble || words.severity === "trouble");
      const found = blockedIn(observation.sidecarSet, decision);
      // These are computed from the last pass' status, without the pods.
      const stored = blockedIn(after);
      if (!isSaid)
        return [
          differs("findings", found, blockedIn(observation.sidecarSet)),
          differs("findings by the status", stored.length, 0),
        ];
      return [
        differs("findings", found.length, 1),
        ...found.map(({ message }) => contains("check", message, `(${words.cause}): ${text}`)),
        ...found.map(({ hint = "" }) => (hint.includes("sidecarset check") ? `check advises ${hint}` : undefined)),
        differs("findings by the status", stored.length, 1),
        ...stored.map(({ message }) => contains("check", message, `since ${now} (${words.cause}): ${text}`)),
      ];
    },

  "metrics carry the cause, and tell of trouble where the state is trouble": ({
    report,
    state,
    ownCause,
    isTrouble,
    name,
    now,
  }) => {
    const metrics = createMetrics();
    metrics.addPass(passOf(report, now), 0);
    const lines = metrics.text();
    const { State, Cause } = (embeddedMetrics(passOf(report, now), 0)[1] ?? {}) as Record<string, unknown>;
    return [
      contains("metrics", lines, `sidecarset_state{sidecarset="${name}",state="${state}",cause="${ownCause}"} 1`),
      contains("metrics", lines, `sidecarset_in_trouble{sidecarset="${name}"} ${Number(isTrouble)}`),
      differs("embedded metrics", [State, Cause], [state, ownCause]),
    ];
  },
} satisfies Readonly<Record<string, Place>>;

/** Returns every contradiction, with the place of the text. */
export function placeProblems(one: Judged): readonly string[] {
  return Object.values(PLACES).flatMap((place: Place) => place(one).filter((problem) => problem !== undefined));
}

/** Returns every hold that applies now, the most severe first. */
export function combinationOf({ held }: Judged): string {
  return [held.hold, ...holdsIn(held).filter((hold) => hold !== held.hold)].join(" + ");
}
