/** The texts about pods that use maxUnavailable. */

import type { Pod } from "../../../api/kubernetes.ts";
import { IGNORE_NEVER_READY_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { isNeverReady } from "../../pod/is-ready.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { isDown } from "../../rollout/select/budget.ts";
import { budgetHolders } from "../../rollout/select/down-pods.ts";

const HOLDERS_NAMED = 3;
const IGNORED = `the annotation ${IGNORE_NEVER_READY_ANNOTATION} is "true"`;

/** Text about an updated pod that is not ready, to complete "the pod …; it …". */
export function shareText(pod: Pod, sidecarSet: SidecarSet): string {
  if (!isNeverReady(pod, sidecarSet)) return "it uses a share of maxUnavailable until it is";
  if (steeringOf(sidecarSet).ignoresNeverReady)
    return "it was not ready before either, and uses no share of maxUnavailable";
  return `it was not ready before either, and uses a share of maxUnavailable until it is, unless ${IGNORED}`;
}

/** The pods that use the budget. */
export function budgetText(
  sidecarSet: SidecarSet,
  states: readonly PodState[],
  { used, maxUnavailable }: { readonly used: number; readonly maxUnavailable: number },
): string {
  const holders = budgetHolders(sidecarSet, states, HOLDERS_NAMED).map(
    ({ namespace, name, why }) => `${namespace}/${name} (${why})`,
  );
  const left = used - holders.length;
  // They use the budget before they are down, and when they are gone.
  const rest = holders.length > 0 ? `${left} more` : `${counted(left, "pod")} that a pass has reserved or evicted`;
  const more = left > 0 ? [rest] : [];
  const held = used === 0 ? "" : `, held by ${[...holders, ...more].join(", ")}`;
  return `${used} of at most ${maxUnavailable} unavailable${held}${neverReadyText(sidecarSet, states)}`;
}

function neverReadyText(sidecarSet: SidecarSet, states: readonly PodState[]): string {
  const never = states.filter((one) => one.isUpdated && isDown(one) && isNeverReady(one.pod, sidecarSet)).length;
  if (never === 0) return "";
  return `; ${counted(never, "of them was", "of them were")} not ready before either, and would not count if ${IGNORED}`;
}
