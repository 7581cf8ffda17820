/** Puts a SidecarSet back whose rollout was stopped, where somebody asks for that: once, and only as it was looked at. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { subjectOf } from "../../core/ledger.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { SIDECARSETS } from "../../kube/port.ts";
import { act, attempt, type Outcome } from "./act.ts";
import type { Context, Snapshot } from "./observe.ts";

/** `decided`: the SidecarSet that the decision is about; its status may have been written since. */
export async function undoHalted(
  context: Context,
  snapshot: Snapshot,
  { undo }: Decision,
  decided: SidecarSet,
): Promise<void> {
  if (!undo || !isSame(decided, snapshot.sidecarSet)) return;
  const { name = "", uid = "", resourceVersion } = snapshot.sidecarSet.metadata ?? {};
  const { spec, annotations, message } = undo;
  const body = { metadata: { uid, resourceVersion, annotations }, spec };
  const outcome = await attempt(() =>
    context.cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body }, {}),
  );
  if (outcome.kind !== "done") return noteFailure(context, name, outcome);
  context.tally.undone = message;
  const regarding = { kind: "SidecarSet", name, uid } as const;
  // As the condition says it too: the same event, should this one be lost.
  const event = { kind: "RecordEvent", regarding, type: "Warning", reason: "Undone", message } as const;
  await act(event, { ...context, sidecarSet: snapshot.sidecarSet });
}

function isSame(one: SidecarSet, other: SidecarSet): boolean {
  const [a, b] = [subjectOf(one), subjectOf(other)];
  return a.uid === b.uid && a.generation === b.generation && a.revision === b.revision;
}

/** A change meanwhile is respected: the next snapshot shows it. */
function noteFailure({ tally }: Context, name: string, { error }: Exclude<Outcome, { kind: "done" }>): void {
  if (error.code === 404 || error.code === 409 || !error.isOutcomeKnown) return;
  const hint = error.code === 403 ? " (infra/rbac/optional/undo.yaml permits it)" : "";
  const message = `the SidecarSet is not undone: ${error.message}${hint}`;
  if (!tally.problems.some((problem) => problem.message === message))
    tally.problems.push({ namespace: "", name, message });
}
