/** Decides how far the recreation of each requested container has come. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateState,
  ContainerStatusSnapshot,
  RecreatedContainer,
} from "../../api/container-recreate-request.ts";
import { secondsBetween } from "../../go/seconds-between.ts";

/** What a container is seen to be right now. */
export interface SeenContainer {
  readonly name: string;
  /** with the runtime's prefix, as in a container status */
  readonly id: string;
  /** exited: its process is gone and the next one is on its way */
  readonly state: "running" | "exited" | "created" | "unknown";
  readonly restartCount: number;
  /** RFC 3339; absent while it doesn't run */
  readonly startedAt?: string;
}

/** One state for each requested container, in the request's order; one that has succeeded or failed stays so. */
export function containerStates(
  request: ContainerRecreateRequest,
  seen: readonly SeenContainer[],
  now: string,
): readonly ContainerRecreateState[] {
  return request.spec.containers.map((container) => {
    const before = request.status?.containerRecreateStates?.find(({ name }) => name === container.name);
    if (before?.phase === "Succeeded" || before?.phase === "Failed") return before;
    const found = seen.find(({ name }) => name === container.name);
    const { name } = container;
    const killed = before?.isKilled ? { isKilled: true } : {};
    if (!found) return { name, ...killed, phase: "Pending", message: "not found container on Node" };
    return { name, ...killed, phase: phaseOf(request, container, { found, isKilled: before?.isKilled ?? false, now }) };
  });
}

interface Sight {
  readonly found: SeenContainer;
  readonly isKilled: boolean;
  readonly now: string;
}

function phaseOf(request: ContainerRecreateRequest, container: RecreatedContainer, { found, isKilled, now }: Sight) {
  if (found.state === "exited") return "Recreating";
  if (request.spec.strategy?.forceRecreate && !isKilled) return "Pending";
  if (!isAnother(container, found)) return "Pending";
  const snapshot = request.status?.containerStatusSnapshot?.find(({ name }) => name === container.name);
  return isUp(request, { found, snapshot, now }) ? "Succeeded" : "Recreating";
}

/** Not the container that ran when the request was made. */
function isAnother({ statusContext }: RecreatedContainer, { id, restartCount }: SeenContainer): boolean {
  if (!statusContext) return false;
  return statusContext.containerID !== id || restartCount > (statusContext.restartCount ?? 0);
}

function isUp(
  { spec }: ContainerRecreateRequest,
  { found, snapshot, now }: { found: SeenContainer; snapshot: ContainerStatusSnapshot | undefined; now: string },
): boolean {
  if (!snapshot?.ready || snapshot.containerID !== found.id) return false;
  const seconds = secondsBetween(found.startedAt ?? "", now) ?? 0;
  return seconds > (spec.strategy?.minStartedSeconds ?? 0);
}
