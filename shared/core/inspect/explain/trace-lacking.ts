/** Decides what is said of a pod that only a new one can follow: what differs, and whether a pass replaces it. */

import type { ControllerRevision } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { whyNotRecreated } from "../../pod/replaced.ts";
import type { Replacement } from "../../rollout/replace/replacement.ts";
import { immutableFields } from "../../rollout/upgrade/immutable-fields.ts";
import { restartAdvice, type Unasked } from "../restart-advice.ts";
import { type Step, told } from "./step.ts";

interface Lacking {
  readonly unasked?: Unasked | undefined;
  readonly revisions: readonly ControllerRevision[];
  /** absent: no pod is replaced */
  readonly replacement: Replacement | undefined;
}

/** undefined: it gets its turn, as one that is replaced. */
export function traceLacking(
  { pod, native }: PodState,
  sidecarSet: SidecarSet,
  { revisions, replacement, unasked }: Lacking,
): Step | undefined {
  if (replacement?.allows(pod)) return undefined;
  const why = replacement && (whyNotRecreated(pod, sidecarSet) ?? replacement.stop);
  const kept = why === undefined ? "" : `; it is not replaced: ${why}`;
  if (native?.hindrance !== undefined)
    return told("nothingWaits", `${native.hindrance}${kept}`, {
      hint: "only a new pod gets there, or one on a newer node",
    });
  const fields = immutableFields(sidecarSet, [pod], revisions);
  const which = fields.length > 0 ? fields.join(", ") : "no revision is left that tells what";
  return told("nothingWaits", `more than images changed since the pod was made: ${which}${kept}`, {
    hint: `only a new pod gets there: ${restartAdvice([pod], sidecarSet, { unasked })}`,
  });
}
