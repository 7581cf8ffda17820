/** Decides how the image of a container can be written in another way that means the same: a kubelet restarts it then. */
import type { Container, ContainerStatus } from "../../api/kubernetes.ts";
import { fullImageName, type ImageReference, parseImageReference } from "../../go/image-reference.ts";

export type ImageAlias =
  | { readonly kind: "alias"; readonly image: string }
  /** one sentence */
  | { readonly kind: "none"; readonly why: string };

/** Runtimes that complete a short name with docker.io; others may look elsewhere. */
const COMPLETED_BY = /^(?:containerd|docker):\/\//;
const HUB = "docker.io";
const OFFICIAL = "library";
const DEFAULT_TAG = "latest";

/**
 * `running` is the container's status: what its image was resolved to. One that is always pulled keeps its tag where it
 * can, so that it is pulled now.
 */
export function aliasOf(
  { image = "", imagePullPolicy }: Pick<Container, "image" | "imagePullPolicy">,
  running: ContainerStatus | undefined,
): ImageAlias {
  const reference = parseImageReference(image);
  if (!reference) return { kind: "none", why: `the image ${JSON.stringify(image)} is no image reference` };
  const byOthers = imagePullPolicy === "Always" ? [byHub, byPin] : [byPin, byHub];
  const alias =
    byDigest(reference) ?? byTag(reference) ?? byOthers.map((write) => write(reference, running)).find(Boolean);
  if (alias) return { kind: "alias", image: alias };
  const id = running?.imageID
    ? `its imageID ${running.imageID} names no digest in that repository`
    : "it has no imageID";
  return { kind: "none", why: `the image ${image} can't be written in another way that means the same: ${id}` };
}

/** Beside a digest a tag says nothing. */
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

/** To what runs, whatever the tag names by now: a kubelet may ask the registry for a tag under another name. */
function byPin({ repository, tag }: ImageReference, running: ContainerStatus | undefined): string | undefined {
  const resolved = parseImageReference((running?.imageID ?? "").replace(/^[a-z-]+:\/\//, ""));
  if (!resolved?.digest) return undefined;
  const full = COMPLETED_BY.test(running?.containerID ?? "") ? fullImageName : (name: string) => name;
  return full(resolved.repository) === full(repository) ? `${repository}:${tag}@${resolved.digest}` : undefined;
}
