/** The facts about workloads that are restarting, or that may be restarted next. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Restarted } from "../../core/actions.ts";
import type { Ledger } from "../../core/ledger.ts";
import { restartsAtOnce, restartsMissed } from "../../core/pod/replaced.ts";
import { keyOfWorkload } from "../../core/pod/workload.ts";
import type { Restarting, Workload } from "../../core/rollout/rules/restarts/workload-object.ts";
import { ifThere, isKubeError, type KubeError } from "../../kube/error.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Clock } from "../loop/clock.ts";
import { resourceOf } from "./act.ts";

/** A snapshot's facts about workloads. */
export interface KnownWorkloads {
  /** workloads by key; null: the workload does not exist */
  workloads: Map<string, Workload | null>;
  /** time at which they are read again, on the clock of the pass; absent: none was read */
  workloadsUntilMs?: number;
  /** ends of sentences about workloads that were not read, by key */
  unreadWorkloads?: Map<string, string> | undefined;
  /** number from 0 to 1, exclusive: the place in the line of workloads where reading begins */
  workloadsTurn?: number;
}

/** The part of the observation that says which restarts are wanted. */
interface Seen extends KnownWorkloads {
  readonly sidecarSet: SidecarSet;
  readonly stored: { readonly ledger: Pick<Ledger, "restarted"> };
  readonly missed?: readonly Pod[] | undefined;
  readonly observed: { readonly view: { get(uid: string): Pod | undefined } };
}

/** Milliseconds of reuse: a restart requires the read resourceVersion, so a change since then costs a try. */
const KNOWN_MS = 10_000;

/** Forgets the workloads, unless they were just read. A pass that only records keeps those of the last decision. */
export function forgetWorkloads(known: KnownWorkloads, mode: "act" | "record", clock: Pick<Clock, "now" | "random">) {
  if (mode === "record" || clock.now() < (known.workloadsUntilMs ?? 0)) return;
  known.workloads = new Map();
  known.unreadWorkloads = undefined;
  known.workloadsTurn = clock.random();
  known.workloadsUntilMs = clock.now() + KNOWN_MS;
}

/** The version of a workload; null: it is gone; undefined: it was not read. */
export function workloadVersion({ workloads }: KnownWorkloads, one: Restarted): string | null | undefined {
  const workload = workloads.get(keyOfWorkload(one));
  if (workload === undefined) return undefined;
  return workload?.metadata?.uid === one.uid ? (workload.metadata.resourceVersion ?? "") : null;
}

/** Status codes about one object: a role may permit only one namespace, and storage may hold an unreadable object. */
const OF_ONE_OBJECT = [403, 500];

function wordsOf({ code, message }: KubeError): string {
  if (code !== 403) return `cannot be read: ${message}`;
  return `may not be read, which restarts need (infra/rbac/optional/restart.yaml permits it): ${message}`;
}

/** Reads a workload for `look`. `uidOf`: its expected uid; absent: any uid. @throws KubeError */
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
    if (!OF_ONE_OBJECT.some((code) => isKubeError(error, code))) throw error;
    // The last known state of a workload is useless while it restarts.
    snapshot.workloads.delete(keyOfWorkload(ref));
    snapshot.unreadWorkloads ??= new Map();
    snapshot.unreadWorkloads.set(keyOfWorkload(ref), wordsOf(error as KubeError));
  }
}

/** The restart facts; undefined: no workload is restarted, and none is requested. */
export function restartingOf({ sidecarSet, stored, missed = [], observed, ...known }: Seen): Restarting | undefined {
  const { restarted = [] } = stored.ledger;
  if (restarted.length === 0 && restartsAtOnce(sidecarSet) === 0) return undefined;
  const isThere = ({ metadata }: Pod) => observed.view.get(metadata?.uid ?? "") !== undefined;
  const left = restartsMissed(sidecarSet) ? missed.filter(isThere) : [];
  const { workloads, unreadWorkloads: unread, workloadsTurn: turn } = known;
  return { restarted, missed: left, workloads, unread, turn };
}
