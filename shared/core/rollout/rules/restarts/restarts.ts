/** Decides which workloads are restarted next, where that is asked for instead of evictions, and why others are not. */
import type { Pod } from "../../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { inTurns } from "../../../../go/in-turns.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import type { Action, Restarted, RestartedKind } from "../../../actions.ts";
import { canBeUpdated, type PodState } from "../../../pod/pod-state.ts";
import { isOwnerKept, restartsAtOnce } from "../../../pod/replaced.ts";
import { keyOfWorkload, type RestartedWorkload, restartedWorkloadOf } from "../../../pod/workload.ts";
import { currentHash } from "../../history/outcomes.ts";
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

/** So many are looked at for one decision: those in the way of others are few. */
const MOST_READ = 50;
/** Asked for beside those for which there is a place. */
const SPARE = 2;

export type RestartWorkload = Extract<Action, { kind: "RestartWorkload" }>;

export interface RestartPlan {
  readonly actions: readonly RestartWorkload[];
  /** to be kept in the ledger: being restarted, or about to be */
  readonly open: readonly Restarted[];
  /** to be read first: the decision is another one then */
  readonly asks: readonly RestartedWorkload[];
  /** key → why it is not restarted now */
  readonly held: ReadonlyMap<string, string>;
  /** how many more wait for those */
  readonly waiting: number;
  /** how many of those that are held are so by what they say of themselves, and by no partition */
  readonly stuck: number;
  /** how many of those that are held are so by their wave, or by pods that came back without their sidecars */
  readonly aside: number;
  /** why no workload can be read, one sentence */
  readonly refusal?: string | undefined;
}

export interface RestartFacts {
  readonly sidecarSet: SidecarSet;
  readonly states: Sequence<PodState>;
  readonly budgetUse: BudgetUse;
  /** what is done to pods one by one */
  readonly selection: {
    readonly selected: readonly PodState[];
    readonly line: Sequence<PodState>;
  };
  readonly waves?: Pick<WavesNow, "isOpen"> | undefined;
  /** false: a halt leaves no room */
  readonly hasRoom: boolean;
  /** RFC3339 */
  readonly now: string;
}

interface Candidate {
  readonly ref: RestartedWorkload;
  /** pods of it that are not updated, and those among them that may be now */
  lacking: number;
  allowed: number;
  /** one of those gets there by a restart alone, or missed its sidecars */
  isWanted: boolean;
  isReady: boolean;
  /** why none of its pods that missed their sidecars gets them now */
  aside?: string;
}

/** undefined: no restart is asked for, and none is under way. */
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
  // Of workloads that cannot be restarted, such as paused ones, a namespace may have more than a pass reads.
  const inLine = Map.groupBy(
    line.filter((one) => !isHeld(one)),
    ({ isReady }) => isReady,
  );
  const free = [true, false]
    .map((isReady) => inTurns(inLine.get(isReady) ?? [], ({ ref }) => ref.namespace))
    .flatMap((part) => fromTurn(part, restarting))
    .map(({ ref }) => ref);
  for (const { ref, aside = "others of its pods have to stay as they are" } of line.filter(isHeld))
    held.set(ref.key, aside);
  const aside = line.filter((one) => one.aside !== undefined).length;
  const refusal = whyNoneIsRead(restarting, open, free);
  const places = refusal === undefined && mayBeDown(restarting, facts) > 0 ? placesOf(facts) : 0;
  return { open, held, aside, refusal, ...take(free, places, restarting, { ...facts, held }) };
}

/** If more workloads wait than a look reads, each look begins at another one: those in front may all have to stay. */
function fromTurn<T>(line: readonly T[], { turn = 0 }: Restarting): readonly T[] {
  const first = line.length > MOST_READ ? Math.floor(turn * line.length) : 0;
  return [...line.slice(first), ...line.slice(0, first)];
}

/**
 * Nobody knows how many pods one takes down that is being restarted and cannot be read. Of the others: only where none is
 * left to ask for, since a role may permit one namespace alone, which may be the last one.
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

/** From the front, as far as they are known; of the others some are asked for. */
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

/** maxUnavailable; pods that missed their sidecars are in no count, and a share of it is of them too. */
function mayBeDown({ missed }: Restarting, { sidecarSet, states, budgetUse }: RestartFacts): number {
  return maxUnavailableOf(sidecarSet.spec.updateStrategy, totalOf(states, budgetUse) + missed.length);
}

/** While pods are written to one by one no workload is restarted, and none of them while one is. */
function placesOf({ sidecarSet, budgetUse, selection, hasRoom }: RestartFacts): number {
  const isFree = selection.selected.length === 0 && budgetUse.reserved.size === 0;
  if (!(isFree && hasRoom)) return 0;
  return Math.max(0, restartsAtOnce(sidecarSet) - (budgetUse.rules.restarts ?? []).length);
}

/** `workload`: a text says why it could not be read. False: `held` says why. */
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
  return whyNotRestarted(kind, workload, nameOf(sidecarSet), currentHash(sidecarSet));
}

/** As many as maxUnavailable has room for, were all of them to take down what they may; one that needs more goes alone. */
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
    const restartedFor = withRestartFor(object, nameOf(sidecarSet), currentHash(sidecarSet));
    const subject = { workload, namespace, name, uid, resourceVersion };
    actions.push({ kind: "RestartWorkload", workload: subject, at: restartTime(object, now), restartedFor });
  }
  return actions;
}

/** What restarts under way may take down beside pods of theirs that are down already. */
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

function nameOf({ metadata }: SidecarSet): string {
  return metadata?.name ?? "";
}

/** In the order in which their first pods get their turn; those with pods that are down last, since they may never be through. */
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

/** Of a pod that missed its sidecars. */
function whyAside(pod: Pod, { budgetUse, waves }: RestartFacts): string | undefined {
  const replacement = budgetUse.rules.replacement?.plan;
  if (replacement?.isStopped(pod)) return replacement.stop;
  return waves && !waves.isOpen({ pod }) ? "its wave has not begun" : undefined;
}
