/** Decides everything that is to be done for one request now: its own bookkeeping, the pod's readiness, the images. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestStatus,
  RecreateCondition,
} from "../../api/container-recreate-request.ts";
import type { Pod } from "../../api/kubernetes.ts";
import { RECREATE_POD_UID_LABEL, RECREATE_TAKEN_UP_CONDITION } from "../../api/names.ts";
import { sortedGoJson } from "../../go/json/go-json.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { planRecreation, type RecreationPlan } from "./plan-recreation.ts";
import { type RequestAction, trackRequest } from "./track-request.ts";

export type ServeAction =
  | RequestAction
  /** comes before the status that says so */
  | ({ readonly kind: "PatchImages" } & Pick<RecreationPlan, "images" | "annotations">);

/** Nothing is known of which pod it was made for. */
const UNADMITTED =
  "this request was stored without its webhook, so it names no pod by uid: register the webhook and create another one";
/** More than any pod has; a longer list costs each look seconds. */
const MOST_CONTAINERS = 1_000;

/** For a request that has its turn, or that has ended. `pod` is the one of that name, or undefined. */
export function serveRequest(
  request: ContainerRecreateRequest,
  pod: Pod | undefined,
  now: string,
): readonly ServeAction[] {
  const { metadata, status } = request;
  if (metadata?.deletionTimestamp || status?.completionTime) return trackRequest(request, pod, now).actions;
  if (!metadata?.labels?.[RECREATE_POD_UID_LABEL]) return statusAction(request, unserved(request, now, UNADMITTED));
  const { length } = request.spec.containers;
  if (length > MOST_CONTAINERS)
    return statusAction(
      request,
      unserved(request, now, `${length} containers are more than ${MOST_CONTAINERS}: make requests with fewer`),
    );
  const begun = takenUp({ ...request, status: withoutMessage(status) }, status?.phase ?? "", now);
  const { actions } = trackRequest(begun, pod, now);
  const observed = actions.flatMap((action) => (action.kind === "PatchRequestStatus" ? [action.status] : []))[0];
  const before = actions.filter(({ kind }) => kind !== "PatchRequestStatus");
  if (!pod || observed?.completionTime) return [...before, ...statusAction(request, observed ?? begun.status)];
  const plan = planRecreation({ ...begun, status: observed ?? begun.status }, pod, now);
  const { images, annotations } = plan;
  const patch = images.length === 0 ? [] : [{ kind: "PatchImages", images, annotations } as const];
  return [...before, ...patch, ...statusAction(request, plan.status)];
}

/** Nothing when the status says so already, in whichever order: API servers sort what they store. */
export function statusAction(
  { status }: ContainerRecreateRequest,
  wanted: ContainerRecreateRequestStatus,
): readonly RequestAction[] {
  return sortedGoJson(status ?? {}) === sortedGoJson(wanted) ? [] : [{ kind: "PatchRequestStatus", status: wanted }];
}

/** The message of one that waited says why it waited. */
function withoutMessage(status: ContainerRecreateRequestStatus | undefined): ContainerRecreateRequestStatus {
  const { message: _, ...rest } = status ?? {};
  return { ...rest, phase: "Recreating" };
}

/** Before anything was done. */
function unserved({ status }: ContainerRecreateRequest, now: string, message: string): ContainerRecreateRequestStatus {
  return { ...status, phase: "Completed", completionTime: now, message };
}

// From when the deadline of a request counts: OpenKruise's daemon begins at once, a pass when it comes to it.

/** What nobody came to for so long, and past its deadline, nobody expects any more. */
const LATEST_START_SECONDS = 3_600;

type Seen = ContainerRecreateRequest & { readonly status: ContainerRecreateRequestStatus };

/**
 * The request with the time that it was taken up in its status, and with a deadline that counts from there where it is
 * one from its creation. Otherwise a deadline shorter than the time between two passes would end it untried.
 */
function takenUp(request: Seen, phase: string, now: string): Seen {
  const { spec, status, metadata } = request;
  const deadline = spec.activeDeadlineSeconds;
  if (deadline === undefined) return request;
  const created = metadata?.creationTimestamp ?? now;
  const since = takenUpAt(status) ?? startNow(phase, deadline, secondsBetween(created, now) ?? 0, now);
  if (since === undefined) return request;
  const activeDeadlineSeconds = deadline + (secondsBetween(created, since) ?? 0);
  return { ...request, spec: { ...spec, activeDeadlineSeconds }, status: withTime(status, since) };
}

/** Undefined: it is not to begin any more, or began before that was written down. */
function startNow(phase: string, deadline: number, age: number, now: string): string | undefined {
  if (phase === "Recreating") return undefined;
  return phase === "Pending" || age < Math.max(deadline, LATEST_START_SECONDS) ? now : undefined;
}

function takenUpAt({ conditions }: ContainerRecreateRequestStatus): string | undefined {
  return conditions?.find(({ type }) => type === RECREATE_TAKEN_UP_CONDITION)?.lastTransitionTime;
}

function withTime(status: ContainerRecreateRequestStatus, since: string): ContainerRecreateRequestStatus {
  if (takenUpAt(status) !== undefined) return status;
  const condition: RecreateCondition = {
    type: RECREATE_TAKEN_UP_CONDITION,
    status: "True",
    reason: RECREATE_TAKEN_UP_CONDITION,
    message: "activeDeadlineSeconds count from here",
    lastTransitionTime: since,
  };
  return { ...status, conditions: [...(status.conditions ?? []), condition] };
}
