/** Finds whether the containers of a pod run what its spec says, as far as its status shows. */
import type { Container, ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { fullImageName, parseImageReference } from "../../go/image-reference.ts";
import { lastContainerStatuses, NO_STATUSES } from "./update-state.ts";
import { isRestarted, valuesRecord } from "./values-record.ts";

/**
 * Compares the containers in `names` only, but requires one status per container of the pod. Compat: image texts are
 * compared only while the imageID is the one recorded before the upgrade. Digests are compared only up to the first
 * image named by tag (status, hand/digest-images and hand/state-annotation-corner).
 */
export function isConsistent(
  pod: Pod,
  sidecarSetName: string,
  names: ReadonlySet<string>,
  /** the present time, RFC3339; absent: a restart at any time counts */
  now?: string,
): boolean {
  const statuses = pod.status?.containerStatuses ?? [];
  if (pod.spec.containers.length !== statuses.length) return false;
  const before = valuesRecord(pod, sidecarSetName)?.before;
  if (before === undefined)
    return areConsistent(pod, sidecarSetName, named(pod.spec.containers, names), named(statuses, names));
  // The record of the earlier container already shows that another one runs, so the image is not needed.
  const rest = new Set([...names].filter((name) => before[name] === undefined));
  const areRestarted = named(statuses, names).every((status) => {
    const ran = before[status.name];
    return ran === undefined || isRestarted(status, ran, now);
  });
  if (rest.size === 0) return areRestarted;
  return areRestarted && areConsistent(pod, sidecarSetName, named(pod.spec.containers, rest), named(statuses, rest));
}

/** The elements with these names. It saves memory, because every pod of a rollout is checked. */
function named<T extends { readonly name: string }>(all: readonly T[], names: ReadonlySet<string>): readonly T[] {
  let found: readonly T[] | undefined;
  for (const one of all) if (names.has(one.name)) found = found ? [...found, one] : [one];
  return found ?? [];
}

/** Makes the same comparison for a pod's containers or init containers, each with its status if it has one. */
export function areConsistent(
  pod: Pod,
  sidecarSetName: string,
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
): boolean {
  const firstByTag = containers.findIndex(({ image }) => digestOf(image) === undefined);
  if (firstByTag === 0) return isUpdateCompleted(pod, sidecarSetName, containers, statuses);
  if (firstByTag === -1) return runTheirDigests(containers, statuses);
  if (!runTheirDigests(containers.slice(0, firstByTag), statuses)) return false;
  return isUpdateCompleted(pod, sidecarSetName, containers, statuses);
}

function runTheirDigests(containers: readonly Container[], statuses: readonly ContainerStatus[]): boolean {
  // A search for each container is quick: there are few containers, and many pods.
  const imageIDOf = (container: string) => statuses.findLast(({ name }) => name === container)?.imageID;
  return containers.every(({ name, image = "" }) => isSameDigest(image, imageIDOf(name)));
}

/** False while a container has the imageID from before the upgrade and an image text that differs from its spec. */
function isUpdateCompleted(
  pod: Pod,
  sidecarSetName: string,
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
): boolean {
  const before = lastContainerStatuses(pod, sidecarSetName);
  if (before === undefined) return false;
  if (before === NO_STATUSES) return true;
  const imageOf = (status: string) => containers.findLast(({ name }) => name === status)?.image ?? "";
  return statuses
    .filter(({ name }) => Object.hasOwn(before, name))
    .every(
      ({ name, imageID = "", image = "" }) => (before[name]?.imageID ?? "") !== imageID || imageOf(name) === image,
    );
}

function digestOf(image: string | undefined): string | undefined {
  // Most images have only a tag, and then no regular expression runs.
  return image?.includes("@") ? parseImageReference(image)?.digest : undefined;
}

/**
 * True if a container runs the image of its spec. If both texts have a digest, the digests decide. Compat: OpenKruise
 * also compares the repositories, so a mirror, a short name, or a bare digest would never be complete there. An imageID
 * without a digest is compared by repository and tag, as in OpenKruise.
 */
function isSameDigest(image: string, imageID: string | undefined): boolean {
  const wanted = parseImageReference(image);
  const [scheme = "", rest] = (imageID ?? "").split("://");
  const text = rest ?? scheme;
  if (wanted === undefined) return false;
  if (wanted.digest !== undefined && text === wanted.digest) return true;
  const running = parseImageReference(text);
  if (running === undefined) return false;
  if (running.digest !== undefined && wanted.digest !== undefined) return wanted.digest === running.digest;
  return fullImageName(wanted.repository) === fullImageName(running.repository) && wanted.tag === running.tag;
}
