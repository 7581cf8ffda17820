/** Reads the pods that pull images, creates the pods that a decision asks for, and deletes unneeded ones. */
import type { Pod } from "../../api/kubernetes.ts";
import { PRE_PULL_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { LedgerPlan } from "../../core/ledger.ts";
import { steeringOf } from "../../core/pod/steering/steering.ts";
import type { Decision } from "../../core/rollout/decide.ts";
import type { PullFacts } from "../../core/rollout/rules/pre-pull/pull-facts.ts";
import { isKubeError } from "../../kube/error.ts";
import { PODS } from "../../kube/port.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { type ActContext, act, type Outcome } from "./act.ts";
import { serverTimestamp } from "./departures.ts";
import type { StoredLedger } from "./ledger-store.ts";
import { listAll } from "./observe-pods.ts";
import { noteProblem, type Tally } from "./report.ts";

const WRITES_AT_ONCE = 8;

/** last refusals since a pod was created, by rollout, in one pass */
const refusals = new WeakMap<object, NonNullable<PullFacts["refusal"]>>();

type Site = Pick<ActContext, "cluster" | "clock"> & { readonly kruiseNamespace: string; readonly tally: Tally };

/** The parts of a snapshot about pull pods. */
interface Seen {
  readonly sidecarSet: SidecarSet;
  readonly stored: StoredLedger;
  pulls?: PullFacts | undefined;
}

/** Reads the pull pods; undefined: no SidecarSet asks for pulls, and no pass has begun any. @throws KubeError */
export async function readPulls(
  { cluster, kruiseNamespace: namespace }: Pick<Site, "cluster" | "kruiseNamespace">,
  { sidecarSet, stored }: Omit<Seen, "pulls">,
): Promise<PullFacts | undefined> {
  if (steeringOf(sidecarSet).prePull === undefined && stored.ledger.pulls === undefined) return undefined;
  const options = { namespace, labelSelector: `${PRE_PULL_LABEL}=${sidecarSet.metadata?.uid}` };
  const { items: pods } = await listAll<Pod, Pod>(cluster, PODS, options, (pod) => pod);
  return { namespace, pods };
}

/** The inputs of a decision: the pull pods, with the results of these and earlier ones. */
export function pullFacts(
  context: object,
  { pulls, stored }: Omit<Seen, "sidecarSet">,
): { readonly pulls?: PullFacts } {
  return pulls ? { pulls: { ...pulls, record: stored.ledger.pulls, refusal: refusals.get(context) } } : {};
}

/** The ledger with the results of pulls. They exist from the first pull pod until the last one is gone. */
export function withPulls(plan: LedgerPlan, { stored }: Pick<Seen, "stored">, decision: Decision): LedgerPlan {
  const pulls = decision.pulls ? decision.pulls.record : stored.ledger.pulls;
  return pulls === undefined ? plan : { ...plan, ledger: { ...plan.ledger, pulls } };
}

/** Deletes first, to free names. A failure is reported, and the rollout waits; nothing else depends on it. */
export async function writePulls(context: Site, snapshot: Seen, { pulls }: Decision): Promise<void> {
  const actions = pulls?.actions ?? [];
  const deletions = actions.filter((action) => action.kind === "DeletePullPod");
  const creations = actions.filter((action) => action.kind === "CreatePullPod");
  const acting = { ...context, sidecarSet: snapshot.sidecarSet };
  await mapLimited(deletions, WRITES_AT_ONCE, async (deletion) => {
    const outcome = await act(deletion, acting);
    if (outcome.kind === "refused")
      noteProblem(context, deletion, `it pulled images, and is not deleted: ${told(outcome)}`);
  });
  await mapLimited(creations, WRITES_AT_ONCE, async (creation) => {
    const outcome = await act(creation, acting);
    if (outcome.kind === "done") refusals.delete(context);
    else if (outcome.kind !== "unknown" && !isKubeError(outcome.error, 409)) {
      refusals.set(context, { message: told(outcome), at: serverTimestamp(context) });
      // The status reports the failure after the next round. A pass may have no further round.
      noteProblem(context, placeOf(creation.pod), `it pulls images, and is not created: ${told(outcome)}`);
    }
  });
  if (actions.length > 0) snapshot.pulls = await readPulls(context, snapshot);
}

function placeOf({ metadata }: Pod): { readonly namespace: string; readonly name: string } {
  return { namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" };
}

function told(outcome: Exclude<Outcome, { kind: "done" }>): string {
  const hint = outcome.error.code === 403 ? " (infra/rbac/optional/pre-pull.yaml permits it)" : "";
  return `${outcome.error.message}${hint}`;
}
