/** The counts of replaced pods, and the reason why none is replaced. */
import { counted } from "../../../../go/counted.ts";
import type { Sequence } from "../../../../go/sequence.ts";
import type { Action } from "../../../actions.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import type { Replaced, Restarts } from "../../summary.ts";
import { evictionsOf } from "./plan-replacement.ts";

const NAMED = 3;
export const NO_RESTARTS: Restarts = { underWay: [], waiting: 0, held: [] };

interface Batch {
  readonly actions: readonly Action[];
  readonly replaced: readonly PodState[];
  readonly keptBack: number;
  readonly selection: { readonly notUpgradable: Sequence<PodState> };
}

/** The pods whose fields differ. Replaced pods, if any, differ in the same fields as pods that stay. */
export function lackingOf({ replaced, selection }: Batch): Sequence<PodState> {
  return replaced.length > 0 ? replaced : selection.notUpgradable;
}

/** The counts; undefined: the annotation is not set, or every pod can be updated in place. */
export function replacedBy(
  batch: Batch,
  replacement: Pick<Replaced, "stop" | "isInVain"> | undefined,
): Replaced | undefined {
  const { replaced, keptBack, selection, actions } = batch;
  if (replacement === undefined || replaced.length + selection.notUpgradable.length === 0) return undefined;
  const { stop, isInVain } = replacement;
  const why = stop === undefined ? {} : { stop, ...(isInVain ? { isInVain } : {}) };
  return { waiting: replaced.length, selected: evictionsOf(actions).length, kept: keptBack, ...why };
}

/** One sentence about restarts. */
export function restartsText({ underWay, waiting, held }: Restarts): string {
  const named = underWay.slice(0, NAMED).join(", ");
  const more = underWay.length > NAMED ? ` and ${underWay.length - NAMED} more` : "";
  return [
    ...(underWay.length > 0 ? [`${named}${more} ${underWay.length === 1 ? "is" : "are"} being restarted`] : []),
    ...(waiting > 0 ? [`${counted(waiting, "workload waits", "workloads wait")} to be restarted`] : []),
    ...(held.length > 0 ? [`not restarted: ${held.slice(0, NAMED).join("; ")}`] : []),
    ...(held.length > NAMED ? [`and ${held.length - NAMED} more`] : []),
  ].join("; ");
}
