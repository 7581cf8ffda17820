/** Writes on a ControllerRevision when its rollout was first complete: `undo` and `history` read it. */
import type { ControllerRevision } from "../../api/kubernetes.ts";
import { READY_AT_ANNOTATION } from "../../api/names.ts";
import { natureOf } from "../../core/rollout/conditions/verdict.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { readyAt } from "../../core/rollout/history/outcomes.ts";
import { CONTROLLER_REVISIONS } from "../../kube/port.ts";
import { timestamp } from "../loop/clock.ts";
import { attempt } from "./act.ts";
import type { Context, Snapshot } from "./observe.ts";
import { remember } from "./register-revision.ts";
import { verdictNow } from "./status-additions.ts";

interface Shown {
  readonly decision: Decision;
  /** what became of the status that shows the decision */
  readonly statusWrite: "done" | "owed";
}

/** Writes once for each release, after the status shows it. After a failure the next round tries again. */
export async function rememberReady(
  context: Context,
  snapshot: Snapshot,
  { decision, statusWrite }: Shown,
): Promise<void> {
  if (statusWrite !== "done") return;
  const { status, summary } = decision;
  const revision = snapshot.revisions.find(({ metadata }) => metadata?.name === status.latestRevision);
  if (!revision || readyAt(revision) !== undefined || summary.updatedReady === 0) return;
  const verdict = verdictNow(context, snapshot, decision);
  if (verdict === undefined || natureOf(verdict).isReady !== true) return;
  const { namespace = "", name = "", uid, resourceVersion } = revision.metadata ?? {};
  const annotations = { [READY_AT_ANNOTATION]: timestamp(context.clock) };
  const body = { metadata: { uid, resourceVersion, annotations } };
  const outcome = await attempt(() =>
    context.cluster.patch<ControllerRevision>(CONTROLLER_REVISIONS, { namespace, name }, { type: "merge", body }),
  );
  if (outcome.kind === "done") remember(snapshot, outcome.object as ControllerRevision);
  else if (outcome.kind === "refused") noteUnmarked(context, { namespace, name }, outcome.error.message);
}

/** One problem for each pass is enough. Later rounds and passes try again. */
function noteUnmarked({ tally }: Context, place: { namespace: string; name: string }, why: string): void {
  const unmarked = "the ControllerRevision is not marked as ready, and undo may take it for one that never was:";
  if (!tally.problems.some(({ message }) => message.startsWith(unmarked)))
    tally.problems.push({ ...place, message: `${unmarked} ${why}` });
}
