/** Decides which pods that cannot be brought to the new version in place are replaced, and why none is where none may be. */
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

/** What was created so soon after the change may have been given what was there before it. */
const SETTLED_SECONDS = 15;
const NAMED = 3;
/** In vain in so many namespaces it is no tenant's doing: no other namespace is tried. */
const MOST_NAMESPACES = 1;

export interface Replacement {
  /** one sentence: why no pod is replaced, or none of some namespaces; absent: pods may be */
  readonly stop?: string;
  /** set with `stop` when pods came back without what they should have */
  readonly isInVain?: true;
  /** true: the pod is to get there by an eviction, if it does not in place; `stop` may keep it */
  readonly wants: (pod: Pod) => boolean;
  /** true: it gets there by no patch, so its turn is an eviction */
  readonly replaces: (state: Pick<PodState, "pod" | "native" | "resize">) => boolean;
  /** true: it is wanted, and nothing stops it */
  readonly allows: (pod: Pod) => boolean;
  /** true: it could be updated in place, if Kubernetes let images change; so its turn is an eviction */
  readonly isForbidden: (pod: Pod) => boolean;
  /** true: another in its place would come without what it should have */
  readonly isStopped: (pod: Pod) => boolean;
  /** what is awaited once the pod goes */
  readonly placeOf: (pod: Pod, now: string) => Place;
}

export interface ReplacementFacts {
  readonly sidecarSet: SidecarSet;
  /** all pods that the SidecarSet selects */
  readonly pods: Sequence<Pod>;
  /** of these, the pods of the rollout */
  readonly states: Sequence<PodState>;
  readonly revisions: readonly ControllerRevision[];
  readonly awaited: Awaited;
  /** uids of pods whose images Kubernetes does not let change */
  readonly forbidden: ReadonlySet<string>;
}

/** undefined: the annotation does not ask for it. */
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
  /** only in these; absent: everywhere */
  readonly namespaces?: ReadonlySet<string>;
}

/**
 * A pod may lack what it should have because a tenant wrote to it: that stops its namespace alone. Where no webhook answers,
 * no more than two batches are evicted in vain.
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

/** Why new pods are not given the SidecarSet as it is. */
function hindranceOf(sidecarSet: SidecarSet): string | undefined {
  if (sidecarSet.spec.injectionStrategy?.paused)
    return "injection is paused: another pod would come without the sidecars";
  const { revisionName, customVersion } = wantedRevision(sidecarSet) ?? {};
  const pinned = revisionName ?? customVersion;
  return pinned === undefined ? undefined : `new pods are given revision ${pinned}, as spec.injectionStrategy says`;
}

/** RFC3339, by the clock of API servers, as when pods were created. */
function changedAt({ sidecarSet, revisions }: ReplacementFacts): string | undefined {
  const { metadata } = sidecarSet;
  const written = lastSpecWrite(metadata);
  if (written !== undefined) return written;
  if (metadata?.generation === 1) return metadata.creationTimestamp ?? undefined;
  const newest = revisions.toSorted((a, b) => a.revision - b.revision).at(-1);
  return newest?.metadata?.creationTimestamp ?? undefined;
}

/**
 * Pods that were created since and lack the version of now, or have no sidecars at all: beside others of the same controller
 * that have some, so that no pod is evicted twice for one change; or, where restarts are to bring them, although a restart
 * since has brought them, and no other that has some. Another in its place would fare no better.
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

/** Which restart has brought it: pods have the annotations of their template. "": none */
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
