/** Repository, tag and digest in the text of a container image. */

const HOST = "[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*";
const DOMAIN = `(?:${HOST}(?:\\.${HOST})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PATH = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const NAME = `(?:${DOMAIN}/)?${PATH}(?:/${PATH})*`;
const REFERENCE = new RegExp(`^(${NAME})(?::([a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}))?(?:@([^@]+))?$`);
const DIGEST = /^(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$/;
/** the hex id of an image, which docker distinguishes from names */
const IDENTIFIER = /^[a-f0-9]{64}$/;
const MAX_NAME = 255;
/** Longest text with name, tag and digest. A longer text cannot be a reference. */
const MAX_REFERENCE = 600;

export interface ImageReference {
  /** repository as written: docker.io/library is not added */
  readonly repository: string;
  readonly tag?: string;
  /** algorithm and hex; absent for an image named by tag */
  readonly digest?: string;
}

/** Undefined when the text is no image reference. Source: the grammar of github.com/distribution/reference. */
export function parseImageReference(image: string): ImageReference | undefined {
  if (image.length > MAX_REFERENCE) return undefined;
  const [, repository = "", tag, digest] = REFERENCE.exec(image) ?? [];
  if (repository === "" || repository.length > MAX_NAME || IDENTIFIER.test(image)) return undefined;
  const named = tag === undefined ? { repository } : { repository, tag };
  if (digest === undefined) return named;
  return DIGEST.test(digest) ? { ...named, digest } : undefined;
}

/**
 * An image as container runtimes write it into a status: `docker.io/library/nginx:latest` for `nginx`. Source: the
 * familiar names of github.com/distribution/reference, which containerd and docker resolve before they pull. A text that
 * is too long for a reference stays as it is.
 */
export function fullImageName(image: string): string {
  if (image.length > MAX_REFERENCE) return image;
  const [first = "", ...rest] = image.split("/");
  const hasRegistry = rest.length > 0 && /[.:]|^localhost$/.test(first);
  const name = hasRegistry ? image : `docker.io/${rest.length === 0 ? "library/" : ""}${image}`;
  return /@|:[^/]+$/.test(name) ? name : `${name}:latest`;
}
