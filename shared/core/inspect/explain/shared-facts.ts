/** The facts that all explained pods of a rollout share. Each is computed once, on demand. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { countOf } from "../../../go/sequence.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { outcomeFacts, wayBack } from "../../rollout/history/history.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import type { RestartPlan } from "../../rollout/rules/restarts/restarts.ts";
import { type Observed, type Scene, sceneOf } from "../../rollout/select/observed-states.ts";
import type { Selection } from "../../rollout/select/select.ts";
import { canFlip } from "../../rollout/upgrade/hot-slot.ts";
import { nextBatch, planShrinks } from "../../rollout/upgrade/plan-batch.ts";
import { budgetText } from "./budget-text.ts";
import type { Step } from "./step.ts";

export interface SharedFacts {
  readonly scene: () => Omit<Scene, "states"> & { readonly states: readonly PodState[] };
  /** why the rollout stopped; undefined: it did not */
  readonly still: () => Step | undefined;
  /** why no more pods get the release for now; undefined: more do */
  readonly unproven: () => Step | undefined;
  /** true when an undo would find a revision to go back to */
  readonly hasWayBack: () => boolean;
  readonly flips: () => number;
  readonly shrinks: () => number;
  readonly selection: () => Selection;
  /** undefined: no workload is restarted */
  readonly restarts: () => RestartPlan | undefined;
  /** places of waiting pods by uid, from 1 */
  readonly places: () => ReadonlyMap<string, number>;
  /** uids of pods that the next pass takes */
  readonly next: () => ReadonlySet<string>;
  readonly budget: () => string;
}

interface Facts extends Omit<Observed, "sidecarSet"> {
  readonly settings: RolloutSettings;
  readonly now: string;
}

const known = new WeakMap<Facts, { readonly sidecarSet: SidecarSet; readonly shared: SharedFacts }>();

/** The same object for the same facts: a workload may have thousands of pods, and each explanation needs them all. */
export function sharedFacts(
  sidecarSet: SidecarSet,
  facts: Facts,
  stops: Pick<SharedFacts, "still" | "unproven">,
): SharedFacts {
  const before = known.get(facts);
  if (before?.sidecarSet === sidecarSet) return before.shared;
  const shared = findOut(sidecarSet, facts, stops);
  known.set(facts, { sidecarSet, shared });
  return shared;
}

function findOut(sidecarSet: SidecarSet, facts: Facts, stops: Pick<SharedFacts, "still" | "unproven">): SharedFacts {
  const { settings, now } = facts;
  const observed = { ...facts, sidecarSet };
  const scene = once(() => {
    const { states, ...others } = sceneOf(observed, facts);
    return { ...others, states: [...states] };
  });
  const batch = once(() => nextBatch(observed, scene(), { now, latestRevision: "", settings }));
  const selection = once(() => batch().selection);
  return {
    scene,
    still: once(stops.still),
    unproven: once(stops.unproven),
    hasWayBack: once(() => wayBack(outcomeFacts(sidecarSet, facts.revisions, scene().states)) !== undefined),
    flips: once(() => countOf(scene().states, ({ pod }) => canFlip(pod, sidecarSet))),
    shrinks: once(() => planShrinks(scene().states).length),
    selection,
    restarts: () => batch().restarts,
    places: once(() => new Map([...selection().waiting].map((state, index) => [uidOf(state), index + 1]))),
    next: once(() => new Set(selection().selected.map(uidOf))),
    budget: once(() => budgetText(sidecarSet, scene().states, selection())),
  };
}

function once<T>(find: () => T): () => T {
  let found: { readonly value: T } | undefined;
  return () => {
    found ??= { value: find() };
    return found.value;
  };
}

function uidOf({ pod }: PodState): string {
  return pod.metadata?.uid ?? "";
}
