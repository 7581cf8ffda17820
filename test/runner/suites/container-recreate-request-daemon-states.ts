/** Tests the state of each container's recreation in a request. */
import type {
  ContainerRecreateRequest,
  ContainerRecreateState,
} from "../../../shared/api/container-recreate-request.ts";
import { containerStates, type SeenContainer } from "../../../shared/core/container-recreate/serve-request.ts";
import { compare, type Difference } from "../compare.ts";

interface RuntimeContainer {
  readonly name: string;
  readonly id: string;
  readonly state: SeenContainer["state"];
  readonly restartCount: number;
  readonly startedSecondsAgo: number;
}

interface Input {
  readonly now: string;
  readonly crr: ContainerRecreateRequest;
  readonly runtimeContainers: readonly RuntimeContainer[];
}

function seen({ name, id, state, restartCount, startedSecondsAgo }: RuntimeContainer, now: string): SeenContainer {
  const startedAt = new Date(Date.parse(now) - startedSecondsAgo * 1000).toISOString();
  return { name, id: `containerd://${id}`, state, restartCount, startedAt };
}

export function daemonStatesSuite(
  { crr, runtimeContainers, now }: Input,
  expected: { readonly containerRecreateStates: readonly ContainerRecreateState[] | null },
): readonly Difference[] {
  const states = containerStates(
    crr,
    runtimeContainers.map((container) => seen(container, now)),
    now,
  );
  return compare(states, expected.containerRecreateStates ?? []);
}
