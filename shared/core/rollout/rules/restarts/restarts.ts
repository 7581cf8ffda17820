/** Chooses the workloads that are restarted next, if restarts replace evictions, with the reason why others are not. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { RESTARTED_AT_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import { each, inTurns, type Sequence } from "../../../../go/sequence.ts";
import type { Action, Restarted, RestartedKind } from "../../../actions.ts";
import { canBeUpdated, type PodState } from "../../../pod/pod-state.ts";
import { isOwnerKept, restartsAtOnce } from "../../../pod/replaced.ts";
import { keyOfWorkload, type RestartedWorkload, restartedWorkloadOf } from "../../../pod/workload.ts";
import { currentHash } from "../../history/history.ts";
import { type BudgetUse, maxUnavailableOf, totalOf, usedBudget, usesBudget } from "../../select/budget.ts";
import type { WavesNow } from "../waves/standing.ts";
import {
  mostDown,
  type Restarting,
  restartTime,
  type Workload,
  whyNotRestarted,
  withRestartFor,
} from "./workload-object.ts";

/** Limit of workloads that are read for one decision, because only few block others. */
const MOST_READ = 50;
/** Number of workloads that are read beyond the available room. */
const SPARE = 2;
const DAY_SECONDS = 86_400;

export type RestartWorkload = Extract<Action, { kind: "RestartWorkload" }>;

export interface RestartPlan {
  readonly actions: readonly RestartWorkload[];
  /** restarts for the ledger to keep: running ones, and ones about to begin */
  readonly open: readonly Restarted[];
  /** workloads to read first; the decision may change afterwards */
  readonly asks: readonly RestartedWorkload[];
  /** reasons why workloads are not restarted now, by key */
  readonly held: ReadonlyMap<string, string>;
  /** number of workloads that wait for running restarts */
  readonly waiting: number;
  /** number of workloads that their own state holds, and not a partition */
  readonly stuck: number;
  /** number of workloads that wait for their wave, or whose new pods lack sidecars */
  readonly aside: number;
  /** the reason why no workload can be read, in one sentence */
  readonly refusal?: string | undefined;
}

export interface RestartFacts {
  readonly sidecarSet: SidecarSet;
  readonly states: Sequence<PodState>;
  readonly budgetUse: BudgetUse;
  /** the selection of single pods */
  readonly selection: {
    readonly selected: readonly PodState[];
    readonly line: Sequence<PodState>;
  };
  readonly waves?: Pick<WavesNow, "isOpen"> | undefined;
  /** false: a halt leaves no room for restarts */
  readonly hasRoom: boolean;
  /** the present time, RFC3339 */
  readonly now: string;
}

interface Candidate {
  readonly ref: RestartedWorkload;
  /** number of outdated pods, and how many of them may be updated now */
  lacking: number;
  allowed: number;
  /** true: one of its pods needs a restart, or missed its sidecars */
  isWanted: boolean;
  isReady: boolean;
  /** the reason why none of its pods that missed their sidecars gets them now */
  aside?: string;
}

/** The plan; undefined: no restart is requested, and none is running. */
export function planRestarts(restarting: Restarting | undefined, facts: RestartFacts): RestartPlan | undefined {
  const { sidecarSet, budgetUse } = facts;
  const {
    rules: { restarts: open },
  } = budgetUse;
  if (restarting === undefined || open === undefined) return undefined;
  const under = new Set(open.map(keyOfWorkload));
  const held = new Map<string, string>();
  const all = restartsAtOnce(sidecarSet) === 0 ? [] : candidatesOf(restarting, facts);
  const line = all.filter(({ ref }) => !under.has(ref.key));
  const isHeld = ({ lacking, allowed, aside }: Candidate) => aside !== undefined || lacking > allowed;
  // A namespace may have more unrestartable workloads, such as paused ones, than a pass reads.
  const inLine = Map.groupBy(
    line.filter((one) => !isHeld(one)),
    ({ isReady }) => isReady,
  );
  const had = restartedToday(facts);
  const free = [true, false]
    .map((isReady) => inTurns(inLine.get(isReady) ?? [], ({ ref }) => ref.namespace, had))
    .flatMap((part) => fromTurn(part, restarting))
    .map(({ ref }) => ref);
  for (const { ref, aside = "others of its pods have to stay as they are" } of line.filter(isHeld))
    held.set(ref.key, aside);
  const aside = line.filter((one) => one.aside !== undefined).length;
  const refusal = whyNoneIsRead(restarting, open, free);
  const places = refusal === undefined && mayBeDown(restarting, facts) > 0 ? placesOf(facts) : 0;
  return { open, held, aside, refusal, ...take(free, places, restarting, { ...facts, held }) };
}

/** The workloads from another start in each pass. If more wait than a pass reads, the first ones may all be stuck. */
function fromTurn<T>(line: readonly T[], { turn = 0 }: Restarting): readonly T[] {
  const first = line.length > MOST_READ ? Math.floor(turn * line.length) : 0;
  return [...line.slice(first), ...line.slice(0, first)];
}

/**
 * Why no workload is restarted when one cannot be read. A running restart that cannot be read blocks, because nobody
 * knows how many pods it takes down. Others block only when none is left to try: a role may permit a single namespace,
 * perhaps the last one.
 */
function whyNoneIsRead(
  { workloads, unread = new Map<string, string>() }: Restarting,
  open: readonly Restarted[],
  free: readonly RestartedWorkload[],
): string | undefined {
  const underWay = open.map(keyOfWorkload).find((key) => unread.has(key));
  if (underWay !== undefined) return `workloads ${unread.get(underWay)}`;
  const asked = free.filter(({ key }) => unread.has(key)).length;
  const isRole = workloads.size === 0 && unread.size > 0 && asked >= Math.min(MOST_READ, free.length);
  return isRole ? `workloads ${unread.values().next().value}` : undefined;
}

interface TakeFacts extends RestartFacts {
  readonly held: Map<string, string>;
}

/** Takes known workloads from the front, and asks for some unknown ones. */
function take(free: readonly RestartedWorkload[], places: number, restarting: Restarting, facts: TakeFacts) {
  if (places === 0) return { actions: [], asks: [], waiting: free.length, stuck: 0 };
  const { workloads, unread = new Map<string, string>() } = restarting;
  const unknown = free.filter(({ key }) => !workloads.has(key) && !unread.has(key));
  const known = unknown[0] ? free.slice(0, free.indexOf(unknown[0])) : free;
  const fit = known.filter((ref) => isFit(ref, unread.get(ref.key) ?? workloads.get(ref.key) ?? null, facts));
  const stuck = known.length - fit.length;
  const asks =
    fit.length < places && workloads.size + unread.size < MOST_READ ? unknown.slice(0, places + SPARE + stuck) : [];
  const actions = within(fit.slice(0, places), restarting, facts);
  return { actions, asks, waiting: free.length - actions.length - stuck, stuck };
}

/** The pods that may be down by maxUnavailable. A percentage includes pods without sidecars, which are in no count. */
function mayBeDown({ missed }: Restarting, { sidecarSet, states, budgetUse }: RestartFacts): number {
  return maxUnavailableOf(sidecarSet.spec.updateStrategy, totalOf(states, budgetUse) + missed.length);
}

/** Number of restarts that may begin. It is 0 while single pods are written to, and the reverse holds too. */
function placesOf({ sidecarSet, budgetUse, selection, hasRoom }: RestartFacts): number {
  const isFree = selection.selected.length === 0 && budgetUse.reserved.size === 0;
  if (!(isFree && hasRoom)) return 0;
  return Math.max(0, restartsAtOnce(sidecarSet) - (budgetUse.rules.restarts ?? []).length);
}

/** True if the workload can restart; false: `held` has the reason. `workload`: the object, or why it was not read */
function isFit(
  { key, workload: kind }: RestartedWorkload,
  workload: Workload | string | null,
  { sidecarSet, budgetUse, held }: TakeFacts,
): boolean {
  const why = typeof workload === "string" ? `it ${workload}` : whyNot(kind, workload, sidecarSet, budgetUse);
  if (why !== undefined) held.set(key, why);
  return why === undefined;
}

function whyNot(kind: RestartedKind, workload: Workload | null, sidecarSet: SidecarSet, { rules }: BudgetUse) {
  if (workload === null) return `there is no such ${kind} that its pods belong to`;
  const { namespace, uid = "" } = workload.metadata ?? {};
  if (isOwnerKept(rules.replacement?.keptOwners, namespace, uid))
    return "its restart, or others of its namespace, were refused a moment ago";
  return whyNotRestarted(kind, workload, sidecarSet.metadata?.name ?? "", currentHash(sidecarSet));
}

/** The workloads that maxUnavailable allows if each takes down its maximum. A larger workload restarts alone. */
function within(fit: readonly RestartedWorkload[], restarting: Restarting, facts: RestartFacts) {
  const { workloads } = restarting;
  const { sidecarSet, states, budgetUse, now } = facts;
  const {
    rules: { restarts: open = [] },
  } = budgetUse;
  const costOf = (one: Omit<Restarted, "uid">) => mostDown(one.workload, workloads.get(keyOfWorkload(one)) ?? {});
  const actions: RestartWorkload[] = [];
  let down = usedBudget(states, budgetUse) + stillToGo(costOf, facts);
  for (const { workload, namespace, name, key } of fit) {
    const isAlone = down === 0 && open.length + actions.length === 0;
    down += costOf({ workload, namespace, name });
    if (down > mayBeDown(restarting, facts) && !isAlone) break;
    const object = workloads.get(key) ?? {};
    const { uid = "", resourceVersion = "" } = object.metadata ?? {};
    const restartedFor = withRestartFor(object, sidecarSet.metadata?.name ?? "", currentHash(sidecarSet));
    const subject = { workload, namespace, name, uid, resourceVersion };
    actions.push({ kind: "RestartWorkload", workload: subject, at: restartTime(object, now), restartedFor });
  }
  return actions;
}

/** The pods that running restarts may still take down, beyond those already down. */
function stillToGo(costOf: (one: Restarted) => number, { states, budgetUse }: RestartFacts): number {
  const {
    rules: { restarts: open = [] },
  } = budgetUse;
  if (open.length === 0) return 0;
  const left = new Map(open.map((one) => [keyOfWorkload(one), costOf(one)]));
  each(states, (state) => {
    const key = usesBudget(state, budgetUse) ? restartedWorkloadOf(state.pod)?.key : undefined;
    if (key !== undefined) left.set(key, Math.max(0, (left.get(key) ?? 0) - 1));
  });
  return [...left.values()].reduce((sum, one) => sum + one, 0);
}

/** Workloads in the order of their first pods; ones with pods that are down come last, as they may never finish. */
function candidatesOf({ missed }: Restarting, facts: RestartFacts) {
  const { sidecarSet, states, selection, budgetUse } = facts;
  const found = new Map<string, Candidate>();
  const of = (pod: Pod): Candidate | undefined => {
    const ref = restartedWorkloadOf(pod);
    if (ref === undefined) return undefined;
    const one = found.get(ref.key) ?? { ref, lacking: 0, allowed: 0, isWanted: false, isReady: true };
    found.set(ref.key, one);
    return one;
  };
  each(selection.line, (state) => {
    const one = of(state.pod);
    if (one === undefined) return;
    one.allowed++;
    one.isWanted ||=
      !canBeUpdated(state, sidecarSet) || budgetUse.rules.replacement?.plan?.isForbidden(state.pod) === true;
  });
  for (const pod of missed) {
    const one = of(pod);
    const aside = whyAside(pod, facts);
    if (one === undefined) continue;
    one.isWanted = true;
    if (aside !== undefined) one.aside = aside;
  }
  each(states, ({ pod, isUpdated, isReady }) => {
    const ref = restartedWorkloadOf(pod);
    const one = ref && found.get(ref.key);
    if (one === undefined) return;
    if (!isUpdated) one.lacking++;
    one.isReady &&= isReady;
  });
  const wanted = [...found.values()].filter(({ isWanted }) => isWanted);
  return [...wanted.filter(({ isReady }) => isReady), ...wanted.filter(({ isReady }) => !isReady)];
}

/** Number of workloads, by namespace, whose restart in the last day updated pods: other namespaces come first. */
function restartedToday({ states, now }: RestartFacts): ReadonlyMap<string, number> {
  const keys = new Set<string>();
  each(states, ({ pod, isUpdated }) => {
    const at = pod.metadata?.annotations?.[RESTARTED_AT_ANNOTATION];
    const ref = isUpdated && at !== undefined ? restartedWorkloadOf(pod) : undefined;
    if (ref && (secondsBetween(at ?? "", now) ?? DAY_SECONDS) < DAY_SECONDS) keys.add(`${ref.namespace} ${ref.key}`);
  });
  const byNamespace = Map.groupBy(keys, (key) => key.slice(0, key.indexOf(" ")));
  return new Map([...byNamespace].map(([namespace, own]) => [namespace, own.length]));
}

/** The reason why a pod that missed its sidecars does not get them now. */
function whyAside(pod: Pod, { budgetUse, waves }: RestartFacts): string | undefined {
  const replacement = budgetUse.rules.replacement?.plan;
  if (replacement?.isStopped(pod)) return replacement.stop;
  return waves && !waves.isOpen({ pod }) ? "its wave has not begun" : undefined;
}
