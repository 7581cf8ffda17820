/** One look at a SidecarSet: the ledger first, then everything that a decision is made from. */
import type { ControllerRevision, Pod } from "../api/kubernetes.ts";
import { HASH_ANNOTATION } from "../api/names.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { type Decision, decide } from "../core/decide.ts";
import { type SteeredSidecarSet, steered } from "../core/steering.ts";
import {
  areReservedFor,
  MAX_RESERVATIONS,
  type PodState,
  type Reservation,
  type Seen,
  type Subject,
} from "../core/upgrade/ledger.ts";
import { isProjectedAlike } from "../core/upgrade/project-pod.ts";
import { needsResize } from "../core/upgrade/resize.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, PODS } from "../kube/port.ts";
import { type Clock, timestamp } from "./clock.ts";
import { mapLimited } from "./concurrency.ts";
import { findMissed } from "./find-missed.ts";
import type { Gates } from "./gates.ts";
import { type Kubelets, readKubelets } from "./kubelets.ts";
import { readLedger, type StoredLedger } from "./ledger-store.ts";
import { listRevisions, type Observed, observePods, readSidecarSet } from "./observe.ts";
import type { Tally } from "./report.ts";
import { isResizeServed } from "./resize-served.ts";

export const WRITES_AT_ONCE = 32;

/** What is upgraded in place beyond what OpenKruise does. */
export interface InPlaceGates {
  readonly NativeSidecarInPlaceUpdate: boolean;
  readonly InPlaceResize: boolean;
  /** the condition SidecarSetUpgradable is not written */
  readonly SkipUpgradableCondition?: boolean;
}

export interface RolloutContext {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly kruiseNamespace: string;
  /** when the pass is over, on `clock`: no answer comes any more then */
  readonly endsAtMs: number;
  /** gate StrictMaxUnavailable */
  readonly isBudgetStrict: boolean;
  /** absent: all are off */
  readonly inPlaceGates?: InPlaceGates | undefined;
  /** absent: no gate may be asked */
  readonly gates?: Gates | undefined;
  readonly tally: Tally;
  /** events that were recorded already */
  readonly told: Set<string>;
}

/** What is known of one SidecarSet. Grows with what is seen later: by a watch, and in the answers to our own writes. */
export interface Look {
  sidecarSet: SteeredSidecarSet;
  stored: StoredLedger;
  readonly observed: Observed;
  /** absent: nobody needs them */
  readonly kubelets?: Kubelets | undefined;
  /** resources are changed in place */
  readonly canResize?: boolean;
  revisions: readonly ControllerRevision[];
  taken: readonly ControllerRevision[];
  /** pods that were made without the sidecars, when this look began; undefined: it could not be found out */
  readonly missed?: readonly Pod[] | undefined;
  /** how long the last decision was thought about; absent: there was none yet */
  decisionMs?: number;
}

/** undefined: there is no such SidecarSet. The order of the reads is rule 1 of the ledger. */
export async function lookAt(context: RolloutContext, name: string): Promise<Look | undefined> {
  const { cluster, kruiseNamespace } = context;
  const stored = await readLedger(cluster, kruiseNamespace, name);
  const read = await readSidecarSet(cluster, name);
  if (!read) return undefined;
  const sidecarSet = steered(read);
  const isResizing = context.inPlaceGates?.InPlaceResize === true;
  // Not at once: a priority level of few seats would refuse one of them, and a second is lost.
  const revisions = await listRevisions(cluster, kruiseNamespace, name);
  const observed = await observePods(cluster, sidecarSet, isResizing);
  const { view } = observed;
  const isNative = context.inPlaceGates?.NativeSidecarInPlaceUpdate === true;
  const kubelets = isNative ? await readKubelets(cluster, sidecarSet, view.glimpses) : undefined;
  const isAsked = isResizing && needsResize(sidecarSet, view.glimpses, revisions);
  const canResize = isAsked && (await isResizeServed(cluster));
  const missed = await findMissed(
    context,
    sidecarSet,
    view.glimpses,
    (pod) => view.get(pod.metadata?.uid ?? "") ?? pod,
  );
  return { sidecarSet, stored, observed, revisions, taken: [], missed, kubelets, canResize };
}

/**
 * undefined: the SidecarSet is not the one any more that was looked at, so that a new look is needed. What steers may
 * have changed all the same: a new decision is.
 */
export async function readSame({ cluster }: RolloutContext, look: Look): Promise<SteeredSidecarSet | undefined> {
  const read = await readSidecarSet(cluster, look.sidecarSet.metadata?.name ?? "");
  if (!read) return undefined;
  const { uid, generation } = look.sidecarSet.metadata ?? {};
  const isSame =
    read.metadata?.uid === uid && read.metadata?.generation === generation && isProjectedAlike(read, look.sidecarSet);
  return isSame ? steered(read) : undefined;
}

export function subjectOf({ metadata }: SidecarSet): Subject {
  return {
    uid: metadata?.uid ?? "",
    generation: metadata?.generation ?? 0,
    revision: metadata?.annotations?.[HASH_ANNOTATION] ?? "",
  };
}

/** Reserved pods that the list did not show (deleted, or not selected any more) are read by name. */
export async function seeReserved(context: RolloutContext, look: Look): Promise<Seen> {
  const { view } = look.observed;
  const { reservations } = look.stored.ledger;
  const unseen = reservations.filter(({ uid }) => view.versionOf(uid) === undefined);
  await mapLimited(unseen, WRITES_AT_ONCE, (reservation) => readPod(context, look, reservation));
  return new Map(
    reservations.flatMap(({ uid }) => {
      const version = view.versionOf(uid);
      return version === undefined ? [] : [[uid, version] as const];
    }),
  );
}

/** Reads a pod and remembers what it is, as a list would show it. undefined: it is not there, or another has its name. */
export async function readPod({ cluster }: RolloutContext, look: Look, state: PodState): Promise<Pod | undefined> {
  const { view, scope } = look.observed;
  const { namespace, name, uid } = state;
  const pod = await cluster.get<Pod>(PODS, { namespace, name }).catch((error) => {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  });
  if (pod?.metadata?.uid === uid) {
    if (scope.isSelected(pod)) view.put(pod);
    // Somebody has given it other labels since: it is none of the SidecarSet's pods any more.
    else view.remove(uid, pod.metadata.resourceVersion ?? "");
    return pod;
  }
  view.remove(uid, null);
  return undefined;
}

/** `kept`: reservations that hold on. */
export function decideOn(context: RolloutContext, look: Look, kept: readonly Reservation[]): Decision {
  const { sidecarSet, revisions, taken } = look;
  const reserved = new Set(kept.map(({ uid }) => uid));
  const beganAtMs = context.clock.now();
  const decision = decide(
    { sidecarSet, pods: look.observed.view.glimpses, revisions, taken, reserved },
    {
      now: timestamp(context.clock),
      kruiseNamespace: context.kruiseNamespace,
      isStrict: context.isBudgetStrict,
      areConditionsMended: true,
      isReservedForThis: areReservedFor(kept, subjectOf(sidecarSet)),
      room: Math.max(0, MAX_RESERVATIONS - kept.length),
      inPlace: { kubelets: look.kubelets, canResize: look.canResize },
    },
  );
  look.decisionMs = context.clock.now() - beganAtMs;
  return decision;
}
