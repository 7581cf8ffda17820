/** Observes one Advanced StatefulSet: its ledger first, then all inputs of a pass. */
import type { ControllerRevision, KubernetesObject, Pod } from "../../api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../api/stateful-set.ts";
import type { PodState, Seen, Subject } from "../../core/ledger.ts";
import { withSpecImages } from "../../core/pod/image-alias.ts";
import { parsePodName } from "../../core/pod/workload.ts";
import { comparedImage } from "../../core/statefulset/in-place/update-completed.ts";
import type { SetObservation } from "../../core/statefulset/reconcile.ts";
import { claimState, isClaimState, uidWithoutMark } from "../../core/statefulset/replicas.ts";
import type { StatefulSetFeatureGates } from "../../core/statefulset/step.ts";
import { selectorMatches } from "../../go/label-selector.ts";
import { ifThere } from "../../kube/error.ts";
import {
  CLAIMS,
  type Cluster,
  CONTROLLER_REVISIONS,
  type ListOptions,
  type ObjectKey,
  PODS,
  type Resource,
  STATEFUL_SETS,
} from "../../kube/port.ts";
import { ConfigError } from "../../settings/config-error.ts";
import { type Clock, timestamp } from "../loop/clock.ts";
import { selectorText } from "../loop/pages.ts";
import { readLedger, refuseOlderList, type StoredLedger } from "../rollout/ledger-store.ts";
import { listAll } from "../rollout/observe-pods.ts";
import type { SetTally } from "./report.ts";

export interface SetKey {
  readonly namespace: string;
  readonly name: string;
}

export interface SetContext {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly gates: StatefulSetFeatureGates;
  readonly key: SetKey;
  readonly tally: SetTally;
  /** Events that this pass has recorded already */
  readonly recorded: Set<string>;
}

export interface SetSnapshot {
  readonly set: StatefulSet;
  /** time at which it was read, on the clock of the pass */
  readonly setReadAtMs: number;
  stored: StoredLedger;
  readonly pods: readonly Pod[];
  readonly revisions: readonly ControllerRevision[];
  readonly claims: readonly PersistentVolumeClaim[];
  /** version of the list of pods */
  readonly resourceVersion: string;
}

/**
 * Observes a set; undefined: it does not exist. `isWide`: reads pods of the whole namespace, to release pods whose
 * labels changed; otherwise only selected pods. `changed`: used in place of the stored one.
 */
export async function observeSet(
  { cluster, key, clock }: SetContext,
  isWide: boolean,
  changed?: StatefulSet,
): Promise<SetSnapshot | undefined> {
  const { namespace } = key;
  const stored = await readLedger(cluster, namespace, key.name, "statefulset");
  const setReadAtMs = clock.now();
  const there = await ifThere(cluster.get<StatefulSet>(STATEFUL_SETS, key));
  if (!there) return undefined;
  const set = changed ? changedSet(there, changed) : there;
  const probe = selectorMatches(set.spec.selector, {});
  if (typeof probe === "object") throw new Error(`spec.selector: ${probe.message}`);
  const isSelected = ({ metadata }: KubernetesObject) => selectorMatches(set.spec.selector, metadata?.labels) === true;
  const isOwn = ({ metadata }: KubernetesObject) =>
    metadata?.ownerReferences?.some(({ uid }) => uid === set.metadata?.uid) === true;
  const isKept = (pod: Pod) => isSelected(pod) || isOwn(pod);
  const selected = listOptions(set, namespace);
  const hasClaims = (set.spec.volumeClaimTemplates ?? []).length > 0;
  const [pods, revisions, claims] = await Promise.all([
    listAll<Pod, Pod>(cluster, PODS, isWide ? { namespace } : selected, (pod) => only(asCompared(pod), isKept)),
    listAll<ControllerRevision, ControllerRevision>(cluster, CONTROLLER_REVISIONS, selected, (one) =>
      only(one, isSelected),
    ),
    hasClaims
      ? listAll<PersistentVolumeClaim, PersistentVolumeClaim>(cluster, CLAIMS, { namespace }, ofSet(set))
      : none,
  ]);
  const { resourceVersion } = pods;
  refuseOlderList(stored, resourceVersion);
  return {
    set,
    setReadAtMs,
    stored,
    pods: pods.items,
    revisions: revisions.items,
    claims: claims.items,
    resourceVersion,
  };
}

/** The pod for OpenKruise's comparison, even if its images are reverted before its kubelet has seen others. */
export function asCompared(pod: Pod): Pod {
  return withSpecImages(pod, comparedImage);
}

function changedSet(there: StatefulSet, { metadata, spec }: StatefulSet): StatefulSet {
  const { uid = "", resourceVersion = "", generation = 0 } = there.metadata ?? {};
  const identity = { ...there.metadata, ...metadata, uid, resourceVersion, generation: generation + 1 };
  return { ...there, metadata: identity, spec };
}

const none = { items: [] };

function only<T>(object: T, isKept: (object: T) => boolean): T | undefined {
  return isKept(object) ? object : undefined;
}

/** Selects claims that have a name of the set. */
function ofSet({ metadata, spec }: StatefulSet): (claim: PersistentVolumeClaim) => PersistentVolumeClaim | undefined {
  const parents = new Set((spec.volumeClaimTemplates ?? []).map((one) => `${one.metadata?.name}-${metadata?.name}`));
  return (claim) => only(claim, (one) => parents.has(parsePodName(one.metadata?.name ?? "").parent));
}

/** Options to list and watch the pods of a set. */
export function listOptions({ spec }: StatefulSet, namespace: string): ListOptions & { readonly namespace: string } {
  const text = spec.selector ? selectorText(spec.selector) : undefined;
  return { namespace, ...(text ? { labelSelector: text } : {}) };
}

export function observationOf({ clock, gates }: SetContext, snapshot: SetSnapshot, reserved: ReadonlySet<string>) {
  const { set, pods, revisions } = snapshot;
  return { set, pods, revisions, gates, reserved, now: timestamp(clock) } satisfies SetObservation;
}

/** The subject of a set. A generation identifies a template: a new template is a new generation. */
export function setSubject({ metadata }: StatefulSet): Subject {
  return { uid: metadata?.uid ?? "", generation: metadata?.generation ?? 0, revision: "" };
}

/** The current versions of reserved objects. Objects missing from the lists are read by name. */
export async function seeReserved({ cluster }: SetContext, snapshot: SetSnapshot): Promise<Seen> {
  const seen = new Map<string, string | null>();
  for (const { metadata } of snapshot.pods) seen.set(metadata?.uid ?? "", metadata?.resourceVersion ?? "");
  for (const { uid, resourceVersion } of snapshot.claims.map(claimState)) seen.set(uid, resourceVersion);
  for (const state of snapshot.stored.ledger.reservations) {
    if (seen.has(state.uid)) continue;
    const object = await ifThere(cluster.get(stateResource(state), keyOf(state)));
    const isSame = object?.metadata?.uid === uidWithoutMark(state);
    seen.set(state.uid, isSame ? (object?.metadata?.resourceVersion ?? "") : null);
  }
  return seen;
}

export function stateResource(state: PodState): Resource {
  return isClaimState(state) ? CLAIMS : PODS;
}

export function keyOf({ namespace, name }: PodState): ObjectKey {
  return { namespace, name };
}

/** Parses NAMESPACE/NAME. @throws ConfigError for any other text */
export function parseSetKey(text: string): SetKey {
  const [namespace = "", name = "", ...rest] = text.split("/");
  if (namespace !== "" && name !== "" && rest.length === 0) return { namespace, name };
  throw new ConfigError(`${text} names no StatefulSet of apps.kruise.io: write NAMESPACE/NAME.`);
}
