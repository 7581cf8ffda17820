/** Decides whether pods that have never been ready use budget: they do, as in OpenKruise, unless a SidecarSet's owner says otherwise. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { steeringOf } from "./steering/steering.ts";
import { isNeverReady } from "./was-ready.ts";

/** No rollout took it down, so none waits for it. */
export function isIgnored(pod: Pod, sidecarSet: SidecarSet): boolean {
  return steeringOf(sidecarSet).ignoresNeverReady && isNeverReady(pod, sidecarSet);
}
