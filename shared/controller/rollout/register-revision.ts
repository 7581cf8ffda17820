/** Creates the decision's revision before anything refers to it. */
import type { ControllerRevision } from "../../api/kubernetes.ts";
import type { Action } from "../../core/actions.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { about, ifThere, isKubeError } from "../../kube/error.ts";
import { CONTROLLER_REVISIONS } from "../../kube/port.ts";
import { act, attempt, type NotDone } from "./act.ts";
import type { Context, Learner, Snapshot } from "./observe.ts";

/** Limit of collisions. A name taken by another revision increases the count, and more than this cannot be chance. */
const MAX_COLLISIONS = 10;

type RevisionWrite = Extract<Action, { kind: "CreateRevision" | "RenumberRevision" | "LabelRevision" }>;

type RevisionDelete = Extract<Action, { kind: "DeleteRevision" }>;

const isRevisionWrite = (action: Action): action is RevisionWrite =>
  action.kind === "CreateRevision" || action.kind === "RenumberRevision" || action.kind === "LabelRevision";

/** Creates the decision's revision, or finds it under the wanted name. */
export function nameRevision(context: Context, snapshot: Snapshot): Learner {
  let collisions = 0;
  return async ({ actions }) => {
    if (await register(context, snapshot, actions.filter(isRevisionWrite))) return false;
    collisions++;
    if (collisions <= MAX_COLLISIONS) return true;
    throw new Error(`no free name for a ControllerRevision after ${MAX_COLLISIONS} collisions`);
  };
}

/** Creates the revision; false: a name was taken, so decide again. */
async function register(context: Context, snapshot: Snapshot, writes: readonly RevisionWrite[]): Promise<boolean> {
  for (const write of writes) {
    const outcome = await act(write, { ...context, sidecarSet: snapshot.sidecarSet });
    if (outcome.kind === "done") remember(snapshot, outcome.object as ControllerRevision);
    else {
      await learnOfName(context, snapshot, write, outcome);
      return false;
    }
  }
  return true;
}

/** Reads the revision with the name. @throws KubeError for any other cause than a taken name */
async function learnOfName(
  context: Context,
  snapshot: Snapshot,
  write: RevisionWrite,
  outcome: NotDone,
): Promise<void> {
  const isPerhapsThere = outcome.kind === "conflict" || outcome.kind === "unknown";
  if (outcome.kind === "gone") throw outcome.error;
  if (write.kind !== "CreateRevision" || !isPerhapsThere)
    throw about("no ControllerRevision is written", outcome.error);
  const isTaken = await readTaken(context, snapshot, write.revision);
  // The name is free, so the API server refused for another reason.
  if (!isTaken && outcome.error.code === 422) throw about("no ControllerRevision is written", outcome.error);
}

/** Stores the written revision in the snapshot. */
export function remember(snapshot: Snapshot, revision: ControllerRevision): void {
  const others = snapshot.revisions.filter(({ metadata }) => metadata?.name !== revision.metadata?.name);
  snapshot.revisions = [...others, revision];
}

/** True if a revision of that name exists. */
async function readTaken({ cluster }: Context, snapshot: Snapshot, { metadata }: ControllerRevision): Promise<boolean> {
  const key = { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
  try {
    snapshot.taken = [...snapshot.taken, await cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, key)];
    return true;
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
    return false;
  }
}

/** Deletes revisions without references. The next pass retries failed deletions. */
export async function truncateRevisions(context: Context, snapshot: Snapshot, decision: Decision): Promise<void> {
  for (const action of decision.actions.filter((action) => action.kind === "DeleteRevision")) {
    const outcome = await act(action, { ...context, sidecarSet: snapshot.sidecarSet });
    if (outcome.kind === "done" || outcome.kind === "gone") forget(snapshot, action);
    else if (outcome.kind !== "conflict" || !(await seeChanged(context, snapshot, action)))
      noteRefusal(context, action, outcome);
  }
}

function forget(snapshot: Snapshot, { name }: RevisionDelete): void {
  snapshot.revisions = snapshot.revisions.filter(({ metadata }) => metadata?.name !== name);
}

/** True: another pass has written to it, because it needs it again. False: it is unchanged, or cannot be read. */
async function seeChanged({ cluster }: Context, snapshot: Snapshot, action: RevisionDelete): Promise<boolean> {
  const read = await attempt(() => ifThere(cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, action)));
  if (read.kind !== "done") return false;
  if (read.object?.metadata?.resourceVersion === action.resourceVersion) return false;
  if (read.object) remember(snapshot, read.object as ControllerRevision);
  else forget(snapshot, action);
  return true;
}

/** Records only the first failure. */
function noteRefusal({ tally }: Context, { namespace, name }: RevisionDelete, { kind, error }: NotDone): void {
  const message = `the ControllerRevision is not deleted: ${error.message}`;
  const isKnown = tally.problems.some((problem) => problem.message.startsWith("the ControllerRevision is not deleted"));
  if (kind !== "unknown" && !isKnown) tally.problems.push({ namespace, name, message });
}
