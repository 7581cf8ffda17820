/** The pod of a StatefulSet that may be upgraded now, if a SidecarSet follows ordinals: at most one, of one set. */
import type { Pod } from "../../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { type Sequence, where } from "../../../../go/sequence.ts";
import { containerFailure } from "../../../pod/container-failure.ts";
import { isMatched } from "../../../pod/is-matched.ts";
import { hasChangedLately, isNeverReady, isRunningAndReady } from "../../../pod/is-ready.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { type BudgetUse, goesDown, isDown } from "../../select/budget.ts";
import { hasSettled } from "../../select/classify.ts";
import { begunSets, type DownPods, type Holder, type Member, placeOf, setMembers } from "./ordinal-order.ts";

export interface OrdinalTurn {
  /** the only pod of a set that may be upgraded; absent: none */
  readonly next?: PodState;
  /** the pod that all others wait for; absent: each waits for its own set or namespace */
  readonly holder?: Holder;
  readonly down: DownPods;
  /** namespace → the pod that is down of a set that has begun there; absent: no namespace is held */
  readonly stuck?: ReadonlyMap<string, Holder>;
}

/** The inputs for a turn. */
export interface OrdinalScene {
  readonly sidecarSet: SidecarSet;
  /** pods that the partition allows, in order, including pods of no set */
  readonly line: readonly PodState[];
  /** all matched pods */
  readonly all: readonly PodState[];
  readonly budgetUse: BudgetUse;
  readonly canTake: (state: PodState) => boolean;
  /** true when no disruption budget blocks the pod */
  readonly isFree: (state: PodState) => boolean;
}

/**
 * Pods of sets that are down and outside the rollout, among all selected pods: they are going, have ended, or lack the
 * sidecars.
 */
export function downBeside(sidecarSet: SidecarSet, pods: Sequence<Pod>): DownPods {
  const down = where(pods, (pod) => !isRunningAndReady(pod) && !isMatched(pod, sidecarSet));
  return new Map(
    down.flatMap((pod) => {
      const place = placeOf(pod);
      return place ? [[place.setKey, { pod, set: place.set, standing: "down" }] as const] : [];
    }),
  );
}

/**
 * The turn. A set continues only while no pod of any set is being upgraded and none of its own is down, except the pod
 * to upgrade. A set that has begun is finished first; a set that cannot begin is skipped. A set that has begun and
 * cannot continue holds the sets of its own namespace only.
 */
export function ordinalTurn(scene: OrdinalScene): OrdinalTurn {
  const moving = setMembers(scene.all).filter(({ state }) => isMoving(state, scene));
  const line = setMembers(scene.line);
  const isInLine = new Set(line.map(({ state }) => state));
  const down = new Map([...(scene.budgetUse.rules.ordinals ?? []), ...downMembers(scene)]);
  const elsewhere = moving.find(({ state }) => !isInLine.has(state));
  if (elsewhere) return { holder: holderOf(elsewhere, elsewhere.state.isUpdated ? "late" : "moving"), down };
  const [awaited] = scene.budgetUse.rules.replacement?.gone ?? [];
  if (awaited)
    return { holder: { pod: { metadata: awaited, spec: { containers: [] } }, set: "", standing: "gone" }, down };
  const isUnderWay = new Set(moving.map(({ state }) => state));
  const reserved = line.filter(({ state }) => isUnderWay.has(state));
  return reserved.length > 0 ? resume(reserved, scene, down) : begin(line, scene, withDrained(down, scene));
}

function isMoving(state: PodState, scene: OrdinalScene): boolean {
  const { pod, native, resize } = state;
  if (scene.budgetUse.reserved.has(pod.metadata?.uid ?? "")) return true;
  if (state.isUpdated) return isDown(state);
  return !hasSettled(pod, scene.sidecarSet) || native?.hasSettled === false || isResizing(resize);
}

/** A resize that a node does not do holds its own set, not the others. */
function isResizing(resize: PodState["resize"]): boolean {
  return resize?.step === "wait" && resize.isUnderWay;
}

function downMembers({ all, budgetUse }: OrdinalScene): DownPods {
  const isWaiting = ({ resize }: PodState) => resize?.step === "wait";
  const down = setMembers(all).filter(({ state }) => !goesDown(state, budgetUse) || isWaiting(state));
  return new Map(
    down.map((one) => [one.place.setKey, holderOf(one, goesDown(one.state, budgetUse) ? "moving" : "down")]),
  );
}

/** Adds pods that other SidecarSets drain. They hold no pod that has begun: two SidecarSets could wait forever. */
function withDrained(down: DownPods, { all }: OrdinalScene): DownPods {
  const drained = setMembers(all.filter((state) => state.isDrainedElsewhere));
  return new Map([...drained.map((one) => [one.place.setKey, holderOf(one, "drained")] as const), ...down]);
}

function holderOf({ state, place }: Member, standing: Holder["standing"]): Holder {
  return { pod: state.pod, set: place.set, standing };
}

/**
 * The turn with reserved pods. If more than one would go down, the order was requested after the reservations. Patches
 * of each may still land, so none continues until all are fenced.
 */
function resume(reserved: readonly Member[], { budgetUse }: OrdinalScene, down: DownPods): OrdinalTurn {
  const [first] = reserved;
  const open = reserved.filter(({ state }) => goesDown(state, budgetUse) && !state.resize?.isUnderWay);
  const isAlone = open.length === 0 || reserved.length === 1;
  if (first && isAlone && mayGo(first, budgetUse, down))
    return { next: first.state, holder: holderOf(first, "next"), down };
  return { ...(first ? { holder: holderOf(first, "moving") } : {}), down };
}

/** True if the set allows the pod's upgrade. A pod that is down, or whose resources began to change, loses nothing. */
function mayGo({ state, place }: Member, budgetUse: OrdinalScene["budgetUse"], down: DownPods): boolean {
  return !goesDown(state, budgetUse) || state.resize?.isUnderWay === true || !down.has(place.setKey);
}

function begin(
  line: readonly Member[],
  { all, budgetUse, canTake, isFree }: OrdinalScene,
  down: DownPods,
): OrdinalTurn {
  const begun = begunSets(all);
  const firsts = firstOfSets(line, canTake);
  const isBegun = ({ place }: Member) => begun.has(place.setKey);
  const free = firsts.filter((member) => mayGo(member, budgetUse, down));
  const stuck = firsts.filter((member) => isBegun(member) && !free.includes(member));
  const isHeld = ({ state }: Member) => stuck.some((other) => namespaceOf(other.state) === namespaceOf(state));
  const open = free.some(isBegun) ? free.filter(isBegun) : free.filter((member) => !isHeld(member));
  // When a disruption budget holds a pod, another set that may go comes first.
  const next = open.find(({ state }) => isFree(state)) ?? open[0];
  if (next) return { next: next.state, holder: holderOf(next, "next"), down };
  const holders = stuck.flatMap(({ place }) => down.get(place.setKey) ?? []);
  return { down, stuck: new Map(holders.map((one) => [one.pod.metadata?.namespace ?? "", one])) };
}

function namespaceOf({ pod }: PodState): string {
  return pod.metadata?.namespace ?? "";
}

/** The first pod of each set that can be taken. */
function firstOfSets(line: readonly Member[], canTake: (state: PodState) => boolean): readonly Member[] {
  const firsts = new Map<string, Member>();
  for (const member of line)
    if (!firsts.has(member.place.setKey) && canTake(member.state)) firsts.set(member.place.setKey, member);
  return [...firsts.values()];
}

/** The reason why a pod of a set waits, to complete "it waits: …"; undefined: none, or the pod belongs to no set. */
export function outOfTurn(pod: Pod, turn: OrdinalTurn): string | undefined {
  const place = placeOf(pod);
  const one = place && awaitedBy(pod, turn);
  if (one === undefined) return undefined;
  const name = `${one.pod.metadata?.namespace}/${one.pod.metadata?.name}`;
  return one.set === place?.set
    ? `${name} of the same set ${OWN[one.standing]}`
    : `${OTHER[one.standing](one.set, name)}`;
}

/** The pod that a pod of a set waits for. */
function awaitedBy(pod: Pod, { next, holder, down, stuck }: OrdinalTurn): Holder | undefined {
  const place = placeOf(pod);
  if (!place || next?.pod === pod) return undefined;
  return holder ?? down.get(place.setKey) ?? stuck?.get(pod.metadata?.namespace ?? "");
}

const OWN = {
  next: "comes first",
  moving: "is being upgraded, and has to be ready again first",
  late: "has the new version, and has to be ready first",
  down: "is not ready: fix it, or delete it, and its successor has the new version",
  drained: "is drained for others",
  gone: "was evicted, and another pod has to take its place first",
} as const;

const OTHER = {
  next: (set: string, name: string) => `the set ${set} comes first, now with ${name}`,
  moving: (set: string, name: string) => `the set ${set} comes first, and its ${name} has to be ready again`,
  late: (set: string, name: string) => `the set ${set} comes first, and its ${name} has to be ready`,
  down: (set: string, name: string) => `the set ${set} has begun, and waits for ${name}, which is not ready`,
  drained: (_: string, name: string) => `${name} ${OWN.drained}`,
  gone: (_: string, name: string) => `${name} was evicted, and another pod has to take its place first`,
} as const;

/** The pod that holds the first waiting pod of a StatefulSet. */
export interface TurnInTheWay {
  /** the reason, which completes "it waits: …" */
  readonly reason: string;
  /** true: the awaited pod has the new version and cannot become ready by itself */
  readonly isStuck: boolean;
}

/** `line`: the pods that may be next. `plans`: refused pods cannot be handled, and wait for no turn. `now`: RFC3339 */
export function waitingForTurn(
  { turn, line }: { readonly turn?: OrdinalTurn; readonly line: Iterable<PodState> },
  plans: ReadonlyMap<PodState, { readonly kind: string }>,
  sidecarSet: SidecarSet,
  now: string,
): TurnInTheWay | undefined {
  if (turn === undefined) return undefined;
  for (const state of line) {
    const { pod } = state;
    const reason = plans.get(state)?.kind === "refused" ? undefined : outOfTurn(pod, turn);
    if (reason === undefined) continue;
    const awaited = awaitedBy(pod, turn);
    return { reason, isStuck: awaited?.standing === "late" && staysUnready(awaited.pod, sidecarSet, now) };
  }
  return undefined;
}

function staysUnready(pod: Pod, sidecarSet: SidecarSet, now: string): boolean {
  if (containerFailure(pod) !== undefined) return true;
  return isNeverReady(pod, sidecarSet) && !hasChangedLately(pod, sidecarSet, now);
}
