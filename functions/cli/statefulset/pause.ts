/** `pause` and `resume` of an Advanced StatefulSet. */
import type { Input } from "../command.ts";
import { showUnchanged } from "../input/change-set.ts";
import type { SetTarget } from "../input/target.ts";
import type { Session } from "../session.ts";
import { changeStatefulSet } from "./change-statefulset.ts";
import { keyOf, readSetNamed } from "./read-statefulset.ts";

export interface PauseOptions {
  readonly target: SetTarget;
  readonly paused: boolean;
}

export async function pauseStatefulSet(
  input: Input,
  session: Session,
  { target, paused }: PauseOptions,
): Promise<number> {
  const cluster = await session.cluster();
  const set = await readSetNamed(cluster, await keyOf(session, target));
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if ((rollingUpdate?.paused ?? false) === paused) {
    const { namespace = "", name = "" } = set.metadata ?? {};
    showUnchanged(session, { namespace, statefulSet: name }, paused ? "is paused already" : "is not paused");
    return 0;
  }
  const strategy = { ...set.spec.updateStrategy, rollingUpdate: { ...rollingUpdate, paused } };
  const after = { ...set, spec: { ...set.spec, updateStrategy: strategy } };
  const notes = type === "OnDelete" ? ["The update strategy is OnDelete: pods are updated when they are deleted."] : [];
  await changeStatefulSet(input, session, cluster, { before: set, after, text: paused ? "paused" : "resumed", notes });
  return 0;
}
