/** The admission of a new pod before it is stored: sidecars, and the order in which its containers start. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ControllerRevision, Labels, Namespace, Pod } from "../../api/kubernetes.ts";
import {
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
  NAMESPACE_NAME_LABEL,
  POD_READY_CONDITION,
  SIDECARSET_GROUP,
} from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { FieldError } from "../../go/field-error.ts";
import { isRawNumber } from "../../go/json/json-number.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import { utcSeconds } from "../../go/rfc3339.ts";
import { type Admission, Refusal } from "../admission/admission.ts";
import { initializeLaunchPriority } from "../launch-priority/barriers.ts";
import { declinesSidecars, isActive } from "../pod/is-matched.ts";
import { chooseRevision } from "../sidecarset/revision/choose-revision.ts";
import { type RevisionWanted, wantedRevision } from "../sidecarset/revision/wanted-revision.ts";
import { decodingProblem } from "./decode-pod.ts";
import { type InjectionOptions, injectSidecarSets } from "./inject-sidecar-sets.ts";
import { type MatchError, matches, replaceByCanary } from "./match/matches.ts";
import { candidates, type SidecarSetIndex } from "./match/sidecarset-index.ts";
import { withReset, withSent } from "./reset-fields.ts";

/** The cluster state for the admission of a pod. */
export interface PodAdmissionView {
  readonly index: SidecarSetIndex;
  /** the pod's namespace; undefined when it does not exist (yet) */
  readonly namespace: Namespace | undefined;
  /** at least the revisions of `revisionsWanted` */
  readonly revisions: readonly ControllerRevision[];
  /** the revisions that one SidecarSet may choose from, by its name; absent: `revisions` */
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

/** The SidecarSet that prevents an admission, with the message for the pod's creator. */
interface Failure {
  readonly message: string;
  readonly sidecarSet?: string;
}

/** Length of an RFC 3339 time in UTC and whole seconds, which needs no conversion: no other form has it. */
const UTC_SECONDS_LENGTH = "2026-01-02T03:04:05Z".length;
const UNTOUCHED: Admission = { kind: "allowed" };

function deny({ message, sidecarSet }: Failure): Admission {
  const errors: readonly FieldError[] =
    sidecarSet === undefined ? [] : [{ type: "InternalError", field: `sidecarsets/${sidecarSet}`, detail: message }];
  return { kind: "denied", code: 500, reason: "InternalError", message, ...(errors.length > 0 ? { errors } : {}) };
}

/** The namespace of the pod. The stored pod omits it until the API server fills it in. */
function namespaceOf({ object, namespace }: AdmissionRequest): string {
  return object?.metadata?.namespace || namespace || "default";
}

function isForPods({ resource, subResource }: AdmissionRequest): boolean {
  return resource.resource === "pods" && !subResource;
}

function takesSidecars(request: AdmissionRequest, pod: Pod): boolean {
  return isForPods(request) && ["CREATE", "UPDATE"].includes(request.operation) && isActive(pod);
}

/** The first SidecarSet that cannot be evaluated refuses the pod. */
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

/** True if the pod has one of the two; without them all containers have the same priority, as in most pods. */
function mayHaveLaunchOrder({ metadata, spec }: Pod): boolean {
  if (metadata?.annotations?.[CONTAINER_LAUNCH_PRIORITY_ANNOTATION] !== undefined) return true;
  return spec?.containers?.some(({ env }) => env?.some(({ name }) => name === CONTAINER_PRIORITY_ENV)) === true;
}

/**
 * The request's pod with the injected parts and no other change: unknown fields stay, untouched lists are the same
 * objects. Refuses an object that is no pod with 400, and what OpenKruise refuses with 500 and its message. Source:
 * OpenKruise pkg/webhook/pod/mutating.
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

/** Tells which pods become ready only after OpenKruise sets a condition. */
interface Gated {
  readonly readinessGates?: readonly { readonly conditionType: string }[];
}

function isOwnedByKruise({ metadata }: Pod): boolean {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  // An API server always sends an apiVersion; other callers may not.
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

// A quick test whether an object can be decoded as a pod. Nearly every pod passes; the others go to decode-pod.ts. The
// code repeats the table there field by field. V8 reads a field named in code several times faster than one named in a
// table.

/** The form of nearly all quantities; every match can be decoded. */
const PLAIN_QUANTITY = /^\d{1,9}(?:\.\d{1,3})?(?:m|k|Ki|[MGTPE]i?)?$/;

type Check = (object: JsonObject) => boolean;

function isGiven(raw: unknown): boolean {
  return raw !== undefined && raw !== null;
}

function isText(raw: unknown): boolean {
  return typeof raw === "string" || !isGiven(raw);
}

function isObject(raw: unknown, fits: Check): boolean {
  return isJsonObject(raw) ? fits(raw) : !isGiven(raw);
}

function isList(raw: unknown, fits: Check): boolean {
  if (!Array.isArray(raw)) return !isGiven(raw);
  for (const item of raw) if (!isJsonObject(item) || !fits(item)) return false;
  return true;
}

function isTexts(texts: JsonObject): boolean {
  for (const key in texts) if (!isText(texts[key])) return false;
  return !isRawNumber(texts);
}

function isQuantities(quantities: JsonObject): boolean {
  for (const key in quantities) {
    const quantity = quantities[key];
    if (typeof quantity !== "string" || !PLAIN_QUANTITY.test(quantity)) return false;
  }
  return !isRawNumber(quantities);
}

/** A number that JavaScript cannot carry is an object with `rawJSON`. */
const isNamed: Check = ({ name, rawJSON }) => isText(name) && !isGiven(rawJSON);

const isVariable: Check = ({ name, value, rawJSON }) => isText(name) && isText(value) && !isGiven(rawJSON);

const isMount: Check = ({ name, mountPath, subPathExpr, rawJSON }) =>
  isText(name) && isText(mountPath) && isText(subPathExpr) && !isGiven(rawJSON);

const isDevice: Check = ({ name, devicePath, rawJSON }) => isText(name) && isText(devicePath) && !isGiven(rawJSON);

const isResources: Check = ({ limits, requests, rawJSON }) =>
  isObject(limits, isQuantities) && isObject(requests, isQuantities) && !isGiven(rawJSON);

const isContainer: Check = ({ name, image, restartPolicy, env, resources, volumeMounts, volumeDevices, rawJSON }) =>
  isText(name) &&
  isText(image) &&
  isText(restartPolicy) &&
  isList(env, isVariable) &&
  isObject(resources, isResources) &&
  isList(volumeMounts, isMount) &&
  isList(volumeDevices, isDevice) &&
  !isGiven(rawJSON);

const isOwner: Check = ({ apiVersion, kind, name, uid, controller, rawJSON }) =>
  [apiVersion, kind, name, uid].every(isText) &&
  (typeof controller === "boolean" || !isGiven(controller)) &&
  !isGiven(rawJSON);

const isMetadata: Check = (metadata) => {
  const { name, generateName, namespace, deletionTimestamp, labels, annotations, ownerReferences, rawJSON } = metadata;
  return (
    [name, generateName, namespace, deletionTimestamp].every(isText) &&
    isObject(labels, isTexts) &&
    isObject(annotations, isTexts) &&
    isList(ownerReferences, isOwner) &&
    !isGiven(rawJSON)
  );
};

const isGate: Check = ({ conditionType, rawJSON }) => isText(conditionType) && !isGiven(rawJSON);

const isSpec: Check = ({ initContainers, containers, volumes, imagePullSecrets, readinessGates, rawJSON }) =>
  isList(initContainers, isContainer) &&
  isList(containers, isContainer) &&
  isList(volumes, isNamed) &&
  isList(imagePullSecrets, isNamed) &&
  isList(readinessGates, isGate) &&
  !isGiven(rawJSON);

const isStatus: Check = ({ phase, rawJSON }) => isText(phase) && !isGiven(rawJSON);

const isPod: Check = ({ metadata, spec, status, rawJSON }) =>
  isObject(metadata, isMetadata) && isObject(spec, isSpec) && isObject(status, isStatus) && !isGiven(rawJSON);

/** A sentence that names the field; undefined for a pod. */
export function podProblem(object: unknown): string | undefined {
  if (!isGiven(object)) return "there is no content to decode";
  return isJsonObject(object) && isPod(object) ? undefined : decodingProblem(object);
}

// The labels of its Namespace that a pod's SidecarSets read: for most pods none, or only the name.

type NamespaceLabels = "none" | "name" | "all";

export function namespaceLabelsWanted(
  index: SidecarSetIndex,
  namespace: string,
  podLabels: Labels | undefined,
): NamespaceLabels {
  if (!index.hasNamespaceSelectors) return "none";
  const keys = candidates(index, namespace, podLabels).flatMap(namespaceLabelKeys);
  if (keys.length === 0) return "none";
  return keys.every((key) => key === NAMESPACE_NAME_LABEL) ? "name" : "all";
}

function namespaceLabelKeys({ spec: { namespaceSelector } }: SidecarSet): readonly string[] {
  const { matchLabels, matchExpressions } = namespaceSelector ?? {};
  // An empty selector selects every Namespace, but one has to be there.
  const keys = [...Object.keys(matchLabels ?? {}), ...(matchExpressions ?? []).map(({ key }) => key)];
  return namespaceSelector && keys.length === 0 ? [NAMESPACE_NAME_LABEL] : keys;
}

// Resets the fields of a new pod that API servers reset, because they decide about the injection.

const FINAL_PHASES: ReadonlySet<unknown> = new Set(["Succeeded", "Failed"]);

export interface CreatedPod {
  /** the request to decide on */
  readonly request: AdmissionRequest;
  /** converts an admission of the decoded pod into one of the sent pod */
  readonly admissionOf: (admission: Admission) => Admission;
}

/**
 * An API server resets `status` and `metadata.deletionTimestamp` of a new pod, but only after it has asked webhooks. A
 * pod that claims to have ended is therefore decided on as the pending pod that it becomes.
 */
export function asCreated(request: AdmissionRequest): CreatedPod {
  const { resource, subResource, operation, object } = request;
  const isNew = resource.resource === "pods" && !subResource && operation === "CREATE";
  const { metadata, status } = (object ?? {}) as Partial<Pod>;
  const isFinal = FINAL_PHASES.has(status?.phase);
  const isDeleted = typeof metadata?.deletionTimestamp === "string";
  if (!isNew || !(isFinal || isDeleted)) return { request, admissionOf: (admission) => admission };
  return { request: withReset(request, isFinal), admissionOf: (admission) => withSent(admission, request) };
}
