/** Observes one SidecarSet: the ledger first, then all inputs of a decision. */

import type { ControllerRevision, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Gates } from "../../approval/batch-gates.ts";
import {
  type Ledger,
  ledgerSubject,
  type PodState,
  type Reservation,
  reconcileLedger,
  type Seen,
} from "../../core/ledger.ts";
import { commandText } from "../../core/pod/command-text.ts";
import { type SteeredSidecarSet, steered } from "../../core/pod/steering/steered.ts";
import { steeringOf } from "../../core/pod/steering/steering.ts";
import { type DecideContext, type Decision, decide, type Observation } from "../../core/rollout/decide.ts";
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import { type CheckRecord, recordsIn } from "../../core/rollout/rules/checks/check-records.ts";
import type { DisruptionBudget } from "../../core/rollout/rules/disruption-budgets/disruption-budget.ts";
import type { PullFacts } from "../../core/rollout/rules/pre-pull/pull-facts.ts";
import { needsResize } from "../../core/rollout/rules/resize/resize.ts";
import { type Reserved, reservedOf } from "../../core/rollout/select/reserved.ts";
import { type Also, isProjectedAlike } from "../../core/rollout/upgrade/project-pod.ts";
import { ifThere } from "../../kube/error.ts";
import { type Cluster, PODS } from "../../kube/port.ts";
import { type Clock, timestamp } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { awaitedNow, keptOwners, type ServerClock, serverTimestamp } from "./departures.ts";
import { budgetLabelsOf, readDisruptionBudgets } from "./disruption-budgets.ts";
import { type KnownWorkloads, readWorkload, restartingOf, workloadVersion } from "./known-workloads.ts";
import { isResizeServed, type Kubelets, NO_KUBELETS, readKubelets } from "./kubelets.ts";
import { readLedger, refuseOlderList, type StoredLedger } from "./ledger-store.ts";
import { findMissed, listRevisions, type Observed, observeInTime, readSidecarSet } from "./observe-pods.ts";
import { pullFacts, readPulls } from "./pre-pull.ts";
import { type Readings, takeUpReading } from "./reading.ts";
import { refusedNow, unfencedOf } from "./refused-pods.ts";
import { withoutSlow } from "./refused-writes.ts";
import { noteProblem, type Tally } from "./report.ts";

export const WRITES_AT_ONCE = 32;
const READS_AT_ONCE = 4;

export interface Context {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly kruiseNamespace: string;
  /** end of the pass, on `clock`: no answer comes after it */
  readonly endsAtMs: number;
  readonly settings: RolloutSettings;
  /** gates; absent: no gate may be asked */
  readonly gates?: Gates | undefined;
  readonly tally: Tally;
  /** Events that were recorded already */
  readonly recorded: Set<string>;
  /** runs work that outlives its round as part of the pass; absent: it runs as part of the round */
  readonly beside?: <T>(work: () => T) => T;
  /** called with the SidecarSet before its pods are read, which may take longer than a pass; absent: no call */
  readonly onRead?: (sidecarSet: SidecarSet) => void;
  /** resolves before the first pod is drained; absent: no preparation is needed */
  readonly beforeDrain?: (() => Promise<void>) | undefined;
  /** true: owners of pods are kept; absent: they are kept only if a decision needs them */
  readonly keepsWorkloads?: boolean;
  /** unfinished readings of pods; absent: they are dropped */
  readonly readings?: Readings;
}

/** The facts about one SidecarSet. They grow during a pass, by a watch and by the answers to its own writes. */
export interface Snapshot extends KnownWorkloads {
  sidecarSet: SteeredSidecarSet;
  stored: StoredLedger;
  readonly observed: Observed;
  readonly kubelets: Kubelets;
  readonly isResizeServed: boolean;
  disruptionBudgets: readonly DisruptionBudget[];
  /** label keys of pods that budgets need */
  readonly budgetLabels: Also["budgetLabels"];
  revisions: readonly ControllerRevision[];
  taken: readonly ControllerRevision[];
  /** pods without the sidecars that they should have, at the start of the snapshot; undefined: unknown */
  readonly missed?: readonly Pod[] | undefined;
  /** the pull pods; undefined: pre-pull is not configured */
  pulls?: PullFacts | undefined;
  /** milliseconds that the last decision took; absent: there was none yet */
  decisionMs?: number;
}

/**
 * Observes a SidecarSet; undefined: it does not exist. Rule 1 of the ledger orders the reads. `changed`: used in place
 * of the stored one, also to select pods.
 */
export async function observe(context: Context, name: string, changed?: SidecarSet): Promise<Snapshot | undefined> {
  const { cluster, kruiseNamespace, settings } = context;
  const stored = await readLedger(cluster, kruiseNamespace, name);
  const read = await readSidecarSet(cluster, name);
  if (!read) return undefined;
  refuseOtherNamespace(read, kruiseNamespace);
  context.onRead?.(read);
  const sidecarSet = steered(changed === undefined ? read : inPlaceOf(read, changed));
  // The reads are not parallel: a priority level with few seats would refuse one of them, which costs a second.
  const revisions = await listRevisions(cluster, kruiseNamespace, name);
  const { readings = new Map() } = context;
  const disruptionBudgets = await readDisruptionBudgets(context);
  const also = {
    resources: settings.InPlaceResize,
    workloads: context.keepsWorkloads === true,
    budgetLabels: budgetLabelsOf(context, disruptionBudgets),
  };
  const reading = takeUpReading(readings, context.clock, sidecarSet, { stored, also });
  const observed = await observeInTime(context, sidecarSet, reading);
  readings.delete(name);
  refuseOlderList(stored, observed.resourceVersion);
  const { view } = observed;
  const isNative = settings.NativeSidecarInPlaceUpdate;
  const kubelets = isNative ? await readKubelets(cluster, sidecarSet, view.records) : NO_KUBELETS;
  const isAsked = settings.InPlaceResize && needsResize(sidecarSet, view.records, revisions);
  const isServed = isAsked && (await isResizeServed(cluster));
  const missed = await findMissed(context, sidecarSet, view.records, (pod) => view.get(pod.metadata?.uid ?? "") ?? pod);
  for (const pod of observed.leftOut.values()) noteProblem(context, pod, pod.why);
  const facts = { kubelets, isResizeServed: isServed, disruptionBudgets, budgetLabels: reading.also.budgetLabels };
  const pulls = await readPulls(context, { sidecarSet, stored });
  return { sidecarSet, stored, observed, revisions, taken: [], missed, workloads: new Map(), pulls, ...facts };
}

function inPlaceOf({ metadata, ...stored }: SidecarSet, changed: SidecarSet): SidecarSet {
  const generation = (metadata?.generation ?? 0) + 1;
  const identity = { ...metadata, ...changed.metadata, uid: metadata?.uid ?? "", generation };
  return { ...stored, metadata: identity, spec: changed.spec };
}

/**
 * Reads the SidecarSet again; undefined: it has changed since it was observed, so a new snapshot is needed. If only
 * annotations changed, a new decision is needed.
 */
export async function readSame(
  { cluster, kruiseNamespace }: Context,
  snapshot: Snapshot,
): Promise<SteeredSidecarSet | undefined> {
  const read = await readSidecarSet(cluster, snapshot.sidecarSet.metadata?.name ?? "");
  if (!read) return undefined;
  const { uid, generation } = snapshot.sidecarSet.metadata ?? {};
  const isSame =
    read.metadata?.uid === uid &&
    read.metadata?.generation === generation &&
    !isKeptElsewhere(read, kruiseNamespace) &&
    isProjectedAlike(read, snapshot.sidecarSet);
  return isSame ? steered(read) : undefined;
}

function isKeptElsewhere({ status }: SidecarSet, kruiseNamespace: string): boolean {
  return (status?.ledgerNamespace ?? "") !== "" && status?.ledgerNamespace !== kruiseNamespace;
}

/** Refuses another namespace: ledgers in two namespaces do not see each other, and would use twice the budget. */
function refuseOtherNamespace(sidecarSet: SidecarSet, kruiseNamespace: string): void {
  if (!isKeptElsewhere(sidecarSet, kruiseNamespace)) return;
  const { metadata, status } = sidecarSet;
  const forget = commandText`kubectl patch sidecarset ${metadata?.name} --subresource=status --type=merge -p '{"status":{"ledgerNamespace":""}}'`;
  const setting = commandText`POD_NAMESPACE=${status?.ledgerNamespace}`;
  throw new Error(
    `its ledger is kept in namespace ${status?.ledgerNamespace}, and this pass keeps ledgers in ${kruiseNamespace}: both together ` +
      `would not keep maxUnavailable. Start passes with ${setting}; to move ledgers, stop all passes, then run ${forget}`,
  );
}

/**
 * Reads reserved pods by name if the list did not show them (deleted, or no longer selected), and workloads that are
 * restarting.
 */
export async function seeReserved(context: Context, snapshot: Snapshot): Promise<Seen> {
  const { view } = snapshot.observed;
  const { reservations, restarted = [] } = snapshot.stored.ledger;
  await mapLimited(restarted, READS_AT_ONCE, (one) => readWorkload(context.cluster, snapshot, one));
  const unseen = reservations.filter(({ uid, workload }) => !workload && view.versionOf(uid) === undefined);
  await mapLimited(unseen, WRITES_AT_ONCE, (reservation) => readPod(context, snapshot, reservation));
  return new Map(
    reservations.flatMap(({ workload, ...state }) => {
      const version = workload ? workloadVersion(snapshot, { ...state, workload }) : view.versionOf(state.uid);
      return version === undefined ? [] : [[state.uid, version] as const];
    }),
  );
}

/** Valid reservations; all of them if the ledger belongs to a newer generation. */
export async function keptOf(context: Context, snapshot: Snapshot): Promise<readonly Reservation[]> {
  const { ledger } = snapshot.stored;
  const seen = await seeReserved(context, snapshot);
  return reconcileLedger(ledger, seen, ledgerSubject(snapshot.sidecarSet))?.kept ?? ledger.reservations;
}

/** Reads a pod and stores its state, as a list shows it. Undefined: it is gone, or another pod has its name. */
export async function readPod({ cluster }: Context, snapshot: Snapshot, state: PodState): Promise<Pod | undefined> {
  const { view, scope } = snapshot.observed;
  const { namespace, name, uid } = state;
  const pod = await ifThere(cluster.get<Pod>(PODS, { namespace, name }));
  if (pod?.metadata?.uid === uid) {
    if (scope.isSelected(pod)) view.put(pod);
    // Its labels have changed since, so that it no longer belongs to the SidecarSet.
    else view.remove(uid, pod.metadata.resourceVersion ?? "");
    return pod;
  }
  view.remove(uid, null);
  return undefined;
}

interface DecideOptions {
  readonly checks?: readonly CheckRecord[];
  readonly now?: string;
  readonly mode?: "act" | "record";
}

/**
 * The decision. `kept`: valid reservations. `checks`: results of metric checks since the ledger was read; `now`: time
 * of these checks, RFC 3339. `mode`: "record" for a decision that is only shown, so that it names the last refusals.
 */
export function decideOn(
  context: Context,
  snapshot: Snapshot,
  kept: readonly Reservation[],
  { checks = checksIn(snapshot), mode, ...at }: DecideOptions = {},
): Decision {
  const beganAtMs = context.clock.now();
  const { records } = snapshot.observed.view;
  const surroundings = surroundingsOf(context, snapshot, kept, keptOwners(context, mode));
  const deciding = { ...decideContext(context, snapshot.sidecarSet, snapshot.stored.ledger), ...at };
  const decideBy = (reserved: Reserved) => decide({ ...surroundings, reserved, checks, pods: records }, deciding);
  const withoutThese = withoutSlow(context, surroundings.reserved);
  const preferred = withoutThese && decideBy(withoutThese);
  // With no pod selected it would say that writes are refused, although they are only slow.
  const decision = preferred && preferred.summary.selected > 0 ? preferred : decideBy(surroundings.reserved);
  snapshot.decisionMs = context.clock.now() - beganAtMs;
  return decision;
}

/** Reads a fact that a decision needs. True: the snapshot has a new fact, so the decision is made again. */
export type Learner = (decision: Decision) => Promise<boolean>;

/** The decision to which no learner can add a fact. */
export async function decideUntilKnown(decide: () => Decision, learners: readonly Learner[]): Promise<Decision> {
  for (;;) {
    const decision = decide();
    let isMore = false;
    for (const learn of learners) isMore ||= await learn(decision);
    if (!isMore) return decision;
  }
}

/** The inputs of `decide` beside pods. `kept`: valid reservations. `owners`: owners whose pods are not evicted now. */
export function surroundingsOf(
  context: ServerClock,
  snapshot: Snapshot,
  kept: readonly Reservation[],
  owners: ReadonlySet<string> = new Set(),
): Omit<Observation, "pods"> {
  const { sidecarSet, revisions, taken, kubelets, isResizeServed, disruptionBudgets } = snapshot;
  const { namespaceLabels } = snapshot.observed;
  const checks = checksIn(snapshot);
  const departed = awaitedNow(context, snapshot, kept);
  const subject = ledgerSubject(sidecarSet);
  const { pods: _, ...refused } = refusedNow(context, snapshot, subject);
  const reserved = reservedOf(kept, subject, {
    departed,
    keptOwners: owners,
    refused,
    unfenced: unfencedOf(context, kept),
  });
  const surroundings = { sidecarSet, revisions, kubelets, isResizeServed, namespaceLabels, disruptionBudgets };
  const restarting = restartingOf(snapshot);
  const beside = { ...(restarting ? { restarting } : {}), ...pullFacts(context, snapshot) };
  return { ...surroundings, taken, checks, reserved, ...beside };
}

/** The check results in the ledger. */
export function checksIn({ stored, sidecarSet }: Snapshot): readonly CheckRecord[] {
  return recordsIn(stored.ledger, sidecarSet);
}

/**
 * The context of a decision. One machine writes the start of a soak, of a wait for a pod, of a budget's count or of a
 * check, and another one reads it. So these use the API server's clock, if known. A pass whose own clock is a day ahead
 * must not end a soak.
 */
export function decideContext(
  context: Pick<Context, "cluster" | "clock" | "kruiseNamespace" | "settings">,
  sidecarSet: SidecarSet,
  { departed, restarted }: Pick<Ledger, "departed" | "restarted"> = {},
): DecideContext {
  const { clock, kruiseNamespace, settings } = context;
  // The ledger may contain evictions and restarts whose annotation was removed since.
  const isAwaiting = departed !== undefined || restarted !== undefined;
  const isShared = settings.RespectDisruptionBudgets || steeringOf(sidecarSet).isTimed || isAwaiting;
  return { now: isShared ? serverTimestamp(context) : timestamp(clock), kruiseNamespace, settings };
}
