/** Reads workloads that are restarting or may be next, and restarts the reserved ones. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import type { Restarted } from "../../core/actions.ts";
import type { LedgerPlan, PodState, Reservation } from "../../core/ledger.ts";
import { keyOfWorkload, type RestartedWorkload } from "../../core/pod/workload.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import { watchedRestarts } from "../../core/rollout/rules/restarts/workload-object.ts";
import { ifThere, isKubeError, type KubeError } from "../../kube/error.ts";
import { type Cluster, REPLICA_SETS } from "../../kube/port.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { act, attempt, type Outcome, resourceOf } from "./act.ts";
import { noteKept, type ServerClock, serverTimestamp } from "./departures.ts";
import { readWorkload, restartingOf } from "./known-workloads.ts";
import type { Context, Learner, Snapshot } from "./observe.ts";
import { fencePatch } from "./pod-patch.ts";
import { noteProblem } from "./report.ts";

const READS_AT_ONCE = 4;
/** Limit of workloads in one read. If some must stay, others are read. */
const MOST_ASKED = 8;

/** Reads the workloads that a decision asks for. */
export function readAsked(context: Pick<Context, "cluster">, snapshot: Snapshot): Learner {
  let times = 0;
  return async ({ restarts }) => {
    const asks = restarts?.asks ?? [];
    if (asks.length === 0 || times === MOST_ASKED) return false;
    times++;
    await mapLimited(asks, READS_AT_ONCE, (ref) =>
      readWorkload(context.cluster, snapshot, ref, () => isOf(context, ref)),
    );
    return true;
  };
}

/** True if the Deployment owns the ReplicaSet, whose name alone proves nothing. */
async function isOf({ cluster }: { readonly cluster: Cluster }, ref: RestartedWorkload): Promise<string | undefined> {
  if (ref.workload !== "Deployment") return ref.owner.uid;
  const { namespace, owner } = ref;
  const set = await ifThere(cluster.get<KubernetesObject>(REPLICA_SETS, { namespace, name: owner.name }));
  if (set?.metadata?.uid !== owner.uid) return undefined;
  return set.metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === ref.workload)
    ?.uid;
}

/** Adds restarts from the moment of their reservation. `kept`: uids of valid reservations. */
export function withRestarts(
  { context, snapshot, kept }: { context: ServerClock; snapshot: Snapshot; kept: ReadonlySet<string> },
  plan: LedgerPlan,
  { actions }: Decision,
): LedgerPlan {
  const restarting = restartingOf(snapshot);
  if (restarting === undefined) return plan;
  const granted = actions.flatMap((action) =>
    action.kind === "RestartWorkload" && plan.granted.has(action.workload.uid) ? [action.workload] : [],
  );
  const facts = { reserved: kept, pods: snapshot.observed.view.records, now: serverTimestamp(context) };
  const restarted: readonly Restarted[] = [...watchedRestarts(restarting, facts), ...granted];
  return restarted.length === 0 ? plan : { ...plan, ledger: { ...plan.ledger, restarted } };
}

/** Restarts workloads, and returns uids of refused ones. Unwanted reservations are fenced. */
export async function restartWorkloads(
  context: Context,
  snapshot: Snapshot,
  { actions }: Decision,
  plan: LedgerPlan,
): Promise<readonly string[]> {
  for (const reservation of plan.fenced) if (reservation.workload) await fence(context, reservation);
  const wanted = actions.filter((action) => action.kind === "RestartWorkload");
  const refused: string[] = [];
  for (const restart of wanted.filter(({ workload }) => plan.granted.has(workload.uid))) {
    const outcome = await act(restart, { ...context, sidecarSet: snapshot.sidecarSet });
    if (outcome.kind === "done") context.tally.restarted = (context.tally.restarted ?? 0) + 1;
    else snapshot.workloads.delete(keyOfWorkload(restart.workload));
    const refusal = await refusalOf(context, restart.workload, outcome);
    if (refusal === undefined) continue;
    refused.push(restart.workload.uid);
    noteKept(context, { departure: { namespace: restart.workload.namespace, owner: restart.workload.uid } });
    noteProblem(context, restart.workload, refusalText(refusal));
  }
  return refused;
}

/** The refusal. Policies and webhooks also answer 404, 409 and 422: for an unchanged workload that is no race. */
async function refusalOf({ cluster }: Context, state: PodState, outcome: Outcome): Promise<KubeError | undefined> {
  if (outcome.kind === "refused") return outcome.error;
  if (outcome.kind !== "conflict" && outcome.kind !== "gone") return undefined;
  const now = await ifThere(cluster.get(resourceOf(state), state));
  return now?.metadata?.resourceVersion === state.resourceVersion ? outcome.error : undefined;
}

async function fence(context: Context, reservation: Reservation): Promise<void> {
  const patch = fencePatch(reservation);
  const outcome = await attempt(() => context.cluster.patch(resourceOf(reservation), reservation, patch));
  if (outcome.kind === "done") context.tally.fenced++;
  const refusal = await refusalOf(context, reservation, outcome);
  if (refusal) noteProblem(context, reservation, `what was reserved of it cannot be let go: ${refusal.message}`);
}

function refusalText(error: KubeError): string {
  const hint = isKubeError(error, 403) ? " (infra/rbac/optional/restart.yaml permits it)" : "";
  return `is not restarted: ${error.message}${hint}`;
}
