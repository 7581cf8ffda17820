/** Decides what a new pod gets before it is stored: sidecars, and the order in which its containers start. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ControllerRevision, Namespace, Pod } from "../../api/kubernetes.ts";
import {
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
  POD_READY_CONDITION,
  SIDECARSET_GROUP,
} from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { FieldError } from "../../go/field-error.ts";
import { utcSeconds } from "../../go/rfc3339.ts";
import type { Admission } from "../admission/admission.ts";
import { Refusal } from "../admission/refusal.ts";
import { initializeLaunchPriority } from "../launch-priority/barriers.ts";
import { declinesSidecars, isActive } from "../pod/is-matched.ts";
import { chooseRevision } from "../sidecarset/revision/choose-revision.ts";
import { type RevisionWanted, wantedRevision } from "../sidecarset/revision/wanted-revision.ts";
import { type InjectionOptions, injectSidecarSets } from "./inject-sidecar-sets.ts";
import { type MatchError, matches } from "./match/matches.ts";
import { candidates, type SidecarSetIndex } from "./match/sidecarset-index.ts";
import { podProblem } from "./pod-problem.ts";
import { replaceByCanary } from "./replace-by-canary.ts";

/** What is known about the cluster when a pod is admitted. */
export interface PodAdmissionView {
  readonly index: SidecarSetIndex;
  /** the pod's namespace; undefined when it does not exist (yet) */
  readonly namespace: Namespace | undefined;
  /** at least what `revisionsWanted` asks for */
  readonly revisions: readonly ControllerRevision[];
  /** those that one SidecarSet may choose from, by its name; absent: `revisions` */
  readonly revisionsOf?: (sidecarSet: string) => readonly ControllerRevision[];
}

/** Feature gates that change what a new pod gets; absent: off */
export interface InjectionGates {
  readonly EnableSortSidecarContainerByName?: boolean;
  readonly KruisePodReadinessGate?: boolean;
  readonly PodOptOut?: boolean;
}

export interface PodAdmissionContext {
  /** RFC 3339 */
  readonly now: string;
  /** a number from 0 up to but not including 1 */
  readonly random: () => number;
  readonly kruiseNamespace: string;
  readonly gates: InjectionGates;
}

/** A SidecarSet that stands in the way, as it is told to who created the pod. */
interface Failure {
  readonly message: string;
  readonly sidecarSet?: string;
}

/** RFC 3339 in UTC and whole seconds is left as it is: nothing else of it is as long. */
const UTC_SECONDS_LENGTH = "2026-01-02T03:04:05Z".length;
const UNTOUCHED: Admission = { kind: "allowed" };

function deny({ message, sidecarSet }: Failure): Admission {
  const errors: readonly FieldError[] =
    sidecarSet === undefined ? [] : [{ type: "InternalError", field: `sidecarsets/${sidecarSet}`, detail: message }];
  return { kind: "denied", code: 500, reason: "InternalError", message, ...(errors.length > 0 ? { errors } : {}) };
}

/** What the pod is admitted as. It is stored without `namespace`, which the API server fills in. */
function namespaceOf({ object, namespace }: AdmissionRequest): string {
  return object?.metadata?.namespace || namespace || "default";
}

function isForPods({ resource, subResource }: AdmissionRequest): boolean {
  return resource.resource === "pods" && !subResource;
}

function takesSidecars(request: AdmissionRequest, pod: Pod): boolean {
  return isForPods(request) && ["CREATE", "UPDATE"].includes(request.operation) && isActive(pod);
}

/** The first that cannot be evaluated refuses the pod, whatever the others say. */
function matchedSidecarSets(
  { object }: AdmissionRequest,
  index: SidecarSetIndex,
  { name, namespace }: { readonly name: string; readonly namespace: Namespace | undefined },
): readonly SidecarSet[] | MatchError {
  const podLabels = object?.metadata?.labels;
  const matched: SidecarSet[] = [];
  for (const sidecarSet of candidates(index, name, podLabels)) {
    if (sidecarSet.spec.injectionStrategy?.paused) continue;
    const isMatch = matches(sidecarSet, { namespace, podLabels });
    if (typeof isMatch !== "boolean") return isMatch;
    if (isMatch) matched.push(sidecarSet);
  }
  return matched;
}

/** The ControllerRevisions without which this pod cannot be admitted; none for most. `namespace` is the pod's. */
export function revisionsWanted(
  request: AdmissionRequest,
  index: SidecarSetIndex,
  namespace: Namespace | undefined,
): readonly RevisionWanted[] {
  if (!index.hasRevisions) return [];
  const pod = request.object as Pod | null | undefined;
  if (!pod || request.operation !== "CREATE" || podProblem(pod) !== undefined || !takesSidecars(request, pod))
    return [];
  const matched = matchedSidecarSets(request, index, { name: namespaceOf(request), namespace });
  return "kind" in matched ? [] : matched.flatMap((sidecarSet) => wantedRevision(sidecarSet) ?? []);
}

function chosenSidecarSets(
  matched: readonly SidecarSet[],
  { metadata }: Pod,
  view: PodAdmissionView,
  { random, kruiseNamespace }: PodAdmissionContext,
): readonly SidecarSet[] | Failure {
  const chosen: SidecarSet[] = [];
  for (const sidecarSet of matched) {
    if (wantedRevision(sidecarSet) === undefined) {
      chosen.push(sidecarSet);
      continue;
    }
    const revisions = view.revisionsOf?.(sidecarSet.metadata?.name ?? "") ?? view.revisions;
    const choice = chooseRevision(sidecarSet, { podLabels: metadata?.labels, revisions, kruiseNamespace, random });
    if (choice instanceof Refusal) return { message: choice.message, sidecarSet: sidecarSet.metadata?.name ?? "" };
    chosen.push(choice);
  }
  return replaceByCanary(chosen);
}

/** The pod keeps its own metadata.namespace; the injection sees the one it will have, for its messages. */
function optionsOf({ now, gates }: PodAdmissionContext, namespace: string): InjectionOptions {
  return {
    now: now.length === UTC_SECONDS_LENGTH ? now : (utcSeconds(now) ?? now),
    namespace,
    sortContainersByName: gates.EnableSortSidecarContainerByName === true,
  };
}

function withSidecars(
  request: AdmissionRequest,
  pod: Pod,
  view: PodAdmissionView,
  context: PodAdmissionContext,
): Pod | Failure {
  const isUpdate = request.operation === "UPDATE";
  if (isUpdate && !request.oldObject) return { message: "there is no content to decode" };
  const name = namespaceOf(request);
  const matched = matchedSidecarSets(request, view.index, { name, namespace: view.namespace });
  if ("kind" in matched) return { message: matched.message, sidecarSet: matched.sidecarSet };
  if (!isUpdate) {
    const chosen = chosenSidecarSets(matched, pod, view, context);
    if ("message" in chosen) return chosen;
    return chosen.length === 0 ? pod : injectSidecarSets(pod, chosen, optionsOf(context, name));
  }
  // The reference panics here, and never injects into a pod that exists.
  const isEmptied = matched.length > 0 && replaceByCanary(matched).length === 0;
  return isEmptied ? { message: "every SidecarSet that matches the pod is the base of another's canary" } : pod;
}

function withLaunchOrder(request: AdmissionRequest, pod: Pod, { random }: PodAdmissionContext): Pod | Refusal {
  const isCreated = isForPods(request) && request.operation === "CREATE";
  return isCreated && mayHaveLaunchOrder(pod) ? initializeLaunchPriority(pod, random) : pod;
}

/** Without either, all containers have the same priority, and most pods have neither. */
function mayHaveLaunchOrder({ metadata, spec }: Pod): boolean {
  if (metadata?.annotations?.[CONTAINER_LAUNCH_PRIORITY_ANNOTATION] !== undefined) return true;
  return spec?.containers?.some(({ env }) => env?.some(({ name }) => name === CONTAINER_PRIORITY_ENV)) === true;
}

/**
 * The request's pod with what is injected and nothing else changed: unknown fields survive, lists that are not
 * touched are the same objects. Refuses with 400 what is no pod and with 500 and OpenKruise's message what OpenKruise
 * refuses. Source: OpenKruise pkg/webhook/pod/mutating.
 */
export function admitPod(request: AdmissionRequest, view: PodAdmissionView, context: PodAdmissionContext): Admission {
  const problem = podProblem(request.object);
  if (problem !== undefined) return { kind: "denied", code: 400, reason: "BadRequest", message: problem };
  const pod = request.object as Pod;
  const isNew = isForPods(request) && request.operation === "CREATE";
  const gated = isNew ? addReadinessGate(pod, context.gates.KruisePodReadinessGate === true) : pod;
  const isDeclined = isNew && context.gates.PodOptOut === true && declinesSidecars(pod);
  const filled = takesSidecars(request, pod) && !isDeclined ? withSidecars(request, gated, view, context) : gated;
  if ("message" in filled) return deny(filled);
  const ordered = withLaunchOrder(request, filled, context);
  if (ordered instanceof Refusal) return deny(ordered);
  return ordered === pod ? UNTOUCHED : { kind: "allowed", object: ordered };
}

/** Decides which pods are ready only once OpenKruise says so. */
interface Gated {
  readonly readinessGates?: readonly { readonly conditionType: string }[];
}

function isOwnedByKruise({ metadata }: Pod): boolean {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  // What an API server sends always has one; what others send may not.
  return owner?.apiVersion?.startsWith?.(`${SIDECARSET_GROUP}/`) ?? false;
}

/** The pod with the gate of workloads that OpenKruise updates in place; `isForAll` is gate KruisePodReadinessGate. */
export function addReadinessGate(pod: Pod, isForAll: boolean): Pod {
  if (!isForAll && !isOwnedByKruise(pod)) return pod;
  const readinessGates = (pod.spec as Gated | undefined)?.readinessGates ?? [];
  if (readinessGates.some(({ conditionType }) => conditionType === POD_READY_CONDITION)) return pod;
  const gates = [...readinessGates, { conditionType: POD_READY_CONDITION }];
  return { ...pod, spec: { ...pod.spec, readinessGates: gates } as Pod["spec"] };
}
