/** Decides which containers of a job's pod are sidecars that may end, and whether it is time that they do. */
import type { Container, Pod } from "../../api/kubernetes.ts";
import { IGNORE_EXIT_CODE_ENV, TERMINATE_SIDECAR_ENV, TERMINATE_SIDECAR_WITH_IMAGE_ENV } from "../../api/names.ts";

/** Names of containers, by how each is ended. */
export interface JobSidecars {
  /** by recreating it: it ends, and isn't started again in a pod that is done */
  readonly normal: readonly string[];
  /** as normal, once the pod's phase is written: its exit code shall not count */
  readonly ignoringExitCode: readonly string[];
  /** by an image that exits at once, where nothing can recreate a container */
  readonly byImage: readonly string[];
}

/** The pod's main containers are done, and a sidecar still keeps it running. */
export function isWaitingForSidecars(pod: Pod): boolean {
  if (pod.metadata?.deletionTimestamp || pod.status?.phase === "Pending") return false;
  return isJobDone(pod) && !areTerminated(pod, namesOf(pod));
}

const ENDING_VARIABLES = new Set([TERMINATE_SIDECAR_ENV, TERMINATE_SIDECAR_WITH_IMAGE_ENV, IGNORE_EXIT_CODE_ENV]);

/** The pod in the fields by which its end is decided on and written. */
export function projectEnding({ metadata = {}, spec, status }: Pod): Pod {
  const { namespace, name, uid, resourceVersion } = metadata;
  const containers = spec.containers.map(({ name: container, image, env = [] }) => ({
    name: container,
    ...(image === undefined ? {} : { image }),
    env: env.filter((one) => ENDING_VARIABLES.has(one.name)),
  }));
  return {
    metadata: { namespace, name, uid, resourceVersion } as NonNullable<Pod["metadata"]>,
    spec: {
      containers,
      ...(spec.restartPolicy === undefined ? {} : { restartPolicy: spec.restartPolicy }),
      ...(spec.nodeName === undefined ? {} : { nodeName: spec.nodeName }),
    },
    status: {
      ...(status?.phase === undefined ? {} : { phase: status.phase }),
      containerStatuses: status?.containerStatuses ?? [],
    },
  };
}

function isJobDone(pod: Pod): boolean {
  const { restartPolicy } = pod.spec;
  if (restartPolicy === "Never") return areTerminated(pod, mainContainers(pod));
  return restartPolicy === "OnFailure" && areSuccessful(pod, mainContainers(pod));
}

function namesOf({ spec }: Pod): readonly string[] {
  return spec.containers.map(({ name }) => name);
}

/** Compat: each kind of node knows its own way only; sidecars that ask for the other one stay (vector vk-normal-without-image-env-does-nothing). */
export function jobSidecars({ spec }: Pod, isOnVirtualKubelet: boolean): JobSidecars {
  const names = (isWanted: (container: Container) => boolean) =>
    spec.containers.filter(isWanted).map(({ name }) => name);
  if (isOnVirtualKubelet) return { normal: [], ignoringExitCode: [], byImage: names(endsByImage) };
  return {
    normal: names((container) => isNormal(container) && !ignoresExitCode(container)),
    ignoringExitCode: names((container) => isNormal(container) && ignoresExitCode(container)),
    byImage: [],
  };
}

/** The image that ends a container, or undefined. */
export function endingImage({ env }: Container): string | undefined {
  return env?.find(({ name }) => name === TERMINATE_SIDECAR_WITH_IMAGE_ENV)?.value || undefined;
}

export function mainContainers({ spec }: Pod): readonly string[] {
  return spec.containers.filter((container) => !isSidecar(container)).map(({ name }) => name);
}

/** False for all as long as a container has no status. */
export function areTerminated(pod: Pod, names: readonly string[]): boolean {
  return statusesOf(pod, names)?.every(({ state }) => state?.terminated !== undefined) ?? false;
}

/** Terminated, each with exit code 0. */
export function areSuccessful(pod: Pod, names: readonly string[]): boolean {
  return (
    statusesOf(pod, names)?.every(({ state }) => state?.terminated && (state.terminated.exitCode ?? 0) === 0) ?? false
  );
}

export function unfinished(pod: Pod, names: readonly string[]): readonly string[] {
  const done = new Set(
    (pod.status?.containerStatuses ?? []).flatMap(({ name, state }) => (state?.terminated ? [name] : [])),
  );
  return names.filter((name) => !done.has(name));
}

/** Undefined until every container has a status. */
function statusesOf(pod: Pod, names: readonly string[]) {
  const statuses = pod.status?.containerStatuses ?? [];
  if (statuses.length !== pod.spec.containers.length) return undefined;
  return statuses.filter(({ name }) => names.includes(name));
}

function isSidecar(container: Container): boolean {
  return isNormal(container) || endsByImage(container);
}

function isNormal(container: Container): boolean {
  return saysTrue(container, TERMINATE_SIDECAR_ENV);
}

function ignoresExitCode(container: Container): boolean {
  return saysTrue(container, IGNORE_EXIT_CODE_ENV);
}

function endsByImage({ env }: Container): boolean {
  return (env ?? []).some(({ name, value }) => name === TERMINATE_SIDECAR_WITH_IMAGE_ENV && Boolean(value));
}

function saysTrue({ env }: Container, variable: string): boolean {
  return (env ?? []).some(({ name, value }) => name === variable && value?.toLowerCase() === "true");
}
