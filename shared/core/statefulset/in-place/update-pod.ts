/** The next step of a pod's in-place update: to begin it, to go on after a grace period or a batch, to end it. */

import type { ControllerRevision, Pod } from "../../../api/kubernetes.ts";
import {
  IN_PLACE_GRACE_ANNOTATION,
  IN_PLACE_GRACE_OLD_ANNOTATION,
  IN_PLACE_READY_CONDITION,
  IN_PLACE_STATE_ANNOTATION,
  IN_PLACE_STATE_OLD_ANNOTATION,
} from "../../../api/names.ts";
import type { ContainerDetails } from "../../../api/pod-parts.ts";
import { goJson } from "../../../go/json/go-json.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { setCondition, setReady } from "../../pod/is-ready.ts";
import { type Application, aliasesFor, applySpec, withAnnotation } from "./apply-spec.ts";
import { type CalculateOptions, calculateSpec } from "./calculate-spec.ts";
import { hasNextBatch, whyBatchNotCompleted } from "./update-completed.ts";
import { type InPlaceState, readGrace, readState, storedSpec, type UpdateSpec } from "./update-spec.ts";

export interface InPlaceContext {
  /** RFC3339, whole seconds, UTC */
  readonly now: string;
  /** label of the pod that names its revision */
  readonly revisionLabel: string;
  /** containers that read changed metadata into their environment restart by image aliases; else by a daemon */
  readonly restartsByAlias?: boolean;
}

/** The wanted pod: changes of its status are one write, other changes another, the status first. */
export type InPlaceStep =
  | { readonly kind: "step"; readonly pod: Pod; readonly delaySeconds: number }
  /** only a new pod can follow; `why` if the templates alone would allow it */
  | { readonly kind: "notInPlace"; readonly why?: string }
  /** the record in the annotations cannot be read, so the pod is skipped */
  | { readonly kind: "refused"; readonly message: string };

/** Begins an update, even during an earlier one. */
export function updatePod(
  pod: Pod,
  revisions: { readonly before: ControllerRevision; readonly after: ControllerRevision },
  options: CalculateOptions,
  context: InPlaceContext,
): InPlaceStep {
  const { now, revisionLabel } = context;
  const spec = calculateSpec(revisions.before, revisions.after, options);
  if (!spec) return { kind: "notInPlace" };
  const application = applicationOf(pod, spec, context);
  if ("why" in application) return { kind: "notInPlace", why: application.why };
  const gated = closesGate(pod, spec) ? closeGate(pod, now) : pod;
  const state = newState(spec, now);
  const labels = { ...gated.metadata?.labels, [revisionLabel]: spec.revision };
  const labelled = { ...gated, metadata: { ...gated.metadata, labels } };
  const recorded = withAnnotation(
    withoutAnnotations(labelled, IN_PLACE_STATE_OLD_ANNOTATION),
    IN_PLACE_STATE_ANNOTATION,
    goJson(state),
  );
  const { graceSeconds } = spec;
  return graceSeconds > 0
    ? step(withAnnotation(recorded, IN_PLACE_GRACE_ANNOTATION, goJson(storedSpec(spec))), graceSeconds)
    : step(withoutGrace(applySpec(recorded, spec, state, application)));
}

type Restarts = Pick<UpdateSpec, "containerImages" | "containerRefMetadata">;

/** `why`: a container that must restart cannot. */
function applicationOf(
  pod: Pod,
  spec: Restarts,
  { now, restartsByAlias }: InPlaceContext,
): Application | { readonly why: string } {
  const aliases = restartsByAlias ? aliasesFor(pod, spec) : undefined;
  return aliases?.kind === "none" ? { why: aliases.why } : { now, aliases };
}

function applied(pod: Pod, spec: Parameters<typeof applySpec>[1], state: InPlaceState, context: InPlaceContext) {
  const application = applicationOf(pod, spec, context);
  if ("why" in application) return { kind: "refused", message: application.why } as const;
  return step(withoutGrace(applySpec(pod, spec, state, application)));
}

/** Continues an update; the same pod when there is nothing to do yet, or any more. */
export function refreshPod(pod: Pod, context: InPlaceContext): InPlaceStep {
  const grace = readGrace(pod);
  if (grace.kind === "present") return finishGrace(pod, grace.value, context);
  const state = readState(pod);
  if (grace.kind === "malformed") return { kind: "refused", message: grace.message };
  if (state.kind === "malformed") return { kind: "refused", message: state.message };
  if (state.kind === "present") {
    const next = continueBatches(pod, state.value, context);
    if (next) return next;
  }
  return step(hasReadinessGate(pod) ? openGate(pod, context.now) : pod);
}

function newState(spec: UpdateSpec, now: string): InPlaceState {
  return {
    revision: spec.revision,
    updateTimestamp: now,
    lastContainerStatuses: null,
    ...(spec.updateEnvFromMetadata ? { updateEnvFromMetadata: true } : {}),
    ...(Object.keys(spec.containerResources).length > 0 ? { updateResources: true } : {}),
    ...(Object.keys(spec.containerImages).length > 0 ? { updateImages: true } : {}),
  };
}

/**
 * Drops an update whose pod moved to another revision meanwhile. Compat: one with an unreadable state stays, silently
 * (OpenKruise's finishGracePeriod).
 */
function finishGrace(pod: Pod, spec: UpdateSpec, context: InPlaceContext): InPlaceStep {
  const { now, revisionLabel } = context;
  const state = readState(pod);
  if (state.kind === "malformed") return step(pod);
  if (state.kind === "absent")
    return { kind: "refused", message: `annotation ${IN_PLACE_STATE_ANNOTATION} is missing` };
  if ((pod.metadata?.labels?.[revisionLabel] ?? "") !== spec.revision) return step(withoutGrace(pod));
  const elapsed = secondsBetween(state.value.updateTimestamp, now) ?? Number.POSITIVE_INFINITY;
  if (elapsed < spec.graceSeconds) return step(pod, spec.graceSeconds - elapsed);
  return applied(pod, spec, state.value, context);
}

/** The pod to write or, while the present batch is under way, to leave; undefined when there is no further batch. */
function continueBatches(pod: Pod, state: InPlaceState, context: InPlaceContext): InPlaceStep | undefined {
  if (whyBatchNotCompleted(pod, state) !== undefined) return step(pod);
  if (!hasNextBatch(state)) return undefined;
  const required = state.preCheckBeforeNext?.containersRequiredReady ?? [];
  if (!required.every((name) => isContainerReady(pod, name))) return step(pod);
  const { nextContainerImages = {}, nextContainerRefMetadata = {}, nextContainerResources = {} } = state;
  // Compat: resources alone never start a batch (controller.md, section 12).
  if (Object.keys(nextContainerImages).length + Object.keys(nextContainerRefMetadata).length === 0) return undefined;
  const spec = {
    containerImages: nextContainerImages,
    containerRefMetadata: nextContainerRefMetadata,
    containerResources: nextContainerResources,
  };
  return applied(pod, spec, state, context);
}

function isContainerReady({ status }: Pod, container: string): boolean {
  return status?.containerStatuses?.find(({ name }) => name === container)?.ready === true;
}

function withoutGrace(pod: Pod): Pod {
  return withoutAnnotations(pod, IN_PLACE_GRACE_ANNOTATION, IN_PLACE_GRACE_OLD_ANNOTATION);
}

function withoutAnnotations(pod: Pod, ...keys: readonly string[]): Pod {
  const annotations = Object.entries(pod.metadata?.annotations ?? {}).filter(([key]) => !keys.includes(key));
  return { ...pod, metadata: { ...pod.metadata, annotations: Object.fromEntries(annotations) } };
}

function step(pod: Pod, delaySeconds = 0): InPlaceStep {
  return { kind: "step", pod, delaySeconds };
}

// How the readiness gate of in-place updates and the pod's Ready condition follow each other.

export function hasReadinessGate({ spec }: Pod): boolean {
  return (spec.readinessGates ?? []).some(({ conditionType }) => conditionType === IN_PLACE_READY_CONDITION);
}

/** A pod is not ready meanwhile, unless nothing but resources changes and no container of it restarts for them. */
function closesGate(pod: Pod, { verticalUpdateOnly, containerResources }: UpdateSpec): boolean {
  return hasReadinessGate(pod) && (!verticalUpdateOnly || restartsForResources(pod, containerResources));
}

function restartsForResources({ spec }: Pod, resources: UpdateSpec["containerResources"]): boolean {
  return (spec.containers as readonly ContainerDetails[]).some(({ name, resizePolicy = [] }) => {
    const { limits = {}, requests = {} } = resources[name] ?? {};
    const changed = [...Object.keys(limits), ...Object.keys(requests)];
    return resizePolicy.some(
      ({ resourceName = "", restartPolicy }) => restartPolicy === "RestartContainer" && changed.includes(resourceName),
    );
  });
}

/** Closes the gate, and the pod's Ready with it, because the kubelet would be slower. */
export function closeGate(pod: Pod, now: string): Pod {
  const type = IN_PLACE_READY_CONDITION;
  const closed = setCondition(pod, { type, status: "False", reason: "StartInPlaceUpdate", lastTransitionTime: now });
  return setReady(closed);
}

/** Opens the gate. Ready is left to the kubelet. */
export function openGate(pod: Pod, now: string): Pod {
  return setCondition(pod, { type: IN_PLACE_READY_CONDITION, status: "True", lastTransitionTime: now });
}
