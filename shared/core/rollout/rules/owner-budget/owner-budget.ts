/** The number of pods of one owner that may be down at once, if a budget for owners is set. */
import type { Pod } from "../../../../api/kubernetes.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { controllerKey, controllerOf } from "../../../pod/replaced.ts";
import type { Amount } from "../../../pod/steering/annotations.ts";
import { type BudgetUse, goesDown } from "../../select/budget.ts";

const OWNERS_NAMED = 3;
const PODS_NAMED = 3;

/** Owner budgets as a filter for `takeWithin`. */
export interface OwnersAsked {
  readonly canTake: (state: PodState) => boolean;
  /** returns the skipped pods, and sentences about a few of their owners */
  readonly outcome: () => { readonly crowded: readonly PodState[]; readonly fullOwners: readonly string[] };
}

interface Owner {
  readonly limit: number;
  /** pods that are down, drained, or reserved */
  readonly used: ReadonlySet<PodState>;
  /** number of `used` pods that count only because other SidecarSets drain them */
  readonly elsewhere: number;
  /** number of evicted pods without a successor, and pods taken now */
  taken: number;
}

interface Given {
  /** all matched pods */
  readonly pods: Iterable<PodState>;
  readonly budgetUse: Pick<BudgetUse, "reserved" | "isReservedForThis" | "rules">;
}

/**
 * The filter for pods by owner. Every pod of an owner that is down or reserved counts, for any reason. Taking a counted
 * pod costs nothing. Beyond the limit no ready reserved pod is taken, unless all were reserved for exactly this spec. A
 * pod without a controller has no owner budget.
 */
export function withOwners({ pods, budgetUse }: Given, canTake: (state: PodState) => boolean): OwnersAsked {
  const { ownerBudget } = budgetUse.rules;
  if (ownerBudget === undefined) return { canTake, outcome: () => ({ crowded: [], fullOwners: [] }) };
  const isHeld = heldBy(budgetUse);
  const owners = ownersOf(ownerBudget, { pods, budgetUse });
  const crowded: PodState[] = [];
  const hasRoom = (state: PodState, owner: Owner) => {
    if (isHeld(state))
      return (
        budgetUse.isReservedForThis === true ||
        owner.used.size - owner.elsewhere + missingOf(state, budgetUse) <= owner.limit
      );
    const used = owner.used.size + owner.taken;
    const isPaidFor = state.isReady && !state.isDrainedElsewhere;
    return owner.used.has(state) ? isPaidFor || used <= owner.limit : used < owner.limit;
  };
  return {
    canTake: (state) => {
      const owner = owners.get(keyOfOwner(state));
      if (owner && goesDown(state, budgetUse) && !hasRoom(state, owner)) {
        crowded.push(state);
        return false;
      }
      if (!canTake(state)) return false;
      if (owner && !owner.used.has(state)) owner.taken++;
      return true;
    },
    outcome: () => ({ crowded, fullOwners: fullTexts(owners, crowded) }),
  };
}

/** Text about the owner whose budget skips this pod; undefined: the pod was not skipped. */
export function ownerInTheWay(crowded: readonly PodState[], { pods, budgetUse }: Given, pod: Pod): string | undefined {
  const state = crowded.find((one) => one.pod.metadata?.uid === pod.metadata?.uid);
  const { ownerBudget } = budgetUse.rules;
  const owner = state && ownerBudget && ownersOf(ownerBudget, { pods, budgetUse }).get(keyOfOwner(state));
  return owner && fullText(owner, pod);
}

function heldBy({ reserved }: Given["budgetUse"]) {
  return ({ pod }: PodState) => reserved.has(pod.metadata?.uid ?? "");
}

function missingOf(state: PodState, { rules }: Given["budgetUse"]): number {
  return rules.replacement?.missing?.get(keyOfOwner(state)) ?? 0;
}

/** Counts pods by owner. A percentage includes missing pods. */
function ownersOf(ownerBudget: Amount, { pods, budgetUse }: Given): ReadonlyMap<string, Owner> {
  const isHeld = heldBy(budgetUse);
  const byOwner = Map.groupBy(pods, keyOfOwner);
  byOwner.delete("");
  return new Map(
    [...byOwner].map(([key, own]) => {
      const isOwn = (state: PodState) => isHeld(state) || !(state.isConsistent && state.isReady);
      const used = own.filter((state) => state.isDrainedElsewhere || isOwn(state));
      const elsewhere = used.filter((state) => !isOwn(state)).length;
      const missing = own[0] === undefined ? 0 : missingOf(own[0], budgetUse);
      return [
        key,
        { limit: limitOf(ownerBudget, own.length + missing), used: new Set(used), elsewhere, taken: missing },
      ];
    }),
  );
}

/** The budget in pods. A percentage is rounded up. */
function limitOf({ amount, isPercent }: Amount, total: number): number {
  return isPercent ? Math.ceil((amount * total) / 100) : amount;
}

function fullTexts(owners: ReadonlyMap<string, Owner>, crowded: readonly PodState[]): readonly string[] {
  const full = new Map(crowded.map((state) => [owners.get(keyOfOwner(state)), state]));
  return [...full].slice(0, OWNERS_NAMED).flatMap(([owner, { pod }]) => (owner ? [fullText(owner, pod)] : []));
}

function fullText({ limit, used, taken }: Owner, pod: Pod): string {
  const { kind = "", name = "" } = controllerOf(pod) ?? {};
  const names = [...used].slice(0, PODS_NAMED).map((state) => state.pod.metadata?.name ?? "");
  const more = used.size - names.length;
  const held = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const place = `${kind} ${pod.metadata?.namespace}/${name}`;
  return `${place}: ${used.size + taken} of at most ${limit} down or on their way${held === "" ? "" : ` (${held})`}`;
}

function keyOfOwner({ pod }: PodState): string {
  return controllerKey(pod);
}

/** The number of pods that wait for their owners, and those owners. */
export function waitingForOwners(found: ReturnType<OwnersAsked["outcome"]>) {
  return found.crowded.length === 0 ? undefined : { waiting: found.crowded.length, full: found.fullOwners };
}
