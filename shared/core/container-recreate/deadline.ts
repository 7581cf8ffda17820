/** Decides from when the deadline of a request counts: OpenKruise's daemon begins at once, a pass when it comes to it. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestStatus,
  RecreateCondition,
} from "../../api/container-recreate-request.ts";
import { RECREATE_TAKEN_UP_CONDITION } from "../../api/names.ts";
import { secondsBetween } from "../../go/seconds-between.ts";

/** What nobody came to for so long, and past its deadline, nobody expects any more. */
const LATEST_START_SECONDS = 3_600;

type Seen = ContainerRecreateRequest & { readonly status: ContainerRecreateRequestStatus };

/**
 * The request with the time that it was taken up in its status, and with a deadline that counts from there where it is
 * one from its creation. Otherwise a deadline shorter than the time between two passes would end it untried.
 */
export function takenUp(request: Seen, phase: string, now: string): Seen {
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
