/** Decides whether the containers of a pod run what its spec says, as far as a status can tell. */
import type { Container, ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { parseImageReference } from "../lib/image-reference.ts";
import { lastContainerStatuses } from "./update-state.ts";

/**
 * Looks at the containers in `names` only, but always asks for one status per container of the pod.
 * Compat: image texts are compared only where the imageID is still the one recorded before the upgrade, and digests
 * only up to the first image named by tag (status, hand/digest-images and hand/state-annotation-corner).
 */
export function isConsistent(pod: Pod, sidecarSetName: string, names: ReadonlySet<string>): boolean {
  const statuses = pod.status?.containerStatuses ?? [];
  if (pod.spec.containers.length !== statuses.length) return false;
  const containers = pod.spec.containers.filter(({ name }) => names.has(name));
  return areConsistent(
    pod,
    sidecarSetName,
    containers,
    statuses.filter(({ name }) => names.has(name)),
  );
}

/** Of the pod's containers or init containers, each with its status where it has one. */
export function areConsistent(
  pod: Pod,
  sidecarSetName: string,
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
): boolean {
  const firstByTag = containers.findIndex(({ image }) => digestOf(image) === undefined);
  const byDigest = firstByTag === -1 ? containers : containers.slice(0, firstByTag);
  // Looked for one by one: they are few, and the pods many.
  const imageIDOf = (container: string) => statuses.findLast(({ name }) => name === container)?.imageID;
  if (!byDigest.every(({ name, image = "" }) => isSameDigest(image, imageIDOf(name)))) return false;
  return firstByTag === -1 || isUpdateCompleted(pod, sidecarSetName, containers, statuses);
}

/** False while a container still has the imageID from before the upgrade and another image text than it should. */
function isUpdateCompleted(
  pod: Pod,
  sidecarSetName: string,
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
): boolean {
  const before = lastContainerStatuses(pod, sidecarSetName);
  if (before === undefined) return false;
  const imageOf = (status: string) => containers.findLast(({ name }) => name === status)?.image ?? "";
  return statuses
    .filter(({ name }) => Object.hasOwn(before, name))
    .every(
      ({ name, imageID = "", image = "" }) => (before[name]?.imageID ?? "") !== imageID || imageOf(name) === image,
    );
}

function digestOf(image: string | undefined): string | undefined {
  return parseImageReference(image ?? "")?.digest;
}

/** `imageID` as a status has it: docker-pullable://repository@digest, or without a scheme. */
function isSameDigest(image: string, imageID: string | undefined): boolean {
  const wanted = parseImageReference(image);
  const [scheme = "", rest] = (imageID ?? "").split("://");
  const running = parseImageReference(rest ?? scheme);
  return running !== undefined && wanted?.repository === running.repository && wanted.digest === running.digest;
}
