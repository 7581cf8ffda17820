/** Sees to it that the revision which a decision refers to exists before anything refers to it. */
import type { ControllerRevision } from "../api/kubernetes.ts";
import type { Decision } from "../core/decide.ts";
import type { Action } from "../core/lib/action.ts";
import type { Reservation } from "../core/upgrade/ledger.ts";
import { isKubeError } from "../kube/error.ts";
import { CONTROLLER_REVISIONS } from "../kube/port.ts";
import { act, type Outcome } from "./act.ts";
import { decideOn, type Look, type RolloutContext } from "./look.ts";

/** A name taken by another revision moves the collision count on; more than this is no chance any more. */
const MAX_COLLISIONS = 10;

type RevisionWrite = Extract<Action, { kind: "CreateRevision" | "RenumberRevision" | "LabelRevision" }>;

const isRevisionWrite = (action: Action): action is RevisionWrite =>
  action.kind === "CreateRevision" || action.kind === "RenumberRevision" || action.kind === "LabelRevision";

/** A decision whose revision is there: created, or found under the name that was asked for. */
export async function decideWithRevision(
  context: RolloutContext,
  look: Look,
  kept: readonly Reservation[],
): Promise<Decision> {
  for (let attempt = 0; attempt <= MAX_COLLISIONS; attempt++) {
    const decision = decideOn(context, look, kept);
    if (await register(context, look, decision.actions.filter(isRevisionWrite))) return decision;
  }
  throw new Error(`no free name for a ControllerRevision after ${MAX_COLLISIONS} collisions`);
}

/** false: decide again, a name was taken. */
async function register(context: RolloutContext, look: Look, writes: readonly RevisionWrite[]): Promise<boolean> {
  for (const write of writes) {
    const outcome = await act(write, { ...context, sidecarSet: look.sidecarSet });
    if (outcome.kind === "done") remember(look, outcome.object as ControllerRevision);
    else if (write.kind === "CreateRevision" && isPerhapsThere(outcome)) {
      await readTaken(context, look, write.revision);
      return false;
    } else throw outcome.error;
  }
  return true;
}

function isPerhapsThere({ kind }: Outcome): boolean {
  return kind === "conflict" || kind === "unknown";
}

function remember(look: Look, revision: ControllerRevision): void {
  const others = look.revisions.filter(({ metadata }) => metadata?.name !== revision.metadata?.name);
  look.revisions = [...others, revision];
}

async function readTaken({ cluster }: RolloutContext, look: Look, { metadata }: ControllerRevision): Promise<void> {
  const key = { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
  try {
    look.taken = [...look.taken, await cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, key)];
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
  }
}

/** Those that nobody refers to any more. What is left of them is tried again by the next pass. */
export async function truncateRevisions(context: RolloutContext, look: Look, decision: Decision): Promise<void> {
  for (const action of decision.actions.filter((action) => action.kind === "DeleteRevision")) {
    const outcome = await act(action, { ...context, sidecarSet: look.sidecarSet });
    if (outcome.kind !== "done" && outcome.kind !== "gone") continue;
    look.revisions = look.revisions.filter(({ metadata }) => metadata?.name !== action.name);
  }
}
