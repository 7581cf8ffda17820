/** The library: the effect of a changed SidecarSet on running pods. Objects in, values out, no I/O. */
import type { ControllerRevision, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { diffSidecarSets, type SidecarSetDiff } from "../../shared/core/inspect/diff/diff.ts";
import { OBJECT, PASS, PODS, REVISIONS, readArguments, within } from "./arguments.ts";
import { assumed, type PassInput, settingsOf, storedSidecarSet } from "./pass-input.ts";

export interface DiffInput extends PassInput {
  /** the SidecarSet before the change, from the API server */
  readonly before: KubernetesObject;
  /** the SidecarSet of the changed manifest */
  readonly after: KubernetesObject;
  /** the pods that either SidecarSet selects, from the API server, with their status */
  readonly pods: readonly Pod[];
  /** the SidecarSet's revisions; absent: none was recorded */
  readonly revisions?: readonly ControllerRevision[];
}

const ARGUMENTS = { ...PASS, before: OBJECT, after: OBJECT, pods: PODS, revisions: REVISIONS };

/** The effect of the change. @throws TypeError that says in one sentence which argument is wrong */
export function diff(given: DiffInput): SidecarSetDiff {
  const input = readArguments("diff", given, ARGUMENTS);
  const { pods, revisions = [] } = input;
  const before = within("diff", "before", () => storedSidecarSet(input.before));
  const written = within("diff", "after", () => storedSidecarSet(input.after));
  const after = { ...written, metadata: { ...before.metadata, ...written.metadata } };
  return diffSidecarSets({ before, after, pods, revisions, ...assumed(input), settings: settingsOf(input) });
}
