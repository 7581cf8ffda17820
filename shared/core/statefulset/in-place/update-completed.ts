/** Tells whether an in-place update of a pod is complete, and otherwise what it waits for. */
import type { Pod, ResourceRequirements } from "../../../api/kubernetes.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { whyNotRestarted } from "./apply-spec.ts";
import { isSame } from "./calculate-spec.ts";
import { areHashesConsistent, hasRuntimeMeta, runtimeMetaProblem } from "./metadata.ts";
import { type InPlaceState, readGrace, readState } from "./update-spec.ts";

/** Undefined when complete, or when there never was one; else the reason in OpenKruise's words. */
export function whyNotCompleted(pod: Pod): string | undefined {
  if (readGrace(pod).kind !== "absent") return "still in grace period of in-place update";
  const state = readState(pod);
  switch (state.kind) {
    case "absent":
      return undefined;
    case "malformed":
      return state.message;
    case "present":
      return hasNextBatch(state.value)
        ? "existing containers to in-place update in next batches"
        : whyBatchNotCompleted(pod, state.value);
    default:
      return state satisfies never;
  }
}

export function hasNextBatch(state: InPlaceState): boolean {
  const { nextContainerImages = {}, nextContainerRefMetadata = {}, nextContainerResources = {} } = state;
  return [nextContainerImages, nextContainerRefMetadata, nextContainerResources].some(
    (map) => Object.keys(map).length > 0,
  );
}

/** The same about the containers that were updated so far. */
export function whyBatchNotCompleted(pod: Pod, state: InPlaceState): string | undefined {
  const problem = runtimeMetaProblem(pod);
  if (problem !== undefined) return problem;
  if (state.updateEnvFromMetadata) {
    const why = whyEnvironmentNotChanged(pod, state);
    if (why !== undefined) return why;
  }
  const resources = state.updateResources ? whyResourcesNotChanged(pod) : undefined;
  if (resources !== undefined) return resources;
  return hasRuntimeMeta(pod) && areHashesConsistent(pod, "plain") ? undefined : whyImagesNotChanged(pod, state);
}

/** The answer of a daemon, or else of the containers that the pass restarted. */
function whyEnvironmentNotChanged(pod: Pod, state: InPlaceState): string | undefined {
  if (hasRuntimeMeta(pod))
    return areHashesConsistent(pod, "environment") ? undefined : "waiting for all containers hash consistent";
  if (state.restartedContainers) return whyNotRestarted(pod, state);
  return "waiting for all containers hash consistent, but runtime-container-meta not found";
}

/** Statuses come first, in order; containers without one are named as Go prints a map. */
function whyImagesNotChanged(pod: Pod, { lastContainerStatuses }: InPlaceState): string | undefined {
  const before = new Map(Object.entries(lastContainerStatuses ?? {}));
  for (const { name, imageID = "", image } of pod.status?.containerStatuses ?? []) {
    const last = before.get(name);
    if (last && (last.imageID ?? "") === imageID && imageOf(pod, name) !== image) {
      return `container ${name} imageID not changed`;
    }
    before.delete(name);
  }
  if (before.size === 0) return undefined;
  const missing = [...before]
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, { imageID = "" }]) => `${name}:{${imageID}}`);
  return `not found statuses of containers map[${missing.join(" ")}]`;
}

function imageOf(pod: Pod, container: string): string {
  return comparedImage(pod.spec.containers.find(({ name }) => name === container)?.image ?? "");
}

/** How the image of a spec is compared with a status, letter by letter: one without a colon is at its tag latest. */
export function comparedImage(image: string): string {
  return image.includes(":") ? image : `${image}:latest`;
}

/** Compat: of every container all resources are compared, in the order of the statuses (OpenKruise's NativeVerticalUpdate). */
function whyResourcesNotChanged({ spec, status }: Pod): string | undefined {
  const statuses = status?.containerStatuses ?? [];
  if (statuses.length !== spec.containers.length) return "some container status is not reported";
  const behind = statuses.find(({ name, resources }) => {
    const container = spec.containers.find((candidate) => candidate.name === name);
    return !container || !resources || !areSame(container.resources, resources);
  });
  return behind && `container ${behind.name} resources not changed`;
}

function areSame(wanted: ResourceRequirements = {}, reported: ResourceRequirements): boolean {
  return (["limits", "requests"] as const).every((list) => {
    const [some, others] = [Object.entries(wanted[list] ?? {}), reported[list] ?? {}];
    if (some.length !== Object.keys(others).length) return false;
    return some.every(([resource, quantity]) => isSame(quantity, others[resource]));
  });
}
