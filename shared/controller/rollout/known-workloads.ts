/** What is known of workloads that are restarted, or may be next. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Restarted } from "../../core/actions.ts";
import type { Ledger } from "../../core/ledger.ts";
import { restartsAtOnce, restartsMissed } from "../../core/pod/replaced.ts";
import { keyOfWorkload } from "../../core/pod/workload.ts";
import type { Restarting, Workload } from "../../core/rollout/replace/workload-object.ts";
import { ifThere, isKubeError } from "../../kube/error.ts";
import type { Cluster } from "../../kube/port.ts";
import { resourceOf } from "./restart-workload.ts";

/** What a snapshot knows of workloads. */
export interface KnownWorkloads {
  /** null: not there */
  workloads: Map<string, Workload | null>;
  /** when they are read again, on the clock of the pass; absent: none was read */
  workloadsUntilMs?: number;
  /** why workloads could not be read; absent: they can */
  restartRefusal?: string | undefined;
}

/** The look, as far as it says which restarts are asked for. */
interface Seen extends KnownWorkloads {
  readonly sidecarSet: SidecarSet;
  readonly stored: { readonly ledger: Pick<Ledger, "restarted"> };
  readonly missed?: readonly Pod[] | undefined;
  readonly observed: { readonly view: { get(uid: string): Pod | undefined } };
}

/** For so long: a restart is for the resourceVersion that was read, so what has changed since costs a try. */
const KNOWN_MS = 10_000;

/** They are read again, unless they were a moment ago. What is only recorded is what the last decision went by. */
export function forgetWorkloads(snapshot: KnownWorkloads, mode: "act" | "record", nowMs: number): void {
  if (mode === "record" || nowMs < (snapshot.workloadsUntilMs ?? 0)) return;
  snapshot.workloads = new Map();
  snapshot.restartRefusal = undefined;
  snapshot.workloadsUntilMs = nowMs + KNOWN_MS;
}

/** null: it is gone; undefined: not read. */
export function workloadVersion({ workloads }: KnownWorkloads, one: Restarted): string | null | undefined {
  const workload = workloads.get(keyOfWorkload(one));
  if (workload === undefined) return undefined;
  return workload?.metadata?.uid === one.uid ? (workload.metadata.resourceVersion ?? "") : null;
}

/** What `look` knows of it from now on. `uidOf`: which one is meant; absent: any of that name. @throws KubeError */
export async function readWorkload(
  cluster: Cluster,
  snapshot: KnownWorkloads,
  ref: Omit<Restarted, "uid">,
  uidOf?: () => Promise<string | undefined>,
): Promise<void> {
  const { namespace, name } = ref;
  try {
    const uid = await uidOf?.();
    const read = await ifThere(cluster.get<Workload>(resourceOf(ref), { namespace, name }));
    const isMeant = read !== undefined && (uidOf === undefined || read.metadata?.uid === uid);
    snapshot.workloads.set(keyOfWorkload(ref), isMeant ? read : null);
  } catch (error) {
    if (!isKubeError(error, 403)) throw error;
    // What it was a moment ago says nothing of one that is being restarted.
    snapshot.workloads.delete(keyOfWorkload(ref));
    snapshot.restartRefusal = `workloads may not be read, which restarts need (infra/rbac/optional/restart.yaml permits it): ${error.message}`;
  }
}

/** undefined: no workload is restarted, and none is asked for. */
export function restartingOf({ sidecarSet, stored, missed = [], observed, ...known }: Seen): Restarting | undefined {
  const { restarted = [] } = stored.ledger;
  if (restarted.length === 0 && restartsAtOnce(sidecarSet) === 0) return undefined;
  const isThere = ({ metadata }: Pod) => observed.view.get(metadata?.uid ?? "") !== undefined;
  const left = restartsMissed(sidecarSet) ? missed.filter(isThere) : [];
  return { restarted, missed: left, workloads: known.workloads, refusal: known.restartRefusal };
}
