/** Finds the pods that cannot be updated in place and are replaced, or the reason why none may be. */
import type { ControllerRevision, Pod } from "../../../../api/kubernetes.ts";
import { IGNORE_MISSED_ANNOTATION, RESTARTED_AT_ANNOTATION } from "../../../../api/names.ts";
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { secondsBetween } from "../../../../go/seconds-between.ts";
import { each, type Sequence } from "../../../../go/sequence.ts";
import { declinesSidecars, isActive, isInjected } from "../../../pod/is-matched.ts";
import { canBeUpdated, type PodState } from "../../../pod/pod-state.ts";
import {
  controllerKey,
  controllerOf,
  replacesNotUpgradable,
  restartsMissed,
  whyNotRecreated,
} from "../../../pod/replaced.ts";
import { restartedWorkloadOf } from "../../../pod/workload.ts";
import { wantedRevision } from "../../../sidecarset/revision/wanted-revision.ts";
import { lastSpecWrite } from "../missed/selection.ts";
import { type Awaited, type Place, placeReader } from "./missing-pods.ts";

/** Seconds after the change within which a new pod may still have the earlier version. */
const SETTLED_SECONDS = 15;
const NAMED = 3;
/** Limit of namespaces with failed replacements. One may be a tenant's fault; more stop all namespaces. */
const MOST_NAMESPACES = 1;

export interface Replacement {
  /** one sentence: why no pod is replaced, or none of some namespaces; absent: nothing stops replacement */
  readonly stop?: string;
  /** true, together with `stop`: new pods lack what they should have */
  readonly isInVain?: true;
  /** returns true if the pod is replaced when it cannot be updated in place; `stop` may prevent it */
  readonly wants: (pod: Pod) => boolean;
  /** returns true if no patch can update the pod, so a pass evicts it */
  readonly replaces: (state: Pick<PodState, "pod" | "native" | "resize">) => boolean;
  /** returns true if the pod is wanted and nothing stops its replacement */
  readonly allows: (pod: Pod) => boolean;
  /** returns true if only the ban on changing images prevents an update in place, so a pass evicts the pod */
  readonly isForbidden: (pod: Pod) => boolean;
  /** returns true if a new pod would lack what it should have */
  readonly isStopped: (pod: Pod) => boolean;
  /** returns the departure to record when the pod goes */
  readonly placeOf: (pod: Pod, now: string) => Place;
}

export interface ReplacementFacts {
  readonly sidecarSet: SidecarSet;
  /** all pods that the SidecarSet selects */
  readonly pods: Sequence<Pod>;
  /** pods of the rollout among them */
  readonly states: Sequence<PodState>;
  readonly revisions: readonly ControllerRevision[];
  readonly awaited: Awaited;
  /** uids of pods whose images Kubernetes forbids to change */
  readonly forbidden: ReadonlySet<string>;
}

/** The replacement; undefined: the annotation is not set. */
export function replacementOf(facts: ReplacementFacts): Replacement | undefined {
  const { sidecarSet } = facts;
  const isWanted = replacesNotUpgradable(sidecarSet);
  if (!isWanted && !restartsMissed(sidecarSet)) return undefined;
  const stopped = stopOf(facts);
  const isStopped = (pod: Pod) => stopped?.namespaces?.has(pod.metadata?.namespace ?? "") ?? stopped !== undefined;
  const wants = (pod: Pod) => isWanted && whyNotRecreated(pod, sidecarSet) === undefined;
  const allows = (pod: Pod) => wants(pod) && !isStopped(pod);
  const isForbidden = (pod: Pod) => facts.forbidden.has(pod.metadata?.uid ?? "") && allows(pod);
  return {
    ...(stopped ? { stop: stopped.why, ...(stopped.isInVain ? { isInVain: true } : {}) } : {}),
    wants,
    replaces: (state) => !canBeUpdated(state, sidecarSet) || isForbidden(state.pod),
    allows,
    isForbidden,
    isStopped,
    placeOf: placeReader(facts, facts.awaited),
  };
}

interface Stopped {
  readonly why: string;
  readonly isInVain?: true;
  /** namespaces where replacement stops; absent: all */
  readonly namespaces?: ReadonlySet<string>;
}

/**
 * Why replacing stops. A tenant's write may remove sidecars, so one namespace stops alone. Without a webhook at most
 * two batches are evicted in vain.
 */
function stopOf(facts: ReplacementFacts): Stopped | undefined {
  const hindrance = hindranceOf(facts.sidecarSet);
  if (hindrance !== undefined) return { why: hindrance };
  const since = changedAt(facts);
  if (since === undefined) return { why: "it is not known since when the SidecarSet says what it says now" };
  const inVain = cameInVain(facts, since);
  if (inVain.length === 0) return undefined;
  const namespaces = new Set(inVain.map(({ metadata }) => metadata?.namespace ?? ""));
  const where = namespaces.size > MOST_NAMESPACES ? {} : { namespaces };
  return { why: vainText(inVain), isInVain: true, ...where };
}

/** The reason why new pods do not get the current SidecarSet. */
function hindranceOf(sidecarSet: SidecarSet): string | undefined {
  if (sidecarSet.spec.injectionStrategy?.paused)
    return "injection is paused: another pod would come without the sidecars";
  const { revisionName, customVersion } = wantedRevision(sidecarSet) ?? {};
  const pinned = revisionName ?? customVersion;
  return pinned === undefined ? undefined : `new pods are given revision ${pinned}, as spec.injectionStrategy says`;
}

/** Time of the last change, RFC3339, by the API server's clock, as for the creation times of pods. */
function changedAt({ sidecarSet, revisions }: ReplacementFacts): string | undefined {
  const { metadata } = sidecarSet;
  const written = lastSpecWrite(metadata);
  if (written !== undefined) return written;
  if (metadata?.generation === 1) return metadata.creationTimestamp ?? undefined;
  const newest = revisions.toSorted((a, b) => a.revision - b.revision).at(-1);
  return newest?.metadata?.creationTimestamp ?? undefined;
}

/**
 * New pods that lack the current version, or have no sidecars although others of their controller have some. So no pod
 * is evicted twice for one change. With restarts: pods of a newer restart of which none has sidecars. A further
 * replacement would fare no better.
 */
function cameInVain({ sidecarSet, pods, states }: ReplacementFacts, since: string): readonly Pod[] {
  const isSince = ({ metadata }: Pod) =>
    (secondsBetween(since, metadata?.creationTimestamp ?? "") ?? 0) > SETTLED_SECONDS;
  const isOfRestarts = restartsMissed(sidecarSet);
  const makerOf = (pod: Pod) => `${controllerKey(pod)} ${isOfRestarts ? restartedAt(pod) : ""}`;
  const makers = new Set<string>();
  const found: Pod[] = [];
  each(states, ({ pod, isUpdated }) => {
    if (controllerOf(pod)) makers.add(makerOf(pod));
    if (!isUpdated && isSince(pod)) found.push(pod);
  });
  const name = sidecarSet.metadata?.name ?? "";
  each(pods, (pod) => {
    if (isInjected(pod, name) || !isActive(pod) || !isSince(pod) || isLetBe(pod)) return;
    const hasOthers = makers.has(makerOf(pod));
    const isRestarted = isOfRestarts && isAtOrAfter(restartedAt(pod), since) && restartedWorkloadOf(pod) !== undefined;
    if (isOfRestarts ? isRestarted && !hasOthers : hasOthers) found.push(pod);
  });
  return found;
}

/** The time of the restart that created the pod, because pods have the annotations of their template; "": none */
function restartedAt({ metadata }: Pod): string {
  return metadata?.annotations?.[RESTARTED_AT_ANNOTATION] ?? "";
}

function isAtOrAfter(time: string, since: string): boolean {
  return (secondsBetween(since, time) ?? -1) >= 0;
}

function isLetBe(pod: Pod): boolean {
  return declinesSidecars(pod) || pod.metadata?.annotations?.[IGNORE_MISSED_ANNOTATION] === "true";
}

function vainText(pods: readonly Pod[]): string {
  const names = pods.slice(0, NAMED).map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
  const more = pods.length > NAMED ? [`${pods.length - NAMED} more`] : [];
  return `created after the change, and without what it says: ${[...names, ...more].join(", ")}`;
}
