/** Other spellings of a container's image with the same meaning; a new one makes the kubelet restart the container. */
import type { Container, ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { fullImageName, type ImageReference, parseImageReference } from "../../go/image-reference.ts";

export type ImageAlias =
  | { readonly kind: "alias"; readonly image: string }
  /** the reason in one sentence */
  | { readonly kind: "none"; readonly why: string };

/** Runtimes that complete a short name with docker.io; others may look elsewhere. */
const COMPLETED_BY = /^(?:containerd|docker):\/\//;
const HUB = "docker.io";
const OFFICIAL = "library";
const DEFAULT_TAG = "latest";

/**
 * A new spelling for a container's image. `running`: the container's status with the resolved image. If the image is
 * always pulled, its tag stays if possible, so that the kubelet pulls it now.
 */
export function aliasOf(
  container: Pick<Container, "image" | "imagePullPolicy">,
  running: ContainerStatus | undefined,
): ImageAlias {
  const { image = "" } = container;
  if (!parseImageReference(image))
    return { kind: "none", why: `the image ${JSON.stringify(image)} is no image reference` };
  const [alias] = spellingsOf(container, running);
  if (alias) return { kind: "alias", image: alias };
  const id = running?.imageID
    ? `its imageID ${running.imageID} names no digest in that repository`
    : "it has no imageID";
  return { kind: "none", why: `the image ${image} can't be written in another way that means the same: ${id}` };
}

type Written = Pick<Container, "image" | "imagePullPolicy">;

/** All other spellings with the same meaning, the best one first. */
export function spellingsOf(container: Written, running: ContainerStatus | undefined): readonly string[] {
  // A set's iteration includes items added meanwhile.
  const all = new Set([container.image ?? ""]);
  for (const image of all) for (const other of neighboursOf({ ...container, image }, running)) all.add(other);
  return [...all].slice(1);
}

function neighboursOf({ image = "", imagePullPolicy }: Written, running: ContainerStatus | undefined) {
  const reference = parseImageReference(image);
  if (reference === undefined) return [];
  const byOthers = imagePullPolicy === "Always" ? [byHub, byPin] : [byPin, byHub];
  const ways = reference.digest ? [byDigest] : reference.tag === undefined ? [byTag] : [byTag, ...byOthers];
  return ways.flatMap((write) => write(reference, running) ?? []);
}

/** True if both images name the same tag of a repository, with any digest, or the same digest. */
export function isSameImage(one: string, other: string): boolean {
  const [left, right] = [one, other].map((image) => parseImageReference(fullImageName(image)));
  if (left === undefined || right === undefined || left.repository !== right.repository) return one === other;
  if (left.digest !== undefined && right.digest !== undefined) return left.digest === right.digest;
  return left.tag === right.tag;
}

/** The alias by digest. A tag beside a digest has no effect. */
function byDigest({ repository, tag, digest }: ImageReference): string | undefined {
  if (!digest) return undefined;
  return tag ? `${repository}@${digest}` : `${repository}:${DEFAULT_TAG}@${digest}`;
}

function byTag({ repository, tag }: ImageReference): string | undefined {
  if (tag === undefined) return `${repository}:${DEFAULT_TAG}`;
  return tag === DEFAULT_TAG ? repository : undefined;
}

function byHub({ repository, tag }: ImageReference, running: ContainerStatus | undefined): string | undefined {
  if (!COMPLETED_BY.test(running?.containerID ?? "")) return undefined;
  const [domain = "", ...path] = repository.split("/");
  if (domain === HUB) {
    const short = path[0] === OFFICIAL && path.length === 2 ? path.slice(1) : path;
    return `${short.join("/")}:${tag}`;
  }
  if (path.length > 0 && (/[.:]/.test(domain) || domain === "localhost")) return undefined;
  return `${HUB}/${path.length === 0 ? `${OFFICIAL}/` : ""}${repository}:${tag}`;
}

/** The spelling by the digest of the running image. A kubelet may resolve the tag again under another name. */
function byPin({ repository, tag }: ImageReference, running: ContainerStatus | undefined): string | undefined {
  const resolved = parseImageReference((running?.imageID ?? "").replace(/^[a-z-]+:\/\//, ""));
  if (!resolved?.digest) return undefined;
  const full = COMPLETED_BY.test(running?.containerID ?? "") ? fullImageName : (name: string) => name;
  return full(resolved.repository) === full(repository) ? `${repository}:${tag}@${resolved.digest}` : undefined;
}

// Spells images of statuses as in the spec, if a runtime has expanded them.

const HUB_PREFIX = "docker.io/";

/**
 * The pod with the images of its statuses spelled as in the spec: `nginx:1.29` for containerd's
 * `docker.io/library/nginx:1.29`. OpenKruise compares letters, so a pod with a reverted image would never be complete.
 * The same pod if no image is short. `compared`: the spec's image for that comparison.
 */
export function withSpecImages(pod: Pod, compared = (image: string) => image): Pod {
  const { spec, status } = pod;
  const before = status?.containerStatuses ?? [];
  const initBefore = status?.initContainerStatuses ?? [];
  const containerStatuses = renamed(spec.containers ?? [], before, compared);
  const initContainerStatuses = renamed(spec.initContainers ?? [], initBefore, compared);
  if (containerStatuses === before && initContainerStatuses === initBefore) return pod;
  return { ...pod, status: { ...status, containerStatuses, initContainerStatuses } };
}

/** The renamed list, or the same list if nothing changes, as for most pods. */
function renamed(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
  compared: (image: string) => string,
): readonly ContainerStatus[] {
  if (!statuses.some(({ image }) => image?.startsWith(HUB_PREFIX))) return statuses;
  return statuses.map((status) => {
    const image = containers.find(({ name }) => name === status.name)?.image;
    const isShort = image !== undefined && status.image !== image && status.image === fullImageName(image);
    return isShort ? { ...status, image: compared(image) } : status;
  });
}
